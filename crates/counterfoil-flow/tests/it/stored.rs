//! Runs that began under an older version, whose checks were not as strict.

use counterfoil_contract::{Definition, Registry};
use counterfoil_flow::{check, reload};
use std::collections::BTreeMap;

const WORKFLOW: &str = "
workflow: one
agents: { make: { contract: t/make, prompt: Make it. } }
start: work
states:
  work: { agent: make, go: done }
  done: { end: done }
";

const CONTRACT: &str = "
contract: t/make
version: 1
fields: { meta: { run: string, note?: string }, files: [path] }
";

fn definition(rules: &str) -> Definition {
    Definition::from_yaml(&format!("{CONTRACT}{rules}"), "contract.yaml").unwrap()
}

#[test]
fn a_contract_that_is_refused_today_is_still_that_of_a_run_that_began_with_it() {
    let files = BTreeMap::from([("one.yaml".to_owned(), WORKFLOW.to_owned())]);
    let checked = |rules: &str| {
        let mut registry = Registry::new();
        registry.add(definition(rules)).unwrap();
        check("one.yaml", &files, &registry)
    };
    let mut bundle = checked("").unwrap().bundle;
    for rules in [
        "rules: [{ id: a, each: /files, check: size(item) > 0 }]",
        "rules: [{ id: a, check: result.meta.run != '', at: note }]",
    ] {
        assert!(checked(rules).is_err(), "{rules}");
        bundle.contracts.insert("t/make@1".to_owned(), definition(rules));
        let workflow = reload(&bundle).unwrap();
        let contract = &workflow.agents["make"].contract;
        let codes = |text: &str| contract.check_value(&serde_json::from_str(text).unwrap()).codes();
        assert!(codes(r#"{"meta": {"run": "a"}, "files": ["a.rs"]}"#).is_empty(), "{rules}");
        assert!(!codes(r#"{"meta": {"run": ""}, "files": []}"#).is_empty(), "{rules}");
    }
}
