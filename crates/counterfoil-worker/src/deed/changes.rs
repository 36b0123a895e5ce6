//! Looks at what changed since a revision: the working tree as it stands, with the files that git
//! does not know yet. Nothing of the user's is touched: what git has to write down for it is
//! written into an index of ours, outside of the repository.

use super::{Done, is_in, listed, literally, names, own_folders, patch};
use counterfoil_flow::ChangesWork;
use counterfoil_workspace::git::{GitCommand, GitError, GitOutput};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The largest patch.
const LARGEST: u64 = 8 << 20;
/// How often files that change while they are looked at are looked at again.
const LOOKS: usize = 3;
/// What git is told for every look, over what the user told it: the patch is for programs and
/// agents.
const SETTINGS: [&str; 4] = [
    "core.quotePath=false",
    "core.splitIndex=false",
    "core.untrackedCache=false",
    "diff.suppressBlankEmpty=false",
];
/// How the two sides are compared.
const COMPARED: [&str; 14] = [
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

/// Why it cannot be said what changed.
#[derive(Debug, thiserror::Error)]
enum Blind {
    #[error("a chunk of {0} tokens holds nothing; `split` is a number from 1 on")]
    NoChunk(i64),
    #[error("{folder} is not in a git repository with a working tree: {why}")]
    NoRepository { folder: String, why: GitError },
    #[error("'{0}' is not a revision of the repository; name a commit, a branch or a tag")]
    NoRevision(String),
    #[error("what changed since {since} is more than {} MiB; look at it since a later revision", LARGEST >> 20)]
    TooMuch { since: String },
    #[error(
        "the files changed while they were looked at, {LOOKS} times; try again when nobody works on them"
    )]
    Moving,
    #[error("{0}")]
    Git(#[from] GitError),
    #[error("cannot write into {}: {why}", path.display())]
    Disk { path: PathBuf, why: std::io::Error },
}

/// Looks at what changed. It blocks.
pub(crate) fn look(folder: &Path, state: &Path, work: &ChangesWork) -> Done {
    match seen(folder, state, work) {
        Ok(value) => Done::Given(value),
        Err(blind) => Done::Blocked(blind.to_string()),
    }
}

