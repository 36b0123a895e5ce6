//! What attempts changed in the files, for pages. A difference is computed once, by one thread at a
//! time, and kept until the records of its run change.

use crate::folders::RunPlace;
use counterfoil_engine::{DiffLimits, FilesDiff};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// The most differences that are kept.
const MAX_KEPT: usize = 16;

/// What a page compares.
const PAGE: DiffLimits = DiffLimits {
    files: 100,
    file_bytes: 512 << 10,
    bytes: 2 << 20,
    patience: Duration::from_millis(300),
};
/// What the whole text compares.
const WHOLE: DiffLimits = DiffLimits {
    files: 10_000,
    file_bytes: 16 << 20,
    bytes: 64 << 20,
    patience: Duration::from_secs(2),
};

/// A difference, nothing if none is recorded, or why it cannot be read.
pub(crate) type Found = Result<Option<FilesDiff>, String>;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    state: PathBuf,
    run: String,
    attempt: String,
    recorded_at: Option<SystemTime>,
}

/// The differences that were shown last.
#[derive(Debug, Default)]
pub(crate) struct Diffs {
    /// The last one in front.
    kept: Mutex<VecDeque<(Key, Arc<Found>)>>,
    /// Held by the thread that compares.
    comparing: Mutex<()>,
}

impl Diffs {
    /// What an attempt changed, within the limits of a page.
    pub(crate) fn of(&self, place: &RunPlace, attempt: &str) -> Arc<Found> {
        let key = Key {
            state: place.engine.journal().folder().to_owned(),
            run: place.run.clone(),
            attempt: attempt.to_owned(),
            recorded_at: place.engine.changes_recorded_at(&place.run),
        };
        if key.recorded_at.is_none() {
            return Arc::new(Ok(None));
        }
        if let Some(known) = self.known(&key) {
            return known;
        }
        let _one_at_a_time = self.comparing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = self.known(&key) {
            return known;
        }
        let found = Arc::new(compare(place, attempt, &PAGE));
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_front((key, Arc::clone(&found)));
        kept.truncate(MAX_KEPT);
        found
    }

    /// The difference as `patch` reads it, with the number of files that it leaves out.
    pub(crate) fn whole(&self, place: &RunPlace, attempt: &str) -> Found {
        let _one_at_a_time = self.comparing.lock().unwrap_or_else(PoisonError::into_inner);
        compare(place, attempt, &WHOLE)
    }

    fn known(&self, key: &Key) -> Option<Arc<Found>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(known, _)| known == key).map(|(_, found)| Arc::clone(found))
    }
}

fn compare(place: &RunPlace, attempt: &str, limits: &DiffLimits) -> Found {
    let found = place.engine.files_diff(&place.run, &[attempt.to_owned()], limits);
    found.map_err(|error| error.to_string())
}
