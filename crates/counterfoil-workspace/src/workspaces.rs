//! Folders of their own for those who write at the same time, and how their work comes back.
//!
//! A workspace is a git worktree that stands exactly as the user's work tree did when it was
//! opened: with uncommitted edits, deletions and new files. What it looked like then is its *base*.
//! Folding compares base, workspace and repository path by path and writes what changed into the
//! repository's work tree; if anything conflicts, nothing is written and the work is kept
//! as a patch. The index, branches, stash and settings of the user's repository are never touched;
//! all that appears there is an entry in `.git/worktrees`, which goes with the workspace.
//!
//! In the state folder: `worktrees/RUN/NAME` is the workspace, `bases/RUN/NAME` what is known of
//! it, `undo/RUN/NAME` what folding changed, `kept/RUN` the work that was not folded. Every call
//! may be repeated after a crash at any point.

mod copy;
mod disk;
mod file_list;
mod locate;
mod lock;
mod merge;
mod metadata;
mod open;
mod plan;
mod save_patch;
mod scratch_repo;
mod sweep;
mod three_way;
mod undo;

use crate::git;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The workspaces of one repository, kept in one state folder.
#[derive(Clone)]
pub struct Workspaces {
    state: PathBuf,
    repo: PathBuf,
    steps: Arc<dyn Fn(Step) + Send + Sync>,
}

/// A workspace that can be worked in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Where to work: the counterpart of the repository folder.
    pub folder: PathBuf,
    /// How it differs from what one would expect, and why.
    pub notes: Vec<String>,
}

/// What folding came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeOutcome {
    /// How many files of the repository were written or deleted.
    pub changed: u64,
    /// Files that stand in the way, sorted; relative to the repository folder. If there are any,
    /// nothing (more) was written.
    pub conflicts: Vec<String>,
    /// Where the work is kept that was not folded, relative to the folder around the state folder.
    pub kept: Option<String>,
    /// What else there is to know, with the reason of each conflict.
    pub notes: Vec<String>,
}

/// A workspace that belonged to nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweptWorkspace {
    /// The run it was of.
    pub run: String,
    /// Which of its workspaces.
    pub id: String,
    /// Where its work is kept, if there was any.
    pub kept: Option<String>,
    /// What could not be done, and why.
    pub notes: Vec<String>,
}

/// What undoing came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// How many files are again as they were before.
    pub restored: u64,
    /// Files that were changed since they were folded, sorted. If there are any, nothing was put
    /// back.
    pub changed_since: Vec<String>,
    /// What else there is to know.
    pub notes: Vec<String>,
}

/// What was folded once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeRecord {
    /// The workspace.
    pub id: String,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// How far it came.
    pub state: MergeRecordState,
    /// The files it changed, relative to the repository folder.
    pub files: Vec<MergedFile>,
}

/// How far a folding came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MergeRecordState {
    /// It is at work, or was when it was killed: folding again finishes it.
    Begun,
    /// All of it stands in the repository.
    Done,
    /// Somebody changed a file meanwhile: some of it stands in the repository.
    Stopped,
    /// It is being put back, or was when that was killed: undoing again finishes it.
    Undoing,
    /// It was put back.
    Undone,
}

/// What folding did to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedFile {
    /// Where it is.
    pub path: String,
    /// What became of it.
    pub change: crate::snapshot::Change,
}

/// A step on the way, told before the next one begins. Between any two we may be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// It is written down that a workspace will be made.
    Announced,
    /// Git knows the worktree; it is empty.
    Added,
    /// The files are there.
    Copied,
    /// The base is kept.
    Based,
    /// The workspace is open.
    Opened,
    /// What will be written is known.
    Compared,
    /// What stands in the repository, and what will, is on disk.
    Imaged,
    /// What will be done is on disk.
    Planned,
    /// Folding is decided; from here on it is finished rather than begun again.
    Decided,
    /// So many files are written or removed.
    Written(usize),
    /// All files are as they should be.
    Settled,
    /// The plan is done.
    Done,
    /// The work is kept as a patch.
    Kept,
    /// The outcome is on disk.
    Concluded,
    /// The folder is removed.
    Removed,
    /// Git has forgotten the worktree.
    Forgotten,
    /// It is written down that a folding will be put back.
    Undoing,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be used.
    #[error("cannot {what} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
    /// Git would not.
    #[error("{0}")]
    Git(String),
    /// Others are folding and do not come to an end.
    #[error("{} is held by another process for more than {seconds} s: is another run folding? If not, end the process that holds it", .lock.display())]
    Busy {
        /// What is locked.
        lock: PathBuf,
        /// How long we waited.
        seconds: u64,
    },
    /// There is no such workspace.
    #[error("there is no open workspace '{id}' of run {run}")]
    NotOpen {
        /// The run.
        run: String,
        /// The workspace.
        id: String,
    },
    /// Its folder was removed by somebody.
    #[error("the workspace {} is gone: somebody removed it, so there is nothing to fold; discard it", .folder.display())]
    Lost {
        /// Where it was.
        folder: PathBuf,
    },
    /// It is in the middle of being folded.
    #[error(
        "the workspace '{id}' of run {run} is being folded: fold it again to finish that first"
    )]
    Unfinished {
        /// The run.
        run: String,
        /// The workspace.
        id: String,
    },
    /// A folder that is too large to copy.
    #[error("{} has {limit}: a copy of it is not made; put what is not needed into .gitignore, or make it a git repository with a commit", .folder.display())]
    TooLarge {
        /// The folder.
        folder: PathBuf,
        /// What was exceeded.
        limit: String,
    },
    /// A file of ours does not say what it should.
    #[error("{} is damaged: {why}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

