//! Tracks which attempts of a run work in the same folder at the same time, since their changes
//! cannot be told apart.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The running attempts and their folders.
#[derive(Default)]
pub(crate) struct ActiveFolders {
    attempts: Mutex<BTreeMap<String, ActiveAttempt>>,
}

struct ActiveAttempt {
    folder: PathBuf,
    /// Another attempt that worked in the folder at the same time.
    concurrent: Option<String>,
}

/// Registers an attempt in its folder until it is dropped.
pub(crate) struct FolderGuard {
    folders: Arc<ActiveFolders>,
    attempt: String,
}

impl ActiveFolders {
    /// Registers an attempt that starts to work in a folder.
    pub(crate) fn enter(self: &Arc<Self>, attempt: &str, folder: &Path) -> FolderGuard {
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut concurrent = None;
        for (name, other) in attempts.iter_mut().filter(|(_, other)| other.folder == folder) {
            other.concurrent = Some(attempt.to_owned());
            concurrent = Some(name.clone());
        }
        let active = ActiveAttempt { folder: folder.to_owned(), concurrent };
        attempts.insert(attempt.to_owned(), active);
        FolderGuard { folders: self.clone(), attempt: attempt.to_owned() }
    }

    fn concurrent(&self, attempt: &str) -> Option<String> {
        let attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        attempts.get(attempt).and_then(|active| active.concurrent.clone())
    }
}

impl FolderGuard {
    /// A function that describes which other attempt worked in the folder at the same time.
    pub(crate) fn observer(&self) -> impl Fn() -> Option<String> + Send + Sync + use<> {
        let (folders, attempt) = (self.folders.clone(), self.attempt.clone());
        move || {
            let other = folders.concurrent(&attempt)?;
            Some(format!("'{other}' was running in the same folder at the same time"))
        }
    }
}

impl Drop for FolderGuard {
    fn drop(&mut self) {
        self.folders.attempts.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.attempt);
    }
}
