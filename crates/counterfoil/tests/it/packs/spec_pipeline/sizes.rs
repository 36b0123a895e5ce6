//! The agents of a run by its size, and its inputs.

use super::{AGENTS, ASKED, play, run, section, succeeded, then_all_goes_well, with, worked};
use serde_json::json;

#[test]
fn simple_is_specify_a_person_implement_and_test() {
    let ran = run(play(), "simple");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran), ["specify", "implement", "test"]);
    let moves = ran.transitions();
    for step in ["judge-clarity>approve", "approve>implement"] {
        assert!(moves.contains(&step.to_owned()), "{moves:?}");
    }
}

#[test]
fn standard_adds_clarify_plan_tasks_and_review() {
    let ran = run(play(), "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let expected = ["specify", "clarify", "plan", "tasks", "implement", "test", "review"];
    assert_eq!(worked(&ran), expected);
    assert!(
        ran.transitions().contains(&"judge-list>approve".to_owned()),
        "{:?}",
        ran.transitions()
    );
}

#[test]
fn what_only_looks_like_the_id_of_a_task_is_none() {
    let text = "- [ ] **T001**: search (see T001)\n\nHTTP404, T12, T12 345, 2026-11-16T100000Z, T002nd, AT100, TT200\n";
    let scenario = play().says("tasks", succeeded("tasks")).writes("specs/search/tasks.md", text);
    let ran = run(scenario, "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(ran.transitions().contains(&"judge-list>approve".to_owned()), "{ran:?}");
}

#[test]
fn full_is_all_eleven_in_order() {
    let ran = run(play(), "full");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran), AGENTS);
    assert!(ran.transitions().contains(&"triage>approve".to_owned()), "{:?}", ran.transitions());
}

#[test]
fn standard_is_the_size_when_none_is_given() {
    let ran = then_all_goes_well(play()).run(&ASKED);
    assert_eq!(worked(&ran), worked(&run(play(), "standard")));
}

#[test]
fn the_feature_is_named_after_the_request_when_it_has_no_id() {
    let of_it = |agent| with(agent, "/feature_id", json!("add-a-search"));
    let scenario = play().says("test", of_it("test")).says("review", of_it("review"));
    let ran = then_all_goes_well(scenario).run(&["--task", "Add a Search!"]);
    assert_eq!(ran.variables()["feature"], "add-a-search");
    assert_eq!(ran.variables()["folder"], "specs/add-a-search/");
    // The agents said where they wrote, and that is where later ones look.
    assert_eq!(ran.variables()["spec_file"], "specs/search/spec.md");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
}

#[test]
fn what_a_run_is_given_is_looked_at_before_an_agent_is_spent() {
    let cases = [
        (["--task", "Add it", "--input", "feature_id=../secrets"], "cannot name a folder"),
        (["--task", "Add it", "--input", "min_coverage=120"], "min_coverage is 120"),
    ];
    for (arguments, why) in cases {
        let ran = then_all_goes_well(play()).run(&arguments);
        assert_eq!(ran.ended(), ("blocked", None, 7), "{arguments:?}");
        assert!(ran.reason().contains(why), "{}", ran.reason());
        assert!(ran.attempts().is_empty(), "{arguments:?}: {:?}", ran.attempts());
    }
}

#[test]
fn the_engine_knows_the_number_and_the_branch() {
    let numbered = |scenario: crate::packs::scenario::Scenario, id: &str| {
        let of_it = with("test", "/feature_id", json!(id));
        let id = format!("feature_id={id}");
        let arguments = ["--task", "Add a search", "--input", &id, "--input", "size=simple"];
        let ran = then_all_goes_well(scenario.says("test", of_it)).run(&arguments);
        assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
        let context = section(&ran.prompt("specify#1", 1), "WORKFLOW_CONTEXT").unwrap();
        assert_eq!(context["branch_name"], ran.git(&["branch", "--show-current"]).trim());
        context["feature_number"].clone()
    };
    let old = |folder: &str| play().file(&format!("specs/{folder}/spec.md"), "# Old\n").commit();
    assert_eq!(numbered(play(), "search"), 1);
    assert_eq!(numbered(old("007-login"), "search"), 8, "the next one");
    assert_eq!(numbered(old("007-search"), "search"), 7, "it has one");
    assert_eq!(numbered(old("007-login"), "012-search"), 12, "its id says it");
}
