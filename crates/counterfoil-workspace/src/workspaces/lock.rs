//! One folds at a time, and nobody looks while somebody folds.

use super::{Error, at};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long to wait for the others.
const LOCK_TIMEOUT: Duration = Duration::from_mins(2);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Held until it is dropped, or the process ends.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// For one who changes the repository.
pub(super) fn alone(state: &Path) -> Result<Lock, Error> {
    take(state, "workspaces.lock", File::try_lock)
}

/// For one who reads it.
pub(super) fn together(state: &Path) -> Result<Lock, Error> {
    take(state, "workspaces.lock", File::try_lock_shared)
}

/// For one who changes git's list of worktrees, and only while they do: git removes the list with
/// its last entry, and fails if that happens while it adds one.
pub(super) fn list(state: &Path) -> Result<Lock, Error> {
    take(state, "worktrees.lock", File::try_lock)
}

fn take(
    state: &Path,
    name: &str,
    lock: fn(&File) -> Result<(), TryLockError>,
) -> Result<Lock, Error> {
    std::fs::create_dir_all(state).map_err(at("create", state))?;
    let path = state.join(name);
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&path)
        .map_err(at("open", &path))?;
    wait(file, &path, lock)
}

/// For one who makes a workspace, in its folder.
pub(super) fn folder(path: &Path) -> Result<Lock, Error> {
    std::fs::create_dir_all(path).map_err(at("create", path))?;
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
                std::thread::sleep(POLL_INTERVAL)
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Busy { lock: path.to_owned(), seconds: LOCK_TIMEOUT.as_secs() });
            }
        }
    }
}
