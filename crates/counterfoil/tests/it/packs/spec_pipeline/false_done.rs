//! Ways to a false done: what an agent can get wrong, hide or make up. None ends as done.

mod boxes;
mod words;

use super::{
    analysis, checked, envelope, error_with, finding, good, play, result, run, succeeded, with,
};
use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

/// More often than any loop of the pipeline goes round.
const ALWAYS: usize = 4;

/// Plays one way. After the replies of the scenario, every agent has one good reply, which must not
/// be reached: the agent that is wrong stays wrong.
#[track_caller]
fn plays(size: &str, ends: &str, scenario: Scenario) -> ScenarioRun {
    let ran = run(scenario.built_in_only(), size);
    let (outcome, _, code) = ran.ended();
    assert_ne!((outcome, code), ("done", 0), "{ran:?}");
    assert_eq!(outcome, ends, "{ran:?}");
    ran
}

fn always(scenario: Scenario, step: impl Fn(Scenario) -> Scenario) -> Scenario {
    (0..ALWAYS).fold(scenario, |scenario, _| step(scenario))
}

/// Test always reports this, and everybody else does well.
fn tested(result: &Value) -> Scenario {
    always(play(), |scenario| good(scenario.says("test", result.clone()), "implement"))
}

/// Implement always reports this and ticks its tasks off, and everybody else does well.
fn implemented(result: &Value) -> Scenario {
    always(play(), |scenario| {
        let work = scenario.says("implement", result.clone()).writes("src/search.rs", "// half\n");
        good(work.writes("specs/search/tasks.md", "- [x] T001 search\n"), "test")
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

// Evidence against words.

#[test]
fn the_tests_fail_and_test_reports_that_they_pass() {
    let scenario = broken("test");
    plays("simple", "exhausted", scenario);
}

#[test]
fn the_linter_fails_and_test_reports_no_error() {
    let scenario = broken("lint");
    plays("simple", "exhausted", scenario);
}

#[test]
fn the_type_checker_fails_and_test_reports_no_error() {
    let scenario = broken("type-check");
    plays("simple", "exhausted", scenario);
}

#[test]
fn the_build_fails_and_test_reports_that_it_is_valid() {
    let scenario = broken("build");
    plays("simple", "exhausted", scenario);
}

#[test]
fn the_check_of_coverage_fails_and_test_reports_enough() {
    let scenario = broken("coverage");
    plays("simple", "exhausted", scenario);
}

#[test]
fn the_tests_failed_before_and_still_do() {
    let scenario =
        always(checked("test", "false"), |scenario| good(good(scenario, "implement"), "test"));
    plays("simple", "exhausted", scenario);
}

#[test]
fn the_check_runs_no_test_at_all() {
    let scenario =
        always(checked("test", "echo 'test result: ok. 0 passed; 0 failed'"), |scenario| {
            good(good(scenario, "implement"), "test")
        });
    plays("simple", "exhausted", scenario);
}

// An explicit failure with good figures, or figures that are not good.

#[test]
fn test_says_failed_with_good_figures() {
    let scenario = tested(&with("test", "/overall_status", json!("FAILED")));
    plays("simple", "exhausted", scenario);
}

#[test]
fn a_gate_is_failed_with_good_figures() {
    let scenario = tested(&reported_failed("coverage"));
    plays("simple", "exhausted", scenario);
}

#[test]
fn the_build_gate_is_failed_with_good_figures() {
    let scenario = tested(&reported_failed("build_validation"));
    plays("simple", "exhausted", scenario);
}

#[test]
fn less_is_covered_than_required() {
    let scenario = tested(&gate("coverage/details/overall", json!(61.0)));
    plays("simple", "exhausted", scenario);
}

#[test]
fn another_part_of_the_build_failed() {
    let scenario = tested(&gate(
        "build_validation/details",
        json!({"docker_compose": "valid", "api_image": "failed"}),
    ));
    plays("simple", "exhausted", scenario);
}

#[test]
fn a_success_criterion_is_not_met() {
    let scenario = tested(&criteria(&["PASSED", "FAILED"]));
    plays("simple", "exhausted", scenario);
}

// Empty evidence.

#[test]
fn no_test_was_run() {
    let scenario =
        tested(&gate("tests_passing/details", json!({"total": 0, "passed": 0, "failed": 0})));
    plays("simple", "exhausted", scenario);
}

#[test]
fn no_success_criterion_was_looked_at() {
    let scenario = tested(&criteria(&[]));
    plays("simple", "exhausted", scenario);
}

#[test]
fn no_success_criterion_was_tested() {
    let scenario = tested(&criteria(&["NOT_TESTED", "NOT_TESTED"]));
    plays("simple", "exhausted", scenario);
}

#[test]
fn implement_changes_nothing() {
    let scenario = play().says("implement", succeeded("implement"));
    plays("simple", "waiting", scenario);
}

#[test]
fn there_is_no_task() {
    let scenario = always(play(), |scenario| {
        let mut none = result("tasks");
        (none["task_count"], none["phases"]["user_stories"], none["task_ids"]) =
            (json!(0), json!(0), json!([]));
        scenario.says("tasks", envelope("tasks", &none))
    });
    plays("standard", "blocked", scenario);
}

#[test]
fn analyze_read_nothing() {
    let scenario = always(play(), |scenario| {
        scenario.says("analyze", with("analyze", "/artifacts_analyzed", json!([])))
    });
    plays("full", "blocked", scenario);
}

#[test]
fn analyze_counts_no_requirement() {
    let scenario = always(play(), |scenario| {
        let none = json!({"total_requirements": 0, "requirements_with_tasks": 0, "coverage_percentage": 100.0, "uncovered_requirements": []});
        scenario.says("analyze", with("analyze", "/coverage_analysis", none))
    });
    plays("full", "blocked", scenario);
}

#[test]
fn taskstoissues_opens_no_issue() {
    let scenario = play().says("taskstoissues", {
        let mut none = result("taskstoissues");
        (none["issues"], none["issues_created"]) = (json!([]), json!(0));
        envelope("taskstoissues", &none)
    });
    plays("full", "waiting", scenario);
}

// Work that is not finished.

#[test]
fn a_task_is_open() {
    let scenario = implemented(&completed(1, 2));
    let ran = plays("standard", "exhausted", scenario);
    assert!(ran.reason().contains("1 of 2 tasks are done"), "{}", ran.reason());
}

#[test]
fn fewer_tasks_are_done_than_were_planned() {
    let scenario = always(
        play()
            .says("tasks", three_tasks())
            .writes("specs/search/tasks.md", "- T001\n- T002\n- T003\n"),
        |scenario| good(good(scenario, "implement"), "test"),
    );
    let ran = plays("standard", "exhausted", scenario);
    assert!(ran.reason().contains("1 of 3 tasks are done"), "{}", ran.reason());
}

#[test]
fn a_task_is_done_and_its_box_is_empty() {
    for text in [
        "- [ ] T001 search",
        "* [] T001: search",
        "1. [ ] **T001** search",
        "- [x] part one of it\n  - [ ] T001 the rest",
    ] {
        let scenario = always(good(play(), "tasks"), |scenario| {
            let work = scenario.says("implement", succeeded("implement"));
            let work = work.writes("src/search.rs", "pub fn search() {}\n");
            good(work.writes("specs/search/tasks.md", &format!("{text}\n")), "test")
        });
        let ran = plays("standard", "exhausted", scenario);
        let gates = ran.variables()["gates"].to_string();
        assert!(
            gates.contains("the boxes of T001 in specs/search/tasks.md are not ticked"),
            "{text}: {gates}"
        );
    }
}

#[test]
fn a_requirement_has_no_task() {
    let scenario = analyzed(&coverage(2, 1, &["REQ-2"]));
    plays("full", "waiting", scenario);
}

#[test]
fn a_requirement_is_listed_as_uncovered_and_counted_as_covered() {
    let scenario = analyzed(&coverage(2, 2, &["REQ-2"]));
    plays("full", "waiting", scenario);
}

#[test]
fn a_requirement_is_uncovered_and_not_listed() {
    let scenario = analyzed(&coverage(2, 1, &[]));
    plays("full", "waiting", scenario);
}

#[test]
fn a_critical_finding_stays() {
    let scenario = analyzed(&envelope("analyze", &analysis(&[finding("CRITICAL", "design_flaw")])));
    plays("full", "waiting", scenario);
}

#[test]
fn a_question_stays_in_the_spec_and_clarify_counts_none() {
    let scenario = with_a_question();
    plays("standard", "waiting", scenario);
}

#[test]
fn a_rule_of_the_project_is_not_kept() {
    let scenario = reviewed(&with(
        "review",
        "/constitution_compliance",
        json!({"status": "FAIL", "passed": 2, "failed": 1}),
    ));
    plays("standard", "exhausted", scenario);
}

#[test]
fn a_rule_is_counted_as_failed_and_the_status_is_pass() {
    let scenario = reviewed(&with(
        "review",
        "/constitution_compliance",
        json!({"status": "PASS", "passed": 2, "failed": 1}),
    ));
    plays("standard", "exhausted", scenario);
}

// Tests and code that change afterwards.

#[test]
fn implement_removes_a_test() {
    let scenario =
        good(with_a_test(), "implement").writes("src/lib.rs", "pub fn one() -> u32 {\n    1\n}\n");
    plays("simple", "waiting", scenario);
}

#[test]
fn review_removes_a_test() {
    let scenario = with_a_test()
        .says("review", succeeded("review"))
        .writes("src/lib.rs", "pub fn one() -> u32 {\n    1\n}\n");
    plays("standard", "waiting", scenario);
}

#[test]
fn review_breaks_what_was_tested() {
    let scenario = always(checked("test", "test ! -e broken"), |scenario| {
        let scenario = scenario.says("review", succeeded("review")).writes("broken", "yes\n");
        good(good(scenario, "implement"), "test")
    });
    plays("standard", "exhausted", scenario);
}

#[test]
fn review_edits_in_silence_and_the_tests_fail_then() {
    let scenario = {
        let red = gate("tests_passing/details", json!({"total": 4, "passed": 3, "failed": 1}));
        let scenario = good(play(), "test")
            .says("review", succeeded("review"))
            .writes("src/search.rs", "// tidy\n");
        always(scenario, |scenario| good(scenario.says("test", red.clone()), "implement"))
    };
    plays("standard", "exhausted", scenario);
}

#[test]
fn code_that_is_changed_at_the_very_end_fails() {
    let scenario = changed_at_the_end();
    plays("full", "exhausted", scenario);
}

// Something else.

#[test]
fn test_speaks_of_another_feature() {
    let scenario = tested(&with("test", "/feature_id", json!("login")));
    plays("simple", "blocked", scenario);
}

#[test]
fn review_speaks_of_another_feature() {
    let scenario = reviewed(&with("review", "/feature_id", json!("login")));
    plays("standard", "blocked", scenario);
}

#[test]
fn specify_names_the_spec_of_another_feature() {
    let scenario = play().file("specs/login/spec.md", "# Login\n").commit();
    let other = with("specify", "/spec_file", json!("specs/login/spec.md"));
    plays(
        "simple",
        "waiting",
        always(scenario, |scenario| scenario.says("specify", other.clone())),
    );
}

#[test]
fn plan_names_a_file_that_is_no_plan() {
    let other = with("plan", "/plan_file", json!("README.md"));
    plays("standard", "waiting", always(play(), |scenario| scenario.says("plan", other.clone())));
}

#[test]
fn tasks_hides_a_task_of_its_file() {
    let hidden = [
        "- [ ] T002 rank",
        "- [ ] T002: rank",
        "- [ ] **T002** rank",
        "- [ ] __T002__ rank",
        "- [ ] ~~T002~~ rank",
        "- [ ] [T002] rank",
        "- [ ] [T002](rank.md)",
        "- [ ] `T002`: rank",
        "| T001 | search |\n|T002|rank|",
        "- [ ] rank (T002)",
        "- [ ] T001, T002, both",
        "- [ ] T001/T002",
        "-\tT002\trank",
        "### T002. Rank",
        "<li>T002</li>",
        "- T002\u{2013}rank",
        "T1 THE LATE T002",
        "- [ ] 任务T002：rank",
        "- ÄT002 rank",
        "- [ ] t002 rank",
    ];
    let id = |at: usize| format!("T{:03}", at + 2);
    let lines = hidden
        .iter()
        .enumerate()
        .map(|(at, line)| line.replace("T002", &id(at)).replace("t002", &id(at).to_lowercase()));
    let text = format!("- [ ] T001 search\n{}\n", lines.collect::<Vec<_>>().join("\n"));
    let scenario = always(play(), |scenario| {
        scenario.says("tasks", succeeded("tasks")).writes("specs/search/tasks.md", &text)
    });
    let ran = plays("standard", "waiting", scenario);
    let message = ran.variables()["error"]["message"].as_str().unwrap().to_owned();
    let begin = "specs/search/tasks.md has tasks that `task_ids` does not list: T002, T003, ";
    assert!(message.starts_with(begin), "{message}");
    for (at, line) in hidden.iter().enumerate() {
        assert!(message.contains(&id(at)), "{line}: {message}");
    }
}

#[test]
fn clarify_speaks_of_another_spec() {
    let scenario = always(play(), |scenario| {
        scenario.says("clarify", with("clarify", "/spec_file", json!("specs/login/spec.md")))
    });
    plays("standard", "blocked", scenario);
}

#[test]
fn implement_speaks_of_other_tasks() {
    let scenario = implemented(&with("implement", "/tasks_file", json!("specs/login/tasks.md")));
    plays("standard", "blocked", scenario);
}

#[test]
fn issues_are_for_other_tasks() {
    let scenario = always(play(), |scenario| scenario.says("taskstoissues", opened("T009", 1)));
    plays("full", "blocked", scenario);
}

#[test]
fn more_issues_are_counted_than_listed() {
    let scenario = always(play(), |scenario| scenario.says("taskstoissues", opened("T001", 5)));
    plays("full", "blocked", scenario);
}

#[test]
fn the_result_is_that_of_another_agent() {
    let scenario = replied("test", &succeeded("review").to_string());
    plays("simple", "blocked", scenario);
}

// Cut off, quoting, retracting, lazy.

#[test]
fn the_result_is_cut_off() {
    let scenario = replied("test", succeeded("test").to_string().trim_end_matches('}'));
    plays("simple", "blocked", scenario);
}

#[test]
fn the_result_is_retracted_below() {
    let scenario = replied(
        "test",
        &then(
            "test",
            r#"No, wait: {"agent": "test", "status": "success", "result": {"overall_status": "FAILED"}}"#,
        ),
    );
    plays("simple", "blocked", scenario);
}

#[test]
fn two_results_differ() {
    let scenario = replied(
        "review",
        &then(
            "review",
            &with("review", "/overall_status", json!("NEEDS_MANUAL_REVIEW")).to_string(),
        ),
    );
    plays("standard", "blocked", scenario);
}

#[test]
fn the_example_is_quoted() {
    let scenario = {
        let contract = counterfoil_packs::registry_for("spec-pipeline/test")
            .get("spec-pipeline/test")
            .unwrap();
        let shown: Vec<String> =
            contract.shown_examples().map(|one| format!("```json\n{one:#}\n```")).collect();
        replied("test", &format!("The form is clear:\n\n{}\n\nAll is well.", shown.join("\n")))
    };
    plays("simple", "blocked", scenario);
}

#[test]
fn words_instead_of_a_result() {
    let scenario = replied("test", "All 45 tests pass, coverage is 98 %. Approved!");
    plays("simple", "blocked", scenario);
}

#[test]
fn a_person_is_asked_to_look() {
    let scenario =
        play().says("review", with("review", "/overall_status", json!("NEEDS_MANUAL_REVIEW")));
    plays("standard", "waiting", scenario);
}

#[test]
fn the_gates_fail_by_error_again_and_again() {
    let scenario = always(play(), |scenario| {
        let red = error_with("test", "QualityGateFailure", json!({}));
        good(scenario.says("test", red), "implement")
    });
    plays("simple", "waiting", scenario);
}
