//! Finds the repository that a folder belongs to, and its position in it.

use super::Error;
use crate::git::{GitCommand, GitError};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The position of a folder in its repository.
#[derive(Debug)]
pub(super) struct Location {
    /// The top of the work tree, or the folder itself outside of a repository.
    pub(super) top: PathBuf,
    /// The folder, relative to the top.
    pub(super) prefix: PathBuf,
    /// The repository, if there is one.
    pub(super) repository: Option<Repository>,
    /// Whether git is installed.
    pub(super) git: bool,
    /// Why there is no repository.
    pub(super) notes: Vec<String>,
}

/// A repository with a work tree.
#[derive(Debug)]
pub(super) struct Repository {
    /// Its git folder, which its worktrees share.
    pub(super) common: PathBuf,
    /// The commit that is checked out. `None` in a repository without commits.
    pub(super) head: Option<String>,
    /// The hash function of its object names.
    pub(super) format: String,
    /// The excludes file that it is configured with.
    pub(super) excludes: Option<PathBuf>,
}

/// Finds the repository of a folder.
pub(super) fn find(folder: &Path) -> Result<Location, Error> {
    let folder = std::fs::canonicalize(folder).map_err(super::at("find", folder))?;
    let plain_copy = |git, note: String| {
        let top = folder.clone();
        Ok(Location { top, prefix: PathBuf::new(), repository: None, git, notes: vec![note] })
    };
    let output = |arguments: &[&str]| GitCommand::new(&folder, arguments).output();
    let known = ["--is-inside-work-tree", "--show-object-format", "--path-format=absolute"];
    let (common, top) = ("--git-common-dir", "--show-toplevel");
    let answer = match output(&["rev-parse", known[0], known[1], known[2], common, top]) {
        Ok(answer) => answer,
        Err(GitError::NotInstalled(_)) => {
            let note = "git is not installed: this is a plain copy of the folder, and concurrent changes to one file cannot be merged";
            return plain_copy(false, note.to_owned());
        }
        Err(error) => return Err(error.into()),
    };
    if answer.stdout.starts_with(b"false\n") {
        let note = "the repository has no work tree here: this is a plain copy of the folder";
        return plain_copy(true, note.to_owned());
    }
    if !answer.ok() {
        let message = answer.stderr;
        return plain_copy(
            true,
            if message.contains("not a git repository") {
                "the folder is not in a git repository: this is a plain copy of it".to_owned()
            } else {
                format!(
                    "git cannot read the repository, so this is a plain copy of the folder: {message}"
                )
            },
        );
    }
    let lines = answer.line().into_vec();
    let lines: Vec<_> = lines.split(|byte| *byte == b'\n').collect();
    let format = String::from_utf8_lossy(lines.get(1).copied().unwrap_or_default()).into_owned();
    let (common, top) = match lines[..] {
        [_, _, common, top] => (common.to_vec(), top.to_vec()),
        // The paths contain newlines.
        _ => {
            let one =
                |what| Ok::<_, GitError>(output(&["rev-parse", known[2], what])?.line().into_vec());
            (one(common)?, one(top)?)
        }
    };
    let (common, top) =
        (PathBuf::from(OsString::from_vec(common)), PathBuf::from(OsString::from_vec(top)));
    let Ok(prefix) = folder.strip_prefix(&top) else {
        return plain_copy(
            true,
            format!(
                "the work tree of the repository is {}: this is a plain copy of the folder",
                top.display()
            ),
        );
    };
    let head =
        GitCommand::new(&folder, ["rev-parse", "-q", "--verify", "HEAD^{commit}"]).output()?;
    let head = head.ok().then(|| head.line().to_string_lossy().into_owned());
    let excludes =
        GitCommand::new(&folder, ["config", "--type=path", "--get", "core.excludesFile"])
            .output()?;
    let excludes = excludes.ok().then(|| PathBuf::from(excludes.line()));
    let mut notes = Vec::new();
    if head.is_none() {
        notes.push(
            "the repository has no commit yet: this is a plain copy of its files, in a new repository"
                .to_owned(),
        );
    }
    Ok(Location {
        prefix: prefix.to_owned(),
        top,
        repository: Some(Repository { common, head, format, excludes }),
        git: true,
        notes,
    })
}
