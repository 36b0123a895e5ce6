//! Merges can be undone completely.

use crate::workspaces::fixture::{RUN, TestRepo, set_mode, write};
use counterfoil_workspace::workspaces::{Error, MergeRecord, MergeRecordState};
use std::os::unix::fs::PermissionsExt;

fn merged(fixture: &TestRepo, id: &str, files: &[(&str, &str)]) {
    let folder = fixture.open(id);
    for (path, text) in files {
        write(&folder.join(path), text);
    }
    assert_eq!(fixture.merge(id).changed, files.len() as u64);
}

#[test]
fn one_or_all_of_a_run() {
    let fixture = TestRepo::new(&[("a", "1\n"), ("b", "1\n")]);
    set_mode(&fixture.repo.join("a"), 0o600);
    let before = fixture.tree();
    merged(&fixture, "x", &[("a", "2\n"), ("new/x", "1\n")]);
    let between = fixture.tree();
    merged(&fixture, "y", &[("a", "3\n"), ("b", "2\n")]);
    let undone = fixture.workspaces.undo(RUN, Some("y")).unwrap();
    assert_eq!((undone.restored, undone.changed_since), (2, vec![]));
    assert_eq!(fixture.tree(), between);
    // Again: there is nothing left to do.
    assert_eq!(fixture.workspaces.undo(RUN, Some("y")).unwrap().restored, 0);
    assert_eq!(fixture.workspaces.undo(RUN, None).unwrap().restored, 2);
    assert_eq!(fixture.tree(), before);
    assert!(
        fixture
            .workspaces
            .merge_records(RUN)
            .iter()
            .all(|record| record.state == MergeRecordState::Undone)
    );
    assert_eq!(fixture.workspaces.undo("another", None).unwrap().restored, 0);
}

#[test]
fn all_of_a_run_newest_first() {
    let fixture = TestRepo::new(&[("a", "1\n")]);
    let before = fixture.tree();
    for n in 2..12 {
        merged(
            &fixture,
            &format!("item {n}"),
            &[("a", &format!("{n}\n")), (&format!("f{n}/g"), "x")],
        );
    }
    let undone = fixture.workspaces.undo(RUN, None).unwrap();
    assert_eq!((undone.restored, undone.changed_since), (11, vec![]));
    assert_eq!(fixture.tree(), before);
}

#[test]
fn what_was_changed_since_is_named_and_nothing_is_half_undone() {
    let fixture = TestRepo::new(&[("a", "1\n"), ("b", "1\n"), ("c", "1\n")]);
    merged(&fixture, "x", &[("a", "2\n"), ("b", "2\n"), ("c", "2\n")]);
    fixture.write("c", "mine\n");
    fixture.remove("a");
    let before = fixture.tree();
    let undone = fixture.workspaces.undo(RUN, None).unwrap();
    assert_eq!((undone.restored, undone.changed_since), (0, vec!["a".to_owned(), "c".to_owned()]));
    assert_eq!(fixture.tree(), before);
    // Folded over by a later one, the older one alone cannot go.
    fixture.write("a", "2\n");
    fixture.write("c", "2\n");
    merged(&fixture, "y", &[("b", "3\n")]);
    assert_eq!(fixture.workspaces.undo(RUN, Some("x")).unwrap().changed_since, ["b"]);
    assert_eq!(fixture.workspaces.undo(RUN, None).unwrap().restored, 3);
    assert_eq!(fixture.read("b"), "1\n");
}

#[test]
fn what_is_about_to_be_undone_is_told_before_the_first_file_is_written() {
    let fixture = TestRepo::new(&[("a", "1\n"), ("b", "1\n")]);
    merged(&fixture, "x", &[("a", "2\n")]);
    merged(&fixture, "y", &[("b", "2\n")]);
    let before = fixture.tree();
    let failed = fixture.workspaces.undo_recorded(RUN, None, |records| {
        let ids: Vec<&str> = records.iter().map(|record| record.id.as_str()).collect();
        assert_eq!(ids, ["x", "y"]);
        assert_eq!(fixture.tree(), before);
        Err(Error::Git("it cannot be recorded".to_owned()))
    });
    assert!(failed.is_err());
    assert_eq!(fixture.tree(), before);
    let refuse = |_: &[MergeRecord]| -> Result<(), Error> { panic!("nothing is undone") };
    fixture.write("a", "mine\n");
    let blocked = fixture.workspaces.undo_recorded(RUN, None, refuse).unwrap();
    assert_eq!(blocked.changed_since, ["a"]);
    fixture.write("a", "2\n");
    assert_eq!(fixture.workspaces.undo(RUN, None).unwrap().restored, 2);
    assert_eq!(fixture.workspaces.undo_recorded(RUN, None, refuse).unwrap().restored, 0);
}

#[test]
fn folders_come_and_go_as_they_were() {
    let fixture = TestRepo::new(&[("a/b/only", "1\n")]);
    std::fs::create_dir_all(fixture.repo.join("empty/one")).unwrap();
    set_mode(&fixture.repo.join("a/b"), 0o700);
    let before = fixture.tree();
    let folder = fixture.open("x");
    std::fs::remove_file(folder.join("a/b/only")).unwrap();
    write(&folder.join("empty/one/new"), "1\n");
    write(&folder.join("p/q/r"), "1\n");
    assert_eq!(fixture.merge("x").changed, 3);
    assert!(!fixture.repo.join("a").exists());
    assert_eq!(fixture.workspaces.undo(RUN, None).unwrap().restored, 3);
    assert_eq!(fixture.tree(), before);
    assert!(!fixture.repo.join("p").exists());
    assert_eq!(fixture.repo.join("a/b").metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn an_id_that_is_used_again_can_be_undone_twice() {
    let fixture = TestRepo::new(&[("a", "1\n")]);
    merged(&fixture, "x", &[("a", "2\n")]);
    merged(&fixture, "x", &[("a", "3\n")]);
    assert_eq!(fixture.workspaces.merge_records(RUN).len(), 2);
    assert_eq!(fixture.workspaces.undo(RUN, Some("x")).unwrap().restored, 1);
    assert_eq!(fixture.read("a"), "1\n");
}
