//! Which checks of the project a workflow relies on, and what requires them.

use counterfoil_contract::claim::ClaimPolicy::{Ignore, Require};
use counterfoil_flow::{MissingCheck, Workflow, check, reload};
use std::collections::BTreeMap;

const WORKFLOW: &str = "\
workflow: deliver
contracts: [contracts/work.yaml]
agents:
  worker: { contract: acme/work, prompt: Do it. }
start: work
states:
  work:
    agent: worker
    claims: { passing: require, clean: ignore }
    checks: [build]
    go: all
  all:
    each: { in: \"['a']\", as: item, agent: worker, claims: { clean: { check: style } } }
    go: part
  part: { run: part, go: done }
  done: { end: done }
workflows:
  part:
    start: inner
    states:
      inner: { agent: worker, go: done }
      done: { end: done }
";
const CONTRACT: &str = "\
contract: acme/work
version: 1
fields: { passing: boolean, clean: boolean }
claims:
  passing: { kind: command, check: test }
  clean: { kind: command, check: lint }
examples: [{ passing: true, clean: true }]
";

fn workflow() -> Workflow {
    let files = BTreeMap::from([
        ("workflow.yaml".to_owned(), WORKFLOW.to_owned()),
        ("contracts/work.yaml".to_owned(), CONTRACT.to_owned()),
    ]);
    check("workflow.yaml", &files, &counterfoil_packs::registry()).unwrap()
}

/// Each use as one line.
fn uses(missing: &[MissingCheck]) -> Vec<String> {
    let uses = missing.iter().flat_map(|one| &one.uses);
    uses.map(|found| {
        let by = match &found.claim {
            Some(claim) => format!("{} {:?}", claim.name, claim.policy),
            None => "checks".to_owned(),
        };
        format!(
            "{} by {by} in {}/{} line {}",
            found.check, found.machine, found.state, found.span.line
        )
    })
    .collect()
}

#[test]
fn states_items_and_sub_workflows_rely_on_checks() {
    let missing = workflow().missing_checks([]);
    insta::assert_snapshot!(uses(&missing).join("\n"), @r"
    test by passing Require in /work line 9
    test by passing Record in /all line 12
    test by passing Record in part/inner line 21
    build by checks in /work line 10
    style by clean Record in /all line 13
    lint by clean Record in part/inner line 21
    ");
    let required: Vec<&str> =
        missing.iter().filter(|one| one.is_required()).map(|one| one.check.as_str()).collect();
    assert_eq!(required, ["test"]);
    assert_eq!(workflow().missing_checks(["test", "build", "style", "lint"]), []);
    let misspelt = workflow().missing_checks(["tests", "build", "styles", "lint"]);
    let meant: Vec<_> = misspelt.iter().map(|one| one.meant.as_deref()).collect();
    assert_eq!(meant, [Some("tests"), Some("styles")]);
}

#[test]
fn what_is_recorded_can_be_required_and_stays_so() {
    let mut strict = workflow();
    strict.require_claims();
    let again = reload(&strict.bundle).unwrap();
    for workflow in [&strict, &again] {
        let policies = |state: &counterfoil_flow::State| match &state.kind {
            counterfoil_flow::Step::Agent(dispatch) => {
                let policies = &dispatch.claims.policies;
                let claims = policies.claims.iter().map(|claim| claim.claim.policy);
                claims.chain([policies.protected, policies.tests]).collect::<Vec<_>>()
            }
            _ => Vec::new(),
        };
        let work = policies(&workflow.main.states["work"]);
        assert!(work.contains(&Ignore) && work.iter().all(|one| matches!(one, Ignore | Require)));
        let inner = policies(&workflow.machines["part"].states["inner"]);
        // Two of its contract, `complete`, `protected` and `tests`.
        assert_eq!(inner, [Require; 5]);
        assert!(workflow.missing_checks(["build"]).iter().all(MissingCheck::is_required));
    }
    assert!(!reload(&workflow().bundle).unwrap().bundle.require_claims);
}
