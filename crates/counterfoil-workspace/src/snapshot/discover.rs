//! Finds the repository of a folder.

use super::git::{FsCapabilities, Git, RepositoryLocation};
use super::repo_path::{canonicalize_existing, normalize};
use crate::git::{GitError, read_pointer};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Finds the repository of a folder. An error if there is none that can be used.
pub(super) fn discover(git: &Git, folder: &Path) -> Result<RepositoryLocation, GitError> {
    let arguments = ["rev-parse", "--is-inside-work-tree", "--show-cdup", "--absolute-git-dir"];
    let output = git.discover(folder, &arguments)?.stdout;
    // The last line is a path, which may contain line breaks.
    let mut lines = output.splitn(3, |byte| *byte == b'\n');
    let (inside, up, git_dir) = (lines.next(), lines.next(), lines.next());
    let (Some(b"true"), Some(up), Some(git_dir)) = (inside, up, git_dir) else {
        let message =
            "this is inside a bare repository or a .git folder, which has no work tree".to_owned();
        return Err(GitError::Failed { command: "rev-parse".to_owned(), message });
    };
    let git_dir = git_dir.strip_suffix(b"\n").unwrap_or(git_dir);
    let keys = r"^core\.(filemode|ignorecase|symlinks)$";
    // The exit code is 1 if none is set.
    let output = git.discover(folder, &["config", "-z", "--type=bool", "--get-regexp", keys]);
    let mut capabilities = FsCapabilities::default();
    for line in output.map(|output| output.stdout).unwrap_or_default().split(|byte| *byte == 0) {
        match line {
            b"core.filemode\nfalse" => capabilities.file_mode = false,
            b"core.ignorecase\ntrue" => capabilities.ignore_case = true,
            b"core.symlinks\nfalse" => capabilities.symlinks = false,
            _ => {}
        }
    }
    Ok(RepositoryLocation {
        git_dir: PathBuf::from(OsStr::from_bytes(git_dir)),
        top: normalize(&folder.join(OsStr::from_bytes(up))),
        capabilities,
    })
}

/// The git folder of the repository in a folder. `None` if the folder has no repository of its own.
pub(super) fn git_dir_of(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    let meta = git.symlink_metadata().ok()?;
    if meta.is_dir() {
        return Some(git);
    }
    // A link to the git folder, or a file with its path.
    if meta.is_symlink() && git.is_dir() {
        return git.canonicalize().ok();
    }
    let named = read_pointer(&git)?;
    let named = named.strip_prefix(b"gitdir: ")?;
    let named = named.strip_suffix(b"\n").unwrap_or(named);
    let dir = folder.join(OsStr::from_bytes(named.strip_suffix(b"\r").unwrap_or(named)));
    Some(canonicalize_existing(&dir))
}
