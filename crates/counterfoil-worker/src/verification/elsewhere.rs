//! Sees what happens outside of the worktree that an agent works in while it works: in the main work
//! tree, and in the refs of the repository. It may be the work of somebody else, so it is reported
//! and not undone. All of it blocks.

use super::{SnapshotterPool, WorkFolder};
use counterfoil_contract::text::{display_path, join_limited};
use counterfoil_verify::claims::Refs;
use counterfoil_workspace::snapshot::Snapshot;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The maximum number of names in a note.
const MAX_LISTED: usize = 10;

/// What the engine itself knows to have changed in the folders of a run.
#[derive(Debug, Default)]
pub(crate) struct KnownWork {
    /// The paths that merges changed in the main work tree.
    merged: Mutex<BTreeSet<PathBuf>>,
    /// The state of each worktree after its last attempt.
    last: Mutex<HashMap<PathBuf, Snapshot>>,
}

impl KnownWork {
    /// Merges into the main work tree, and remembers what that changed there.
    pub(crate) fn merging<T>(
        &self,
        main: &WorkFolder,
        pool: &SnapshotterPool,
        merge: impl FnOnce() -> T,
    ) -> T {
        let mut tree = pool.take(main);
        let before = tree.snapshot();
        let merged = merge();
        let now = tree.snapshot();
        let paths = tree.changes(&before, &now).files.into_keys();
        self.merged.lock().unwrap_or_else(PoisonError::into_inner).extend(paths);
        pool.give_back(&main.folder, tree);
        merged
    }

    /// Remembers how an attempt left a worktree; none: it is not known.
    pub(crate) fn left(&self, folder: &Path, state: Option<Snapshot>) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match state {
            Some(state) => last.insert(folder.to_owned(), state),
            None => last.remove(folder),
        };
    }

    /// What changed in a worktree since the engine last left it, as a text.
    pub(crate) fn changed_meanwhile(
        &self,
        folder: &WorkFolder,
        pool: &SnapshotterPool,
    ) -> Option<String> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.get(&folder.folder).cloned()?;
        drop(last);
        let mut tree = pool.take(folder);
        let now = tree.snapshot();
        let changes = tree.changes(&before, &now);
        pool.give_back(&folder.folder, tree);
        if now.id.is_none() {
            let why = now.notes.last().map_or("it cannot be read", String::as_str);
            return Some(format!("whether this worktree changed meanwhile is not known: {why}"));
        }
        let paths: Vec<String> = changes.files.keys().map(|path| display_path(path)).collect();
        (!paths.is_empty()).then(|| {
            let paths = join_limited(paths, MAX_LISTED);
            format!("changed in this worktree while no step worked in it: {paths}")
        })
    }
}

/// The main work tree while an agent works in a worktree.
pub(super) struct Elsewhere {
    main: WorkFolder,
    before: Snapshot,
    refs: Result<Option<Refs>, String>,
}

impl Elsewhere {
    /// Looks at the main work tree before the attempt.
    pub(super) fn begin(main: WorkFolder, pool: &SnapshotterPool) -> Self {
        let mut tree = pool.take(&main);
        let before = tree.snapshot();
        pool.give_back(&main.folder, tree);
        let refs = Refs::read_names(&main.folder).map_err(|error| error.to_string());
        Self { main, before, refs }
    }

    /// What changed there since, without what the engine merged, as notes.
    pub(super) fn notes(&self, pool: &SnapshotterPool, known: &KnownWork) -> Vec<String> {
        let mut tree = pool.take(&self.main);
        let now = tree.snapshot();
        let changes = tree.changes(&self.before, &now);
        pool.give_back(&self.main.folder, tree);
        let mut notes = Vec::new();
        if let Some(unknown) = [&self.before, &now].into_iter().find(|look| look.id.is_none()) {
            let why = unknown.notes.last().map_or("", String::as_str);
            notes.push(format!("what changed outside of the worktree is not known: {why}"));
        }
        let merged = known.merged.lock().unwrap_or_else(PoisonError::into_inner);
        let others = changes.files.keys().filter(|path| !merged.contains(*path));
        let paths: Vec<String> = others.map(|path| display_path(path)).collect();
        drop(merged);
        if !paths.is_empty() {
            let paths = join_limited(paths, MAX_LISTED);
            notes.push(format!(
                "changed outside of the worktree while it worked, by it or by somebody else: {paths}"
            ));
        }
        let now = Refs::read_names(&self.main.folder).map_err(|error| error.to_string());
        match (&self.refs, &now) {
            (Ok(before), Ok(now)) => {
                let (before, now) =
                    (before.clone().unwrap_or_default(), now.clone().unwrap_or_default());
                let moved = before.moved(&now);
                if !moved.is_empty() {
                    let moved = join_limited(moved, MAX_LISTED);
                    notes.push(format!(
                        "refs moved while it worked, by it or by somebody else: {moved}"
                    ));
                }
            }
            (Err(why), _) | (_, Err(why)) => {
                notes.push(format!("whether refs moved while it worked is not known: {why}"));
            }
        }
        notes
    }
}
