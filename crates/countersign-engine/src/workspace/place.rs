//! Where a folder lies: in which repository, and where in it.

use super::Error;
use crate::git::{Call, Failure};
use std::path::{Path, PathBuf};

/// Where a folder lies.
#[derive(Debug)]
pub(super) struct Place {
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
pub(super) fn find(folder: &Path) -> Result<Place, Error> {
    let folder = std::fs::canonicalize(folder).map_err(super::at("find", folder))?;
    let alone = |git, note: String| {
        let top = folder.clone();
        Ok(Place { top, prefix: PathBuf::new(), repository: None, git, notes: vec![note] })
    };
    let ask = |arguments: &[&str]| Call::new(&folder, arguments).run();
    let inside = match ask(&["rev-parse", "--is-inside-work-tree", "--show-object-format"]) {
        Ok(answer) => answer.line(),
        Err(Failure::Absent) => {
            let note = "git is not installed: this is a plain copy of the folder, and no two changes of one file can be merged";
            return alone(false, note.to_owned());
        }
        Err(Failure::Refused { said, .. }) => {
            let note = if said.contains("not a git repository") {
                "the folder is in no git repository: this is a plain copy of it".to_owned()
            } else {
                format!("git does not read the repository, so this is a plain copy of the folder: {said}")
            };
            return alone(true, note);
        }
        Err(error) => return Err(error.into()),
    };
    let inside = inside.to_string_lossy().into_owned();
    let Some(format) = inside.strip_prefix("true\n") else {
        return alone(
            true,
            "the repository has no work tree here: this is a plain copy of the folder".to_owned(),
        );
    };
    let top = PathBuf::from(ask(&["rev-parse", "--show-toplevel"])?.line());
    let common = PathBuf::from(ask(&["rev-parse", "--path-format=absolute", "--git-common-dir"])?.line());
    let Ok(prefix) = folder.strip_prefix(&top) else {
        return alone(
            true,
            format!(
                "the work tree of the repository is {}: this is a plain copy of the folder",
                top.display()
            ),
        );
    };
    let head = Call::new(&folder, ["rev-parse", "-q", "--verify", "HEAD^{commit}"]).ask()?;
    let head = (head.code == Some(0)).then(|| head.line().to_string_lossy().into_owned());
    let excludes = Call::new(&folder, ["config", "--type=path", "--get", "core.excludesFile"]).ask()?;
    let excludes = (excludes.code == Some(0)).then(|| PathBuf::from(excludes.line()));
    let mut notes = Vec::new();
    if head.is_none() {
        notes.push(
            "the repository has no commit yet: this is a plain copy of its files, in a repository of its own"
                .to_owned(),
        );
    }
    Ok(Place {
        prefix: prefix.to_owned(),
        top,
        repository: Some(Repository { common, head, format: format.to_owned(), excludes }),
        git: true,
        notes,
    })
}
