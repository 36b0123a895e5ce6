//! Selects the files of a commit by what differs from the last one, whatever the index and the
//! settings of the repository say: an agent may have changed both.

use super::super::changes::is_unborn;
use super::super::paths::{Known, Selected, select};
use super::super::{names, state_folders};
use super::CommitRepo;
use super::index::{Entries, entries};
use counterfoil_contract::text::{display_path, join_limited};
use counterfoil_workspace::git::{GitCommand, GitError};
use counterfoil_workspace::snapshot::{Difference, Differences, PatchError, Snapshot, Snapshotter};
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The maximum number of files that a message names.
const MAX_NAMES: usize = 10;

/// Why the files cannot be selected.
#[derive(Debug, thiserror::Error)]
pub(super) enum SelectionError {
    #[error(
        "the work tree of the repository is another folder now, {actual}; remove `core.worktree` from its settings"
    )]
    OtherWorkTree { actual: String },
    #[error("{0}")]
    Differences(#[from] PatchError),
    #[error("{0}")]
    Git(#[from] GitError),
}

/// The work tree as it was before a commit.
pub(super) struct CommitView {
    tree: Snapshotter,
    before: Snapshot,
}

/// The files of a commit.
pub(super) struct Selection {
    pub(super) selected: Selected,
    /// The selected files that the index hides from git.
    pub(super) marked: BTreeSet<Vec<u8>>,
    pub(super) view: CommitView,
}

/// Selects the files below the paths that differ from the last commit.
pub(super) fn selection(repo: &CommitRepo, paths: &[String]) -> Result<Selection, SelectionError> {
    let folder = &repo.place.folder;
    let mut tree = repo.place.complete_view(repo.agent_has_worked);
    let actual = GitCommand::new(folder, ["rev-parse", "--show-toplevel"]).run()?.line();
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if real(Path::new(&actual)) != real(tree.top()) {
        let actual = display_path(Path::new(&actual));
        return Err(SelectionError::OtherWorkTree { actual });
    }
    let head = if is_unborn(folder)? { None } else { counterfoil_workspace::git::head(folder) };
    let before = tree.snapshot();
    let differences = tree.differences(head.as_deref(), &before)?;
    let entries = entries(folder)?;
    let own = state_folders(folder, &repo.place.state);
    let (changed, others) = lists(&differences, &entries);
    let known = Known { changed: &changed, others: &others, own: &own };
    let mut selected = select(paths, &known);
    let mut rest = std::mem::take(&mut selected.rest);
    let hidden: Vec<&Difference> = differences.files.iter().filter(|file| file.is_hidden).collect();
    rest.retain(|name| {
        let is_hidden = hidden.iter().any(|file| file.path == Path::new(name));
        if is_hidden {
            selected.notes.push(format!("'{name}' is left out: git ignores it"));
        }
        !is_hidden
    });
    selected.notes.extend(left_out(folder, rest)?);
    let marked = entries.marked.intersection(&selected.files).cloned().collect();
    Ok(Selection { selected, marked, view: CommitView { tree, before } })
}

/// The files that differ, as [`Known`] lists them: those that git knows, and the others.
fn lists(differences: &Differences, entries: &Entries) -> (Vec<u8>, Vec<u8>) {
    let (mut changed, mut others) = (Vec::new(), Vec::new());
    let add = |list: &mut Vec<u8>, path: &Path, end: &[u8]| {
        list.extend_from_slice(path.as_os_str().as_bytes());
        list.extend_from_slice(end);
    };
    let mut nested: BTreeSet<&Path> = differences.left_alone.iter().map(|it| &**it).collect();
    for file in differences.files.iter().filter(|file| !file.is_hidden) {
        let is_known = entries.names.contains(file.path.as_os_str().as_bytes());
        match &file.repository {
            Some(folder) if !entries.names.contains(folder.as_os_str().as_bytes()) => {
                nested.insert(folder);
            }
            // A submodule is committed at the commit that it stands at.
            Some(_) => {}
            None if is_known || file.was_committed => add(&mut changed, &file.path, b"\0"),
            None => add(&mut others, &file.path, b"\0"),
        }
    }
    for submodule in &differences.submodules {
        add(&mut changed, &submodule.path, b"\0");
    }
    for folder in nested {
        add(&mut others, folder, b"/\0");
    }
    (changed, others)
}

impl CommitView {
    /// Says which of the files are in the commit neither as they were before it nor as they are now:
    /// a hook may change files. `None` if the commit has all of them.
    pub(super) fn missing(mut self, commit: &str, files: &BTreeSet<Vec<u8>>) -> Option<String> {
        let after = self.tree.snapshot();
        let mut missing = files.clone();
        for now in [&self.before, &after] {
            let differences = match self.tree.differences(Some(commit), now) {
                Ok(differences) => differences.files,
                Err(error) => return Some(format!("the commit cannot be checked: {error}")),
            };
            let differs = |name: &Vec<u8>| {
                let is_it = |file: &&Difference| file.path.as_os_str().as_bytes() == *name;
                differences.iter().find(is_it).is_some_and(|file| !file.needs_filter)
            };
            missing.retain(differs);
        }
        if missing.is_empty() {
            return None;
        }
        let names = missing.iter().map(|name| String::from_utf8_lossy(name));
        let names = join_limited(names, MAX_NAMES);
        Some(format!("the commit does not have these files as they are in the work tree: {names}"))
    }
}

/// Explains why requested paths are not committed, unless they are just unchanged.
fn left_out(folder: &Path, requested: Vec<String>) -> Result<Vec<String>, GitError> {
    let mut notes = Vec::new();
    let mut asked = Vec::new();
    for name in requested {
        match why_invisible(folder, Path::new(&name)) {
            Some(why) => notes.push(format!("'{name}' is left out: {why}")),
            None => asked.push(name),
        }
    }
    if asked.is_empty() {
        return Ok(notes);
    }
    let list = asked.iter().flat_map(|name| [name.as_bytes(), b"\0"]).collect::<Vec<_>>().concat();
    let ignored =
        GitCommand::new(folder, ["check-ignore", "-z", "--stdin"]).stdin(list).output()?;
    for name in names(&ignored.stdout) {
        notes.push(format!("'{}' is left out: git ignores it", String::from_utf8_lossy(name)));
    }
    Ok(notes)
}

/// Why git does not see a path: it does not exist, or it is behind a link or in another repository.
fn why_invisible(folder: &Path, name: &Path) -> Option<&'static str> {
    let mut at = folder.to_owned();
    let mut parts = name.components().peekable();
    while let Some(part) = parts.next() {
        at.push(part);
        let Ok(meta) = at.symlink_metadata() else {
            return Some("it does not exist, and git does not track it");
        };
        if parts.peek().is_none() {
            break;
        }
        if meta.is_symlink() {
            return Some("it is behind a symbolic link");
        }
        if at.join(".git").symlink_metadata().is_ok() {
            return Some("it is in a nested repository");
        }
    }
    None
}
