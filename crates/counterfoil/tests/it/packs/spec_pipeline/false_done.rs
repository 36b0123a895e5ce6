//! Ways to a false done: what an agent can get wrong, hide or make up. None ends as done.

use super::{
    analysis, checked, envelope, error_with, finding, good, play, result, run, succeeded, with,
};
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

/// More often than any loop of the pipeline goes round.
const ALWAYS: usize = 4;

/// Plays one way. After the replies of the scenario, every agent has one good reply, which must not
/// be reached: the agent that is wrong stays wrong.
#[track_caller]
fn plays(way: &str, size: &str, ends: &str, scenario: Scenario) {
    let ran = run(scenario.built_in_only(), size);
    let (outcome, _, code) = ran.ended();
    assert_ne!((outcome, code), ("done", 0), "{way}: {ran:?}");
    assert_eq!(outcome, ends, "{way}: {ran:?}");
}

/// One test for each way: its name, the size of the run, how it ends, and what the agents do.
macro_rules! ways {
    ($($way:ident: $size:literal $ends:literal $scenario:expr;)+) => {
        $(#[test]
        fn $way() {
            plays(stringify!($way), $size, $ends, $scenario);
        })+
    };
}

fn always(scenario: Scenario, step: impl Fn(Scenario) -> Scenario) -> Scenario {
    (0..ALWAYS).fold(scenario, |scenario, _| step(scenario))
}

/// Test always reports this, and everybody else does well.
fn tested(result: &Value) -> Scenario {
    always(play(), |scenario| good(scenario.says("test", result.clone()), "implement"))
}

/// Implement always reports this, and everybody else does well.
fn implemented(result: &Value) -> Scenario {
    always(play(), |scenario| {
        good(
            scenario.says("implement", result.clone()).writes("src/search.rs", "// half\n"),
            "test",
        )
    })
}

/// Implement breaks something that a check of the project notices; everybody says that it works.
fn broken(check: &str) -> Scenario {
    always(checked(check, "test ! -e broken"), |scenario| {
        good(good(scenario, "implement").writes("broken", "yes\n"), "test")
    })
}

/// Review always reports this, and everybody else does well.
fn reviewed(result: &Value) -> Scenario {
    always(play(), |scenario| {
        good(good(scenario.says("review", result.clone()), "implement"), "test")
    })
}

/// An agent always replies with this text.
fn replied(agent: &str, text: &str) -> Scenario {
    always(play(), |scenario| scenario.raw(agent, text))
}

fn gate(pointer: &str, value: Value) -> Value {
    with("test", &format!("/quality_gates/{pointer}"), value)
}

fn criteria(statuses: &[&str]) -> Value {
    let one = |(n, status): (usize, &&str)| json!({"id": format!("SC-{n}"), "description": "it finds", "status": status});
    with("test", "/success_criteria", statuses.iter().enumerate().map(one).collect())
}

/// A result of test that reports a gate as failed, with good figures.
fn reported_failed(gate: &str) -> Value {
    let mut failed = succeeded("test");
    failed["result"]["overall_status"] = json!("FAILED");
    failed["result"]["quality_gates"][gate]["status"] = json!("FAILED");
    failed
}

fn coverage(total: u64, with_tasks: u64, uncovered: &[&str]) -> Value {
    let percentage = f64::from(u32::try_from(100 * with_tasks / total).unwrap());
    let coverage = json!({
        "total_requirements": total, "requirements_with_tasks": with_tasks, "coverage_percentage": percentage,
        "uncovered_requirements": uncovered
    });
    with("analyze", "/coverage_analysis", coverage)
}

/// Analyze always reports this, and everybody else does well.
fn analyzed(result: &Value) -> Scenario {
    always(play(), |scenario| {
        let scenario = scenario.says("analyze", result.clone());
        ["specify", "plan", "tasks"].into_iter().fold(scenario, good)
    })
}

fn three_tasks() -> Value {
    let mut tasks = result("tasks");
    tasks["task_count"] = json!(3);
    tasks["phases"]["user_stories"] = json!(3);
    tasks["task_ids"] = json!(["T001", "T002", "T003"]);
    envelope("tasks", &tasks)
}

fn completed(done: u64, total: u64) -> Value {
    let mut work = result("implement");
    work["tasks_completed"] = json!(done);
    work["tasks_total"] = json!(total);
    work["completion_percentage"] = json!(100 * done / total);
    envelope("implement", &work)
}

fn with_a_test() -> Scenario {
    let code = "pub fn one() -> u32 {\n    1\n}\n\n#[test]\nfn one_is_one() {\n    assert_eq!(one(), 1);\n}\n";
    play().file("src/lib.rs", code).commit()
}

