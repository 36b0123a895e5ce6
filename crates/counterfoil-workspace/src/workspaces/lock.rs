//! Locks: only one process merges at a time, and none reads the repository meanwhile.

use super::{Error, at};
use crate::make_private_folder;
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long to wait for a lock.
const LOCK_TIMEOUT: Duration = Duration::from_mins(2);
/// The file that is locked to read or write the repository.
const WORKSPACES: &str = "workspaces.lock";
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A lock that is held until it is dropped or the process exits.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// Locks the repository for writing.
pub(super) fn exclusive(state: &Path) -> Result<Lock, Error> {
    take(state, WORKSPACES, File::try_lock)
}

/// Locks the repository for writing, if no other process has locked it.
pub(super) fn exclusive_at_once(state: &Path) -> Option<Lock> {
    let file = OpenOptions::new().read(true).write(true).open(state.join(WORKSPACES)).ok()?;
    file.try_lock().ok().map(|()| Lock { _file: file })
}

/// Locks the repository for reading.
pub(super) fn shared(state: &Path) -> Result<Lock, Error> {
    take(state, WORKSPACES, File::try_lock_shared)
}

/// Locks the list of worktrees, only while it is changed: git removes the list with its last entry,
/// and fails if that happens while it adds one.
pub(super) fn worktree_list(state: &Path) -> Result<Lock, Error> {
    take(state, "worktrees.lock", File::try_lock)
}

fn take(
    state: &Path,
    name: &str,
    lock: fn(&File) -> Result<(), TryLockError>,
) -> Result<Lock, Error> {
    make_private_folder(state).map_err(at("create", state))?;
    let path = state.join(name);
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map_err(at("open", &path))?;
    wait(file, &path, lock)
}

/// Locks the folder of a workspace while it is created.
pub(super) fn folder(path: &Path) -> Result<Lock, Error> {
    make_private_folder(path).map_err(at("create", path))?;
    wait(File::open(path).map_err(at("open", path))?, path, File::try_lock)
}

fn wait(
    file: File,
    path: &Path,
    lock: fn(&File) -> Result<(), TryLockError>,
) -> Result<Lock, Error> {
    let until = Instant::now() + LOCK_TIMEOUT;
    loop {
        match lock(&file) {
            Ok(()) => return Ok(Lock { _file: file }),
            Err(TryLockError::Error(error)) => return Err(at("lock", path)(error)),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(POLL_INTERVAL);
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Busy { lock: path.to_owned(), seconds: LOCK_TIMEOUT.as_secs() });
            }
        }
    }
}
