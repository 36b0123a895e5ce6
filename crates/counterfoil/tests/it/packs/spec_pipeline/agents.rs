//! What every agent returns: exactly one of three kinds of result, and only from the agent that was
//! asked.

use super::{AGENTS, good, play, run, succeeded, with, worked};
use serde_json::json;

#[test]
fn a_result_of_another_agent_is_refused_and_asked_for_again() {
    let mut other = succeeded("specify");
    other["agent"] = json!("plan");
    let ran = run(play().says("specify", other), "simple");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.attempt("specify#1")["repairs_asked"], 1);
    assert!(ran.prompt("specify#1", 2).contains("agent"), "{}", ran.prompt("specify#1", 2));
    assert_eq!(worked(&ran), ["specify", "implement", "test"]);
}

#[test]
fn the_name_with_its_prefix_is_the_same_agent() {
    let mut scenario = play();
    for agent in AGENTS {
        let mut result = succeeded(agent);
        result["agent"] = json!(format!("speckit-{agent}"));
        scenario = scenario.says(agent, result);
        scenario = match agent {
            "specify" => scenario.writes("specs/search/spec.md", "# Search\n"),
            "plan" => scenario.writes("specs/search/plan.md", "# Plan\n"),
            "tasks" => scenario.writes("specs/search/tasks.md", "- T001\n"),
            "implement" => scenario.writes("src/search.rs", "pub fn search() {}\n"),
            _ => scenario,
        };
    }
    let ran = run(scenario, "full");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let asked =
        ran.report["attempts"].as_array().unwrap().iter().filter(|one| one["repairs_asked"] != 0);
    assert_eq!((asked.count(), worked(&ran).len()), (0, 11));
}

#[test]
fn success_with_an_error_and_error_with_a_result_are_refused() {
    let mut torn = succeeded("specify");
    torn["error"] =
        json!({"type": "TimeoutError", "code": "X", "message": "slow", "recoverable": true});
    let mut other = torn.clone();
    other["status"] = json!("error");
    for torn in [torn, other] {
        let ran = run(play().says("specify", torn), "simple");
        assert_eq!(ran.attempt("specify#1")["repairs_asked"], 1, "{ran:?}");
        assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    }
}

#[test]
fn words_without_a_result_never_pass_and_are_a_blocker_after_two_repairs() {
    for agent in ["specify", "test", "review"] {
        let scenario =
            (0..3).fold(play(), |scenario, _| scenario.raw(agent, "Looks good to me, approved!"));
        let ran = run(scenario, "standard");
        assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
        assert!(
            ran.reason().starts_with(&format!("{agent} gave no valid result: ")),
            "{}",
            ran.reason()
        );
        let attempt = ran.attempt(&format!("{agent}#1"));
        assert_eq!(
            (attempt["repairs_asked"].clone(), attempt["replies"].as_array().unwrap().len()),
            (json!(2), 3)
        );
        assert_eq!(worked(&ran).last().unwrap(), agent, "nobody goes on from there");
    }
}

#[test]
fn a_result_that_stays_wrong_is_a_blocker_for_every_agent() {
    for agent in AGENTS {
        let scenario = (0..3).fold(play(), |scenario, at| {
            scenario.raw(
                agent,
                &format!(
                    r#"{{"agent": "{agent}", "status": "success", "execution_time_ms": {at}}}"#
                ),
            )
        });
        let ran = run(scenario.built_in_only(), "full");
        assert_eq!(ran.ended(), ("blocked", None, 7), "{agent}: {ran:?}");
        assert!(
            ran.reason().starts_with(&format!("{agent} gave no valid result: ")),
            "{}",
            ran.reason()
        );
    }
}

#[test]
fn a_process_that_fails_is_tried_again() {
    let ran = run(play().reply("specify").fails("transport"), "simple");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.attempts()[..2], ["specify#1 transport", "specify#2 accepted"]);
}

#[test]
fn a_process_that_times_out_is_tried_again_once() {
    let ran = run(play().reply("test").fails("timeout"), "simple");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let ran = run(play().reply("test").fails("timeout").reply("test").fails("timeout"), "simple");
    assert_eq!(ran.ended(), ("failed", Some("timeout"), 124));
}

#[test]
fn contradictions_are_refused_and_repaired() {
    let cases = [
        ("implement", "/tasks_completed", json!(5)),
        ("implement", "/completion_percentage", json!(50.0)),
        ("tasks", "/task_count", json!(3)),
        ("tasks", "/task_ids", json!(["T001", "T002"])),
        ("analyze", "/total_findings", json!(2)),
        ("analyze", "/coverage_analysis/coverage_percentage", json!(80.0)),
    ];
    for (agent, pointer, value) in cases {
        let ran = run(play().says(agent, with(agent, pointer, value)).built_in_only(), "full");
        assert_eq!(ran.attempt(&format!("{agent}#1"))["repairs_asked"], 1, "{pointer}: {ran:?}");
        assert_eq!(ran.ended(), ("done", None, 0), "{pointer}: {ran:?}");
    }
}

#[test]
fn those_who_write_documents_write_nowhere_else() {
    let writers = &AGENTS[..7];
    let scenario = writers.iter().fold(play(), |scenario, agent| {
        good(scenario, agent).writes(&format!("src/{agent}.rs"), "// mine\n")
    });
    let ran = run(scenario, "full");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    for agent in writers {
        assert!(!ran.path(&format!("src/{agent}.rs")).exists(), "{agent} wrote code");
    }
    assert_eq!(ran.read("specs/search/spec.md"), "# Search\n");
}

#[test]
fn test_and_taskstoissues_change_no_code() {
    let scenario = play()
        .says("test", succeeded("test"))
        .writes("src/lib.rs", "// made green\n")
        .says("taskstoissues", succeeded("taskstoissues"))
        .writes("issues.md", "T001\n");
    let ran = run(scenario, "full");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(ran.read("src/lib.rs").starts_with("pub fn one()"), "it was put back");
    assert!(!ran.path("issues.md").exists(), "it was put back");
}

#[test]
fn what_implement_wrote_stays_although_its_report_is_garbage() {
    let garbage = |scenario: crate::packs::scenario::Scenario| {
        scenario.raw("implement", "done!").writes("src/search.rs", "// half\n")
    };
    let ran = run(garbage(garbage(garbage(play()))), "simple");
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(ran.read("src/search.rs"), "// half\n");
    assert!(ran.git(&["status", "--porcelain", "--untracked-files=all"]).contains("src/search.rs"));
}

#[test]
fn next_steps_are_advice_and_the_size_decides() {
    let eager = with("specify", "/next_steps", json!(["taskstoissues"]));
    let scenario = play().says("specify", eager).writes("specs/search/spec.md", "# Search\n");
    let ran = run(good(scenario, "clarify"), "simple");
    assert_eq!(worked(&ran), ["specify", "implement", "test"]);
}
