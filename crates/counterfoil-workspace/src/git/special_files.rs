//! Pipes, sockets and devices in places where git expects a file. Git would open them and wait, for a
//! pipe until somebody writes to it.

use super::{common_folder, read_pointer, repository_top};
use std::ffi::OsStr;
use std::fs::FileType;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The files of a git folder that most commands read.
const GIT_FILES: [&str; 12] = [
    "HEAD",
    "index",
    "config",
    "config.worktree",
    "packed-refs",
    "shallow",
    "commondir",
    "info/exclude",
    "info/attributes",
    "info/sparse-checkout",
    "objects/info/alternates",
    "objects/info/commit-graph",
];
/// The files of a work tree that git reads in each folder.
const WORK_TREE_FILES: [&str; 3] = [".gitattributes", ".gitignore", ".gitmodules"];
/// How long the rest is searched for.
const SEARCH_TIME: Duration = Duration::from_secs(2);

/// A file that is not a regular one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SpecialFile {
    pub(super) path: PathBuf,
    pub(super) kind: &'static str,
}

/// The first file that git would read and that is none, among those that nearly every command reads.
pub(super) fn likely(folder: &Path) -> Option<SpecialFile> {
    let top = repository_top(folder)?;
    let git = top.join(".git");
    let git = match read_pointer(&git) {
        Some(text) => {
            let named = text.strip_prefix(b"gitdir: ")?.trim_ascii_end();
            top.join(OsStr::from_bytes(named))
        }
        None => git,
    };
    let common = common_folder(top).unwrap_or_else(|| git.clone());
    let in_git = GIT_FILES.iter().flat_map(|name| [git.join(name), common.join(name)]);
    let in_tree = WORK_TREE_FILES.iter().flat_map(|name| [top.join(name), folder.join(name)]);
    in_git.chain(in_tree).find_map(|path| special(&path))
}

/// Such a file anywhere in the work tree or among the refs. It is searched for once a command takes
/// long.
pub(super) fn search(folder: &Path) -> Option<SpecialFile> {
    let top = repository_top(folder)?;
    let deadline = Instant::now() + SEARCH_TIME;
    let mut open = vec![(top.join(".git"), true), (top.to_owned(), false)];
    while let Some((folder, is_git)) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if Instant::now() > deadline {
                return None;
            }
            let name = entry.file_name();
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                // Objects are found by name. The git folder of a work tree is open already.
                let is_left_out = if is_git { name == "objects" } else { name == ".git" };
                if !is_left_out {
                    open.push((entry.path(), is_git));
                }
            } else if is_git || WORK_TREE_FILES.iter().any(|file| name == *file) {
                let found = name_of(kind).map(|kind| SpecialFile { path: entry.path(), kind });
                if found.is_some() {
                    return found;
                }
            }
        }
    }
    None
}

fn special(path: &Path) -> Option<SpecialFile> {
    // Git follows links.
    let kind = name_of(std::fs::metadata(path).ok()?.file_type())?;
    Some(SpecialFile { path: path.to_owned(), kind })
}

fn name_of(kind: FileType) -> Option<&'static str> {
    if kind.is_fifo() {
        Some("a named pipe")
    } else if kind.is_socket() {
        Some("a socket")
    } else if kind.is_char_device() || kind.is_block_device() {
        Some("a device")
    } else {
        None
    }
}
