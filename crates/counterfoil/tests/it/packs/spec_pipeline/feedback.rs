//! The feedback table: which agent gets which feedback, how often, and what follows.

use super::{analysis, envelope, feedback, finding, good, play, run, types, with, worked};
use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

/// Analyze finds this so often, and then nothing; there are enough replies to fix it.
fn found(findings: &[Value], times: usize, fixer: &str) -> ScenarioRun {
    let scenario = (0..times).fold(play(), |scenario, _| {
        good(scenario.says("analyze", envelope("analyze", &analysis(findings))), fixer)
    });
    run(scenario, "full")
}

/// How many times an agent worked.
fn times(ran: &ScenarioRun, agent: &str) -> usize {
    worked(ran).iter().filter(|name| *name == agent).count()
}

/// A row of analyze: each type goes to the fixer, analyze runs right after it, and twice is the
/// most.
fn holds_for(kinds: &[&str], fixer: &str) {
    for kind in kinds {
        let ran = found(&[finding("HIGH", kind)], 1, fixer);
        assert_eq!(ran.ended(), ("done", None, 0), "{kind}: {ran:?}");
        let sent = feedback(&ran, &format!("{fixer}#2"));
        assert_eq!(types(&sent), [*kind]);
        assert_eq!(
            (&sent["feedback_from"], &sent["iteration"], &sent["max_iterations"]),
            (&json!("analyze"), &json!(1), &json!(2))
        );
        let all = worked(&ran);
        let at = all.iter().rposition(|name| name == fixer).unwrap();
        assert_eq!(all[at - 1..=at + 1], ["analyze", fixer, "analyze"], "{kind}");
    }
    let ran = found(&[finding("CRITICAL", kinds[0])], 2, fixer);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(feedback(&ran, &format!("{fixer}#3"))["iteration"], 2);
    let ran = found(&[finding("CRITICAL", kinds[0])], 3, fixer);
    assert_eq!(ran.ended(), ("waiting", None, 4), "a third round needs a person");
    assert_eq!(ran.questions(), ["decide"]);
    assert_eq!(times(&ran, fixer), 3);
    let accepted = ran.answer_and_resume("decide", "proceed");
    assert_eq!(accepted.ended(), ("done", None, 0), "{accepted:?}");
}

#[test]
fn analyze_to_specify_for_what_the_spec_leaves_open() {
    holds_for(&["spec_ambiguity", "missing_requirement", "unclear_scope"], "specify");
}

#[test]
fn analyze_to_plan_for_what_the_plan_gets_wrong() {
    holds_for(&["architecture_gap", "data_model_issue", "design_flaw"], "plan");
}

#[test]
fn analyze_to_tasks_for_what_the_tasks_get_wrong() {
    holds_for(&["coverage_gap", "dependency_error", "task_ordering"], "tasks");
}

#[test]
fn an_unknown_type_of_analyze_goes_to_plan() {
    let ran = found(&[finding("HIGH", "strange_smell")], 1, "plan");
    assert_eq!(types(&feedback(&ran, "plan#2")), ["strange_smell"]);
}

#[test]
fn the_most_upstream_agent_comes_first_and_is_sent_only_what_it_can_fix() {
    let all = [
        finding("HIGH", "task_ordering"),
        finding("HIGH", "design_flaw"),
        finding("HIGH", "unclear_scope"),
    ];
    let scenario = play()
        .says("analyze", envelope("analyze", &analysis(&all)))
        .says("analyze", envelope("analyze", &analysis(&all[..2])))
        .says("analyze", envelope("analyze", &analysis(&all[..1])));
    let ran = run(["specify", "plan", "tasks"].into_iter().fold(scenario, good), "full");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(types(&feedback(&ran, "specify#2")), ["unclear_scope"]);
    assert_eq!(types(&feedback(&ran, "plan#2")), ["design_flaw"]);
    assert_eq!(types(&feedback(&ran, "tasks#2")), ["task_ordering"]);
    let order =
        ["analyze", "specify", "analyze", "plan", "analyze", "tasks", "analyze", "implement"];
    assert_eq!(worked(&ran)[6..14], order);
}

#[test]
fn medium_and_low_findings_are_recorded_and_do_not_loop() {
    let minor = [finding("MEDIUM", "design_flaw"), finding("LOW", "unclear_scope")];
    let ran = run(play().says("analyze", envelope("analyze", &analysis(&minor))), "full");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!((times(&ran, "analyze"), times(&ran, "plan")), (1, 1));
    assert_eq!(ran.variables()["recorded"], json!(minor));
    assert!(
        ran.read("specs/search/pipeline-report.md").contains("- MEDIUM design_flaw: a design_flaw")
    );
}

#[test]
fn findings_that_say_category_file_and_description_are_understood() {
    let other = json!({"severity": "HIGH", "category": "coverage_gap", "description": "REQ-2", "file": "tasks.md:4"});
    let mut sent = analysis(&[finding("HIGH", "x")]);
    sent["findings"] = json!([other]);
    let ran = run(good(play().says("analyze", envelope("analyze", &sent)), "tasks"), "full");
    let issue = &feedback(&ran, "tasks#2")["issues_to_fix"][0];
    assert_eq!(
        (&issue["type"], &issue["message"], &issue["location"]),
        (&json!("coverage_gap"), &json!("REQ-2"), &json!("tasks.md:4"))
    );
}

