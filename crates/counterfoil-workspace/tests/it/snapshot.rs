//! Snapshots of workspaces, with real repositories.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use counterfoil_workspace::snapshot::{
    Change, Changes, Revision, Settings, Snapshot, Snapshotter, StartFiles,
};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

mod converting;
mod edits;
mod faults;
mod history;
mod ignoring;
mod laws;
mod nested;
mod restoring;
mod saving;

/// A folder with a repository in it that is thrown away.
struct TestRepo {
    folder: TempDir,
}

impl TestRepo {
    /// A repository with two commits of a few files.
    fn new() -> Self {
        let repo = Self::without_commit();
        repo.write("a.rs", "a\n");
        repo.write("src/b.rs", "b\n");
        repo.write("src/deep/c.rs", "c\n");
        repo.commit("first");
        repo.write("d.rs", "d\n");
        repo.commit("second");
        repo.git(&["tag", "start"]);
        repo
    }

    /// As it was when it was new.
    fn begin_again(&self) {
        self.git(&["reset", "-q", "--hard", "start"]);
        self.git(&["clean", "-q", "-f", "-d", "-x"]);
    }

    fn without_commit() -> Self {
        let repo = Self::bare_folder();
        repo.git(&["init", "-q", "-b", "main"]);
        repo.git(&["config", "core.excludesFile", "/dev/null"]);
        repo
    }

    fn bare_folder() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    fn git(&self, arguments: &[&str]) -> String {
        git(self.path(), arguments)
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.at(name)).unwrap();
    }

    fn chmod(&self, name: &str, mode: u32) {
        fs::set_permissions(self.at(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn snapshotter(&self) -> Snapshotter {
        Snapshotter::open(self.path(), Settings::default())
    }

    fn keeping(&self, keep: &TempDir) -> Snapshotter {
        Snapshotter::open(
            self.path(),
            Settings { content_store: Some(keep.path().to_owned()), ..Settings::default() },
        )
    }

    /// What git has, byte for byte: the index, the refs, HEAD, the stash; and every file of the
    /// work tree with its mode.
    fn everything(&self) -> Vec<(PathBuf, u32, Vec<u8>)> {
        let mut found = Vec::new();
        let mut open = vec![self.path().to_owned()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let meta = path.symlink_metadata().unwrap();
                let mode = meta.permissions().mode();
                if meta.is_dir() {
                    found.push((path.clone(), mode, Vec::new()));
                    open.push(path);
                } else if meta.is_symlink() {
                    let target = fs::read_link(&path).unwrap();
                    found.push((path, mode, target.as_os_str().as_bytes().to_vec()));
                } else if meta.is_file() {
                    let bytes = fs::read(&path).unwrap();
                    found.push((path, mode, bytes));
                }
            }
        }
        found.sort();
        found
    }
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = command(folder, arguments).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {arguments:?}: {words}");
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// A git that hears nothing of the machine it runs on.
fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args([
        "-c",
        "protocol.file.allow=always",
        "-c",
        "commit.gpgsign=false",
        "-c",
        "gc.auto=0",
    ]);
    command.args(arguments).current_dir(folder);
    for name in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
        command.env(name, "/dev/null");
    }
    for who in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{who}_NAME"), "somebody")
            .env(format!("GIT_{who}_EMAIL"), "some@body");
        command.env(format!("GIT_{who}_DATE"), "2026-01-01T00:00:00Z");
    }
    command.env("GIT_EDITOR", "true").env("LC_ALL", "C");
    command
}

/// Changes as lines: `A new`, `M edited`, `D gone`, `R from -> to`.
fn told(changes: &Changes) -> Vec<String> {
    let mark = |change: &Change| match change {
        Change::Added => 'A',
        Change::Modified => 'M',
        Change::Deleted => 'D',
    };
    let files =
        changes.files.iter().map(|(path, change)| format!("{} {}", mark(change), path.display()));
    let renamed = changes
        .renamed
        .iter()
        .map(|(from, to)| format!("R {} -> {}", from.display(), to.display()));
    files.chain(renamed).collect()
}

/// What changes while something is done, and that it is found from both sides and by a look from
/// the start as well.
fn during(snapshotter: &mut Snapshotter, act: impl FnOnce()) -> Vec<String> {
    let before = snapshotter.snapshot();
    act();
    changed(snapshotter, &before)
}

fn changed(snapshotter: &mut Snapshotter, before: &Snapshot) -> Vec<String> {
    let after = snapshotter.snapshot();
    let changes = snapshotter.changes(before, &after);
    assert_eq!(snapshotter.changes(&after, &after), Changes::default());
    assert_eq!(snapshotter.changes(before, before), Changes::default());
    let back = snapshotter.changes(&after, before);
    assert_eq!(back.files.len(), changes.files.len(), "{changes:?} {back:?}");
    told(&changes)
}

fn no_changes() -> Vec<String> {
    Vec::new()
}

/// It moves to the thread that looks.
#[test]
fn a_tree_can_be_sent() {
    fn sent<T: Send>() {}
    sent::<Snapshotter>();
    sent::<Snapshot>();
}
