//! For each rule, one value that violates only this rule: the rule rejects it and points at the right
//! field.

use counterfoil_contract::Contract;
use counterfoil_packs::{definitions, registry};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Contract, rule, index of the example to start from, changes to the example, and the code and
/// pointer of the expected violation.
type Case =
    (&'static str, &'static str, usize, Vec<(&'static str, Value)>, &'static str, &'static str);

fn cases() -> Vec<Case> {
    vec![
        (
            "execution-loop/qa",
            "fix-info-when-not-done",
            1,
            vec![("/fix_info", json!(null))],
            "C0301",
            "/fix_info",
        ),
        (
            "execution-loop/qa",
            "fix-info-when-not-done",
            1,
            vec![("/fix_info", json!(" "))],
            "C0301",
            "/fix_info",
        ),
        (
            "execution-loop/qa",
            "done-means-all-checks-pass",
            0,
            vec![("/checks/1/passed", json!(false))],
            "C0303",
            "/dod_achieved",
        ),
        (
            "execution-loop/qa",
            "done-means-no-test-fails",
            0,
            vec![("/test_results/passed", json!(11)), ("/test_results/failed", json!(1))],
            "C0303",
            "/dod_achieved",
        ),
        (
            "execution-loop/qa",
            "test-counts-agree",
            0,
            vec![("/test_results/passed", json!(13))],
            "C0303",
            "/test_results/total",
        ),
        (
            "execution-loop/code-quality",
            "fix-info-when-failed",
            1,
            vec![("/fix_info", json!(null))],
            "C0301",
            "/fix_info",
        ),
        (
            "execution-loop/code-quality",
            "passed-means-nothing-blocks",
            1,
            vec![("/quality_passed", json!(true))],
            "C0303",
            "/quality_passed",
        ),
        (
            "execution-loop/code-quality",
            "blocking-count-matches-issues",
            1,
            vec![("/blocking_issues_count", json!(2))],
            "W0106",
            "/blocking_issues_count",
        ),
        (
            "execution-loop/dod",
            "complete-means-nothing-remains",
            0,
            vec![("/remaining_items", json!(["US-003"]))],
            "C0303",
            "/task_complete",
        ),
        (
            "execution-loop/dod",
            "complete-means-all-stories-done",
            0,
            vec![("/summary/user_stories_done", json!(2))],
            "C0303",
            "/task_complete",
        ),
        (
            "execution-loop/dod",
            "complete-means-all-phases-done",
            0,
            vec![("/summary/phases_done", json!(1))],
            "C0303",
            "/task_complete",
        ),
        (
            "execution-loop/dod",
            "stories-done-within-total",
            1,
            vec![("/summary/user_stories_done", json!(4))],
            "C0303",
            "/summary/user_stories_done",
        ),
        (
            "execution-loop/dod",
            "phases-done-within-total",
            1,
            vec![("/summary/phases_done", json!(3))],
            "C0303",
            "/summary/phases_done",
        ),
        (
            "review-fix/fixer-result",
            "error-when-failed",
            1,
            vec![("/error_details", json!("\n"))],
            "C0301",
            "/error_details",
        ),
        (
            "review-fix/finding-group",
            "ids-differ",
            0,
            vec![("/findings/1/id", json!("F001"))],
            "C0304",
            "/findings/1/id",
        ),
        (
            "review-fix/grouped-review-result",
            "ids-differ",
            0,
            vec![("/groups/0/findings", json!([one_finding(), one_finding()]))],
            "C0304",
            "/groups/0/findings/1/id",
        ),
        (
            "review-fix/fix-outcomes",
            "ids-differ",
            0,
            vec![("/outcomes/1/id", json!("F001"))],
            "C0304",
            "/outcomes/1/id",
        ),
        (
            "review-fix/fix-result",
            "old-path-when-renamed",
            0,
            vec![("/files_changed/1/old_path", json!(null))],
            "C0301",
            "/files_changed/1/old_path",
        ),
        (
            "review-fix/implementation-result",
            "ids-differ",
            0,
            vec![("/task_results", json!([one_task(), one_task()]))],
            "C0304",
            "/task_results/1/task_id",
        ),
        (
            "review-fix/implementation-result",
            "old-path-when-renamed",
            0,
            vec![("/files_changed/0/change_type", json!("renamed"))],
            "C0301",
            "/files_changed/0/old_path",
        ),
        (
            "review-fix/implementation-result",
            "old-path-when-renamed-in-task",
            0,
            vec![("/task_results/0/files_changed/0/change_type", json!("renamed"))],
            "C0301",
            "/task_results/0/files_changed/0/old_path",
        ),
        (
            "review-fix/agent-result",
            "failure-has-error",
            1,
            vec![("/errors", json!([]))],
            "C0303",
            "/errors",
        ),
        (
            "feature-pipeline/tdd-task-executor",
            "complete-means-no-failures",
            1,
            vec![("/phase_complete", json!(true))],
            "C0303",
            "/phase_complete",
        ),
        (
            "feature-pipeline/tdd-task-executor",
            "passing-means-no-failures",
            1,
            vec![("/tests_passing", json!(true))],
            "C0303",
            "/tests_passing",
        ),
        (
            "feature-pipeline/code-reviewer",
            "issues-add-up",
            0,
            vec![("/issues_total", json!(2))],
            "C0303",
            "/issues_total",
        ),
        (
            "feature-pipeline/code-reviewer",
            "approved-means-nothing-critical",
            0,
            vec![("/critical", json!(["a leak"])), ("/issues_total", json!(2))],
            "C0303",
            "/approved",
        ),
        (
            "feature-pipeline/code-reviewer",
            "approved-means-approve",
            0,
            vec![("/recommendation", json!("block"))],
            "C0303",
            "/approved",
        ),
        (
            "feature-pipeline/silent-failure-hunter",
            "none-found-means-no-locations",
            0,
            vec![("/silent_failures_found", json!(0))],
            "C0303",
            "/silent_failures_found",
        ),
        (
            "feature-pipeline/silent-failure-hunter",
            "found-means-severity",
            0,
            vec![("/severity", json!("none"))],
            "C0303",
            "/severity",
        ),
        (
            "feature-pipeline/review-pr",
            "ready-means-nothing-blocks",
            0,
            vec![("/blocking_issues", json!(["a leak"]))],
            "C0303",
            "/ready_to_merge",
        ),
        (
            "feature-pipeline/review-pr",
            "ready-means-tests-pass",
            0,
            vec![("/test_status", json!("some-fail"))],
            "C0303",
            "/ready_to_merge",
        ),
        (
            "feature-pipeline/review-pr",
            "ready-means-merge",
            0,
            vec![("/final_recommendation", json!("reject"))],
            "C0303",
            "/ready_to_merge",
        ),
        (
            "spec-pipeline/tasks",
            "phases-add-up",
            1,
            vec![("/result/phases/polish", json!(1))],
            "C0303",
            "/result/task_count",
        ),
        (
            "spec-pipeline/tasks",
            "every-task-has-an-id",
            1,
            vec![("/result/task_ids", json!(["T001", "T002"]))],
            "C0303",
            "/result/task_count",
        ),
        (
            "spec-pipeline/tasks",
            "ids-differ",
            1,
            vec![("/result/task_ids/3", json!("T001"))],
            "C0304",
            "/result/task_ids/3",
        ),
        (
            "spec-pipeline/analyze",
            "severities-add-up",
            1,
            vec![("/result/findings_by_severity/LOW", json!(1))],
            "C0303",
            "/result/total_findings",
        ),
        (
            "spec-pipeline/analyze",
            "coverage-agrees-with-counts",
            1,
            vec![("/result/coverage_analysis/coverage_percentage", json!(84.0))],
            "C0303",
            "/result/coverage_analysis/coverage_percentage",
        ),
        (
            "spec-pipeline/analyze",
            "coverage-agrees-with-counts",
            1,
            vec![("/result/coverage_analysis/coverage_percentage", json!(82))],
            "C0303",
            "/result/coverage_analysis/coverage_percentage",
        ),
        (
            "spec-pipeline/implement",
            "completed-within-total",
            1,
            vec![("/result/tasks_completed", json!(5)), ("/result/tasks_total", json!(0))],
            "C0303",
            "/result/tasks_completed",
        ),
        (
            "spec-pipeline/implement",
            "completion-agrees-with-counts",
            1,
            vec![("/result/completion_percentage", json!(100))],
            "C0303",
            "/result/completion_percentage",
        ),
        (
            "spec-pipeline/test",
            "passed-means-no-gate-failed",
            1,
            vec![("/result/quality_gates/tests_passing/status", json!("FAILED"))],
            "C0303",
            "/result/overall_status",
        ),
        (
            "spec-pipeline/test",
            "passed-means-no-gate-failed",
            1,
            vec![("/result/quality_gates/coverage/status", json!("FAILED"))],
            "C0303",
            "/result/overall_status",
        ),
        (
            "spec-pipeline/test",
            "passed-means-no-gate-failed",
            1,
            vec![("/result/quality_gates/code_quality/status", json!("FAILED"))],
            "C0303",
            "/result/overall_status",
        ),
        (
            "spec-pipeline/test",
            "passed-means-no-gate-failed",
            1,
            vec![("/result/quality_gates/build_validation/status", json!("FAILED"))],
            "C0303",
            "/result/overall_status",
        ),
        (
            "spec-pipeline/test",
            "ids-differ",
            1,
            vec![("/result/success_criteria", json!([one_criterion(), one_criterion()]))],
            "C0304",
            "/result/success_criteria/1/id",
        ),
        (
            "spec-pipeline/taskstoissues",
            "numbers-differ",
            1,
            vec![("/result/issues", json!([one_issue(), one_issue()]))],
            "C0304",
            "/result/issues/1/number",
        ),
        (
            "spec-pipeline/feedback-context",
            "iteration-within-limit",
            0,
            vec![("/iteration", json!(3))],
            "C0303",
            "/iteration",
        ),
        (
            "gated-team/status",
            "completed-once",
            1,
            vec![("/completed_tasks", json!(["T-001", "T-001"]))],
            "C0304",
            "/completed_tasks/1",
        ),
        (
            "gated-team/status",
            "blocked-once",
            1,
            vec![(
                "/blocked_tasks",
                json!([{"id": "T-002", "reason": "a"}, {"id": "T-002", "reason": "b"}]),
            )],
            "C0304",
            "/blocked_tasks/1/id",
        ),
        (
            "gated-team/tasks",
            "ids-differ",
            0,
            vec![("/tasks/1/id", json!("T-001")), ("/tasks/1/depends_on", json!([]))],
            "C0304",
            "/tasks/1/id",
        ),
        (
            "gated-team/tasks",
            "dependencies-are-tasks",
            0,
            vec![("/tasks/1/depends_on", json!(["T-001", "T-003"]))],
            "C0303",
            "/tasks/1/depends_on",
        ),
        (
            "gated-team/tasks",
            "no-task-needs-itself",
            0,
            vec![("/tasks/1/depends_on", json!(["T-002"]))],
            "C0303",
            "/tasks/1/depends_on",
        ),
        (
            "gated-team/acceptance",
            "ids-differ",
            1,
            vec![("/criteria/1/id", json!("AC-1"))],
            "C0304",
            "/criteria/1/id",
        ),
    ]
}

fn one_finding() -> Value {
    json!({"id": "F1", "file": "a.rs", "line": 1, "issue": "wrong", "severity": "minor", "category": "style"})
}

fn one_task() -> Value {
    json!({"task_id": "T001", "status": "pending", "files_changed": [], "tests_added": [], "duration_ms": 0, "validation": []})
}

fn one_criterion() -> Value {
    json!({"id": "SC-001", "description": "it is fast", "status": "PASSED"})
}

fn one_issue() -> Value {
    json!({"number": 1, "title": "Index", "url": "https://example.org/1", "task_id": "T001"})
}

fn changed(contract: &Contract, example: usize, changes: &[(&str, Value)]) -> Value {
    let mut value = contract.definition().examples[example].clone();
    for (pointer, new) in changes {
        *value.pointer_mut(pointer).unwrap_or_else(|| panic!("{}: no {pointer}", contract.id())) =
            new.clone();
    }
    value
}

fn violations(contract: &Contract, value: &Value) -> Vec<(String, String)> {
    let report = contract.check_value(value);
    let all = report.violations.iter().chain(&report.warnings);
    all.map(|violation| (violation.code.to_string(), violation.pointer.clone()))
        .filter(|(code, _)| code != "W0107")
        .collect()
}

#[test]
fn each_rule_rejects_a_value_that_violates_it_and_points_at_the_field() {
    let registry = registry();
    for (id, rule, example, changes, code, pointer) in cases() {
        let contract = registry.get(id).unwrap();
        let rules: Vec<&str> =
            contract.definition().rules.iter().map(|rule| rule.id.as_str()).collect();
        assert!(rules.contains(&rule), "{id} has no rule {rule}");
        let value = changed(&contract, example, &changes);
        let found = violations(&contract, &value);
        let expected = (code.to_owned(), pointer.to_owned());
        assert!(found.contains(&expected), "{id}/{rule}: {found:?}");
        let message = contract
            .definition()
            .rules
            .iter()
            .find(|known| known.id == rule)
            .unwrap()
            .message
            .clone();
        if let Some(message) = message {
            let report = contract.check_value(&value);
            let mut said = report
                .violations
                .iter()
                .chain(&report.warnings)
                .map(|violation| &violation.message);
            assert!(said.any(|said| *said == message), "{id}/{rule}");
        }
    }
}

#[test]
fn every_rule_has_a_case() {
    let tried: BTreeSet<(String, String)> =
        cases().iter().map(|(id, rule, ..)| ((*id).to_owned(), (*rule).to_owned())).collect();
    let of_envelopes =
        ["success-has-result", "success-has-no-error", "error-has-error", "error-has-no-result"];
    for definition in definitions() {
        for rule in &definition.rules {
            let known = of_envelopes.contains(&rule.id.as_str())
                || tried.contains(&(definition.contract.clone(), rule.id.clone()));
            assert!(known, "{}/{} has no case", definition.contract, rule.id);
        }
    }
}

#[test]
fn an_envelope_holds_a_result_or_an_error() {
    let registry = registry();
    let mut envelopes = 0;
    for entry in registry.iter() {
        let contract = entry.contract().unwrap();
        if !contract.definition().rules.iter().any(|rule| rule.id == "success-has-result") {
            continue;
        }
        envelopes += 1;
        let [failed, succeeded] = contract.definition().examples.as_slice() else {
            panic!("two examples")
        };
        let expect = |value: Value, code: &str, pointer: &str| {
            assert_eq!(
                violations(&contract, &value),
                [(code.to_owned(), pointer.to_owned())],
                "{}",
                contract.id()
            );
        };
        let mut without_result = succeeded.clone();
        without_result.as_object_mut().unwrap().remove("result");
        expect(without_result, "C0301", "/result");
        let mut with_error = succeeded.clone();
        with_error["error"] = failed["error"].clone();
        expect(with_error, "C0302", "/error");
        let mut without_error = failed.clone();
        without_error["error"] = Value::Null;
        expect(without_error, "C0301", "/error");
        let mut with_result = failed.clone();
        with_result["result"] = succeeded["result"].clone();
        expect(with_result, "C0302", "/result");
        let mut with_null = succeeded.clone();
        with_null["error"] = Value::Null;
        assert!(
            contract.check_value(&with_null).is_accepted(),
            "{}: null is absence",
            contract.id()
        );
        let mut other_agent = succeeded.clone();
        other_agent["agent"] = json!("orchestrator");
        expect(other_agent, "C0203", "/agent");
        for (field, unknown) in [("type", "OutOfMemoryError"), ("recovery_strategy", "pray")] {
            let mut value = failed.clone();
            value["error"][field] = json!(unknown);
            expect(value, "C0203", &format!("/error/{field}"));
        }
    }
    assert_eq!(envelopes, 11);
}

#[test]
fn rounding_is_not_a_contradiction() {
    let analyze = registry().get("spec-pipeline/analyze").unwrap();
    for (percentage, good) in
        [(83.33, true), (83.0, true), (83.8, true), (83.9, false), (82.8, false)]
    {
        let value = changed(
            &analyze,
            1,
            &[("/result/coverage_analysis/coverage_percentage", json!(percentage))],
        );
        assert_eq!(analyze.check_value(&value).is_accepted(), good, "{percentage}");
    }
    let nothing = changed(
        &analyze,
        1,
        &[
            ("/result/coverage_analysis/coverage_percentage", json!(100)),
            ("/result/coverage_analysis/total_requirements", json!(0)),
            ("/result/coverage_analysis/requirements_with_tasks", json!(0)),
        ],
    );
    assert!(analyze.check_value(&nothing).is_accepted(), "nothing of nothing is any share");
}

#[test]
fn a_phase_is_one_of_so_many() {
    let tdd = registry().get("feature-pipeline/tdd-task-executor").unwrap();
    for (phase, good) in [
        ("1/1", true),
        ("2/3", true),
        ("10/12", true),
        ("3/2", false),
        ("0/3", false),
        ("2", false),
        ("a/b", false),
        ("1/", false),
    ] {
        let value = changed(&tdd, 0, &[("/phase", json!(phase))]);
        let found = violations(&tdd, &value);
        assert_eq!(found.is_empty(), good, "{phase}: {found:?}");
        assert!(found.iter().all(|(_, pointer)| pointer == "/phase"), "{phase}: {found:?}");
    }
}
