//! `undo`: reverting what the workspaces of a run merged.

use crate::PROGRAM;
use crate::claims::journal::{RUN_START, frame_opened, git, run_ended, run_started, write_runs};
use counterfoil_flow::Outcome;
use counterfoil_testkit::TestProject;
use counterfoil_workspace::workspaces::Workspaces;
use std::collections::BTreeSet;

/// A run that brought in the work of two workspaces.
fn brought_in() -> TestProject {
    let project = TestProject::new(PROGRAM);
    git(&project, &["init", "-q", "-b", "main"]);
    project.write("a.txt", "as it was\n");
    project.write(".gitignore", ".counterfoil\n");
    git(&project, &["add", "."]);
    git(&project, &["commit", "-q", "-m", "base"]);
    write_runs(
        &project,
        [(
            "run-1".to_owned(),
            RUN_START,
            vec![
                run_started("run-1", "w", "script:x", None),
                frame_opened("a"),
                run_ended(Outcome::Done, None),
            ],
        )],
    );
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
