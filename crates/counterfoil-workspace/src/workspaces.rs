//! Separate folders for attempts that write at the same time, and merging their work back.
//!
//! A workspace is a git worktree with exactly the content of the user's work tree when it was
//! opened, including uncommitted edits, deletions and new files. That content is its *base*.
//! Merging back compares base, workspace and repository path by path and writes the changes into
//! the repository's work tree. If anything conflicts, nothing is written and the work is saved as a
//! patch. The index, branches, stash and settings of the user's repository are never touched; the
//! only addition is an entry in `.git/worktrees`, which is removed with the workspace.
//!
//! In the state folder, `worktrees/RUN/NAME` is the workspace (unless another folder is set), `bases/RUN/NAME` is its metadata and
//! base, `undo/RUN/NAME` is what a merge changed, and `kept/RUN` is work that was not merged. Every
//! call may be repeated after a crash at any point.

mod copy;
mod disk;
mod file_list;
mod locate;
mod lock;
mod merge;
mod metadata;
mod open;
mod plan;
mod restore;
mod save_patch;
mod scratch_repo;
mod steps;
mod sweep;
mod three_way;
mod undo;
mod worktrees_folder;
mod written;

use crate::git;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

pub use steps::{ReadBefore, RecordedChanges, RecordedFile, StepChanges};

/// The workspaces of one repository, stored in one state folder.
#[derive(Clone)]
pub struct Workspaces {
    state: PathBuf,
    /// The folder with the worktrees.
    worktrees: PathBuf,
    repo: PathBuf,
    on_step: Arc<dyn Fn(Step) + Send + Sync>,
}

/// A workspace that is ready for work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Where to work: the folder that corresponds to the repository folder.
    pub folder: PathBuf,
    /// How the workspace differs from a complete worktree, and why.
    pub notes: Vec<String>,
}

/// The outcome of merging a workspace back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeOutcome {
    /// How many files of the repository were written or deleted.
    pub changed: u64,
    /// The files with conflicts, sorted and relative to the repository folder. If there are any,
    /// nothing (more) was written.
    pub conflicts: Vec<String>,
    /// Where the work that was not merged is saved: relative to the parent of the state folder, or
    /// the whole path if the worktrees are not in the state folder.
    pub kept: Option<String>,
    /// Notes for the user, including the reason for each conflict.
    pub notes: Vec<String>,
}

/// A workspace without a run that still uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweptWorkspace {
    /// The run that it belonged to.
    pub run: String,
    /// The id of the workspace within the run.
    pub id: String,
    /// Where its work is saved, if there was any.
    pub kept: Option<String>,
    /// What could not be done, and why.
    pub notes: Vec<String>,
}

/// The outcome of undoing merges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// How many files were restored.
    pub restored: u64,
    /// The files that were changed since they were merged, sorted. If there are any, nothing was
    /// restored.
    pub changed_since: Vec<String>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// A merge of a workspace, as recorded for undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeRecord {
    /// The id of the workspace.
    pub id: String,
    /// The time of the merge, in milliseconds since 1970.
    pub at: i64,
    /// How far the merge got.
    pub state: MergeRecordState,
    /// The files it changed, relative to the repository folder.
    pub files: Vec<MergedFile>,
}

/// How far a merge or its undo got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MergeRecordState {
    /// The merge is in progress, or was when the process was killed. Merging again completes it.
    Begun,
    /// All changes are in the repository.
    Done,
    /// A file was changed during the merge, or the workspace was discarded, so only some of the
    /// changes are in the repository. The record lists only these.
    Stopped,
    /// The undo is in progress, or was when the process was killed. Undoing again completes it.
    Undoing,
    /// The merge was undone.
    Undone,
}

/// A file that a merge changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedFile {
    /// The path, relative to the repository folder.
    pub path: String,
    /// How it changed.
    pub change: crate::snapshot::Change,
}

