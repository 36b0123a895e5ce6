//! The five recovery strategies, when the agent itself names one.

use super::{analysis, envelope, error_with, feedback, finding, good, play, run, types, worked};
use serde_json::json;

/// An error of an agent with a strategy of its own, of a type that would do something else.
fn says(agent: &str, kind: &str, strategy: &str) -> serde_json::Value {
    error_with(agent, kind, json!({"recovery_strategy": strategy}))
}

#[test]
fn run_prerequisite_agent_runs_the_suggested_agent_first() {
    let more = json!({"recovery_strategy": "run_prerequisite_agent", "suggested_action": {"agent": "specify", "reason": "it is empty"}});
    let ran = run(
        good(
            play().also_ejected().says("plan", error_with("plan", "ValidationError", more)),
            "specify",
        ),
        "standard",
    );
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran)[..5], ["specify", "clarify", "plan", "specify", "plan"]);
    assert!(!ran.prompt("specify#2", 1).contains("FEEDBACK_CONTEXT"), "it has nothing to fix");
}

#[test]
fn feedback_loop_sends_the_error_to_the_source_agent() {
    let ran = run(
        good(play().says("tasks", says("tasks", "ValidationError", "feedback_loop")), "plan"),
        "standard",
    );
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran)[2..6], ["plan", "tasks", "plan", "tasks"]);
    let sent = feedback(&ran, "plan#2");
    assert_eq!((&sent["feedback_from"], types(&sent)), (&json!("tasks"), vec!["ValidationError"]));
}

#[test]
fn fix_and_retry_tells_the_same_agent_what_was_wrong() {
    let ran =
        run(play().says("implement", says("implement", "TimeoutError", "fix_and_retry")), "simple");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(types(&feedback(&ran, "implement#2")), ["TimeoutError"]);
}

#[test]
fn fix_and_retry_keeps_what_the_agent_was_asked_to_fix_before() {
    let scenario =
        play().says("analyze", envelope("analyze", &analysis(&[finding("HIGH", "design_flaw")])));
    let scenario =
        good(scenario, "plan").says("plan", says("plan", "ValidationError", "fix_and_retry"));
    let ran = run(scenario, "full");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(types(&feedback(&ran, "plan#3")), ["design_flaw", "ValidationError"]);
}

#[test]
fn ask_user_asks() {
    let ran = run(play().says("plan", says("plan", "ValidationError", "ask_user")), "standard");
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec!["resolve"]), "{ran:?}");
    let ran = ran.answer_and_resume("resolve", "proceed");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
}

#[test]
fn manual_resolution_waits_for_a_person_and_abort_ends_it() {
    let ran =
        run(play().says("plan", says("plan", "TimeoutError", "manual_resolution")), "standard");
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec!["resolve"]), "{ran:?}");
    let ran = ran.answer_and_resume("resolve", "abort");
    assert_eq!(ran.ended(), ("blocked", None, 7));
    assert!(ran.reason().contains("somebody said abort"), "{}", ran.reason());
}

#[test]
fn not_recoverable_is_manual_whatever_strategy_it_names() {
    let more = json!({"recoverable": false, "recovery_strategy": "fix_and_retry"});
    let ran = run(play().says("plan", error_with("plan", "ValidationError", more)), "standard");
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec!["resolve"]), "{ran:?}");
    assert_eq!(ran.variables()["strategy"], "manual_resolution");
}

#[test]
fn the_agents_strategy_counts_for_the_type_of_its_error() {
    let torn = || says("implement", "TimeoutError", "fix_and_retry");
    let ran = run(play().says("implement", torn()).says("implement", torn()), "simple");
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec!["resolve"]), "{ran:?}");
    assert_eq!(ran.variables()["tried"], json!(["implement TimeoutError"]));
}
