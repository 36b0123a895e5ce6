//! Agents whose results are refused if they have fields that their contract does not define.

use counterfoil_contract::policy::UnknownFields;
use counterfoil_contract::{Definition, Registry};
use counterfoil_flow::{Workflow, check, reload};
use std::collections::BTreeMap;

const SHARED: &str = "contract: t/shared\nversion: 1\nfields: { ok: boolean }";

/// Two agents with the same contract; one of them reviews.
const TWO: &str = "
workflow: two
agents:
  make: { contract: t/shared, prompt: Make it. }
  review: { contract: t/shared, prompt: Review it., unknown_fields: refuse }
  note: { contract: t/shared, prompt: Note it., unknown_fields: keep }
start: work
states:
  work: { agent: make, go: look }
  look: { agent: review, go: write }
  write: { agent: note, go: done }
  done: { end: done }
";

fn checked() -> Workflow {
    let mut registry = Registry::new();
    registry.add(Definition::from_yaml(SHARED, "shared.yaml").unwrap()).unwrap();
    let files = BTreeMap::from([("two.yaml".to_owned(), TWO.to_owned())]);
    check("two.yaml", &files, &registry).unwrap()
}

#[test]
fn the_agent_says_it_and_not_the_contract() {
    let first = checked();
    let stored = reload(&first.bundle).unwrap();
    for workflow in [first, stored] {
        let of = |agent: &str| workflow.agents[agent].contract.clone();
        let hidden = r#"{"ok": true, "findings": ["critical"]}"#;
        for (agent, unknown_fields) in [
            ("make", UnknownFields::Keep),
            ("review", UnknownFields::Refuse),
            ("note", UnknownFields::Keep),
        ] {
            let contract = of(agent);
            assert_eq!(contract.reference(), "t/shared@1");
            assert_eq!(contract.policy().unknown_fields, unknown_fields, "{agent}");
            assert_eq!(contract.check(hidden).is_accepted(), unknown_fields.are_kept(), "{agent}");
        }
        // What is stored with a run is the contract as it was published.
        let stored = &workflow.bundle.contracts["t/shared@1"];
        assert_eq!(stored.policy.unknown_fields, UnknownFields::Keep);
    }
}
