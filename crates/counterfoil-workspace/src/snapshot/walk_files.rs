//! Lists the files of a folder without git, honouring its `.gitignore` files.

use super::read_files::{MAX_FILE_READ, MAX_TOTAL_READ};
use super::repo_path::RepoPath;
use ignore::WalkBuilder;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The largest number of files.
pub(super) const MAX_FILES: usize = 200_000;
/// The largest number of entries, including folders and unreadable ones.
const MAX_ENTRIES: usize = 4 * MAX_FILES;

/// The result of a walk.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub(super) files: Vec<RepoPath>,
    /// Folders that could not be read, and why.
    pub(super) notes: Vec<String>,
    /// A limit was exceeded.
    pub(super) too_much: bool,
}

/// Walks a folder below the top. Links are not followed. Nested repositories are included without
/// their `.git`.
pub(super) fn walk(top: &Path, folder: &RepoPath) -> Walked {
    let root = top.join(folder.path());
    let mut walked = Walked::default();
    let files = WalkBuilder::new(&root)
        .hidden(false)
        .ignore(false)
        .parents(false)
        .require_git(false)
        .follow_links(false)
        .filter_entry(|entry| entry.file_name() != OsStr::new(".git"))
        .build();
    let (mut failed, mut size) = (0, 0_u64);
    for (step, entry) in files.enumerate() {
        if walked.too_much || walked.files.len() >= MAX_FILES || step >= MAX_ENTRIES {
            walked.too_much = true;
            break;
        }
        match entry {
            Ok(entry) => {
                if entry.file_type().is_some_and(|kind| !kind.is_dir())
                    && let Ok(inner) = entry.path().strip_prefix(&root)
                    && !inner.as_os_str().is_empty()
                {
                    let length = entry.metadata().map_or(0, |meta| meta.len());
                    // Larger files are not read.
                    size += if length <= MAX_FILE_READ { length } else { 0 };
                    walked.too_much |= size > MAX_TOTAL_READ;
                    walked.files.push(folder.join(inner.as_os_str().as_bytes()));
                }
            }
            Err(error) => {
                failed += 1;
                if failed <= 3 {
                    walked.notes.push(error.to_string());
                }
            }
        }
    }
    if failed > 3 {
        walked.notes.push(format!("{} more folders could not be read", failed - 3));
    }
    walked
}
