//! Results with the least that the origin's own models need.

use counterfoil_contract::{Code, Report};
use counterfoil_packs::contracts::{FixResult, ImplementationResult, validate_output};
use counterfoil_packs::registry;
use serde_json::{Value, json};

fn check(id: &str, value: &Value) -> Report {
    registry().get(id).unwrap().check(&format!("```json\n{value}\n```"))
}

/// The fields that were filled in with a warning.
fn filled_in(report: &Report) -> Vec<&str> {
    assert!(report.is_accepted(), "{report:#?}");
    let defaults = report.warnings.iter().filter(|warning| warning.code == Code::DefaultUsed);
    defaults.map(|warning| warning.pointer.as_str()).collect()
}

#[test]
fn lists_that_are_left_out_are_empty_with_a_warning() {
    let fix = json!({"success": true, "issue_number": 42, "issue_title": "Slow start"});
    assert_eq!(filled_in(&check("review-fix/fix-result", &fix)), ["/files_changed"]);
    let fix: FixResult = validate_output(&format!("```json\n{fix}\n```")).unwrap();
    assert!(fix.files_changed.is_empty());
    let done = json!({
        "success": true, "tasks_completed": 1, "tasks_failed": 0, "tasks_skipped": 0,
        "task_results": [{"task_id": "T001", "status": "completed", "files_changed": [{"file_path": "a.py"}]}]
    });
    let report = check("review-fix/implementation-result", &done);
    assert_eq!(
        filled_in(&report),
        [
            "/task_results/0/files_changed/0/lines_added",
            "/task_results/0/files_changed/0/lines_removed",
            "/task_results/0/duration_ms",
            "/task_results/0/tests_added",
            "/task_results/0/validation",
            "/commits",
            "/files_changed",
        ]
    );
    let done: ImplementationResult = validate_output(&format!("```json\n{done}\n```")).unwrap();
    assert!(done.commits.is_empty() && done.task_results[0].validation.is_empty());
    let none =
        json!({"success": true, "tasks_completed": 0, "tasks_failed": 0, "tasks_skipped": 0});
    assert!(check("review-fix/implementation-result", &none).is_accepted());
}

#[test]
fn a_strict_reader_wants_the_lists() {
    let fix = json!({"success": true, "issue_number": 42, "issue_title": "Slow start"});
    let contract = registry().get("review-fix/fix-result").unwrap();
    let report = contract.check_strictly(&format!("```json\n{fix}\n```"));
    assert_eq!(report.codes(), [Code::Missing]);
}

#[test]
fn a_failure_says_what_went_wrong() {
    for id in
        ["fixer-result", "fix-result", "implementation-result", "review-result", "agent-result"]
    {
        let id = format!("review-fix/{id}");
        let contract = registry().get(&id).unwrap();
        let mut value = contract.definition().examples[0].clone();
        value["success"] = json!(false);
        for field in ["errors", "error", "error_details"] {
            value.as_object_mut().unwrap().shift_remove(field);
        }
        let report = check(&id, &value);
        assert!(!report.is_accepted(), "{id}");
        assert!(report.violations[0].message.contains("success"), "{id}: {report:#?}");
    }
}

#[test]
fn line_0_is_no_line() {
    let finding = json!({
        "severity": "minor", "file": "a.py", "line": 0, "message": "The name says nothing"
    });
    let report = check("review-fix/review-finding", &finding);
    assert_eq!(report.value.unwrap()["line"], json!(null));
    assert_eq!(report.provenance.coercions[0].pointer, "/line");
}

#[test]
fn unknown_loops_are_refused() {
    let contract = registry().get("gated-team/status").unwrap();
    let mut status = contract.definition().examples[1].clone();
    assert!(contract.check_value(&status).is_accepted());
    status["retry_counts"]["T-002"]["FIX_DOCS"] = json!(1);
    let report = contract.check_value(&status);
    assert_eq!(report.codes(), [Code::UnknownField]);
    assert_eq!(report.violations[0].pointer, "/retry_counts/T-002/FIX_DOCS");
}
