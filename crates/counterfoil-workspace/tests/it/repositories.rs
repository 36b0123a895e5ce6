//! Which folder is the repository: only one that git would take for it.
#![allow(clippy::unwrap_used)]

use counterfoil_workspace::git::recent_writes::written_since;
use counterfoil_workspace::git::repository_top;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments);
    assert!(command.current_dir(folder).output().unwrap().status.success(), "{arguments:?}");
}

/// What git says, with links resolved.
fn top_by_git(folder: &Path) -> Option<std::path::PathBuf> {
    let mut command = Command::new("git");
    let output =
        command.args(["rev-parse", "--show-toplevel"]).current_dir(folder).output().unwrap();
    let path = String::from_utf8(output.stdout).unwrap();
    output.status.success().then(|| path.trim_end().into())
}

#[test]
fn only_a_valid_repository_counts() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    let outer = root.join("outer");
    let inner = outer.join("a/b");
    fs::create_dir_all(&inner).unwrap();
    assert_eq!(repository_top(&inner), None);
    // What sandboxes and accidents leave behind, in a folder around it.
    let dot = outer.join(".git");
    fs::create_dir(&dot).unwrap();
    assert_eq!(repository_top(&inner), None, "an empty folder");
    fs::write(dot.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::create_dir(dot.join("refs")).unwrap();
    assert_eq!(repository_top(&inner), None, "a repository without objects");
    fs::create_dir(dot.join("objects")).unwrap();
    assert_eq!(repository_top(&inner), Some(outer.as_path()), "a repository");
    assert_eq!(top_by_git(&inner).as_deref(), Some(outer.as_path()));
    // Inside a repository, a broken one does not hide it, and a file that leads nowhere does.
    fs::create_dir(inner.join(".git")).unwrap();
    assert_eq!(repository_top(&inner), Some(outer.as_path()), "an empty folder inside");
    assert_eq!(top_by_git(&inner).as_deref(), Some(outer.as_path()));
    fs::remove_dir(inner.join(".git")).unwrap();
    for text in ["gitdir: /nowhere\n", "", "something else"] {
        fs::write(inner.join(".git"), text).unwrap();
        assert_eq!(repository_top(&inner), None, "{text:?}");
        assert_eq!(top_by_git(&inner), None, "{text:?}");
    }
}

#[test]
fn a_worktree_is_a_repository_of_its_own() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    let (main, second) = (root.join("main"), root.join("second"));
    fs::create_dir(&main).unwrap();
    git(&main, &["init", "-q"]);
    git(&main, &["commit", "-q", "--allow-empty", "-m", "first"]);
    git(&main, &["worktree", "add", "-q", "-d", second.to_str().unwrap()]);
    let below = second.join("below");
    fs::create_dir(&below).unwrap();
    assert_eq!(repository_top(&below), Some(second.as_path()));
    assert_eq!(top_by_git(&below).as_deref(), Some(second.as_path()));
    fs::remove_dir_all(&main).unwrap();
    assert_eq!(repository_top(&below), None);
}

#[test]
fn a_file_that_was_deleted_before_is_not_among_the_recent_changes() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    git(folder, &["init", "-q"]);
    for name in ["before", "since", "old"] {
        fs::write(folder.join(name), "1\n").unwrap();
    }
    git(folder, &["add", "."]);
    git(folder, &["commit", "-q", "-m", "start"]);
    fs::write(folder.join("old"), "2\n").unwrap();
    fs::remove_file(folder.join("before")).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let since = i64::try_from(since).unwrap();
    fs::remove_file(folder.join("since")).unwrap();
    fs::write(folder.join("new"), "1\n").unwrap();
    let known = || Some(BTreeSet::from(["old", "since"].map(PathBuf::from)));
    assert_eq!(written_since(folder, since, known), ["since", "new"]);
    // The folder was written to, and nobody knows more.
    assert_eq!(written_since(folder, since, || None), ["before", "since", "new"]);
}
