//! The folder with the worktrees, if it is in the repository and not in the state folder. It exists
//! only while there are worktrees, so that nothing of ours stays in the user's work tree.
//!
//! It has a `.gitignore` of its own that excludes all of it. Nothing is shared with the folders of
//! other state folders except the parent, which is removed only if it is empty. It is created under
//! the shared lock of the workspaces and removed under the exclusive one, so no workspace that is
//! being opened loses it.

use super::{Error, Workspaces, at, lock};
use crate::atomic_write::{Durability, atomic_write_with, is_temporary};
use std::io::{ErrorKind, Write};
use std::path::Path;

/// The content of the `.gitignore`. A file with another content is not ours.
const IGNORE: &[u8] = b"*\n";
const IGNORE_NAME: &str = ".gitignore";
/// How often creating the folder is tried: another process may remove the empty parent meanwhile.
const MAX_ATTEMPTS: u32 = 20;

/// Creates the folder, which git ignores. The caller holds the shared lock.
pub(super) fn create(workspaces: &Workspaces) -> Result<(), Error> {
    if workspaces.keeps_worktrees_in_state() {
        return Ok(());
    }
    let folder = &workspaces.worktrees;
    let mut attempts_left = MAX_ATTEMPTS;
    loop {
        attempts_left -= 1;
        match std::fs::create_dir_all(folder) {
            Ok(()) => break,
            Err(error) if error.kind() == ErrorKind::NotFound && attempts_left > 0 => {}
            Err(error) => return Err(at("create", folder)(error)),
        }
    }
    let ignore = folder.join(IGNORE_NAME);
    if std::fs::symlink_metadata(&ignore).is_ok() {
        return Ok(());
    }
    write_ignore_file(&ignore).map_err(at("write", &ignore))
}

/// Removes the folder if there is no worktree in it, and then its parent if that is empty. What is
/// not ours stays, with the folder around it. The caller holds the exclusive lock.
pub(super) fn remove_if_unused(workspaces: &Workspaces, _exclusive: &lock::Lock) {
    if workspaces.keeps_worktrees_in_state() {
        return;
    }
    let folder = &workspaces.worktrees;
    // Behind a link, the files are somebody else's.
    match std::fs::symlink_metadata(folder) {
        Ok(metadata) if metadata.is_dir() => {
            if !remove_own_content(folder) {
                return;
            }
        }
        // The process was killed before it removed the parent, or the folder was removed by another
        // program.
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        _ => return,
    }
    if let Some(parent) = folder.parent() {
        // Fails if another state folder has worktrees there, or if there is anything else.
        let _ = std::fs::remove_dir(parent);
    }
}

/// The same after an error, when no lock is held. The holder of the lock removes the folder
/// later or uses it.
pub(super) fn remove_if_nobody_works(workspaces: &Workspaces) {
    if workspaces.keeps_worktrees_in_state() {
        return;
    }
    if let Some(exclusive) = lock::exclusive_at_once(&workspaces.state) {
        remove_if_unused(workspaces, &exclusive);
    }
}

/// Removes the folder if it contains only empty folders of runs and our `.gitignore`.
fn remove_own_content(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let mut is_unused = true;
    for entry in entries.flatten() {
        // Succeeds only for an empty folder, which a process that was killed may have left.
        is_unused &= entry.file_name() == IGNORE_NAME
            || std::fs::remove_dir(entry.path()).is_ok()
            || (is_temporary(&entry.file_name()) && std::fs::remove_file(entry.path()).is_ok());
    }
    let ignore = folder.join(IGNORE_NAME);
    let is_there = std::fs::symlink_metadata(&ignore);
    let is_ours = match &is_there {
        Ok(metadata) => {
            metadata.is_file()
                && metadata.len() == IGNORE.len() as u64
                && std::fs::read(&ignore).is_ok_and(|bytes| bytes == IGNORE)
        }
        Err(error) => error.kind() == ErrorKind::NotFound,
    };
    if !is_unused || !is_ours || (is_there.is_ok() && std::fs::remove_file(&ignore).is_err()) {
        return false;
    }
    let is_removed = std::fs::remove_dir(folder).is_ok();
    if !is_removed {
        // Another program has put something there, which git must go on ignoring.
        let _ = write_ignore_file(&ignore);
    }
    is_removed
}

/// Writes the file as a whole, so that one without content is never taken for it.
fn write_ignore_file(path: &Path) -> std::io::Result<()> {
    atomic_write_with(path, Durability::Unsynced, |file| file.write_all(IGNORE))
}
