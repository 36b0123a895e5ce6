//! What all claims of a result are held against: what changed, where paths count from, what nobody
//! claims.

use super::World;
use super::check::Outcome;
use super::path::{Frame, Index};
use crate::config::Check;
use counterfoil_workspace::tree::{Change, Changes};
use globset::GlobSet;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The workspace as it stood when the result was held against it.
pub(super) struct Scene {
    pub(super) frame: Frame,
    /// What changed since the step began, or why that cannot be told.
    pub(super) changes: Result<Changes, String>,
    /// The tree's name.
    pub(super) tree: Option<String>,
    pub(super) began: Option<SystemTime>,
    /// Since when changes count, in words.
    pub(super) since: String,
    /// Who else was at work here.
    pub(super) company: Option<String>,
    /// Checks that were run for this result, on which tree, and what came of them.
    pub(super) ran: Vec<(Check, Option<String>, Outcome)>,
    noise: GlobSet,
    /// Files that are ours, relative to the folder.
    ours: HashSet<PathBuf>,
}

impl Scene {
    pub(super) fn look(world: &mut World<'_>) -> Self {
        let names = |path: &Path| {
            let mut names = vec![path.to_owned()];
            names.extend(path.canonicalize().ok());
            names
        };
        let frame = Frame::new(names(world.folder), names(world.top));
        let relative = |path: &PathBuf| {
            frame.of_real(path).or_else(|| path.strip_prefix(world.folder).ok().map(Path::to_owned))
        };
        Self {
            changes: world.observer.changes().map(|changes| plainly(changes, &frame)),
            tree: world.observer.tree_id(),
            began: world.observer.began(),
            since: world.since.to_owned(),
            company: world.company.map(str::to_owned),
            ran: Vec::new(),
            noise: world.config.noise(),
            ours: world.ours.iter().filter_map(relative).collect(),
            frame,
        }
    }

    /// Whether nobody is expected to claim a change of this file.
    pub(super) fn is_noise(&self, path: &Path) -> bool {
        self.noise.is_match(path) || path.ancestors().any(|path| self.ours.contains(path))
    }

    /// The changes that somebody is expected to claim.
    pub(super) fn claimable<'a>(
        &'a self,
        changes: &'a Changes,
    ) -> impl Iterator<Item = (&'a Path, Change)> {
        changes
            .files
            .iter()
            .filter(|(path, _)| !self.is_noise(path))
            .map(|(path, change)| (path.as_path(), *change))
    }

    /// The changes in a line, with what could not be seen.
    pub(super) fn summary(&self, changes: &Changes) -> String {
        let of = |wanted: Change| {
            self.claimable(changes).filter(|(_, change)| *change == wanted).count()
        };
        let total = self.claimable(changes).count();
        let parts: Vec<String> = [
            (of(Change::Modified), "modified"),
            (of(Change::Added), "added"),
            (of(Change::Deleted), "deleted"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        match total {
            0 => format!("no file changed since {}", self.since),
            _ => format!(
                "{} changed since {}: {}",
                super::shown::number(total, "file"),
                self.since,
                parts.join(", ")
            ),
        }
    }
}

/// The changes with one name for each file: `../../web/b` seen from `web/app` is `../b`.
fn plainly(changes: &Changes, frame: &Frame) -> Changes {
    let plain = |path: &PathBuf| match frame.seen_from_top(path) {
        Some(from_top) if path.starts_with("..") => frame.seen_from_folder(&from_top),
        _ => path.clone(),
    };
    Changes {
        files: changes.files.iter().map(|(path, change)| (plain(path), *change)).collect(),
        renamed: changes.renamed.iter().map(|(from, to)| (plain(from), plain(to))).collect(),
        notes: changes.notes.clone(),
    }
}

/// What changed, to be searched.
pub(super) fn index(changes: &Changes) -> Index<'_> {
    Index::new(changes)
}
