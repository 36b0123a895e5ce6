//! The prerequisites of each agent, and what happens without them.

use super::{error, good, play, run, section, succeeded, with, worked};
use crate::packs::scenario::Scenario;
use serde_json::json;

/// A reply that writes nothing, although it says so.
fn empty_handed(scenario: Scenario, agent: &str) -> Scenario {
    scenario.says(agent, succeeded(agent))
}

/// The prerequisite error of a run, which takes the place of the agent's own.
fn unmet(ran: &crate::packs::run::ScenarioRun, agent: &str, helper: &str) {
    let error = &ran.variables()["error"];
    assert_eq!(
        (&error["type"], &error["recoverable"]),
        (&json!("PrerequisiteError"), &json!(true)),
        "{ran:?}"
    );
    assert_eq!(error["suggested_action"]["agent"], helper);
    assert!(
        error["message"].as_str().unwrap().starts_with(&format!("{agent} cannot start: ")),
        "{error:#}"
    );
}

#[test]
fn clarify_needs_the_spec() {
    let ran = run(empty_handed(play(), "specify"), "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran)[..3], ["specify", "specify", "clarify"], "no agent is spent on it");
    unmet(&ran, "clarify", "specify");
    let context = section(&ran.prompt("specify#2", 1), "WORKFLOW_CONTEXT").unwrap();
    assert_eq!(context["previous_results"]["clarify"]["error"]["code"], "PREREQUISITE_MISSING");
}

#[test]
fn plan_needs_the_spec() {
    let scenario = good(play(), "specify")
        .says("clarify", succeeded("clarify"))
        .deletes("specs/search/spec.md");
    let ran = run(scenario, "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran)[..4], ["specify", "clarify", "specify", "plan"]);
    unmet(&ran, "plan", "specify");
}

#[test]
fn research_and_checklist_need_the_spec() {
    let scenario = good(play(), "specify")
        .says("clarify", succeeded("clarify"))
        .deletes("specs/search/spec.md");
    let ran = run(scenario, "full");
    assert_eq!(worked(&ran)[..4], ["specify", "clarify", "specify", "research"]);
    unmet(&ran, "research", "specify");
    let scenario = good(play(), "specify")
        .says("plan", succeeded("plan"))
        .writes("specs/search/plan.md", "# Plan\n")
        .deletes("specs/search/spec.md");
    let ran = run(scenario, "full");
    assert_eq!(worked(&ran)[3..6], ["plan", "specify", "checklist"]);
    unmet(&ran, "checklist", "specify");
}

#[test]
fn tasks_needs_the_plan() {
    let ran = run(empty_handed(play(), "plan"), "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran)[2..5], ["plan", "plan", "tasks"]);
    unmet(&ran, "tasks", "plan");
}

#[test]
fn analyze_needs_the_tasks() {
    let ran = run(empty_handed(play(), "tasks"), "full");
    assert_eq!(worked(&ran)[5..8], ["tasks", "tasks", "analyze"]);
    unmet(&ran, "analyze", "tasks");
}

#[test]
fn implement_needs_tasks_and_plan() {
    let ran = run(empty_handed(play(), "tasks"), "standard");
    assert_eq!(worked(&ran)[3..6], ["tasks", "tasks", "implement"]);
    unmet(&ran, "implement", "tasks");
    let scenario = good(play(), "plan")
        .says("tasks", succeeded("tasks"))
        .writes("specs/search/tasks.md", "- T001\n")
        .deletes("specs/search/plan.md");
    let ran = run(scenario, "standard");
    assert_eq!(worked(&ran)[3..6], ["tasks", "plan", "implement"]);
    unmet(&ran, "implement", "plan");
}

#[test]
fn a_simple_run_needs_only_the_spec() {
    let ran = run(empty_handed(play(), "specify"), "simple");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran), ["specify", "specify", "implement", "test"]);
    unmet(&ran, "implement", "specify");
}

#[test]
fn taskstoissues_needs_the_tasks() {
    let scenario =
        good(play(), "tasks").says("review", succeeded("review")).deletes("specs/search/tasks.md");
    let ran = run(good(scenario, "test"), "full");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran)[9..], ["review", "test", "tasks", "taskstoissues"]);
    unmet(&ran, "taskstoissues", "tasks");
}

#[test]
fn each_missing_file_is_provided_by_its_own_agent_upstream_first() {
    let scenario =
        good(play(), "specify").says("plan", succeeded("plan")).deletes("specs/search/spec.md");
    let ran = run(good(scenario, "plan"), "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran)[..6], ["specify", "clarify", "plan", "specify", "plan", "tasks"]);
}

#[test]
fn a_prerequisite_of_a_prerequisite_is_met_first() {
    let scenario = good(good(play(), "specify"), "plan")
        .says("tasks", error("tasks", "PrerequisiteError"))
        .deletes("specs/search/spec.md");
    let ran = run(scenario, "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran)[2..7], ["plan", "tasks", "specify", "plan", "tasks"]);
    let ways = [
        "act>plan",
        "plan>unmet",
        "act>specify",
        "specify>back",
        "back>plan",
        "plan>back",
        "back>tasks",
    ];
    let moves = ran.transitions();
    let mut rest = moves.iter();
    assert!(ways.iter().all(|way| rest.any(|step| step == way)), "{moves:?}");
}

#[test]
fn what_is_still_missing_after_that_is_for_a_person() {
    let ran = run(empty_handed(empty_handed(play(), "specify"), "specify"), "standard");
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec!["resolve"]), "{ran:?}");
    assert_eq!(worked(&ran), ["specify", "specify"]);
    assert!(ran.reason().contains("specs/search/spec.md"), "{}", ran.reason());
    let ran = ran
        .each(|project| {
            project.write("specs/search/spec.md", "# By hand\n");
        })
        .answer_and_resume("resolve", "proceed");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
}

#[test]
fn the_paths_are_those_that_agents_reported() {
    let elsewhere = with("specify", "/spec_file", json!("specs/007-search/spec.md"));
    let scenario =
        play().says("specify", elsewhere).writes("specs/007-search/spec.md", "# Search\n");
    let ran = run(scenario, "simple");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran), ["specify", "implement", "test"]);
    assert!(ran.prompt("implement#1", 1).contains("specs/007-search/spec.md"));
}

#[test]
fn an_error_on_the_way_back_does_not_lose_the_way() {
    let scenario =
        empty_handed(play(), "specify").says("specify", error("specify", "TimeoutError"));
    let ran = run(scenario, "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran)[..4], ["specify", "specify", "specify", "clarify"]);
}
