//! Work that was saved when a workspace was discarded is applied to a new one.

use crate::workspaces::fixture::{RUN, TestRepo, write};
use counterfoil_workspace::workspaces::Error;
use std::collections::BTreeSet;

fn files() -> TestRepo {
    TestRepo::new(&[("a.txt", "a\n"), ("b.txt", "b\n"), ("deep/c.txt", "c\n")])
}

#[test]
fn saved_work_is_the_work_of_the_new_workspace() {
    let fixture = files();
    let none = BTreeSet::new();
    let opened = fixture.workspaces.open(RUN, "a#1", &none).unwrap();
    write(&opened.folder.join("a.txt"), "changed\n");
    write(&opened.folder.join("new/file.bin"), "\0bytes");
    std::fs::remove_file(opened.folder.join("deep/c.txt")).unwrap();
    let kept = fixture.workspaces.discard(RUN, "a#1").unwrap().unwrap();
    assert_eq!(std::fs::read_to_string(fixture.repo.join("a.txt")).unwrap(), "a\n");
    // The user goes on elsewhere.
    fixture.write("b.txt", "edited\n");
    let opened = fixture.workspaces.open_with_work(RUN, "a#2", &none, &kept).unwrap();
    let read = |path: &str| std::fs::read_to_string(opened.folder.join(path)).unwrap();
    assert_eq!((read("a.txt"), read("b.txt")), ("changed\n".to_owned(), "edited\n".to_owned()));
    assert_eq!(read("new/file.bin"), "\0bytes");
    assert!(!opened.folder.join("deep/c.txt").exists());
    // Opening it again changes nothing.
    write(&opened.folder.join("a.txt"), "changed again\n");
    fixture.workspaces.open_with_work(RUN, "a#2", &none, &kept).unwrap();
    assert_eq!(read("a.txt"), "changed again\n");
    let merged = fixture.workspaces.merge_back(RUN, "a#2").unwrap();
    assert_eq!((merged.conflicts, merged.changed), (Vec::new(), 3));
    assert_eq!(std::fs::read_to_string(fixture.repo.join("a.txt")).unwrap(), "changed again\n");
    assert!(!fixture.repo.join("deep/c.txt").exists());
}

#[test]
fn work_that_does_not_fit_any_more_opens_no_workspace() {
    let fixture = files();
    let none = BTreeSet::new();
    let opened = fixture.workspaces.open(RUN, "a#1", &none).unwrap();
    write(&opened.folder.join("a.txt"), "changed\n");
    write(&opened.folder.join("b.txt"), "changed\n");
    let kept = fixture.workspaces.discard(RUN, "a#1").unwrap().unwrap();
    fixture.write("a.txt", "something else\n");
    for work in [kept.as_str(), "kept/../../elsewhere.patch", ".counterfoil/kept/none.patch"] {
        let refused = fixture.workspaces.open_with_work(RUN, "a#2", &none, work);
        assert!(matches!(refused, Err(Error::Unfit { .. })), "{work}: {refused:?}");
        assert!(!fixture.workspaces.path(RUN, "a#2").exists(), "{work}");
    }
}
