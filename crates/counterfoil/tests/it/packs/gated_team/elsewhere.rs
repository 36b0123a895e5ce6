//! Gates that report something where the contract has no field. Nobody would read it, so the result
//! is asked for again; as long as it stays, the gate does not open.

use super::false_done::{all_but, never_done};
use super::{Team, but, done};
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

/// What nobody reads, whose it is, and the field.
fn elsewhere() -> [(&'static str, Value, &'static str); 7] {
    let critical = || json!([{"severity": "critical", "what": "SQL injection in the login"}]);
    [
        ("Reviewer", but(&json!({"findings": critical()})), "findings"),
        ("Reviewer", but(&json!({"gates": {"critical_findings": 3}})), "critical_findings"),
        ("QA", but(&json!({"severity": "critical"})), "severity"),
        ("QA", but(&json!({"metadata": {"failed_tests": ["login"]}})), "metadata"),
        ("Security", but(&json!({"gates": {"vulnerabilities": critical()}})), "vulnerabilities"),
        ("Security", but(&json!({"next": {"blockers": critical()}})), "blockers"),
        ("Integrator", but(&json!({"approved": false})), "approved"),
    ]
}

#[test]
fn what_nobody_reads_is_never_done() {
    for (gate, said, field) in elsewhere() {
        let lie = |scenario: Scenario| scenario.says(gate, said.clone());
        let ran = all_but(gate, Scenario::team(), lie).play();
        never_done(&ran);
        let refused = format!("`{field}` is not part of the contract");
        assert!(ran.report.to_string().contains(&refused), "{gate}: {refused}: {ran:?}");
    }
}

#[test]
fn a_gate_that_says_when_asked_why_it_does_not_count_gets_through() {
    let mut scenario = Scenario::team().built_in_only().planned().codes();
    for gate in ["Reviewer", "QA", "Security", "Integrator"] {
        let mut named = Vec::new();
        for (_, said, field) in elsewhere().iter().filter(|(whose, ..)| *whose == gate) {
            scenario = scenario.says(gate, said.clone());
            named.push(format!("`{field}`"));
        }
        // What says nothing is no reason to ask.
        let summary = format!("All is well: {} had another program in mind.", named.join(", "));
        let said = json!({"summary": summary, "metadata": {}, "remarks": []});
        scenario = scenario.says(gate, but(&said));
    }
    let ran = scenario.passes(&["Integrator"]).documented().play();
    done(&ran);
    for (attempt, asked) in [("REVIEW#1", 2), ("QA#1", 2), ("SECURITY#1", 2), ("INTEGRATE#1", 1)] {
        assert_eq!(ran.attempt(attempt)["repairs_asked"], asked, "{attempt}: {ran:?}");
    }
}

#[test]
fn a_gate_that_leaves_it_out_when_asked_is_never_done() {
    for (gate, said, _) in elsewhere() {
        let scenario = Scenario::team().says(gate, said);
        let ran = all_but("nobody", scenario, |scenario| scenario).play();
        never_done(&ran);
        assert!(ran.report.to_string().contains("reported a problem in `"), "{gate}: {ran:?}");
    }
}
