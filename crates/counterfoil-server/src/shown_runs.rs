//! What a page showed last of each run, so that a run is read again only when it went on: such a page is
//! made again whenever any run goes on.

use std::any::Any;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A run: its state folder and its id.
pub(crate) type RunKey = (PathBuf, String);
/// What changes with a run: its last event, its outcome, and whether a process drives it.
pub(crate) type Moved = (u64, String, bool);
/// What a page shows of a run: only the page knows its type.
type Content = Arc<dyn Any + Send + Sync>;

#[derive(Default)]
pub(crate) struct ShownRuns(Mutex<HashMap<RunKey, (Moved, Content)>>);

impl ShownRuns {
    /// What was shown of a run, if it is still the same.
    pub(crate) fn find<T: Any + Send + Sync>(&self, key: &RunKey, moved: &Moved) -> Option<Arc<T>> {
        let shown = self.lock();
        let (known, content) = shown.get(key)?;
        if known == moved { Arc::downcast(Arc::clone(content)).ok() } else { None }
    }

    /// Keeps what is shown now and nothing else.
    pub(crate) fn replace<T: Any + Send + Sync>(&self, runs: HashMap<RunKey, (Moved, Arc<T>)>) {
        let runs =
            runs.into_iter().map(|(key, (moved, content))| (key, (moved, content as Content)));
        *self.lock() = runs.collect();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunKey, (Moved, Content)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
