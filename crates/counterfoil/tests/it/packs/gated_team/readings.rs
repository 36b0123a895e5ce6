//! The gates act on what results say in words: what is high or critical, what failed, what says that
//! there is nothing. Each row is a result with the status OK. Those of the first tables do not pass;
//! those of the last ones do. The forms of such words are tested in the contract crate (`wording`).

use super::{Team, but, done, ok, task, way};
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

/// How many fixes a task has.
const FIXES: usize = 3;

/// So many tasks, all with a risk for security.
fn tasks(number: usize) -> Vec<Value> {
    (1..=number)
        .map(|number| {
            let mut planned = task(&format!("T-{number:03}"), &[]);
            planned["risk_flags"] = json!(["security"]);
            planned
        })
        .collect()
}

/// All rows in one run: in each of its tasks the gate says three of them, each of which is a fix,
/// and then passes.
#[track_caller]
fn held_back(gate: &str, fix: &str, pass: &str, rows: &[Value]) {
    let planned = tasks(rows.len().div_ceil(FIXES));
    let mut scenario = Scenario::team().built_in_only().intake().design().plan(&planned);
    let mut expected = Vec::new();
    for rows in rows.chunks(FIXES) {
        for other in ["Reviewer", "QA", "Security"] {
            if other != gate {
                scenario = scenario.passes(&[other]);
            }
        }
        scenario = scenario.codes();
        for row in rows {
            scenario = scenario.says(gate, row.clone()).codes();
            expected.push((row.to_string(), fix.to_owned()));
        }
        scenario = scenario.passes(&[gate]);
        expected.push((ok().to_string(), pass.to_owned()));
    }
    let ran = scenario.released().play();
    let from = format!("{}>", fix.split('>').next().unwrap());
    let taken = way(&ran).into_iter().filter(|step| step.starts_with(&from));
    let taken: Vec<_> = expected.iter().map(|(row, _)| row.clone()).zip(taken).collect();
    assert_eq!(taken, expected, "{ran:?}");
    done(&ran);
}

/// All rows in one run, a task for each: none of them is a fix.
#[track_caller]
fn passed(gate: &str, rows: &[Value]) {
    let mut scenario = Scenario::team().built_in_only().intake().design().plan(&tasks(rows.len()));
    for row in rows {
        scenario = scenario.codes();
        for other in ["Reviewer", "QA", "Security"] {
            scenario = scenario.says(other, if other == gate { row.clone() } else { ok() });
        }
    }
    let ran = scenario.released().play();
    if let Some(step) = way(&ran).iter().position(|step| step.contains(">FIX_")) {
        let task = way(&ran)[..step].iter().filter(|step| *step == "TASK>IMPLEMENT").count();
        panic!("{} is held back: {ran:?}", rows[task - 1]);
    }
    done(&ran);
}

fn finding(finding: &Value) -> Value {
    but(&json!({"artifacts": {"findings": [finding]}}))
}

#[test]
fn severity_counts_wherever_it_stands() {
    let rows = [
        but(&json!({"artifacts": {"notes": ["CRITICAL: eval on input"]}})),
        but(&json!({"artifacts": {"manual_steps": ["CRITICAL: eval on input"]}})),
        but(&json!({"artifacts": {"text": "CRITICAL: eval on input"}})),
        but(&json!({"artifacts": {"HIGH": "eval on input"}})),
        but(&json!({"artifacts": {"report": {"inner": [[{"severity": "high"}]]}}})),
        but(&json!({"artifacts": {"severity": "critical"}})),
        but(&json!({"artifacts": {"critical_findings": 3}})),
        but(&json!({"next": {"reason": "CRITICAL: eval on input"}})),
        finding(&json!("calc.py:3: HIGH: eval on input")),
        finding(&json!({"severity": "cricital", "what": "eval"})),
        finding(&json!({"must_fix": true, "what": "eval"})),
    ];
    held_back("Reviewer", "REVIEW>FIX_REVIEW", "REVIEW>QA", &rows);
}

#[test]
fn a_verdict_in_a_field_of_its_own_counts() {
    let rows = [
        but(&json!({"artifacts": {"approved": false}})),
        but(&json!({"artifacts": {"verdict": "REJECT"}})),
        but(&json!({"artifacts": {"decision": "request changes"}})),
    ];
    held_back("Reviewer", "REVIEW>FIX_REVIEW", "REVIEW>QA", &rows);
}

#[test]
fn test_results_that_are_not_all_passed_hold_back() {
    let rows = [
        json!({"passed": 1, "total": 3}),
        json!(["test_add: ok", "test_sub: FAIL"]),
        json!({"unit": {"passed": 1, "failed": 2}}),
        json!("nothing"),
    ];
    let rows = rows.map(|results| but(&json!({"artifacts": {"test_results": results}})));
    held_back("QA", "QA>FIX_TESTS", "QA>QA_CHECKS", &rows);
}

#[test]
fn an_agent_that_is_no_gate_is_asked_again() {
    let scenario = Scenario::team().intake();
    let scenario = scenario
        .says("Architect", but(&json!({"artifacts": {"notes": ["CRITICAL: the key is logged"]}})))
        .says("Architect", but(&json!({"gates": {"critical_findings": 3}})))
        .design()
        .says("Planner", super::status("FAIL", "enough"));
    let ran = scenario.play();
    super::blocked(&ran, "enough");
    assert_eq!(ran.attempt("DESIGN#1")["repairs_asked"], 2, "{ran:?}");
}

#[test]
fn no_severity_is_seen_where_there_is_none() {
    let rows = [
        but(&json!({"summary": "Looks good. High: 0, Critical: 0."})),
        but(&json!({"summary": "High test coverage, nothing to fix."})),
        finding(&json!("HIGH: eval on input (fixed)")),
        finding(&json!({"severity": "low", "confidence": "critical", "impact": "high"})),
    ];
    passed("Reviewer", &rows);
}

#[test]
fn test_results_that_passed_do() {
    let rows = [
        json!({"passed": 3, "failed": 0, "skipped": 1, "total": 4}),
        json!({"ran": "python3 -m unittest", "result": "Ran 3 tests in 0.001s\n\nOK"}),
        json!("3 passed, 0 failed"),
    ];
    let rows = rows.map(|results| but(&json!({"artifacts": {"test_results": results}})));
    passed("QA", &rows);
}

#[test]
fn concerns_that_say_that_there_are_none_are_none() {
    let rows = ["none", "None.", "No security concerns.", "none found", "n/a", "Nothing to report"];
    let rows = rows.map(|text| but(&json!({"gates": {"security_concerns": [text]}})));
    passed("Security", &rows);
    // Nor is Security asked because of them.
    let none = but(&json!({"gates": {"security_concerns": ["none"]}}));
    let scenario = Scenario::team().intake().codes().says("Reviewer", none.clone());
    let scenario = scenario.says("QA", none).released();
    let ran =
        scenario.run(&["--task", "Add parts", "--input", "slug=play", "--input", "path=lean"]);
    done(&ran);
    assert!(!super::agents(&ran).contains(&"Security"), "{ran:?}");
}
