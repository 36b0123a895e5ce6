//! The boxes of tasks: one that is not ticked is open, however it is written.

use super::{always, completed, plays, result};
use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use crate::packs::spec_pipeline::{envelope, good, play, run};
use serde_json::json;

const FILE: &str = "specs/search/tasks.md";

/// Tasks lists this many tasks, T001 and so on, and writes this file.
fn listed(count: usize, file: &str) -> Scenario {
    let mut tasks = result("tasks");
    tasks["task_count"] = json!(count);
    tasks["phases"]["user_stories"] = json!(count);
    tasks["task_ids"] = (1..=count).map(id).collect();
    play().says("tasks", envelope("tasks", &tasks)).writes(FILE, file)
}

fn id(number: usize) -> String {
    format!("T{number:03}")
}

/// Implement always says that all tasks are done, and leaves the file like this.
fn left(count: u64, scenario: Scenario, act: impl Fn(Scenario) -> Scenario) -> Scenario {
    always(scenario, |scenario| {
        let work = scenario.says("implement", completed(count, count));
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

/// `task_list` has a test for each spelling; here, they are in one file.
#[test]
fn a_box_that_is_not_ticked_is_open_in_every_spelling() {
    let spellings = [
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
    ];
    let lines = spellings.iter().enumerate().map(|(at, line)| {
        let id = id(at + 2);
        line.replace("T002", &id).replace("t002", &id.to_lowercase())
    });
    let file = format!("- [x] T001 search\n{}\n", lines.collect::<Vec<_>>().join("\n"));
    let count = spellings.len() + 1;
    let scenario = left(25, listed(count, &file), |work| work.writes(FILE, &file));
    let gates = plays("standard", "exhausted", scenario).variables()["gates"].to_string();
    assert!(gates.contains("the boxes of T002, T003, "), "{gates}");
    for (at, line) in spellings.iter().enumerate() {
        assert!(gates.contains(&id(at + 2)), "{line}: {gates}");
    }
    assert!(!gates.contains("T001"), "{gates}");
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
        is_open(left(2, listed(2, BOTH), |work| work.writes(FILE, file)), ids, file);
    }
    // Without the file, implement cannot start again, and tasks writes the first task anew.
    let ran = plays("standard", "waiting", left(2, listed(2, BOTH), |work| work.deletes(FILE)));
    names_open(&ran, "T001", "deleted");
}

#[track_caller]
fn is_done(count: u64, before: &str, after: &str) {
    let listed = listed(usize::try_from(count).unwrap(), before);
    let scenario = left(count, listed, |work| work.writes(FILE, after));
    let ran = run(scenario.built_in_only(), "standard");
    assert_eq!(ran.ended().0, "done", "{after}: {}\n{ran:?}", ran.variables()["gates"]);
}

#[test]
fn ticked_boxes_and_files_without_boxes_are_done() {
    let before = "- [ ] T001 search\n- [ ] T002 rank\n- [ ] T003 sort\n- [ ] T004 [P] return\n- [ ] T005 show\n\
                  | [ ] | T006 |\n- [ ] search (T007)\n- ☐ T008\n- T009 [ ]\n";
    let after = "- [x] T001 search\n- [X] T002 rank\n- [✓] T003 sort\n\
                 - [x] T004 [P] [US1] return [ ] if empty (T002 ranks)\n- ✅ T005 show\n\
                 | [x] | T006 |\n- [x] search (T007)\n- ☑ T008\n- T009 [x]\n\
                 - [ ] Optional: polish it after T001\n- [ ] Write more documents for T002\n\
                 - [ ] Have a look at what T002 does\n";
    is_done(9, before, after);
    is_done(2, "- T001 search\n- T002 rank\n", "- T001 search\n- T002 rank\n");
    is_done(
        2,
        "- T001 return [] if empty\n- Optional: polish it after T002\n",
        "- T001 return [] if empty\n- [ ] Optional: polish it after T002\n",
    );
}
