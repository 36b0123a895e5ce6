//! The repository when the run began: the state that changed checks are also run in.

use counterfoil_verify::claims::{ConfigError, VerifyConfig};
use counterfoil_verify::config;
use counterfoil_workspace::snapshot::{Snapshot, Snapshotter};
use std::collections::BTreeSet;
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
            let start = match tree.load(&self.file) {
                // `resume` asked the user about a configuration that changed.
                Some(start) => {
                    let now = tree.snapshot();
                    tree.with_later_paths(&start, &now, &config_files(tree))
                }
                None => tree.snapshot(),
            };
            save(&start, &self.file);
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

/// Reads the configuration as it was when the run began: whatever wrote to it since, agents are not
/// judged by that. A file that git ignores is not part of snapshots.
pub(crate) fn config_at(
    start: Option<&Snapshot>,
    tree: &Snapshotter,
    ignored: &BTreeSet<PathBuf>,
) -> Result<VerifyConfig, ConfigError> {
    VerifyConfig::load_with(tree.folder(), tree.top(), |path| {
        match start.filter(|_| !ignored.contains(path)) {
            Some(start) => tree.content(start, path).map_err(|error| error.to_string()),
            None => config::read(path),
        }
    })
}

/// Where the configuration of a folder can be.
pub(crate) fn config_files(tree: &Snapshotter) -> [PathBuf; 2] {
    [tree.folder(), tree.top()].map(|folder| folder.join(config::FILE))
}

fn save(start: &Snapshot, file: &Path) {
    if let Err(error) = start.save(file) {
        tracing::warn!(%error, "the state at the start of the run cannot be kept");
    }
}