impl From<git::GitError> for Error {
    fn from(failure: git::GitError) -> Self {
        Self::Git(failure.to_string())
    }
}

/// An error at a path.
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
    /// Those of a repository folder, kept in a state folder. Nothing is made yet.
    pub fn new(state: &Path, repo: &Path) -> Self {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self { state: absolute(state), repo: absolute(repo), steps: Arc::new(|_| ()) }
    }

    /// The same, and somebody who is told each step.
    #[must_use]
    pub fn with_step_hook(self, steps: impl Fn(Step) + Send + Sync + 'static) -> Self {
        Self { steps: Arc::new(steps), ..self }
    }

    /// Where the worktree of a workspace is, or would be.
    pub fn path(&self, run: &str, id: &str) -> PathBuf {
        self.paths(run, id).worktree
    }

    /// Where to work in it: the counterpart of the repository folder, which may be a subfolder of
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

    /// Opens a workspace that looks as the repository does now, without the ignored files and those
    /// in `without` (absolute, or relative to the repository folder; a folder stands for all in
    /// it). One that is open already stays as it is.
    pub fn open(&self, run: &str, id: &str, without: &BTreeSet<PathBuf>) -> Result<Opened, Error> {
        open::open(self, run, id, without)
    }

    /// Brings the work of a workspace into the repository and removes the workspace. See [`MergeOutcome`]
    /// for what may come of it.
    pub fn merge_back(&self, run: &str, id: &str) -> Result<MergeOutcome, Error> {
        merge::merge_back(self, run, id)
    }

    /// Removes a workspace. Its work, if there is any, is kept as a patch: where.
    pub fn discard(&self, run: &str, id: &str) -> Result<Option<String>, Error> {
        save_patch::discard(self, run, id)
    }

    /// Removes workspaces that belong to nobody, whatever state a crash left them in; their work is
    /// kept as patches.
    pub fn sweep(&self, is_open: &dyn Fn(&str, &str) -> bool) -> Vec<SweptWorkspace> {
        sweep::sweep(self, is_open)
    }

    /// Puts back what folding a workspace changed, or all workspaces of a run, the newest first.
    /// All of it, or nothing.
    pub fn undo(&self, run: &str, id: Option<&str>) -> Result<Undone, Error> {
        undo::undo(self, run, id)
    }

    /// What was folded in a run, the oldest first.
    pub fn merge_records(&self, run: &str) -> Vec<MergeRecord> {
        undo::merge_records(self, run)
    }

    fn step(&self, step: Step) {
        (self.steps)(step);
    }

    fn paths(&self, run: &str, id: &str) -> WorkspacePaths {
        let run_name = run_name(run);
        let name = readable_name(id, &[run, id]);
        WorkspacePaths {
            run: run.to_owned(),
            id: id.to_owned(),
            worktree: self.state.join("worktrees").join(&run_name).join(&name),
            base: self.state.join("bases").join(&run_name).join(&name),
            undo: self.state.join("undo").join(&run_name),
            kept: self.state.join("kept").join(&run_name),
            name,
        }
    }

    /// A path of the state folder, for people.
    fn display_path(&self, path: &Path) -> String {
        let around = self.state.parent().unwrap_or(&self.state);
        path.strip_prefix(around).unwrap_or(path).to_string_lossy().into_owned()
    }
}

/// Where the things of one workspace are.
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
                    "it has version {}, and this program knows {}",
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

/// The name of a run's folder. Runs are named by us, but nothing here depends on it.
pub fn run_name(run: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_plain =
        !run.is_empty() && run.len() <= 64 && !run.starts_with('-') && run.bytes().all(plain);
    if is_plain { run.to_owned() } else { readable_name(run, &[run]) }
}

/// A name that can be read, and a hash that tells it from all others.
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
    // An underscore, so that no run of plain letters has the name of another.
    let hash = &hex::encode(hash.finalize())[..12];
    if name.is_empty() { format!("x_{hash}") } else { format!("{name}_{hash}") }
}

/// A path below the top as it is named in the folder that people work in; what lies above it begins
/// with `..`.
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
mod tests {
    use super::*;

    #[test]
    fn names_can_be_read_and_never_meet() {
        let workspaces = Workspaces::new(Path::new("/s"), Path::new("/r"));
        let name = |run: &str, id: &str| workspaces.path(run, id).to_string_lossy().into_owned();
        assert!(name("01J", "fix/2/api server").starts_with("/s/worktrees/01J/fix-2-api-server_"));
        let cases = [
            ("r", "a/b"),
            ("r", "a-b"),
            ("r", "a b"),
            ("r", ""),
            ("r", ".."),
            ("..", "a"),
            ("", "a"),
            ("r/a", "b"),
            ("ra", "b"),
            ("r", "é"),
            ("r", "è"),
        ];
        let names: BTreeSet<_> = cases.iter().map(|(run, id)| name(run, id)).collect();
        assert_eq!(names.len(), cases.len());
        for name in names {
            let parts: Vec<_> = Path::new(&name).components().skip(1).collect();
            assert_eq!(parts.len(), 4, "{name}");
            assert!(parts.iter().all(|part| matches!(part, Component::Normal(_))), "{name}");
        }
        assert!(name("r", &"long ".repeat(100)).len() < 100);
    }

    #[test]
    fn paths_are_named_from_the_folder() {
        let cases = [
            ("", "a/b", "a/b"),
            ("a", "a/b", "b"),
            ("a", "b", "../b"),
            ("a/b", "a/c/d", "../c/d"),
            ("a", "ab", "../ab"),
        ];
        for (prefix, path, display_path) in cases {
            assert_eq!(relative_to(Path::new(prefix), Path::new(path)), display_path);
        }
    }
}
