//! The error table: the reaction to each type of error, and how often.

use super::{error, error_with, feedback, good, play, run, worked};
use serde_json::json;

#[test]
fn prerequisite_error_runs_the_agent_that_is_needed_once() {
    let needs = || {
        error_with(
            "tasks",
            "PrerequisiteError",
            json!({"suggested_action": {"agent": "speckit-plan", "reason": "no plan"}}),
        )
    };
    let ran = run(good(play().says("tasks", needs()), "plan"), "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran)[2..6], ["plan", "tasks", "plan", "tasks"]);
    let ran = run(good(play().says("tasks", needs()).says("tasks", needs()), "plan"), "standard");
    assert_eq!(ran.ended(), ("waiting", None, 4), "once is all");
    assert_eq!(ran.questions(), ["resolve"]);
}

#[test]
fn an_agent_that_names_nobody_useful_is_helped_by_the_one_before_it() {
    for suggested in ["review", "tasks", "nobody"] {
        let needs = error_with(
            "tasks",
            "PrerequisiteError",
            json!({"suggested_action": {"agent": suggested, "reason": "x"}}),
        );
        let ran = run(good(play().says("tasks", needs), "plan"), "standard");
        assert_eq!(worked(&ran)[2..6], ["plan", "tasks", "plan", "tasks"], "{suggested}");
    }
}

#[test]
fn an_agent_upstream_that_is_suggested_helps_instead_of_the_usual_one() {
    let needs = error_with(
        "tasks",
        "PrerequisiteError",
        json!({"suggested_action": {"agent": "specify", "reason": "it is empty"}}),
    );
    let ran = run(good(play().says("tasks", needs), "specify"), "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran)[2..6], ["plan", "tasks", "specify", "tasks"]);
}

#[test]
fn specify_has_nobody_before_it_so_a_person_is_asked() {
    let ran = run(play().says("specify", error("specify", "PrerequisiteError")), "simple");
    assert_eq!(ran.ended(), ("waiting", None, 4));
    assert_eq!((ran.questions(), worked(&ran)), (vec!["resolve"], vec!["specify".to_owned()]));
}

#[test]
fn validation_error_is_fixed_and_tried_again_once() {
    let ran = run(play().says("plan", error("plan", "ValidationError")), "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let sent = feedback(&ran, "plan#2");
    assert_eq!((&sent["feedback_from"], &sent["max_iterations"]), (&json!("plan"), &json!(1)));
    assert_eq!(sent["issues_to_fix"][0]["message"], "it is broken");
    let twice = play()
        .says("plan", error("plan", "ValidationError"))
        .says("plan", error("plan", "ValidationError"));
    let ran = run(twice, "standard");
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec!["resolve"]), "{ran:?}");
}

#[test]
fn quality_gate_failure_goes_through_implement_twice() {
    let red = |scenario: crate::packs::scenario::Scenario| {
        good(scenario.says("test", error("test", "QualityGateFailure")), "implement")
    };
    let ran = run(red(red(play())), "simple");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(
        worked(&ran),
        ["specify", "implement", "test", "implement", "test", "implement", "test"]
    );
    let sent = feedback(&ran, "implement#3");
    assert_eq!(
        (&sent["iteration"], &sent["max_iterations"], &sent["feedback_from"]),
        (&json!(2), &json!(2), &json!("test"))
    );
    let ran = run(red(red(red(play()))), "simple");
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec!["resolve"]), "{ran:?}");
}

#[test]
fn constitution_violation_error_is_for_a_person_at_once() {
    for more in [json!({}), json!({"recovery_strategy": "fix_and_retry"})] {
        let ran = run(
            play().says("plan", error_with("plan", "ConstitutionViolationError", more)),
            "standard",
        );
        assert_eq!(
            (ran.ended(), ran.questions()),
            (("waiting", None, 4), vec!["resolve"]),
            "{ran:?}"
        );
        assert_eq!(worked(&ran), ["specify", "clarify", "plan"]);
        assert!(
            ran.reason().contains("ConstitutionViolationError of plan (BROKEN): it is broken"),
            "{}",
            ran.reason()
        );
    }
}

#[test]
fn branch_exists_error_asks_and_the_answer_reaches_the_agent() {
    let ran = run(play().says("specify", error("specify", "BranchExistsError")), "simple");
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec!["resolve"]), "{ran:?}");
    let ran = ran.answer_and_resume("resolve", "proceed: use 008-search");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let sent = feedback(&ran, "specify#2");
    assert_eq!(sent["issues_to_fix"][0]["message"], "use 008-search");
}

#[test]
fn timeout_error_is_tried_again_once() {
    let ran = run(play().says("implement", error("implement", "TimeoutError")), "simple");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran), ["specify", "implement", "implement", "test"]);
    assert!(!ran.prompt("implement#2", 1).contains("FEEDBACK_CONTEXT"), "it is asked as before");
    let twice = play()
        .says("implement", error("implement", "TimeoutError"))
        .says("implement", error("implement", "TimeoutError"));
    let ran = run(twice, "simple");
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec!["resolve"]), "{ran:?}");
}

#[test]
fn external_service_error_is_tried_again_after_a_second() {
    let ran = run(
        play().says("specify", error("specify", "ExternalServiceError")).built_in_only(),
        "simple",
    );
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran), ["specify", "specify", "implement", "test"]);
}

#[test]
fn tries_are_counted_for_each_agent() {
    let scenario = play()
        .says("clarify", error("clarify", "ValidationError"))
        .says("plan", error("plan", "ValidationError"));
    let ran = run(scenario, "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(
        ran.variables()["tried"],
        json!(["clarify ValidationError", "plan ValidationError"])
    );
}

#[test]
fn an_error_without_type_code_message_or_recoverable_is_no_error() {
    for field in ["type", "code", "message", "recoverable"] {
        let mut torn = error("specify", "TimeoutError");
        torn["error"].as_object_mut().unwrap().remove(field);
        let ran = run(play().says("specify", torn), "simple");
        assert_eq!(ran.attempt("specify#1")["repairs_asked"], 1, "{field}: {ran:?}");
        assert!(ran.prompt("specify#1", 2).contains(field), "{field}");
        assert_eq!(ran.variables()["tried"], json!([]), "{field}");
    }
}

#[test]
fn an_unknown_type_or_strategy_is_refused_and_repaired() {
    let odd = [
        error("specify", "CosmicRayError"),
        error_with("specify", "TimeoutError", json!({"recovery_strategy": "pray"})),
    ];
    for torn in odd {
        let ran = run(play().says("specify", torn), "simple");
        assert_eq!(ran.attempt("specify#1")["repairs_asked"], 1, "{ran:?}");
        assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    }
}