/// A step of an operation, reported before the next one begins. The process may be killed between
/// any two steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// The metadata of the new workspace is on disk.
    Announced,
    /// Git has registered the worktree. It is empty.
    Added,
    /// The files are copied.
    Copied,
    /// The base is saved.
    Based,
    /// Earlier work is applied to it.
    Restored,
    /// The workspace is open.
    Opened,
    /// Base, workspace and repository are compared.
    Compared,
    /// The old and the new contents of all files to change are on disk.
    Imaged,
    /// The plan is on disk.
    Planned,
    /// The merge is committed to: after a crash it is completed rather than started again.
    Decided,
    /// This many files are written or removed.
    Written(usize),
    /// All files have their new content.
    Settled,
    /// The plan is marked as done.
    Done,
    /// The work is saved as a patch.
    Kept,
    /// The outcome is on disk.
    Concluded,
    /// The folder of the workspace is removed.
    Removed,
    /// The entry of the worktree in the repository is removed.
    Forgotten,
    /// The start of an undo is recorded.
    Undoing,
}

/// Why an operation on a workspace failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read or written.
    #[error("cannot {what} {}: {source}", .path.display())]
    Io {
        /// The attempted action, as a verb.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A git command failed.
    #[error("{0}")]
    Git(String),
    /// Another process holds the lock for too long.
    #[error("{} has been locked by another process for more than {seconds} s; another run may be merging", .lock.display())]
    Busy {
        /// The lock file.
        lock: PathBuf,
        /// How long this process waited.
        seconds: u64,
    },
    /// No such workspace is open.
    #[error("there is no open workspace '{id}' of run {run}")]
    NotOpen {
        /// The run that the workspace belongs to.
        run: String,
        /// The id of the workspace.
        id: String,
    },
    /// The folder of the workspace was removed by other means.
    #[error("the workspace {} was removed by another program, so there is nothing to merge; discard it", .folder.display())]
    Lost {
        /// The folder.
        folder: PathBuf,
    },
    /// A merge of the workspace was started and not completed.
    #[error("the merge of workspace '{id}' of run {run} is not complete; merge it again first")]
    Unfinished {
        /// The run that the workspace belongs to.
        run: String,
        /// The id of the workspace.
        id: String,
    },
    /// The folder is too large to copy.
    #[error("{} has {limit}, which is too large to copy; add unneeded files to .gitignore, or make it a git repository with a commit", .folder.display())]
    TooLarge {
        /// The folder.
        folder: PathBuf,
        /// The limit that was exceeded.
        limit: String,
    },
    /// There is too much to record.
    #[error("{limit}, which is too much to record")]
    TooMuch {
        /// The limit that was exceeded.
        limit: String,
    },
    /// Saved work cannot be applied to the current content of the repository.
    #[error("the work saved in {work} cannot be applied to the current files: {why}")]
    Unfit {
        /// Where the work is saved.
        work: String,
        /// Why it cannot be applied.
        why: String,
    },
    /// A metadata file cannot be interpreted.
    #[error("{} is damaged: {why}", .path.display())]
    Damaged {
        /// The metadata file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl From<git::GitError> for Error {
    fn from(failure: git::GitError) -> Self {
        Self::Git(failure.to_string())
    }
}

/// Attaches the action and the path to an I/O error.
fn at(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    move |source| Error::Io { what, path: path.to_owned(), source }
}

impl std::fmt::Debug for Workspaces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspaces")
            .field("state", &self.state)
            .field("repo", &self.repo)
            .finish_non_exhaustive()
    }
}

impl Workspaces {
    /// The workspaces of a repository folder, stored in a state folder. Creates nothing yet.
    pub fn new(state: &Path, repo: &Path) -> Self {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let state = absolute(state);
        let worktrees = state.join("worktrees");
        Self { state, worktrees, repo: absolute(repo), on_step: Arc::new(|_| ()) }
    }

    /// Keeps the worktrees in another folder, which no other state folder uses. It is created with
    /// the first worktree, together with a `.gitignore` that excludes all of it, and removed with
    /// the last one, as is its parent if that is empty then.
    #[must_use]
    pub fn with_worktrees(self, folder: &Path) -> Self {
        Self { worktrees: folder.to_owned(), ..self }
    }

    /// What these workspaces create in the repository outside of the state folder. It is not part
    /// of anybody's work.
    pub fn paths_in_repository(&self) -> Vec<PathBuf> {
        if self.keeps_worktrees_in_state() {
            return Vec::new();
        }
        vec![self.worktrees.clone()]
    }

    /// Sets a function that is called at each step.
    #[must_use]
    pub fn with_step_hook(self, on_step: impl Fn(Step) + Send + Sync + 'static) -> Self {
        Self { on_step: Arc::new(on_step), ..self }
    }

    /// The repository folder.
    pub fn repo(&self) -> &Path {
        &self.repo
    }

