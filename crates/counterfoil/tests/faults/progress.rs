//! Loops in which nothing moves are told apart from loops that get on.

use crate::house::{AGENT, House, LONG, starting, until, work};
use serde_json::Value;

/// An agent is asked to fix the same thing until it is content, at most six times.
fn fixing(agent: &str) -> House {
    let house = House::new();
    let next = "work: { agent: worker, next: [{ when: result.ok, go: end }, \
                { set: { fix: 'has(result.note) ? result.note : null' }, go: work, counts: rounds }] }";
    house.file(
        "flow.yaml",
        work("").replace("work: { agent: worker, go: end }", next)
            + "  tired: { end: exhausted }\nvariables: { fix: string? }\nlimits: { rounds: { max: 6, then: tired } }\n",
    );
    house.file("agent.sh", agent);
    house
}

fn attempts(report: &Value) -> usize {
    report["attempts"].as_array().unwrap().len()
}

#[test]
fn the_same_request_three_times_with_an_unchanged_tree_is_no_progress() {
    let house = fixing("echo '{\"ok\": false, \"note\": \"the button is missing\"}'\n");
    let words = [
        "'work' sent the same request to 'work' 3 times in a row",
        "nothing in the work tree changed",
    ];
    let report = house.ends(AGENT, 6, "exhausted", Some("no-progress"), &words);
    assert_eq!(attempts(&report), 3);
}

#[test]
fn the_same_holds_in_a_repository_of_git() {
    let house = fixing("echo '{\"ok\": false, \"note\": \"the button is missing\"}'\n");
    let made = std::process::Command::new("git")
        .args(["init", "--quiet"])
        .current_dir(house.repo())
        .status();
    assert!(made.unwrap().success());
    let report = house.ends(
        AGENT,
        6,
        "exhausted",
        Some("no-progress"),
        &["nothing in the work tree changed"],
    );
    assert_eq!(attempts(&report), 3);
}

#[test]
fn the_same_request_over_a_tree_that_changes_goes_on_to_its_limit() {
    let house = fixing(
        "echo tried >> tries; echo '{\"ok\": false, \"note\": \"the button is missing\"}'\n",
    );
    let report = house.ends(AGENT, 6, "exhausted", None, &["the limit 'rounds' of 6 is used up"]);
    assert_eq!(attempts(&report), 7);
    assert_eq!(house.read("tries").lines().count(), 7);
}

#[test]
fn another_request_each_time_goes_on_to_its_limit() {
    let house = fixing("echo \"{\\\"ok\\\": false, \\\"note\\\": \\\"problem $$\\\"}\"\n");
    let report = house.ends(AGENT, 6, "exhausted", None, &["the limit 'rounds' of 6 is used up"]);
    assert_eq!(attempts(&report), 7);
}

#[test]
fn a_result_that_is_wrong_in_the_same_way_three_times_is_no_progress() {
    let house = fixing("echo tried >> tries; echo '{\"ok\": \"perhaps\"}'\n");
    let flow = house.read("flow.yaml").replace(
        "work: { agent: worker,",
        "work: { agent: worker, repairs: 0, on: { contract: { go: work, counts: rounds } },",
    );
    house.file("flow.yaml", flow);
    let words = ["wrong in the same way 3 times in a row"];
    let report = house.ends(AGENT, 6, "exhausted", Some("no-progress"), &words);
    assert_eq!(attempts(&report), 3);
}

#[test]
fn a_wrong_result_that_the_workflow_does_without_stops_nothing() {
    let house = fixing("echo tried >> tries; echo '{\"ok\": \"perhaps\"}'\n");
    let flow = house.read("flow.yaml").replace(
        "work: { agent: worker,",
        "round: { next: [{ when: counts.rounds < 4, go: work, counts: rounds }, { go: end }] }\n  \
         work: { agent: worker, repairs: 0, on: { contract: round },",
    );
    house.file("flow.yaml", flow);
    let report = house.ends(AGENT, 0, "done", None, &[]);
    assert_eq!(attempts(&report), 5);
}

#[test]
fn a_streak_is_not_forgotten_when_we_are_killed_and_files_of_ours_do_not_break_it() {
    let house = fixing("");
    house.file("flow.yaml", house.read("flow.yaml") + crate::artifacts::ARTIFACTS);
    // Nothing of the agent is in the tree. It hangs in the second round, twice.
    let agent = "[ -e ../once ] && [ \"$(cat ../hung)\" != xx ] && { printf x >> ../hung; sleep 300; }\ntouch ../once\n\
                 echo '{\"ok\": false, \"note\": \"the button is missing\"}'\n";
    std::fs::write(house.folder().join("agent.sh"), agent).unwrap();
    let hung = || std::fs::read_to_string(house.folder().join("hung")).unwrap_or_default();
    let live = house.start(&starting("flow.yaml", "command:sh ../agent.sh"));
    until(LONG, "the second round", || (hung() == "x").then_some(()));
    assert!(live.kill());
    let live = house.start(&["resume", "last"]);
    until(LONG, "the second round again", || (hung() == "xx").then_some(()));
    assert!(live.kill());
    let said = house.run(&["resume", "last", "--format", "json"]);
    said.expect(6, &["no-progress"]);
    // Two that were lost, and three of the same.
    assert_eq!(attempts(&said.report()), 5);
    house.is_whole();
}
