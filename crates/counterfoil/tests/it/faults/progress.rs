//! Loops without progress are distinguished from loops that make progress.

use crate::shell_project::{SHELL_AGENT, ShellProject, agent_workflow, run_arguments};
use counterfoil_testkit::{TIMEOUT, wait_until};
use serde_json::Value;

/// An agent is asked to fix the same thing until it is content, at most six times.
fn fixing(agent: &str) -> ShellProject {
    let project = ShellProject::new();
    let next = "work: { agent: worker, next: [{ when: result.ok, go: end }, \
                { set: { fix: 'has(result.note) ? result.note : null' }, go: work, counts: rounds }] }";
    project.write(
        "flow.yaml",
        agent_workflow("").replace("work: { agent: worker, go: end }", next)
            + "  tired: { end: exhausted }\nvariables: { fix: string? }\nlimits: { rounds: { max: 6, then: tired } }\n",
    );
    project.write("agent.sh", agent);
    project
}

fn attempts(report: &Value) -> usize {
    report["attempts"].as_array().unwrap().len()
}

#[test]
fn the_same_request_three_times_with_an_unchanged_tree_is_no_progress() {
    let project = fixing("echo '{\"ok\": false, \"note\": \"the button is missing\"}'\n");
    let words = [
        "'work' sent the same request to 'work' 3 times in a row",
        "nothing in the work tree changed",
    ];
    let report = project.assert_run_ends(SHELL_AGENT, 6, "exhausted", Some("no-progress"), &words);
    assert_eq!(attempts(&report), 3);
}

#[test]
fn the_same_holds_in_a_repository_of_git() {
    let project = fixing("echo '{\"ok\": false, \"note\": \"the button is missing\"}'\n");
    project.init_git();
    let report = project.assert_run_ends(
        SHELL_AGENT,
        6,
        "exhausted",
        Some("no-progress"),
        &["nothing in the work tree changed"],
    );
    assert_eq!(attempts(&report), 3);
}

#[test]
fn the_same_request_over_a_tree_that_changes_goes_on_to_its_limit() {
    let project = fixing(
        "echo tried >> tries; echo '{\"ok\": false, \"note\": \"the button is missing\"}'\n",
    );
    let report = project.assert_run_ends(
        SHELL_AGENT,
        6,
        "exhausted",
        None,
        &["the limit 'rounds' of 6 is used up"],
    );
    assert_eq!(attempts(&report), 7);
    assert_eq!(project.read_or_empty("tries").lines().count(), 7);
}

#[test]
fn another_request_each_time_goes_on_to_its_limit() {
    let project = fixing("echo \"{\\\"ok\\\": false, \\\"note\\\": \\\"problem $$\\\"}\"\n");
    let report = project.assert_run_ends(
        SHELL_AGENT,
        6,
        "exhausted",
        None,
        &["the limit 'rounds' of 6 is used up"],
    );
    assert_eq!(attempts(&report), 7);
}

#[test]
fn a_result_that_is_wrong_in_the_same_way_three_times_is_no_progress() {
    let project = fixing("echo tried >> tries; echo '{\"ok\": \"perhaps\"}'\n");
    let flow = project.read_or_empty("flow.yaml").replace(
        "work: { agent: worker,",
        "work: { agent: worker, repairs: 0, on: { contract: { go: work, counts: rounds } },",
    );
    project.write("flow.yaml", flow);
    let words = ["wrong in the same way 3 times in a row"];
    let report = project.assert_run_ends(SHELL_AGENT, 6, "exhausted", Some("no-progress"), &words);
    assert_eq!(attempts(&report), 3);
}

#[test]
fn a_wrong_result_that_the_workflow_does_without_stops_nothing() {
    let project = fixing("echo tried >> tries; echo '{\"ok\": \"perhaps\"}'\n");
    let flow = project.read_or_empty("flow.yaml").replace(
        "work: { agent: worker,",
        "round: { next: [{ when: counts.rounds < 4, go: work, counts: rounds }, { go: end }] }\n  \
         work: { agent: worker, repairs: 0, on: { contract: round },",
    );
    project.write("flow.yaml", flow);
    let report = project.assert_run_ends(SHELL_AGENT, 0, "done", None, &[]);
    assert_eq!(attempts(&report), 5);
}

#[test]
fn a_streak_is_not_forgotten_when_we_are_killed_and_files_of_ours_do_not_break_it() {
    let project = fixing("");
    project.write(
        "flow.yaml",
        project.read_or_empty("flow.yaml") + crate::faults::artifacts::ARTIFACTS,
    );
    // Nothing of the agent is in the tree. It hangs in the second round, twice.
    let agent = "[ -e ../once ] && [ \"$(cat ../hung)\" != xx ] && { printf x >> ../hung; sleep 300; }\ntouch ../once\n\
                 echo '{\"ok\": false, \"note\": \"the button is missing\"}'\n";
    std::fs::write(project.root().join("agent.sh"), agent).unwrap();
    let hung = || std::fs::read_to_string(project.root().join("hung")).unwrap_or_default();
    let live = project.start(&run_arguments("flow.yaml", "command:sh ../agent.sh"));
    wait_until(TIMEOUT, "the second round", || (hung() == "x").then_some(()));
    assert!(live.kill());
    let live = project.start(&["resume", "last"]);
    wait_until(TIMEOUT, "the second round again", || (hung() == "xx").then_some(()));
    assert!(live.kill());
    let output = project.run(&["resume", "last", "--format", "json"]);
    output.expect(6, &["no-progress"]);
    // Two that were lost, and three of the same.
    assert_eq!(attempts(&output.json()), 5);
    project.assert_intact();
}
