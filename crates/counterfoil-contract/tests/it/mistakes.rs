//! Runs the cases of `mistakes.yaml`: contracts that do not load, or load with a warning. Those that
//! are stored with a run load as they did when it began.

use counterfoil_contract::{Code, Contract, Definition, Registry};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// The beginning of every contract, as YAML.
    contract: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// The lines that follow.
    lines: String,
    /// The problems with which the contract does not load.
    #[serde(default)]
    refused: Vec<String>,
    /// The warnings about a contract that loads.
    #[serde(default)]
    warned: Vec<String>,
}

#[test]
fn every_mistake_of_a_contract_is_named() {
    let file: File = serde_saphyr::from_str(include_str!("mistakes.yaml")).unwrap();
    for case in &file.cases {
        let yaml = format!("{}\n{}", file.contract, case.lines);
        let (refused, warned) = match Contract::from_yaml(&yaml) {
            Ok(contract) => (Vec::new(), contract.lint()),
            Err(error) => (error.problems, Vec::new()),
        };
        let texts = |problems: Vec<counterfoil_contract::Problem>| -> Vec<String> {
            problems.iter().map(ToString::to_string).collect()
        };
        assert_eq!(texts(refused), case.refused, "{}", case.name);
        assert_eq!(texts(warned), case.warned, "{}", case.name);
    }
}

const META: &str = "
contract: case/meta
version: 1
framing: any-json
fields: { meta: { run: string, note?: string }, findings?: [{ id: string }] }
";

#[test]
fn a_rule_on_an_object_requires_its_fields() {
    let rule = "rules: [{ id: a, each: /meta, when: \"item.run != ''\", require: [note] }]";
    let contract = Contract::from_yaml(&format!("{META}{rule}")).unwrap();
    assert_eq!(contract.check(r#"{"meta": {"run": "a"}}"#).codes(), [Code::MissingWhen]);
    assert!(contract.check(r#"{"meta": {"run": "a", "note": "b"}}"#).is_accepted());
    assert!(contract.check(r#"{"meta": {"run": ""}}"#).is_accepted());
}

#[test]
fn a_stored_contract_loads_as_it_did_when_its_run_began() {
    for lines in [
        "rules: [{ id: a, check: \"result.meta.run != ''\", at: meta }]",
        "rules: [{ id: a, each: /findings, require: [id] }]",
        "rules: [{ id: a, each: /findings/0, require: [id] }]",
        "rules: [{ id: a, unique: /meta/run }]",
        "policy: { salvage: [findings], coerce: { fields: [meta.run] } }",
    ] {
        let definition = Definition::from_yaml(&format!("{META}{lines}"), "stored").unwrap();
        assert!(Contract::compile(definition.clone()).is_err(), "{lines}");
        let contract = Contract::compile_stored(definition.clone()).unwrap();
        assert!(contract.check(r#"{"meta": {"run": "a"}}"#).is_accepted(), "{lines}");
        let mut registry = Registry::new();
        registry.add_stored(definition).unwrap();
        assert!(registry.get("case/meta").is_ok(), "{lines}");
    }
    let wrong = "rules: [{ id: a, check: result.nothing }]";
    let definition = Definition::from_yaml(&format!("{META}{wrong}"), "stored").unwrap();
    assert!(Contract::compile_stored(definition).is_err());
}
