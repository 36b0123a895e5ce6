//! What a person says goes to the agent that can act on it.

use super::{
    ASKED, analysis, envelope, error, error_with, feedback, finding, good, play, run, with, worked,
};
use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::json;

fn waits(scenario: Scenario, size: &str, question: &str) -> ScenarioRun {
    let ran = run(scenario, size);
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec![question]), "{ran:?}");
    ran
}

/// The words that an attempt was given.
fn heard(ran: &ScenarioRun, attempt: &str) -> String {
    feedback(ran, attempt)["issues_to_fix"][0]["message"].as_str().unwrap().to_owned()
}

#[test]
fn words_about_a_review_go_to_implement_and_the_review_looks_again() {
    let unsure = with("review", "/overall_status", json!("NEEDS_MANUAL_REVIEW"));
    let scenario = good(good(play().says("review", unsure), "implement"), "test");
    let ran = waits(scenario, "standard", "decide");
    let ran = ran.answer_and_resume("decide", "again: rename search to find");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran)[6..], ["review", "implement", "test", "review"]);
    assert_eq!(heard(&ran, "implement#2"), "rename search to find");
    assert!(ran.prompt("review#2", 1).contains("- implement: rename search to find"));
}

#[test]
fn words_about_findings_go_to_the_agent_that_fixes_them() {
    for (kind, fixer) in
        [("unclear_scope", "specify"), ("design_flaw", "plan"), ("coverage_gap", "tasks")]
    {
        let found = || envelope("analyze", &analysis(&[finding("HIGH", kind)]));
        let scenario =
            (0..3).fold(play(), |scenario, _| good(scenario.says("analyze", found()), fixer));
        let ran = waits(good(scenario, fixer), "full", "decide");
        let ran = ran.answer_and_resume("decide", "again: drop REQ-2");
        assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
        assert_eq!(heard(&ran, &format!("{fixer}#4")), "drop REQ-2", "{kind}");
        let all = worked(&ran);
        let at = all.iter().rposition(|name| name == fixer).unwrap();
        assert_eq!(all[at + 1], "analyze", "{kind}: {all:?}");
    }
}

#[test]
fn words_about_a_failed_gate_go_to_implement() {
    let red = error_with("test", "QualityGateFailure", json!({"recovery_strategy": "ask_user"}));
    let ran = waits(good(play().says("test", red), "implement"), "simple", "resolve");
    let ran = ran.answer_and_resume("resolve", "proceed: mock the clock");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran), ["specify", "implement", "test", "implement", "test"]);
    assert_eq!(heard(&ran, "implement#2"), "mock the clock");
}

#[test]
fn words_about_trouble_of_its_own_go_to_the_agent_that_has_it() {
    let slow = error_with("test", "TimeoutError", json!({"recovery_strategy": "ask_user"}));
    let ran = waits(play().says("test", slow), "simple", "resolve");
    let ran = ran.answer_and_resume("resolve", "proceed: use port 8081");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(heard(&ran, "test#2"), "use port 8081");
}

#[test]
fn a_person_can_name_the_agent() {
    let open = || play().says("clarify", with("clarify", "/remaining_ambiguities", json!(2)));
    let ran = waits(good(open(), "specify"), "standard", "decide");
    let ran = ran.answer_and_resume("decide", "specify: rank by date\nand by name");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran)[..5], ["specify", "clarify", "specify", "clarify", "plan"]);
    assert_eq!(heard(&ran, "specify#2"), "rank by date\nand by name");
    let ran = waits(open(), "standard", "decide");
    let ran = ran.answer_and_resume("decide", "implement: just do it");
    assert_eq!(ran.questions(), ["decide#2"], "nothing is built before it is approved: {ran:?}");
    assert!(ran.reason().contains("implement works after clarify"), "{}", ran.reason());
}

#[test]
fn words_at_the_approval_change_a_document_and_all_after_it() {
    let scenario = ["plan", "tasks"].into_iter().fold(play(), good);
    let scenario = super::AGENTS.into_iter().fold(scenario, good);
    let ran = scenario.run(&ASKED);
    assert_eq!(ran.questions(), ["approve"], "{ran:?}");
    let ran = ran.answer_and_resume("approve", "plan: use grep");
    assert_eq!(ran.questions(), ["approve#2"], "{ran:?}");
    assert_eq!(worked(&ran), ["specify", "clarify", "plan", "tasks", "plan", "tasks"]);
    assert_eq!(heard(&ran, "plan#2"), "use grep");
    let ran = ran.answer_and_resume("approve", "research: read more");
    assert_eq!(ran.questions(), ["approve#3"], "research is no part of this run: {ran:?}");
    assert_eq!(ran.answer_and_resume("approve", "proceed").ended(), ("done", None, 0));
}

#[test]
fn a_failed_gate_goes_to_the_one_who_can_fix_it() {
    let suggests = json!({"suggested_action": {"agent": "plan", "reason": "it is slow"}});
    let scenario = play().says("test", error_with("test", "QualityGateFailure", suggests));
    let ran = run(good(scenario, "implement"), "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(
        worked(&ran)[4..8],
        ["implement", "test", "implement", "test"],
        "a plan fixes no test"
    );
    let ran = run(play().says("implement", error("implement", "QualityGateFailure")), "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran)[3..6], ["tasks", "implement", "implement"]);
    assert_eq!(heard(&ran, "implement#2"), "it is broken");
}

#[test]
fn only_the_tracker_can_be_done_without() {
    let down =
        |agent: &str| error_with(agent, "ExternalServiceError", json!({"recoverable": false}));
    let ran = waits(play().says("taskstoissues", down("taskstoissues")), "full", "resolve");
    let ran = ran.answer_and_resume("resolve", "skip");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let report = ran.read("specs/search/pipeline-report.md");
    assert!(report.contains("- taskstoissues was skipped by a person"), "{report}");
    let ran = waits(play().says("test", down("test")), "simple", "resolve");
    let ran = ran.answer_and_resume("resolve", "skip");
    assert_eq!(ran.questions(), ["resolve#2"], "{ran:?}");
}
