//! Reads the changes of the work tree since a revision, including untracked files. The user's index
//! is not touched: git works with a copy of it outside of the repository.

use super::merge_base::{MERGE_BASE, NoMergeBase, merge_base};
use super::{BuiltinOutcome, is_in, literal_pathspecs, names, nul_list, patch, state_folders};
use counterfoil_flow::ChangesWork;
use counterfoil_workspace::git::{GitCommand, GitError, GitOutput};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The maximum size of a patch.
const MAX_BYTES: u64 = 8 << 20;
/// How often the changes are read again if files change in the meantime.
const MAX_TRIES: usize = 3;
/// Settings of git that override the user's: the patch is for programs and agents.
const SETTINGS: [&str; 4] = [
    "core.quotePath=false",
    "core.splitIndex=false",
    "core.untrackedCache=false",
    "diff.suppressBlankEmpty=false",
];
/// The command that compares the two sides.
const DIFF: [&str; 14] = [
    "diff",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--relative",
    "--find-renames",
    "-l1000",
    "-O/dev/null",
    "--diff-algorithm=default",
    "--indent-heuristic",
    "--submodule=short",
    "--ignore-submodules=untracked",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

/// Why the changes cannot be read.
#[derive(Debug, thiserror::Error)]
enum ChangesError {
    #[error("a chunk cannot have {0} tokens; `split` must be at least 1")]
    NoChunk(i64),
    #[error("{folder} is not in a git repository with a working tree: {why}")]
    NoRepository { folder: String, why: GitError },
    #[error("'{0}' is not a revision of the repository; name a commit, a branch or a tag")]
    NoRevision(String),
    #[error("{0}")]
    NoMergeBase(#[from] NoMergeBase),
    #[error("the changes since {since} are larger than {} MiB; choose a later revision", MAX_BYTES >> 20)]
    TooMuch { since: String },
    #[error(
        "the files changed while they were read, {MAX_TRIES} times; try again when nobody works on them"
    )]
    Moving,
    #[error("{0}")]
    Git(#[from] GitError),
    #[error("cannot write into {}: {why}", path.display())]
    Disk { path: PathBuf, why: std::io::Error },
}

/// Reads the changes. It blocks.
pub(crate) fn read(folder: &Path, state: &Path, work: &ChangesWork) -> BuiltinOutcome {
    match read_changes(folder, state, work) {
        Ok(value) => BuiltinOutcome::Value(value),
        Err(error) => BuiltinOutcome::Blocked(error.to_string()),
    }
}

fn read_changes(
    folder: &Path,
    state: &Path,
    work: &ChangesWork,
) -> Result<serde_json::Value, ChangesError> {
    let split = match work.split {
        None => None,
        Some(tokens) if tokens > 0 => Some(usize::try_from(tokens).unwrap_or(usize::MAX)),
        Some(tokens) => return Err(ChangesError::NoChunk(tokens)),
    };
    let top = GitCommand::new(folder, ["rev-parse", "--show-toplevel"]).run();
    top.map_err(|why| ChangesError::NoRepository { folder: folder.display().to_string(), why })?;
    let since = revision(folder, &work.since)?;
    let mut last = None;
    for _ in 0..MAX_TRIES {
        let reader = ChangesReader {
            folder,
            own: state_folders(folder, state),
            index: Index::copy(folder)?,
        };
        match reader.files(&since.tree) {
            Ok(Some(files)) => return Ok(patch::result(&since.commit, &files, split)),
            Ok(None) => last = None,
            Err(ChangesError::Git(GitError::OutputTooLarge { .. })) => {
                let since = if since.commit.is_empty() { "the beginning" } else { &since.commit };
                return Err(ChangesError::TooMuch { since: since.to_owned() });
            }
            // A file that was deleted between two commands causes such an error, too.
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or(ChangesError::Moving))
}

/// The revision that the work tree is compared with.
struct Since {
    /// The commit; empty if everything counts as changed.
    commit: String,
    /// The tree to compare with.
    tree: String,
}

fn revision(folder: &Path, named: &str) -> Result<Since, ChangesError> {
    let named = named.trim();
    // HEAD of a repository without a commit means the empty tree.
    let is_head = || matches!(named, "HEAD" | MERGE_BASE);
    if named.is_empty() || (is_head() && is_unborn(folder)?) {
        return Ok(Since { commit: String::new(), tree: empty_tree(folder)? });
    }
    if named == MERGE_BASE {
        let commit = merge_base(folder)?;
        return Ok(Since { tree: commit.clone(), commit });
    }
    let unknown = || ChangesError::NoRevision(named.to_owned());
    if named.starts_with('-') || named.contains('\0') {
        return Err(unknown());
    }
    let commit = format!("{named}^{{commit}}");
    let found = GitCommand::new(folder, ["rev-parse", "-q", "--verify", &commit]).output()?;
    if !found.ok() {
        return Err(unknown());
    }
    let commit = found.line().to_string_lossy().into_owned();
    Ok(Since { tree: commit.clone(), commit })
}

/// Whether the repository has a branch and no commit on it.
pub(super) fn is_unborn(folder: &Path) -> Result<bool, GitError> {
    let known =
        GitCommand::new(folder, ["rev-parse", "-q", "--verify", "HEAD^{commit}"]).output()?.ok();
    Ok(!known && GitCommand::new(folder, ["symbolic-ref", "-q", "HEAD"]).output()?.ok())
}

/// The hash of the empty tree.
pub(super) fn empty_tree(folder: &Path) -> Result<String, GitError> {
    let answer = GitCommand::new(folder, ["hash-object", "-t", "tree", "--stdin"])
        .stdin(Vec::new())
        .run()?;
    Ok(answer.line().to_string_lossy().into_owned())
}

/// A copy of the index, deleted when it is dropped.
struct Index {
    home: tempfile::TempDir,
}

impl Index {
    /// Copies the user's index.
    fn copy(folder: &Path) -> Result<Self, ChangesError> {
        let home = tempfile::Builder::new().prefix("counterfoil-").tempdir();
        let home = home.map_err(|why| ChangesError::Disk { path: std::env::temp_dir(), why })?;
        let index = Self { home };
        let theirs = GitCommand::new(folder, ["rev-parse", "--git-path", "index"]).run()?.line();
        match copy_with_mtime(&folder.join(theirs), &index.path()) {
            Ok(()) => {}
            // A repository without any added file has no index.
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => {}
            Err(why) => return Err(ChangesError::Disk { path: index.path(), why }),
        }
        Ok(index)
    }

    fn path(&self) -> PathBuf {
        self.home.path().join("index")
    }
}

/// Copies an index with its modification time, from which git derives the files that it has to read
/// again.
fn copy_with_mtime(from: &Path, to: &Path) -> std::io::Result<()> {
    let (mut theirs, mut ours) = (File::open(from)?, File::create(to)?);
    let written = theirs.metadata()?.modified()?;
    std::io::copy(&mut theirs, &mut ours)?;
    ours.set_modified(written)
}

/// Reads the work tree once.
struct ChangesReader<'a> {
    folder: &'a Path,
    /// The state folders, which are not part of the work.
    own: Vec<Vec<u8>>,
    index: Index,
}

impl ChangesReader<'_> {
    fn call<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> GitCommand {
        let call = GitCommand::new(self.folder, arguments).env("GIT_INDEX_FILE", self.index.path());
        SETTINGS.into_iter().fold(call, GitCommand::config)
    }

    /// The changed files; `None` if they changed while they were read.
    fn files(&self, since: &str) -> Result<Option<Vec<patch::File>>, ChangesError> {
        let unmerged = self.remove_unmerged()?;
        self.add_untracked(unmerged)?;
        let raw = self.compare(&["--raw", "-z", "--no-abbrev"], since)?;
        let Some(records) = patch::records(&raw.stdout) else { return Ok(None) };
        let text = self.compare(&["--patch", "--unified=3", "--inter-hunk-context=0"], since)?;
        Ok(patch::pair(records, &text.stdout))
    }

    /// Removes unmerged entries from the index, so that git compares the files in the work tree.
    /// Returns their names.
    fn remove_unmerged(&self) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let unmerged = self.call(["ls-files", "--unmerged", "-z"]).run()?;
        let name = |entry: &[u8]| {
            Some(entry[entry.iter().position(|byte| *byte == b'\t')? + 1..].to_vec())
        };
        let files: BTreeSet<Vec<u8>> = names(&unmerged.stdout).filter_map(name).collect();
        if !files.is_empty() {
            self.call(["update-index", "--force-remove", "-z", "--stdin"])
                .stdin(nul_list(&files))
                .run()?;
        }
        Ok(files)
    }

    /// Adds untracked files to the index by name. Their content is not stored.
    fn add_untracked(&self, mut new: BTreeSet<Vec<u8>>) -> Result<(), GitError> {
        let exists = |name: &Vec<u8>| {
            let meta = self.folder.join(OsStr::from_bytes(name)).symlink_metadata();
            meta.is_ok_and(|meta| !meta.is_dir())
        };
        new.retain(exists);
        let others = self.call(["ls-files", "--others", "--exclude-standard", "-z"]).run()?;
        // A name that ends with `/` is a nested repository.
        new.extend(names(&others.stdout).filter(|name| !name.ends_with(b"/")).map(<[u8]>::to_vec));
        new.retain(|name| !self.own.iter().any(|own| is_in(name, own)));
        if new.is_empty() {
            return Ok(());
        }
        let add =
            ["add", "--force", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul"];
        self.call(add).stdin(literal_pathspecs(&new)).run()?;
        Ok(())
    }

    fn compare(&self, form: &[&str], since: &str) -> Result<GitOutput, GitError> {
        let mut call = self.call(DIFF).max_output(MAX_BYTES);
        for word in form.iter().chain(&[since, "--", "."]) {
            call = call.arg(word);
        }
        for own in &self.own {
            let mut spec = OsString::from(":(exclude,literal)").into_vec();
            spec.extend_from_slice(own);
            call = call.arg(OsStr::from_bytes(&spec));
        }
        call.run()
    }
}
