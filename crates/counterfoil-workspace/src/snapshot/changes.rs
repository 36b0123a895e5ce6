//! Computes the changes between two snapshots. Files that both snapshots read are compared by their
//! bytes, others by their blobs. No git command runs.

use super::compare::{Keys, compare, renames};
use super::repo_path::{RepoPath, relative_to};
use super::{Change, Changes, Snapshot, Snapshotter};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// How many new files are searched for renames.
const MAX_RENAME_TARGETS: usize = 5000;

impl Snapshotter {
    /// The changes from one snapshot to another.
    pub fn changes(&self, before: &Snapshot, after: &Snapshot) -> Changes {
        let (a, b) = (&*before.data, &*after.data);
        let mut changes = Changes::default();
        if std::ptr::eq(a, b) {
            return changes;
        }
        if a.too_large || b.too_large {
            let notes = before.notes.iter().chain(&after.notes).cloned();
            changes.notes = notes.chain(["so changes cannot be determined".to_owned()]).collect();
            return changes;
        }
        let mut names: BTreeSet<&RepoPath> = a.entries.keys().chain(b.entries.keys()).collect();
        if !Arc::ptr_eq(&a.base, &b.base) && a.base != b.base {
            let files = a.base.files().iter().chain(b.base.files());
            names.extend(files.map(|file| &file.name));
        }
        let mut found: BTreeMap<&RepoPath, Change> = BTreeMap::new();
        for name in names {
            let rules = self.blob_rules(name);
            if let Some(change) = compare(a.side(name), b.side(name), rules)
                && !self.is_excluded(name)
                && !self.is_unreported(name, &b.base)
            {
                found.insert(name, change);
            }
        }
        changes.renamed = self.renamed(before, after, &found, &mut changes.notes);
        let tracked = found.keys().filter(|name| a.base.get(name).is_some());
        changes.tracked = tracked.map(|name| self.relative_path(name)).collect();
        changes.files =
            found.into_iter().map(|(name, change)| (self.relative_path(name), change)).collect();
        changes
    }

    fn renamed(
        &self,
        before: &Snapshot,
        after: &Snapshot,
        found: &BTreeMap<&RepoPath, Change>,
        notes: &mut Vec<String>,
    ) -> Vec<(PathBuf, PathBuf)> {
        let of = |kind: Change, snapshot: &Snapshot| -> Vec<(RepoPath, Keys)> {
            let names = found.iter().filter(|(_, change)| **change == kind).map(|(name, _)| *name);
            names.map(|name| (name.clone(), Keys::from_side(snapshot.data.side(name)))).collect()
        };
        let (gone, new) = (of(Change::Deleted, before), of(Change::Added, after));
        if gone.is_empty() || new.is_empty() {
            return Vec::new();
        }
        if new.len() > MAX_RENAME_TARGETS {
            notes.push(format!("renames are not detected among {} new files", new.len()));
            return Vec::new();
        }
        let pairs = renames(&gone, &new);
        pairs.iter().map(|(from, to)| (self.relative_path(from), self.relative_path(to))).collect()
    }

    fn relative_path(&self, name: &RepoPath) -> PathBuf {
        relative_to(&self.here, name)
    }
}
