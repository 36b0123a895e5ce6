//! The outcomes of checks on trees. They are kept in memory only: an agent could write a file that
//! says that a check passed.

use super::Figures;
use crate::config::Check;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The maximum number of outcomes that are kept.
const MAX_ENTRIES: usize = 10_000;

/// What is known of checks that this process ran, by check, folder and tree. A check whose tree did
/// not change is not run again.
#[derive(Debug, Default)]
pub struct CheckCache {
    outcomes: Mutex<HashMap<Key, CachedOutcome>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    folder: PathBuf,
    tree: String,
    argv: Vec<String>,
    report: Option<String>,
    scrubbed: Option<Vec<String>>,
}

/// The outcome of a check as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CachedOutcome {
    pub(super) exit_code: i32,
    pub(super) tail: String,
    pub(super) excerpt: String,
    pub(super) figures: Option<Figures>,
    pub(super) without_pass: Option<String>,
    pub(super) wall_ms: u64,
    pub(super) notes: Vec<String>,
    pub(super) put_back: Option<String>,
    pub(super) fails_only_with: Option<String>,
    pub(super) way_out: Option<String>,
}

impl CheckCache {
    /// A copy, to which more can be added without changing this one.
    #[must_use]
    pub fn copy(&self) -> Self {
        let outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        Self { outcomes: Mutex::new(outcomes.clone()) }
    }

    /// Forgets all outcomes: somebody worked in the folder since, and files that git ignores are not
    /// part of a tree.
    pub fn clear(&self) {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The outcome of a check on a tree, if it was run.
    pub(super) fn get(&self, check: &Check, folder: &Path, tree: &str) -> Option<CachedOutcome> {
        let outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.get(&key(check, folder, tree)).cloned()
    }

    /// Keeps the outcome of a check on a tree.
    pub(super) fn put(&self, check: &Check, folder: &Path, tree: &str, outcome: CachedOutcome) {
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        if outcomes.len() < MAX_ENTRIES {
            outcomes.insert(key(check, folder, tree), outcome);
        }
    }
}

fn key(check: &Check, folder: &Path, tree: &str) -> Key {
    Key {
        folder: folder.to_owned(),
        tree: tree.to_owned(),
        argv: check.run.argv(),
        report: check.report.clone(),
        scrubbed: check.scrubbed.clone(),
    }
}
