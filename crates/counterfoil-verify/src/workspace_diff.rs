//! The changes of a workspace since a point in time, with and without a run.

use crate::claims::{Since, UnobservableError, WorkspaceView};
use crate::inventory::{self, TestDelta};
use counterfoil_workspace::snapshot::{Change, Changes, Snapshot, Snapshotter};
use std::collections::{BTreeSet, HashSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The maximum number of changed files whose tests are compared.
const MAX_TEST_FILES: usize = 1000;

/// The changes of a workspace since a point in time. Calls block.
#[derive(Debug)]
pub struct WorkspaceDiff {
    snapshotter: Snapshotter,
    before: Snapshot,
    /// When the changes began, where that is known.
    started_at: Option<SystemTime>,
    /// The snapshot of the last refresh.
    now: Option<Snapshot>,
    changes: Changes,
    /// Whether the tree id was not asked for since the last refresh. Until then, nothing that the
    /// caller did can have changed the workspace.
    is_fresh: bool,
}

impl WorkspaceDiff {
    /// Compares a workspace with a snapshot.
    pub fn new(snapshotter: Snapshotter, before: Snapshot, started_at: Option<SystemTime>) -> Self {
        Self {
            snapshotter,
            before,
            started_at,
            now: None,
            changes: Changes::default(),
            is_fresh: false,
        }
    }

    /// The canonical path of the folder.
    pub fn folder(&self) -> &Path {
        self.snapshotter.folder()
    }

    /// The top folder of its repository; the folder itself outside of a repository.
    pub fn top(&self) -> &Path {
        self.snapshotter.top()
    }

    /// The snapshot that the workspace is compared with.
    pub fn before(&self) -> &Snapshot {
        &self.before
    }

    /// The source of the snapshots.
    pub fn snapshotter(&self) -> &Snapshotter {
        &self.snapshotter
    }

    /// Returns the source of the snapshots for further use.
    pub fn into_snapshotter(self) -> Snapshotter {
        self.snapshotter
    }

    /// The changes at the last refresh.
    pub fn last_changes(&self) -> &Changes {
        &self.changes
    }

    /// The identifier of the work tree's content at the last refresh.
    pub fn last_tree_id(&self) -> Option<String> {
        self.now.as_ref().unwrap_or(&self.before).id.clone()
    }

    /// Why the changes cannot be determined, if they cannot: one of the two snapshots failed.
    pub fn unobservable_reason(&self) -> Option<&str> {
        let is_failed = |snapshot: &&Snapshot| snapshot.id.is_none();
        let snapshot = std::iter::once(&self.before).chain(&self.now).find(is_failed)?;
        // The last note is the reason for the failure.
        Some(snapshot.notes.last().map_or("the workspace cannot be read", String::as_str))
    }

    /// Takes a new snapshot and computes the changes.
    pub fn refresh(&mut self) {
        let now = self.snapshotter.snapshot();
        self.changes = self.snapshotter.changes(&self.before, &now);
        // The notes of the snapshot also apply to the changes.
        let own = std::mem::take(&mut self.changes.notes);
        let mut known = HashSet::new();
        let all = now.notes.iter().cloned().chain(own);
        self.changes.notes = all.filter(|note| known.insert(note.clone())).collect();
        self.now = Some(now);
        self.is_fresh = true;
    }

    /// Restores files to their state in the first snapshot. Returns those that could not be
    /// restored, with the reasons.
    pub fn restore(&mut self, paths: &[PathBuf]) -> Vec<(PathBuf, String)> {
        self.snapshotter.restore(&self.before, paths)
    }

    /// The changes of tests at the last refresh.
    pub fn test_delta(&self) -> TestDelta {
        let paths: Vec<(&PathBuf, &Change)> = self
            .changes
            .files
            .iter()
            .filter(|(path, _)| inventory::is_test_file(path))
            .take(MAX_TEST_FILES + 1)
            .collect();
        let incomplete = |reason: String| TestDelta {
            is_incomplete: true,
            notes: vec![reason],
            ..TestDelta::default()
        };
        if paths.len() > MAX_TEST_FILES {
            return incomplete(format!(
                "more than {MAX_TEST_FILES} changed files may contain tests"
            ));
        }
        let mut files = Vec::with_capacity(paths.len());
        for (path, _) in paths {
            let before = self.snapshotter.content(&self.before, path);
            let after = read_file(&self.snapshotter.folder().join(path));
            match (before, after) {
                (Ok(before), Ok(after)) => files.push((path.as_path(), before, after)),
                (Err(error), _) | (_, Err(error)) => {
                    return incomplete(format!("{}: {error}", path.display()));
                }
            }
        }
        inventory::compare(
            files.iter().map(|(path, before, after)| (*path, before.as_deref(), after.as_deref())),
        )
    }

    /// Whether the changed files may contain tests in a language that is not supported: none of
    /// them is in a supported language, and the name of one suggests tests.
    fn may_have_uncounted_tests(&self) -> bool {
        let has_test_name = |path: &PathBuf| {
            let name = path.to_string_lossy().to_lowercase();
            name.contains("test") || name.contains("spec")
        };
        let mut paths = self.changes.files.keys();
        !paths.clone().any(|path| inventory::is_test_file(path)) && paths.any(has_test_name)
    }
}

impl WorkspaceView for WorkspaceDiff {
    fn changes(&mut self) -> Result<&Changes, UnobservableError> {
        if self.now.is_none() {
            self.refresh();
        }
        match self.unobservable_reason() {
            Some(reason) => Err(UnobservableError { reason: reason.to_owned() }),
            None => Ok(&self.changes),
        }
    }

    fn ignored_change(&mut self, path: &Path) -> Since {
        self.ignored_changes(&[path.to_owned()]).pop().unwrap_or(Since::Absent)
    }

    fn ignored_changes(&mut self, paths: &[PathBuf]) -> Vec<Since> {
        let ignored = self.snapshotter.ignored(paths);
        // Without a start time, every file counts as older.
        let started_at = self.started_at.unwrap_or_else(SystemTime::now);
        let one = |path: &PathBuf| match self.snapshotter.since(path, started_at) {
            Since::Absent => Since::Absent,
            _ if !ignored.contains(path) => Since::Untouched,
            since => since,
        };
        paths.iter().map(one).collect()
    }

    fn ignored(&mut self, paths: &[PathBuf]) -> BTreeSet<PathBuf> {
        self.snapshotter.ignored(paths)
    }

    fn tree_id(&mut self) -> Option<String> {
        // A caller that asks a second time may have changed the workspace in between.
        if !std::mem::take(&mut self.is_fresh) {
            self.refresh();
            self.is_fresh = false;
        }
        self.last_tree_id()
    }

    fn test_counts(&mut self) -> Option<(u64, u64)> {
        let delta = self.test_delta();
        (!delta.is_incomplete && !self.may_have_uncounted_tests())
            .then_some((delta.added.len() as u64, delta.removed.len() as u64))
    }

    fn started_at(&self) -> Option<SystemTime> {
        self.started_at
    }
}

/// The bytes of a regular file, up to one byte more than the inventory parses; none if it does not
/// exist.
pub(crate) fn read_file(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_file() => {}
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut bytes = Vec::new();
    let max = inventory::MAX_BYTES as u64 + 1;
    std::fs::File::open(path)?.take(max).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}