#[test]
fn findings_that_are_counted_but_not_listed_are_asked_for() {
    for severity in ["CRITICAL", "HIGH"] {
        let mut hidden = analysis(&[]);
        hidden["total_findings"] = json!(1);
        hidden["findings_by_severity"][severity] = json!(1);
        let none = || envelope("analyze", &analysis(&[]));
        let asked = play().says("analyze", envelope("analyze", &hidden));
        let ran = run(asked.says("analyze", none()).says("analyze", none()), "full");
        assert_eq!(ran.attempt("analyze#1")["repairs_asked"], 2, "{severity}: {ran:?}");
        assert!(ran.prompt("analyze#1", 2).contains("counts CRITICAL or HIGH findings"));
        let prompt = ran.prompt("analyze#1", 3);
        assert!(
            prompt.contains("reported a problem in `") && prompt.contains(severity),
            "{prompt}"
        );
        assert_eq!(ran.ended().0, "blocked", "{ran:?}");
    }
}

/// A failing gate of each kind.
fn failing(pointer: &str, value: Value) -> Value {
    with("test", &format!("/quality_gates/{pointer}"), value)
}

#[test]
fn test_to_implement_for_each_gate_that_fails() {
    let rows = [
        ("tests_passing/details", json!({"total": 4, "passed": 3, "failed": 1}), "test_failure"),
        ("coverage/details/overall", json!(61.0), "coverage"),
        ("code_quality/details/lint_errors", json!(2), "lint_error"),
        ("code_quality/details/type_errors", json!(1), "type_error"),
        ("build_validation/details/docker_compose", json!("no services"), "build_failure"),
    ];
    for (pointer, value, kind) in rows {
        let ran = run(good(play().says("test", failing(pointer, value)), "implement"), "simple");
        assert_eq!(ran.ended(), ("done", None, 0), "{kind}: {ran:?}");
        assert_eq!(worked(&ran), ["specify", "implement", "test", "implement", "test"], "{kind}");
        let sent = feedback(&ran, "implement#2");
        assert_eq!((types(&sent), &sent["feedback_from"]), (vec![kind], &json!("test")));
    }
}

/// The tests fail so often.
fn red(times: usize) -> Scenario {
    (0..times).fold(play(), |scenario, _| {
        let red = failing("tests_passing/details", json!({"total": 4, "passed": 3, "failed": 1}));
        good(scenario.says("test", red), "implement")
    })
}

#[test]
fn test_to_implement_twice_then_it_stops_with_a_report() {
    let ran = run(red(2), "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.report["iterations"], 3);
    let ran = run(red(3), "standard");
    assert_eq!(ran.ended(), ("exhausted", None, 6));
    assert_eq!((times(&ran, "implement"), times(&ran, "test"), times(&ran, "review")), (3, 3, 0));
    assert!(ran.reason().contains("3 of 4 tests pass"), "{}", ran.reason());
    let report = ran.read("specs/search/pipeline-report.md");
    assert!(report.contains("exhausted at stopped"), "{report}");
    assert!(report.contains("- CRITICAL test_failure: the gate tests does not hold"), "{report}");
}

/// A review with these issues.
fn reviewed(issues: &[Value]) -> Value {
    with("review", "/issues", json!(issues))
}

#[test]
fn review_to_implement_for_each_type_of_its_row() {
    for kind in [
        "directory_structure",
        "naming_violation",
        "constitution_violation",
        "duplicate_code",
        "else",
    ] {
        let scenario = play().says("review", reviewed(&[finding("HIGH", kind)]));
        let ran = run(good(good(scenario, "implement"), "test"), "standard");
        assert_eq!(ran.ended(), ("done", None, 0), "{kind}: {ran:?}");
        let sent = feedback(&ran, "implement#2");
        assert_eq!((types(&sent), &sent["feedback_from"]), (vec![kind], &json!("review")));
        assert_eq!((&sent["iteration"], &sent["max_iterations"]), (&json!(1), &json!(1)));
    }
}

#[test]
fn review_to_implement_once_then_it_stops_with_a_report() {
    let scenario = play()
        .says("review", reviewed(&[finding("CRITICAL", "duplicate_code")]))
        .says("review", reviewed(&[finding("CRITICAL", "duplicate_code")]));
    let ran = run(good(good(scenario, "implement"), "test"), "standard");
    assert_eq!(ran.ended(), ("exhausted", None, 6), "{ran:?}");
    assert_eq!((times(&ran, "implement"), times(&ran, "review")), (2, 2));
    assert!(
        ran.read("specs/search/pipeline-report.md")
            .contains("- CRITICAL duplicate_code: a duplicate_code")
    );
}

#[test]
fn code_that_a_review_sent_back_is_tested_before_it_is_reviewed_again() {
    let scenario = play().says("review", reviewed(&[finding("HIGH", "duplicate_code")]));
    let ran = run(good(good(scenario, "implement"), "test"), "standard");
    assert_eq!(worked(&ran)[4..], ["implement", "test", "review", "implement", "test", "review"]);
    assert!(ran.transitions().contains(&"back>unmet".to_owned()), "{:?}", ran.transitions());
    assert_eq!(ran.variables()["error"]["type"], "PrerequisiteError");
}

#[test]
fn a_failed_constitution_is_an_issue_even_if_the_review_approves() {
    let broken = with(
        "review",
        "/constitution_compliance",
        json!({"status": "FAIL", "passed": 2, "failed": 1}),
    );
    let ran = run(good(good(play().says("review", broken), "implement"), "test"), "standard");
    assert_eq!(types(&feedback(&ran, "implement#2")), ["constitution_violation"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
}

#[test]
fn minor_issues_of_a_review_are_recorded() {
    let minor = finding("LOW", "naming_violation");
    let ran = run(play().says("review", reviewed(std::slice::from_ref(&minor))), "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(times(&ran, "implement"), 1);
    assert_eq!(ran.variables()["recorded"], json!([minor]));
}