    /// The folder of the worktree of a workspace, whether it exists or not.
    pub fn path(&self, run: &str, id: &str) -> PathBuf {
        self.paths(run, id).worktree
    }

    /// The folder to work in: it corresponds to the repository folder, which may be a subfolder of
    /// the repository.
    pub fn folder(&self, run: &str, id: &str) -> PathBuf {
        let paths = self.paths(run, id);
        match paths.record() {
            Ok(Some(record)) => paths.folder(&record),
            _ => {
                let prefix =
                    locate::find(&self.repo).map(|location| location.prefix).unwrap_or_default();
                paths.worktree.join(prefix)
            }
        }
    }

    /// Opens a workspace with the current content of the repository, except for ignored files and
    /// those in `without` (absolute, or relative to the repository folder; a folder includes
    /// everything in it). A workspace that is open already is returned unchanged.
    pub fn open(&self, run: &str, id: &str, without: &BTreeSet<PathBuf>) -> Result<Opened, Error> {
        open::open(self, run, id, without, None)
    }

    /// Opens a workspace like [`Workspaces::open`], and applies earlier work to it that was saved
    /// when another workspace was discarded. It is then the work of this one.
    ///
    /// # Errors
    ///
    /// As for [`Workspaces::open`], and if the work does not fit the current content.
    pub fn open_with_work(
        &self,
        run: &str,
        id: &str,
        without: &BTreeSet<PathBuf>,
        work: &str,
    ) -> Result<Opened, Error> {
        open::open(self, run, id, without, Some(work))
    }

    /// Merges the work of a workspace into the repository and removes the workspace.
    pub fn merge_back(&self, run: &str, id: &str) -> Result<MergeOutcome, Error> {
        self.merge_back_around(run, id, &|_| false)
    }

    /// Merges like [`Workspaces::merge_back`], around by-products: where both sides changed one
    /// that git does not track, the repository keeps its version, with a note and without a
    /// conflict. Paths are relative to the repository folder.
    pub fn merge_back_around(
        &self,
        run: &str,
        id: &str,
        is_by_product: &dyn Fn(&Path) -> bool,
    ) -> Result<MergeOutcome, Error> {
        merge::merge_back(self, run, id, is_by_product)
    }

    /// Removes a workspace. Returns where its work was saved as a patch, if there was any.
    pub fn discard(&self, run: &str, id: &str) -> Result<Option<String>, Error> {
        save_patch::discard(self, run, id)
    }

    /// Removes the workspaces that no run uses any more, whatever state a crash left them in. Their
    /// work is saved as patches.
    pub fn sweep(&self, is_open: &dyn Fn(&str, &str) -> bool) -> Vec<SweptWorkspace> {
        sweep::sweep(self, is_open)
    }

    /// Undoes the merge of a workspace, or of all workspaces of a run, newest first. All of it is
    /// undone, or nothing.
    pub fn undo(&self, run: &str, id: Option<&str>) -> Result<Undone, Error> {
        self.undo_recorded(run, id.as_ref().map(std::slice::from_ref), |_| Ok(()))
    }

    /// Undoes like [`Workspaces::undo`], the merges of several workspaces. What is about to be undone, oldest first, is told before the
    /// first file is written, so that it can be recorded; nothing is undone if that fails. Nothing is
    /// told if nothing can be undone.
    ///
    /// # Errors
    ///
    /// As for [`Workspaces::undo`], and those of `record`.
    pub fn undo_recorded<E: From<Error>>(
        &self,
        run: &str,
        ids: Option<&[&str]>,
        record: impl FnOnce(&[MergeRecord]) -> Result<(), E>,
    ) -> Result<Undone, E> {
        undo::undo(self, run, ids, record)
    }

    /// Records what a step changed in the repository, so that it can be undone like a merge.
    pub fn record_step(&self, run: &str, id: &str, changes: &StepChanges<'_>) -> Result<(), Error> {
        steps::record(self, run, id, changes)
    }

    /// What a merge or a step changed. `None` if it is not recorded.
    pub fn recorded_changes(&self, run: &str, id: &str) -> Option<RecordedChanges> {
        steps::recorded(self, run, id)
    }

    /// What the merges and the steps of a run changed, as far as it is recorded, oldest first.
    pub fn all_recorded_changes(&self, run: &str) -> Vec<RecordedChanges> {
        steps::all_recorded(self, run)
    }