/// The spec keeps a question whatever clarify says.
fn with_a_question() -> Scenario {
    play()
        .says("specify", succeeded("specify"))
        .writes("specs/search/spec.md", "# Search\n\n[NEEDS CLARIFICATION: does case matter?]\n")
}

/// A good result of an agent and what it adds below.
fn then(agent: &str, more: &str) -> String {
    format!("{}\n\n{more}\n", succeeded(agent))
}

fn opened(task: &str, created: u64) -> Value {
    let mut issues = result("taskstoissues");
    issues["issues"][0]["task_id"] = json!(task);
    issues["issues_created"] = json!(created);
    envelope("taskstoissues", &issues)
}

/// An error of taskstoissues after which implement changes the code once more.
fn changed_at_the_end() -> Scenario {
    let more = json!({"recovery_strategy": "run_prerequisite_agent", "suggested_action": {"agent": "implement", "reason": "x"}});
    let scenario = good(play(), "implement")
        .says("taskstoissues", error_with("taskstoissues", "ValidationError", more));
    let red = gate("tests_passing/details", json!({"total": 4, "passed": 3, "failed": 1}));
    always(good(scenario, "test"), |scenario| good(scenario.says("test", red.clone()), "implement"))
}

ways! {
    // Evidence against words.
    the_tests_fail_and_test_reports_that_they_pass: "simple" "exhausted" broken("test");
    the_linter_fails_and_test_reports_no_error: "simple" "exhausted" broken("lint");
    the_type_checker_fails_and_test_reports_no_error: "simple" "exhausted" broken("type-check");
    the_build_fails_and_test_reports_that_it_is_valid: "simple" "exhausted" broken("build");
    the_check_of_coverage_fails_and_test_reports_enough: "simple" "exhausted" broken("coverage");
    the_tests_failed_before_and_still_do: "simple" "exhausted" always(checked("test", "false"), |scenario| good(good(scenario, "implement"), "test"));
    the_check_runs_no_test_at_all: "simple" "exhausted"
        always(checked("test", "echo 'test result: ok. 0 passed; 0 failed'"), |scenario| good(good(scenario, "implement"), "test"));
    // An explicit failure with good figures, or figures that are not good.
    test_says_failed_with_good_figures: "simple" "exhausted" tested(&with("test", "/overall_status", json!("FAILED")));
    a_gate_is_failed_with_good_figures: "simple" "exhausted" tested(&reported_failed("coverage"));
    the_build_gate_is_failed_with_good_figures: "simple" "exhausted" tested(&reported_failed("build_validation"));
    less_is_covered_than_required: "simple" "exhausted" tested(&gate("coverage/details/overall", json!(61.0)));
    another_part_of_the_build_failed: "simple" "exhausted"
        tested(&gate("build_validation/details", json!({"docker_compose": "valid", "api_image": "failed"})));
    a_success_criterion_is_not_met: "simple" "exhausted" tested(&criteria(&["PASSED", "FAILED"]));
    // Empty evidence.
    no_test_was_run: "simple" "exhausted" tested(&gate("tests_passing/details", json!({"total": 0, "passed": 0, "failed": 0})));
    no_success_criterion_was_looked_at: "simple" "exhausted" tested(&criteria(&[]));
    no_success_criterion_was_tested: "simple" "exhausted" tested(&criteria(&["NOT_TESTED", "NOT_TESTED"]));
    implement_changes_nothing: "simple" "waiting" play().says("implement", succeeded("implement"));
    there_is_no_task: "standard" "blocked" always(play(), |scenario| {
        let mut none = result("tasks");
        (none["task_count"], none["phases"]["user_stories"], none["task_ids"]) = (json!(0), json!(0), json!([]));
        scenario.says("tasks", envelope("tasks", &none))
    });
    analyze_read_nothing: "full" "blocked" always(play(), |scenario| scenario.says("analyze", with("analyze", "/artifacts_analyzed", json!([]))));
    analyze_counts_no_requirement: "full" "blocked" always(play(), |scenario| {
        let none = json!({"total_requirements": 0, "requirements_with_tasks": 0, "coverage_percentage": 100.0, "uncovered_requirements": []});
        scenario.says("analyze", with("analyze", "/coverage_analysis", none))
    });
    taskstoissues_opens_no_issue: "full" "waiting" play().says("taskstoissues", {
        let mut none = result("taskstoissues");
        (none["issues"], none["issues_created"]) = (json!([]), json!(0));
        envelope("taskstoissues", &none)
    });
    // Work that is not finished.
    a_task_is_open: "standard" "exhausted" implemented(&completed(1, 2));
    fewer_tasks_are_done_than_were_planned: "standard" "exhausted" always(
        play().says("tasks", three_tasks()).writes("specs/search/tasks.md", "- T001\n- T002\n- T003\n"),
        |scenario| good(good(scenario, "implement"), "test")
    );
    a_requirement_has_no_task: "full" "waiting" analyzed(&coverage(2, 1, &["REQ-2"]));
    a_requirement_is_listed_as_uncovered_and_counted_as_covered: "full" "waiting" analyzed(&coverage(2, 2, &["REQ-2"]));
    a_requirement_is_uncovered_and_not_listed: "full" "waiting" analyzed(&coverage(2, 1, &[]));
    a_critical_finding_stays: "full" "waiting" analyzed(&envelope("analyze", &analysis(&[finding("CRITICAL", "design_flaw")])));
    a_question_stays_in_the_spec_and_clarify_counts_none: "standard" "waiting" with_a_question();
    a_rule_of_the_project_is_not_kept: "standard" "exhausted"
        reviewed(&with("review", "/constitution_compliance", json!({"status": "FAIL", "passed": 2, "failed": 1})));
    a_rule_is_counted_as_failed_and_the_status_is_pass: "standard" "exhausted"
        reviewed(&with("review", "/constitution_compliance", json!({"status": "PASS", "passed": 2, "failed": 1})));
    // Tests and code that change afterwards.
    implement_removes_a_test: "simple" "waiting"
        good(with_a_test(), "implement").writes("src/lib.rs", "pub fn one() -> u32 {\n    1\n}\n");
    review_removes_a_test: "standard" "waiting"
        with_a_test().says("review", succeeded("review")).writes("src/lib.rs", "pub fn one() -> u32 {\n    1\n}\n");
    review_breaks_what_was_tested: "standard" "exhausted"
        always(checked("test", "test ! -e broken"), |scenario| {
            let scenario = scenario.says("review", succeeded("review")).writes("broken", "yes\n");
            good(good(scenario, "implement"), "test")
        });
    review_edits_in_silence_and_the_tests_fail_then: "standard" "exhausted" {
        let red = gate("tests_passing/details", json!({"total": 4, "passed": 3, "failed": 1}));
        let scenario = good(play(), "test").says("review", succeeded("review")).writes("src/search.rs", "// tidy\n");
        always(scenario, |scenario| good(scenario.says("test", red.clone()), "implement"))
    };
    code_that_is_changed_at_the_very_end_fails: "full" "exhausted" changed_at_the_end();
    // Something else.
    test_speaks_of_another_feature: "simple" "blocked" tested(&with("test", "/feature_id", json!("login")));
    review_speaks_of_another_feature: "standard" "blocked" reviewed(&with("review", "/feature_id", json!("login")));
    clarify_speaks_of_another_spec: "standard" "blocked"
        always(play(), |scenario| scenario.says("clarify", with("clarify", "/spec_file", json!("specs/login/spec.md"))));
    implement_speaks_of_other_tasks: "standard" "blocked" implemented(&with("implement", "/tasks_file", json!("specs/login/tasks.md")));
    issues_are_for_other_tasks: "full" "blocked" always(play(), |scenario| scenario.says("taskstoissues", opened("T009", 1)));
    more_issues_are_counted_than_listed: "full" "blocked" always(play(), |scenario| scenario.says("taskstoissues", opened("T001", 5)));
    the_result_is_that_of_another_agent: "simple" "blocked" replied("test", &succeeded("review").to_string());
    // Cut off, quoting, retracting, lazy.
    the_result_is_cut_off: "simple" "blocked" replied("test", succeeded("test").to_string().trim_end_matches('}'));
    the_result_is_retracted_below: "simple" "blocked"
        replied("test", &then("test", r#"No, wait: {"agent": "test", "status": "success", "result": {"overall_status": "FAILED"}}"#));
    two_results_differ: "standard" "blocked"
        replied("review", &then("review", &with("review", "/overall_status", json!("NEEDS_MANUAL_REVIEW")).to_string()));
    the_example_is_quoted: "simple" "blocked" {
        let contract = counterfoil_packs::registry_for("spec-pipeline/test").get("spec-pipeline/test").unwrap();
        let shown: Vec<String> = contract.shown_examples().map(|one| format!("```json\n{one:#}\n```")).collect();
        replied("test", &format!("The form is clear:\n\n{}\n\nAll is well.", shown.join("\n")))
    };
    words_instead_of_a_result: "simple" "blocked" replied("test", "All 45 tests pass, coverage is 98 %. Approved!");
    a_person_is_asked_to_look: "standard" "waiting" play().says("review", with("review", "/overall_status", json!("NEEDS_MANUAL_REVIEW")));
    the_gates_fail_by_error_again_and_again: "simple" "waiting" always(play(), |scenario| {
        let red = error_with("test", "QualityGateFailure", json!({}));
        good(scenario.says("test", red), "implement")
    });
}
