//! Applies work to a workspace that was saved when another one was discarded.

use super::disk::{clear, is_plain};
use super::metadata::Record;
use super::{Error, WorkspacePaths, Workspaces, at};
use crate::path::is_strictly_inside;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Applies saved work completely, or fails.
pub(super) fn apply(
    workspaces: &Workspaces,
    paths: &WorkspacePaths,
    record: &Record,
    work: &str,
) -> Result<(), Error> {
    let unfit = |why: String| Error::Unfit { work: work.to_owned(), why };
    let parent = workspaces.state.parent().unwrap_or(&workspaces.state);
    let relative = Path::new(work).strip_prefix(parent).unwrap_or(Path::new(work));
    let saved = parent.join(relative);
    // The name comes from a journal: only what was saved in the state folder is read.
    if !is_strictly_inside(relative) || !saved.starts_with(workspaces.state.join("kept")) {
        return Err(unfit("it is not in the folder for saved work".to_owned()));
    }
    if saved.is_dir() {
        return apply_files(&saved, &paths.worktree);
    }
    if !saved.is_file() {
        return Err(unfit("it does not exist".to_owned()));
    }
    paths.scratch_repo(record).apply(&paths.worktree, &saved).map_err(|error| match error {
        Error::Git(why) => unfit(why),
        other => other,
    })
}

/// Without git: copies the saved files, and removes those that were deleted.
fn apply_files(saved: &Path, worktree: &Path) -> Result<(), Error> {
    let list = saved.join("deleted");
    let deleted = std::fs::read(&list).map_err(at("read", &list))?;
    for line in deleted.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let path = Path::new(OsStr::from_bytes(line));
        if is_plain(path) {
            let path = worktree.join(path);
            clear(&path).map_err(at("remove", &path))?;
        }
    }
    let files = saved.join("files");
    let mut open = vec![PathBuf::new()];
    while let Some(inside) = open.pop() {
        let folder = files.join(&inside);
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            // Files were only deleted.
            Err(_) if inside.as_os_str().is_empty() => return Ok(()),
            Err(error) => return Err(at("read", &folder)(error)),
        };
        for entry in entries {
            let entry = entry.map_err(at("read", &folder))?;
            let path = inside.join(entry.file_name());
            let (from, to) = (files.join(&path), worktree.join(&path));
            let kind = entry.file_type().map_err(at("read", &from))?;
            if kind.is_dir() {
                std::fs::create_dir_all(&to).map_err(at("create", &to))?;
                open.push(path);
                continue;
            }
            clear(&to).map_err(at("remove", &to))?;
            let copied = if kind.is_symlink() {
                std::fs::read_link(&from)
                    .and_then(|points_to| std::os::unix::fs::symlink(points_to, &to))
            } else {
                std::fs::copy(&from, &to).map(drop)
            };
            copied.map_err(at("write", &to))?;
        }
    }
    Ok(())
}
