//! The repository when the run began: the state that changed checks are also run in.

use counterfoil_workspace::snapshot::{Snapshot, Snapshotter};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The repository when the run began. Files that a step was to change are in it as they were after
/// that step, so that the steps that follow are judged by them.
#[derive(Debug)]
pub(crate) struct RunStart {
    snapshot: Mutex<Option<Snapshot>>,
    /// Keeps it for later processes.
    file: PathBuf,
}

impl RunStart {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { snapshot: Mutex::new(None), file }
    }

    /// Whether it is known, by this process or an earlier one.
    pub(crate) fn exists(&self) -> bool {
        self.get().is_some() || self.file.exists()
    }

    /// It, if this process knows it.
    pub(crate) fn get(&self) -> Option<Snapshot> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks at the repository, unless that was done before. It blocks.
    pub(crate) fn look(&self, tree: &mut Snapshotter) {
        let mut snapshot = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        if snapshot.is_none() {
            let start = tree.load(&self.file).unwrap_or_else(|| {
                let start = tree.snapshot();
                save(&start, &self.file);
                start
            });
            *snapshot = Some(start);
        }
    }

    /// A step was to change these files, and is done. It blocks.
    pub(crate) fn move_files(&self, tree: &Snapshotter, now: &Snapshot, paths: &[PathBuf]) {
        let mut snapshot = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(start) = snapshot.as_mut().filter(|_| !paths.is_empty()) {
            *start = tree.with_later_paths(start, now, paths);
            save(start, &self.file);
        }
    }
}

fn save(start: &Snapshot, file: &Path) {
    if let Err(error) = start.save(file) {
        tracing::warn!(%error, "the state at the start of the run cannot be kept");
    }
}
