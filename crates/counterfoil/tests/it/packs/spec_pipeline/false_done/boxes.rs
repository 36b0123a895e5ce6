//! The boxes of tasks: one that is not ticked is open, however it is written.

use super::{always, completed, plays, result};
use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use crate::packs::spec_pipeline::{envelope, good, play, run};
use serde_json::json;

const FILE: &str = "specs/search/tasks.md";

/// Tasks lists T001 and T002 and writes this file.
fn listed(file: &str) -> Scenario {
    let mut tasks = result("tasks");
    tasks["task_count"] = json!(2);
    tasks["phases"]["user_stories"] = json!(2);
    tasks["task_ids"] = json!(["T001", "T002"]);
    play().says("tasks", envelope("tasks", &tasks)).writes(FILE, file)
}

/// Implement always says that both tasks are done, and leaves the file like this.
fn left(scenario: Scenario, act: impl Fn(Scenario) -> Scenario) -> Scenario {
    always(scenario, |scenario| {
        let work = scenario.says("implement", completed(2, 2));
        good(act(work.writes("src/search.rs", "pub fn search() {}\n")), "test")
    })
}

#[track_caller]
fn is_open(scenario: Scenario, ids: &str, what: &str) {
    names_open(&plays("standard", "exhausted", scenario), ids, what);
}

#[track_caller]
fn names_open(ran: &ScenarioRun, ids: &str, what: &str) {
    let gates = ran.variables()["gates"].to_string();
    let words = format!("the boxes of {ids} in {FILE} are not ticked");
    assert!(gates.contains(&words), "{what}: {gates}");
}

#[test]
fn a_box_that_is_not_ticked_is_open_in_every_spelling() {
    for line in [
        "- [ ] T002 rank",
        "- [] T002 rank",
        "- [  ] T002 rank",
        "- [\u{a0}] T002 rank",
        "[ ] T002 rank",
        "- T002 [ ]",
        "- T002 rank the results [ ]",
        "| [ ] | T002 | rank |",
        "| T002 | rank | [ ] |",
        "| 2 | [ ] | T002 |",
        "- [ ] task_T002",
        "- [ ] t002 rank",
        "- [ ] 任务T002：rank",
        "- [ ] rank (T002)",
        "- [-] T002 rank",
        "- [~] T002 rank",
        "- [_] T002 rank",
        "- ☐ T002 rank",
        "☐ T002 rank",
        "* [ ] **T002** rank",
        "2) [ ] T002 rank",
        "> - [ ] T002 rank",
        "- [x] T002 part one\n- [ ] T002 part two",
        "| [x] T001 | [ ] T002 |",
    ] {
        let file = format!("- [x] T001 search\n{line}\n");
        let scenario = left(listed(&file), |work| work.writes(FILE, &file));
        is_open(scenario, "T002", line);
    }
}

#[test]
fn a_box_that_went_away_is_open() {
    const BOTH: &str = "- [ ] T001 search\n- [ ] T002 rank\n";
    for (file, ids) in [
        ("All done.\n", "T001, T002"),
        ("- [x] T001 search\n", "T002"),
        ("- [x] T001 search\n- T002 rank\n", "T002"),
        ("- [x] T001 search\n- ~~T002~~\n", "T002"),
    ] {
        is_open(left(listed(BOTH), |work| work.writes(FILE, file)), ids, file);
    }
    // Without the file, implement cannot start again, and tasks writes the first task anew.
    let ran = plays("standard", "waiting", left(listed(BOTH), |work| work.deletes(FILE)));
    names_open(&ran, "T001", "deleted");
}

fn finishes(before: &str, after: &str) -> ScenarioRun {
    run(left(listed(before), |work| work.writes(FILE, after)).built_in_only(), "standard")
}

#[test]
fn ticked_boxes_and_files_without_boxes_are_done() {
    const BOTH: &str = "- [ ] T001 search\n- [ ] T002 rank\n";
    for (before, after) in [
        (BOTH, "- [x] T001 search\n- [X] T002 rank\n"),
        (BOTH, "- [x] T001 search\n- [✓] T002 rank\n"),
        (BOTH, "- [x] T001 search\n- [x] T002 rank\n- [ ] Optional: polish it after T001\n"),
        (BOTH, "- [x] T001 search\n- [x] T002 rank\n- [ ] Write more documents for T002\n"),
        (BOTH, "- [x] T001 search\n- [x] T002 rank\n- [ ] Have a look at what T002 does\n"),
        (BOTH, "- [x] T001 [P] [US1] return [ ] if empty (T002 ranks)\n- ✅ T002 rank\n"),
        (BOTH, "| [x] | T001 |\n| [x] | T002 |\n"),
        ("- [ ] search (T001)\n- [ ] rank (T002)\n", "- [x] search (T001)\n- [x] rank (T002)\n"),
        ("- ☐ T001\n- ☐ T002\n", "- ☑ T001\n- ☑ T002\n"),
        ("- T001 [ ]\n- T002 [ ]\n", "- T001 [x]\n- T002 [x]\n"),
        ("- T001 search\n- T002 rank\n", "- T001 search\n- T002 rank\n"),
        (
            "- T001 return [] if empty\n- Optional: polish it after T002\n",
            "- T001 return [] if empty\n- [ ] Optional: polish it after T002\n",
        ),
    ] {
        let ran = finishes(before, after);
        assert_eq!(ran.ended().0, "done", "{after}: {}\n{ran:?}", ran.variables()["gates"]);
    }
}