fn seen(folder: &Path, state: &Path, work: &ChangesWork) -> Result<serde_json::Value, Blind> {
    let split = match work.split {
        None => None,
        Some(tokens) if tokens > 0 => Some(usize::try_from(tokens).unwrap_or(usize::MAX)),
        Some(tokens) => return Err(Blind::NoChunk(tokens)),
    };
    let top = GitCommand::new(folder, ["rev-parse", "--show-toplevel"]).run();
    top.map_err(|why| Blind::NoRepository { folder: folder.display().to_string(), why })?;
    let since = revision(folder, &work.since)?;
    let mut last = None;
    for _ in 0..LOOKS {
        let look = Look { folder, own: own_folders(folder, state), index: Index::copy(folder)? };
        match look.files(&since.tree) {
            Ok(Some(files)) => return Ok(patch::result(&since.commit, &files, split)),
            Ok(None) => last = None,
            Err(Blind::Git(GitError::OutputTooLarge { .. })) => {
                let since = if since.commit.is_empty() { "the beginning" } else { &since.commit };
                return Err(Blind::TooMuch { since: since.to_owned() });
            }
            // A file that went away between two questions is such an error, too.
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or(Blind::Moving))
}

/// What the working tree is held against.
struct Since {
    /// The name of the commit; empty if it is held against nothing.
    commit: String,
    /// The name of what is compared.
    tree: String,
}

fn revision(folder: &Path, named: &str) -> Result<Since, Blind> {
    let named = named.trim();
    // HEAD of a repository without a commit is nothing yet.
    if named.is_empty() || (named == "HEAD" && is_unborn(folder)?) {
        return Ok(Since { commit: String::new(), tree: nothing(folder)? });
    }
    let unknown = || Blind::NoRevision(named.to_owned());
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

/// The name of the tree without files.
pub(super) fn nothing(folder: &Path) -> Result<String, GitError> {
    let answer = GitCommand::new(folder, ["hash-object", "-t", "tree", "--stdin"])
        .stdin(Vec::new())
        .run()?;
    Ok(answer.line().to_string_lossy().into_owned())
}

/// An index of ours, gone when nobody looks any more.
struct Index {
    home: tempfile::TempDir,
}

impl Index {
    /// The user's index as it stands.
    fn copy(folder: &Path) -> Result<Self, Blind> {
        let home = tempfile::Builder::new().prefix("counterfoil-").tempdir();
        let home = home.map_err(|why| Blind::Disk { path: std::env::temp_dir(), why })?;
        let index = Self { home };
        let theirs = GitCommand::new(folder, ["rev-parse", "--git-path", "index"]).run()?.line();
        match copied(&folder.join(theirs), &index.path()) {
            Ok(()) => {}
            // Nothing was ever added.
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => {}
            Err(why) => return Err(Blind::Disk { path: index.path(), why }),
        }
        Ok(index)
    }

    fn path(&self) -> PathBuf {
        self.home.path().join("index")
    }
}

/// Copies an index with its time: git tells by it which files may have changed since without
/// looking so.
fn copied(from: &Path, to: &Path) -> std::io::Result<()> {
    let (mut theirs, mut ours) = (File::open(from)?, File::create(to)?);
    let written = theirs.metadata()?.modified()?;
    std::io::copy(&mut theirs, &mut ours)?;
    ours.set_modified(written)
}

/// One look at the working tree.
struct Look<'a> {
    folder: &'a Path,
    /// What is no part of the work.
    own: Vec<Vec<u8>>,
    index: Index,
}

impl Look<'_> {
    fn call<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> GitCommand {
        let call = GitCommand::new(self.folder, arguments).env("GIT_INDEX_FILE", self.index.path());
        SETTINGS.into_iter().fold(call, GitCommand::config)
    }

    /// The files that changed; none if they do not hold still.
    fn files(&self, since: &str) -> Result<Option<Vec<patch::File>>, Blind> {
        let settled = self.settle()?;
        self.make_known(settled)?;
        let raw = self.compare(&["--raw", "-z", "--no-abbrev"], since)?;
        let Some(records) = patch::records(&raw.stdout) else { return Ok(None) };
        let text = self.compare(&["--patch", "--unified=3", "--inter-hunk-context=0"], since)?;
        Ok(patch::pair(records, &text.stdout))
    }

    /// Files in the middle of a merge are looked at as they stand: git is made to forget their
    /// sides. Their names.
    fn settle(&self) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let unmerged = self.call(["ls-files", "--unmerged", "-z"]).run()?;
        let name = |entry: &[u8]| {
            Some(entry[entry.iter().position(|byte| *byte == b'\t')? + 1..].to_vec())
        };
        let settled: BTreeSet<Vec<u8>> = names(&unmerged.stdout).filter_map(name).collect();
        if !settled.is_empty() {
            self.call(["update-index", "--force-remove", "-z", "--stdin"])
                .stdin(listed(&settled))
                .run()?;
        }
        Ok(settled)
    }

    /// Files that git does not know are told to it by their names; what is in them is not written
    /// anywhere.
    fn make_known(&self, mut new: BTreeSet<Vec<u8>>) -> Result<(), GitError> {
        let is_there = |name: &Vec<u8>| {
            let meta = self.folder.join(OsStr::from_bytes(name)).symlink_metadata();
            meta.is_ok_and(|meta| !meta.is_dir())
        };
        new.retain(is_there);
        let others = self.call(["ls-files", "--others", "--exclude-standard", "-z"]).run()?;
        // One that ends so is a repository of its own.
        new.extend(names(&others.stdout).filter(|name| !name.ends_with(b"/")).map(<[u8]>::to_vec));
        new.retain(|name| !self.own.iter().any(|own| is_in(name, own)));
        if new.is_empty() {
            return Ok(());
        }
        let add =
            ["add", "--force", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul"];
        self.call(add).stdin(literally(&new)).run()?;
        Ok(())
    }

    fn compare(&self, form: &[&str], since: &str) -> Result<GitOutput, GitError> {
        let mut call = self.call(COMPARED).max_output(LARGEST);
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
