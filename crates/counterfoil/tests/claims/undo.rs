//! Putting back what the workspaces of a run brought in.

use crate::house::{House, MORNING, began, git, opened, over};
use counterfoil_flow::Outcome;
use counterfoil_workspace::workspace::Workspaces;
use std::collections::BTreeSet;

/// A run that brought in the work of two workspaces.
fn brought_in() -> House {
    let house = House::new();
    git(&house, &["init", "-q", "-b", "main"]);
    house.file("a.txt", "as it was\n");
    house.file(".gitignore", ".counterfoil\n");
    git(&house, &["add", "."]);
    git(&house, &["commit", "-q", "-m", "base"]);
    house.runs([(
        "run-1".to_owned(),
        MORNING,
        vec![began("run-1", "w", "script:x", None), opened("a"), over(Outcome::Done, None)],
    )]);
    let workspaces = Workspaces::new(&house.path(".counterfoil"), &house.path(""));
    for (id, file) in [("build/a", "a.txt"), ("build/b", "b.txt")] {
        let folder = workspaces.open("run-1", id, &BTreeSet::new()).unwrap().folder;
        std::fs::write(folder.join(file), format!("work of {id}\n")).unwrap();
        assert!(workspaces.fold("run-1", id).unwrap().conflicts.is_empty());
    }
    assert_eq!(read(&house, "a.txt").as_deref(), Some("work of build/a\n"));
    house
}

fn read(house: &House, name: &str) -> Option<String> {
    std::fs::read_to_string(house.path(name)).ok()
}

#[test]
fn a_run_is_undone_as_a_whole_and_only_once() {
    let house = brought_in();
    let mut told = vec![house.shown(&["undo", "last"])];
    assert_eq!(
        (read(&house, "a.txt").as_deref(), read(&house, "b.txt")),
        (Some("as it was\n"), None)
    );
    told.push(house.shown(&["undo", "run-1"]));
    insta::assert_snapshot!("undo", told.join("\n"));
}

#[test]
fn one_workspace_can_be_undone_alone() {
    let house = brought_in();
    let told = house.shown(&["undo", "last", "build/b"]);
    assert!(told.contains("exit 0"), "{told}");
    assert_eq!(
        (read(&house, "a.txt").as_deref(), read(&house, "b.txt")),
        (Some("work of build/a\n"), None)
    );
}

#[test]
fn what_somebody_changed_since_stands_in_the_way() {
    let house = brought_in();
    house.file("a.txt", "my own words\n");
    let told = house.shown(&["undo", "last"]);
    insta::assert_snapshot!("undo_in_the_way", told);
    assert_eq!(read(&house, "a.txt").as_deref(), Some("my own words\n"));
    assert!(read(&house, "b.txt").is_some(), "nothing is half undone");
}

#[test]
fn what_is_not_there_is_named() {
    let house = brought_in();
    let told = house.shown(&["undo", "last", "build/c"]);
    assert!(told.contains("exit 2") && told.contains("did you mean 'build/"), "{told}");
    let told = house.shown(&["undo", "none"]);
    assert!(told.contains("exit 2") && told.contains("none"), "{told}");
    let empty = House::new();
    let told = empty.shown(&["undo", "last"]);
    assert!(told.contains("exit 2") && told.contains("there are no runs in"), "{told}");
}
