//! `undo`: reverting what the workspaces of a run merged.

use crate::PROGRAM;
use crate::claims::journal::{
    RUN_START, attempt_started, frame_opened, git, run_ended, run_started, write_runs,
};
use counterfoil_flow::{Event, Outcome, Usage};
use counterfoil_testkit::TestProject;
use counterfoil_workspace::snapshot::FileAt;
use counterfoil_workspace::workspaces::{StepChanges, Workspaces};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// A run that brought in the work of two workspaces.
fn brought_in() -> TestProject {
    let events = vec![
        run_started("run-1", "w", "script:x", None),
        frame_opened("a"),
        run_ended(Outcome::Done, None),
    ];
    brought_in_by(RUN_START, events)
}

/// The same with these events, one second apart.
fn brought_in_by(at: i64, events: Vec<Event>) -> TestProject {
    let project = TestProject::new(PROGRAM);
    git(&project, &["init", "-q", "-b", "main"]);
    project.write("a.txt", "as it was\n");
    project.write(".gitignore", ".counterfoil\n");
    git(&project, &["add", "."]);
    git(&project, &["commit", "-q", "-m", "base"]);
    write_runs(&project, [("run-1".to_owned(), at, events)]);
    let workspaces = Workspaces::new(&project.path(".counterfoil"), &project.path(""));
    for (id, file) in [("build/a", "a.txt"), ("build/b", "b.txt")] {
        let folder = workspaces.open("run-1", id, &BTreeSet::new()).unwrap().folder;
        std::fs::write(folder.join(file), format!("work of {id}\n")).unwrap();
        assert!(workspaces.merge_back("run-1", id).unwrap().conflicts.is_empty());
    }
    assert_eq!(read(&project, "a.txt").as_deref(), Some("work of build/a\n"));
    project
}

fn read(project: &TestProject, name: &str) -> Option<String> {
    std::fs::read_to_string(project.path(name)).ok()
}

#[test]
fn a_run_is_undone_as_a_whole_and_only_once() {
    let project = brought_in();
    let mut told = vec![project.snapshot_verbatim(&["undo", "last"])];
    assert_eq!(
        (read(&project, "a.txt").as_deref(), read(&project, "b.txt")),
        (Some("as it was\n"), None)
    );
    told.push(project.snapshot_verbatim(&["undo", "run-1"]));
    insta::assert_snapshot!("undo", told.join("\n"));
}

#[test]
fn one_workspace_can_be_undone_alone() {
    let project = brought_in();
    let told = project.snapshot_verbatim(&["undo", "last", "build/b"]);
    assert!(told.contains("exit 0"), "{told}");
    assert_eq!(
        (read(&project, "a.txt").as_deref(), read(&project, "b.txt")),
        (Some("work of build/a\n"), None)
    );
}

#[test]
fn what_somebody_changed_since_stands_in_the_way() {
    let project = brought_in();
    project.write("a.txt", "my own words\n");
    let told = project.snapshot_verbatim(&["undo", "last"]);
    insta::assert_snapshot!("undo_in_the_way", told);
    assert_eq!(read(&project, "a.txt").as_deref(), Some("my own words\n"));
    assert!(read(&project, "b.txt").is_some(), "nothing is half undone");
}

#[test]
fn what_is_not_there_is_named() {
    let project = brought_in();
    let told = project.snapshot_verbatim(&["undo", "last", "build/c"]);
    assert!(told.contains("exit 2") && told.contains("did you mean 'build/"), "{told}");
    let told = project.snapshot_verbatim(&["undo", "none"]);
    assert!(told.contains("exit 2") && told.contains("none"), "{told}");
    let empty = TestProject::new(PROGRAM);
    let told = empty.snapshot_verbatim(&["undo", "last"]);
    assert!(told.contains("exit 2") && told.contains("there are no runs in"), "{told}");
}

/// A run that brought in the work of two workspaces, and lost an attempt that was at work for a
/// minute. It started so many seconds ago.
fn lost_attempt(seconds: i64) -> TestProject {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let mut events = vec![
        run_started("run-1", "w", "script:x", None),
        frame_opened("a"),
        attempt_started("work", 1),
    ];
    events.extend((0..60).map(|_| Event::TimeSkipped { ms: 0 }));
    let changed = ["a.txt", "b.txt", "made.txt", "other.txt"].map(str::to_owned).to_vec();
    let attempt = "work#1".to_owned();
    events.push(Event::AttemptLost { attempt, usage: Usage::default(), changed });
    events.push(run_ended(Outcome::Cancelled, None));
    brought_in_by(i64::try_from(now).unwrap() - 1000 * seconds, events)
}

/// The note of undo that names files of a lost attempt.
fn note_of_lost(project: &TestProject) -> String {
    let undone = project.run(&["undo", "last"]);
    undone.expect(0, &["note: an attempt was lost"]);
    undone.stderr.lines().find(|line| line.starts_with("note: ")).unwrap().to_owned()
}

#[test]
fn what_a_worktree_brought_in_while_a_lost_attempt_was_at_work_is_not_said_to_be_left() {
    let note = note_of_lost(&lost_attempt(30));
    assert!(note.contains("other.txt") && note.contains("made.txt"), "{note}");
    assert!(!note.contains("a.txt") && !note.contains("b.txt"), "{note}");
    // What is brought in later was as it is restored when the attempt was lost.
    let note = note_of_lost(&lost_attempt(100));
    for name in ["a.txt", "b.txt", "made.txt", "other.txt"] {
        assert!(note.contains(name), "{note}");
    }
}

/// None of these files existed.
fn none_before(paths: &[&Path]) -> Vec<io::Result<Option<FileAt>>> {
    paths.iter().map(|_| Ok(None)).collect()
}

#[test]
fn what_a_lost_attempt_recorded_is_not_said_to_be_left() {
    let project = lost_attempt(100);
    project.write("made.txt", "by the attempt\n");
    // It was killed before its end was in the journal.
    let top = project.path("");
    let changes = StepChanges {
        top: &top,
        files: vec!["made.txt".into()],
        before: &none_before,
        existed: BTreeSet::new(),
    };
    let workspaces = Workspaces::new(&project.path(".counterfoil"), &top);
    workspaces.record_step("run-1", "work#1", &changes).unwrap();
    let note = note_of_lost(&project);
    assert!(note.contains("other.txt") && !note.contains("made.txt"), "{note}");
    assert!(read(&project, "made.txt").is_none());
}
