//! The observations that all claims of one result share: the changes, the path resolver, and the
//! files whose changes need not be claimed.

use super::VerifyContext;
use super::check::CheckOutcome;
use super::path::PathResolver;
use crate::config::{Check, NOISE, globs};
use counterfoil_workspace::snapshot::{Change, Changes};
use globset::GlobSet;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The workspace at the time of verification.
pub(super) struct VerificationState {
    pub(super) resolver: PathResolver,
    /// The changes since the step began, or the reason why they cannot be determined.
    pub(super) changes: Result<Changes, String>,
    /// The identifier of the work tree's content.
    pub(super) tree_id: Option<String>,
    /// The point from which changes count, as text.
    pub(super) since: String,
    /// Another writer that was active in the folder, as text.
    pub(super) concurrent_writer: Option<String>,
    /// The checks that were run for this result, with the tree on which each ran and its outcome.
    pub(super) finished_checks: Vec<(Check, Option<String>, CheckOutcome)>,
    /// What tools usually create. It hides no file that git knows.
    usual_noise: GlobSet,
    /// What the project declares as noise.
    noise: GlobSet,
    /// Counterfoil's own files, relative to the folder.
    own_files: HashSet<PathBuf>,
}

impl VerificationState {
    pub(super) fn observe(context: &mut VerifyContext<'_>) -> Self {
        let names = |path: &Path| {
            let mut names = vec![path.to_owned()];
            names.extend(path.canonicalize().ok());
            names
        };
        let resolver = PathResolver::new(names(context.folder), names(context.top));
        let relative = |path: &PathBuf| {
            resolver
                .relative_if_inside(path)
                .or_else(|| path.strip_prefix(context.folder).ok().map(Path::to_owned))
        };
        Self {
            changes: context
                .view
                .changes()
                .map(|changes| with_normalized_paths(changes, &resolver))
                .map_err(|error| error.reason),
            tree_id: context.view.tree_id(),
            since: context.since.to_owned(),
            concurrent_writer: context.concurrent_writer.map(str::to_owned),
            finished_checks: Vec::new(),
            usual_noise: globs(NOISE.iter().copied()),
            noise: globs(
                context
                    .config
                    .noise
                    .iter()
                    .map(String::as_str)
                    .filter(|glob| !NOISE.contains(glob)),
            ),
            own_files: context.own_files.iter().filter_map(relative).collect(),
            resolver,
        }
    }

    /// Whether a change of this file need not be claimed.
    pub(super) fn is_noise(&self, path: &Path) -> bool {
        let is_tracked =
            || self.changes.as_ref().is_ok_and(|changes| changes.tracked.contains(path));
        self.noise.is_match(path)
            || self.usual_noise.is_match(path) && !is_tracked()
            || path.ancestors().any(|path| self.own_files.contains(path))
    }

    /// The changes that a result is expected to claim.
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

    /// A summary of the changes in one line.
    pub(super) fn summary(&self, changes: &Changes) -> String {
        let count = |wanted: Change| {
            self.claimable(changes).filter(|(_, change)| *change == wanted).count()
        };
        let total = self.claimable(changes).count();
        let parts: Vec<String> = [
            (count(Change::Modified), "modified"),
            (count(Change::Added), "added"),
            (count(Change::Deleted), "deleted"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        match total {
            0 => format!("no file changed since {}", self.since),
            _ => format!(
                "{} changed since {}: {}",
                counterfoil_contract::text::pluralize(total, "file"),
                self.since,
                parts.join(", ")
            ),
        }
    }
}

/// The changes with one normalized path for each file: `../../web/b` relative to `web/app` becomes
/// `../b`.
fn with_normalized_paths(changes: &Changes, resolver: &PathResolver) -> Changes {
    let normalized = |path: &PathBuf| match resolver.relative_to_top(path) {
        Some(from_top) if path.starts_with("..") => resolver.relative_to_folder(&from_top),
        _ => path.clone(),
    };
    Changes {
        files: changes.files.iter().map(|(path, change)| (normalized(path), *change)).collect(),
        tracked: changes.tracked.iter().map(normalized).collect(),
        renamed: changes
            .renamed
            .iter()
            .map(|(from, to)| (normalized(from), normalized(to)))
            .collect(),
        notes: changes.notes.clone(),
    }
}
