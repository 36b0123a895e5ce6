//! Reads the changes of the work tree since a revision, including untracked files. The repository is
//! asked only which commit is meant: what its index and settings say may have been changed by an
//! agent, in order to hide something from a reviewer or not.

use super::merge_base::{MERGE_BASE, NoMergeBase, merge_base};
use super::{BuiltinOutcome, is_in, patch, state_folders};
use crate::verification::WorkFolder;
use counterfoil_flow::ChangesWork;
use counterfoil_workspace::git::{GitCommand, GitError};
use counterfoil_workspace::refs::{CommitNameError, commit_named};
use counterfoil_workspace::snapshot::{Difference, Patch, PatchError, Snapshotter};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The maximum size of a patch.
const MAX_BYTES: u64 = 8 << 20;
/// How often the changes are read again if files change in the meantime.
const MAX_TRIES: usize = 3;

/// Why the changes cannot be read.
#[derive(Debug, thiserror::Error)]
enum ChangesError {
    #[error("a chunk cannot have {0} tokens; `split` must be at least 1")]
    NoChunk(i64),
    #[error("{folder} is not in a git repository with a working tree: {why}")]
    NoRepository { folder: String, why: GitError },
    #[error("{0}")]
    NoRevision(#[from] CommitNameError),
    #[error("{0}")]
    NoMergeBase(#[from] NoMergeBase),
    #[error("the changes since {since} are larger than {} MiB; choose a later revision", MAX_BYTES >> 20)]
    TooMuch { since: String },
    #[error("the patch of git cannot be parsed")]
    Unparsed,
    #[error("{0}")]
    Patch(#[from] PatchError),
    #[error("{0}")]
    Git(#[from] GitError),
}

/// Reads the changes. It blocks.
pub(crate) fn read(
    place: &WorkFolder,
    agent_has_worked: bool,
    work: &ChangesWork,
) -> BuiltinOutcome {
    match read_changes(place, agent_has_worked, work) {
        Ok(value) => BuiltinOutcome::Value(value),
        Err(error) => BuiltinOutcome::Blocked(error.to_string()),
    }
}

fn read_changes(
    place: &WorkFolder,
    agent_has_worked: bool,
    work: &ChangesWork,
) -> Result<serde_json::Value, ChangesError> {
    let split = match work.split {
        None => None,
        Some(tokens) if tokens > 0 => Some(usize::try_from(tokens).unwrap_or(usize::MAX)),
        Some(tokens) => return Err(ChangesError::NoChunk(tokens)),
    };
    let folder = &place.folder;
    let top = GitCommand::new(folder, ["rev-parse", "--git-dir"]).run();
    top.map_err(|why| ChangesError::NoRepository { folder: folder.display().to_string(), why })?;
    let since = revision(folder, &work.since)?;
    let mut tree = place.complete_view(agent_has_worked);
    let own = state_folders(folder, &place.state);
    let is_own = |difference: &Difference| {
        own.iter().any(|own| is_in(difference.path.as_os_str().as_bytes(), own))
    };
    let mut result = patch_since(&mut tree, since.as_deref(), &is_own);
    for _ in 1..MAX_TRIES {
        // A file may have changed while it was read.
        if !matches!(result, Err(PatchError::Unreadable { .. })) {
            break;
        }
        result = patch_since(&mut tree, since.as_deref(), &is_own);
    }
    let base = since.unwrap_or_default();
    let patch = match result {
        Err(PatchError::Git(GitError::OutputTooLarge { .. })) => {
            let since = if base.is_empty() { "the beginning".to_owned() } else { base };
            return Err(ChangesError::TooMuch { since });
        }
        result => result?,
    };
    let files = patch::records(&patch.raw).and_then(|files| patch::pair(files, &patch.text));
    Ok(patch::result(&base, &files.ok_or(ChangesError::Unparsed)?, split))
}

/// The patch from a commit to the work tree.
fn patch_since(
    tree: &mut Snapshotter,
    since: Option<&str>,
    is_own: &dyn Fn(&Difference) -> bool,
) -> Result<Patch, PatchError> {
    let now = tree.snapshot();
    let all = tree.differences(since, &now)?;
    let files: Vec<&Difference> = all.files.iter().filter(|file| !is_own(file)).collect();
    let patch = tree.patch(&all, files.iter().copied(), &now, MAX_BYTES);
    // What new ignore rules hide is shown as well, but the output of a build must not be in the way
    // of what is to be reviewed. The rules themselves are part of the changes.
    let is_too_large = matches!(patch, Err(PatchError::Git(GitError::OutputTooLarge { .. })));
    if is_too_large && files.iter().any(|file| file.is_hidden) {
        let files = files.into_iter().filter(|file| !file.is_hidden);
        return tree.patch(&all, files, &now, MAX_BYTES);
    }
    patch
}

/// The commit that the work tree is compared with. `None` if everything counts as changed.
fn revision(folder: &Path, named: &str) -> Result<Option<String>, ChangesError> {
    let named = named.trim();
    // HEAD of a repository without a commit means the empty tree.
    let is_head = || matches!(named, "HEAD" | MERGE_BASE);
    if named.is_empty() || (is_head() && is_unborn(folder)?) {
        return Ok(None);
    }
    if named == MERGE_BASE {
        return Ok(Some(merge_base(folder)?));
    }
    Ok(Some(commit_named(folder, named)?))
}

/// Whether the repository has a branch and no commit on it.
pub(super) fn is_unborn(folder: &Path) -> Result<bool, GitError> {
    let known =
        GitCommand::new(folder, ["rev-parse", "-q", "--verify", "HEAD^{commit}"]).output()?.ok();
    Ok(!known && GitCommand::new(folder, ["symbolic-ref", "-q", "HEAD"]).output()?.ok())
}
