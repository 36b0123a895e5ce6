//! Where a folder lies: in which repository, and where in it.

use super::Error;
use crate::git::{GitCommand, GitError};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Where a folder lies.
#[derive(Debug)]
pub(super) struct Location {
    /// The top of the work tree, or the folder itself outside a repository.
    pub(super) top: PathBuf,
    /// The folder, from there.
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
    /// Its folder, shared by its worktrees.
    pub(super) common: PathBuf,
    /// The commit that is checked out; none in a new repository.
    pub(super) head: Option<String>,
    /// The hash it names objects by.
    pub(super) format: String,
    /// The file of ignored names that its settings point at.
    pub(super) excludes: Option<PathBuf>,
}

/// Finds where a folder lies.
pub(super) fn find(folder: &Path) -> Result<Location, Error> {
    let folder = std::fs::canonicalize(folder).map_err(super::at("find", folder))?;
    let alone = |git, note: String| {
        let top = folder.clone();
        Ok(Location { top, prefix: PathBuf::new(), repository: None, git, notes: vec![note] })
    };
    let ask = |arguments: &[&str]| GitCommand::new(&folder, arguments).output();
    let known = ["--is-inside-work-tree", "--show-object-format", "--path-format=absolute"];
    let (common, top) = ("--git-common-dir", "--show-toplevel");
    let answer = match ask(&["rev-parse", known[0], known[1], known[2], common, top]) {
        Ok(answer) => answer,
        Err(GitError::NotInstalled(_)) => {
            let note = "git is not installed: this is a plain copy of the folder, and no two changes of one file can be merged";
            return alone(false, note.to_owned());
        }
        Err(error) => return Err(error.into()),
    };
    if answer.stdout.starts_with(b"false\n") {
        let note = "the repository has no work tree here: this is a plain copy of the folder";
        return alone(true, note.to_owned());
    }
    if !answer.ok() {
        let said = answer.stderr;
        return alone(
            true,
            if said.contains("not a git repository") {
                "the folder is in no git repository: this is a plain copy of it".to_owned()
            } else {
                format!(
                    "git does not read the repository, so this is a plain copy of the folder: {said}"
                )
            },
        );
    }
    let lines = answer.line().into_vec();
    let lines: Vec<_> = lines.split(|byte| *byte == b'\n').collect();
    let format = String::from_utf8_lossy(lines.get(1).copied().unwrap_or_default()).into_owned();
    let (common, top) = match lines[..] {
        [_, _, common, top] => (common.to_vec(), top.to_vec()),
        // There are newlines in the paths.
        _ => {
            let one =
                |what| Ok::<_, GitError>(ask(&["rev-parse", known[2], what])?.line().into_vec());
            (one(common)?, one(top)?)
        }
    };
    let (common, top) =
        (PathBuf::from(OsString::from_vec(common)), PathBuf::from(OsString::from_vec(top)));
    let Ok(prefix) = folder.strip_prefix(&top) else {
        return alone(
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
            "the repository has no commit yet: this is a plain copy of its files, in a repository of its own"
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