    /// When a record of a run was added or removed last; `None` if it has none.
    pub fn recorded_at(&self, run: &str) -> Option<SystemTime> {
        steps::recorded_at(self, run)
    }

    /// The merges and the recorded steps of a run, oldest first.
    pub fn merge_records(&self, run: &str) -> Vec<MergeRecord> {
        undo::merge_records(self, run)
    }

    fn step(&self, step: Step) {
        (self.on_step)(step);
    }

    fn keeps_worktrees_in_state(&self) -> bool {
        self.worktrees.parent() == Some(&*self.state)
    }

    fn paths(&self, run: &str, id: &str) -> WorkspacePaths {
        let run_name = run_name(run);
        let name = readable_name(id, &[run, id]);
        WorkspacePaths {
            run: run.to_owned(),
            id: id.to_owned(),
            worktree: self.worktrees.join(&run_name).join(&name),
            base: self.state.join("bases").join(&run_name).join(&name),
            undo: self.state.join("undo").join(&run_name),
            kept: self.state.join("kept").join(&run_name),
            name,
        }
    }

    /// A path in the state folder: relative to the parent of that folder if it is in the
    /// repository, so that it is right from there, else the whole path.
    fn display_path(&self, path: &Path) -> String {
        let parent = self.state.parent().unwrap_or(&self.state);
        if !self.keeps_worktrees_in_state() {
            return path.to_string_lossy().into_owned();
        }
        path.strip_prefix(parent).unwrap_or(path).to_string_lossy().into_owned()
    }
}

/// The paths in the state folder that belong to one workspace.
#[derive(Debug)]
struct WorkspacePaths {
    run: String,
    id: String,
    name: String,
    worktree: PathBuf,
    base: PathBuf,
    undo: PathBuf,
    kept: PathBuf,
}

impl WorkspacePaths {
    fn record_path(&self) -> PathBuf {
        self.base.join("workspace.json")
    }

    fn record(&self) -> Result<Option<metadata::Record>, Error> {
        let path = self.record_path();
        let record: Option<metadata::Record> = metadata::read(&path)?;
        match record {
            Some(record) if record.version != metadata::VERSION => {
                let why = format!(
                    "it has version {}, but this program supports version {}",
                    record.version,
                    metadata::VERSION
                );
                Err(Error::Damaged { path, why })
            }
            record => Ok(record),
        }
    }

    fn write(&self, record: &metadata::Record) -> Result<(), Error> {
        metadata::write(&self.record_path(), record)
    }

    fn folder(&self, record: &metadata::Record) -> PathBuf {
        if record.prefix.0.as_os_str().is_empty() {
            self.worktree.clone()
        } else {
            self.worktree.join(&record.prefix.0)
        }
    }

    fn scratch_repo(&self, record: &metadata::Record) -> scratch_repo::ScratchRepo {
        scratch_repo::ScratchRepo::new(&self.base.join("git"), record.excludes.as_ref())
    }

    fn not_open(&self) -> Error {
        Error::NotOpen { run: self.run.clone(), id: self.id.clone() }
    }
}

/// The name of the folder of a run. Run ids are normally valid names; any other text is converted.
pub fn run_name(run: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_plain =
        !run.is_empty() && run.len() <= 64 && !run.starts_with('-') && run.bytes().all(plain);
    if is_plain { run.to_owned() } else { readable_name(run, &[run]) }
}

/// A readable folder name for a text, with a hash of `parts` that makes it unique.
pub fn readable_name(text: &str, parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut name = String::new();
    for character in text.chars() {
        if name.len() >= 40 {
            break;
        }
        if character.is_ascii_alphanumeric() {
            name.push(character);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    let name = name.trim_end_matches('-');
    // The underscore keeps the name distinct from any unconverted run id.
    let hash = &hex::encode(hash.finalize())[..12];
    if name.is_empty() { format!("x_{hash}") } else { format!("{name}_{hash}") }
}

/// A path below the top, relative to the folder that the user works in. What lies above that folder
/// begins with `..`.
fn relative_to(prefix: &Path, path: &Path) -> String {
    let (mut ours, mut theirs) = (prefix.components().peekable(), path.components().peekable());
    while ours.peek().is_some() && ours.peek() == theirs.peek() {
        ours.next();
        theirs.next();
    }
    let mut display_path: PathBuf = ours.map(|_| Component::ParentDir).collect();
    display_path.extend(theirs);
    display_path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
