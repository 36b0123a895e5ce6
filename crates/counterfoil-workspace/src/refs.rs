//! The refs of a repository at some time, so that it can be told later which commits are new and
//! which refs moved.

use crate::git::{GitCommand, GitError, GitOutput, repository_top};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// How long git may take to list commits, and how many bytes it may write: ten million objects.
const LIST_TIMEOUT: Duration = Duration::from_mins(1);
const MAX_LISTED_BYTES: u64 = 512 << 20;

/// How many bytes of the list of commits without parents are compared.
const MAX_SHALLOW: u64 = 16 << 20;

/// Settings of git that make it read commits themselves. An agent could forge what is derived from
/// them to make an old commit look new.
pub const READ_COMMITS_THEMSELVES: [&str; 2] =
    ["core.commitGraph=false", "core.multiPackIndex=false"];

/// A name that does not name one commit.
#[derive(Debug, thiserror::Error)]
pub enum CommitNameError {
    /// Git knows no such commit.
    #[error("'{0}' is not a revision of the repository; name a commit, a branch or a tag")]
    Unknown(String),
    /// A branch, a tag and a remote branch can have the same name. Git would prefer the tag, and an
    /// agent can make one.
    #[error("'{name}' names {}; write one of them in full", .refs.join(" and "))]
    Ambiguous {
        /// The name.
        name: String,
        /// The refs that have it.
        refs: Vec<String>,
    },
    /// Git failed.
    #[error("{0}")]
    Git(#[from] GitError),
}

/// The id of the commit that a name means in the repository around a folder.
///
/// # Errors
///
/// The name means no commit, or more than one.
pub fn commit_named(folder: &Path, name: &str) -> Result<String, CommitNameError> {
    find_commit(name, |arguments| GitCommand::new(folder, arguments).output())
}

/// The id of the commit that a name means, given a function that runs git.
pub(crate) fn find_commit(
    name: &str,
    git: impl Fn(&[&str]) -> Result<GitOutput, GitError>,
) -> Result<String, CommitNameError> {
    let unknown = || CommitNameError::Unknown(name.to_owned());
    if name.starts_with('-') || name.contains('\0') {
        return Err(unknown());
    }
    let refs = ["heads", "tags", "remotes"].map(|kind| format!("refs/{kind}/{name}"));
    let listed = git(&["for-each-ref", "--format=%(refname)", &refs[0], &refs[1], &refs[2]])?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let is_it = |found: &&str| refs.iter().any(|it| it == found);
    let found: Vec<String> = listed.lines().filter(is_it).map(str::to_owned).collect();
    if found.len() > 1 {
        return Err(CommitNameError::Ambiguous { name: name.to_owned(), refs: found });
    }
    let commit = format!("{name}^{{commit}}");
    let output = git(&["rev-parse", "-q", "--verify", "--end-of-options", &commit])?;
    if !output.ok() {
        return Err(unknown());
    }
    Ok(output.line().to_string_lossy().into_owned())
}

/// The refs of a repository at some time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refs {
    /// The object of each ref, by its full name. `HEAD` is that of the work tree.
    pub objects: BTreeMap<String, String>,
    /// The digest of the list of commits whose parents are left out; none in a complete repository.
    pub shallow: Option<String>,
    /// The commits that the repository has and that no ref reaches: those that were amended, dropped
    /// or stashed, or are checked out elsewhere. None if they are not known.
    #[serde(default)]
    pub unreached: Option<BTreeSet<String>>,
}

impl Refs {
    /// Reads the refs of the repository around a folder, and the commits that they do not reach. None
    /// outside of a repository. It takes about a second for a million objects.
    ///
    /// # Errors
    ///
    /// Git cannot read them.
    pub fn read(folder: &Path) -> Result<Option<Self>, GitError> {
        let Some(refs) = Self::read_names(folder)? else { return Ok(None) };
        let unreached = Some(unreached_commits(folder, &refs)?);
        Ok(Some(Self { unreached, ..refs }))
    }

    /// Reads the refs of the repository around a folder only. None outside of a repository.
    ///
    /// # Errors
    ///
    /// Git cannot read them.
    pub fn read_names(folder: &Path) -> Result<Option<Self>, GitError> {
        if repository_top(folder).is_none() {
            return Ok(None);
        }
        let list = ["for-each-ref", "--format=%(objectname) %(refname)"];
        let listed = GitCommand::new(folder, list).run()?;
        let text = String::from_utf8_lossy(&listed.stdout);
        let mut objects: BTreeMap<String, String> = text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(object, name)| (name.to_owned(), object.to_owned()))
            .collect();
        if let Some(head) = crate::git::head(folder) {
            objects.insert("HEAD".to_owned(), head);
        }
        let path = ["rev-parse", "--path-format=absolute", "--git-path", "shallow"];
        let path = GitCommand::new(folder, path).run()?.line();
        let shallow = digest(Path::new(&path));
        Ok(Some(Self { objects, shallow, unreached: None }))
    }

    /// The objects that refs point to.
    pub fn tips(&self) -> BTreeSet<&str> {
        self.objects.values().map(String::as_str).collect()
    }

    /// The names of the refs that differ, in order. `HEAD` is left out: it follows a branch.
    pub fn moved<'a>(&'a self, now: &'a Self) -> BTreeSet<&'a str> {
        let names = self.objects.keys().chain(now.objects.keys());
        let moved = names.filter(|name| self.objects.get(*name) != now.objects.get(*name));
        moved.map(String::as_str).filter(|name| *name != "HEAD").collect()
    }
}

/// The commits of a repository that no ref reaches. All objects are listed, since what keeps such a
/// commit (a reflog, another worktree, nothing at all) can be removed afterwards.
fn unreached_commits(folder: &Path, refs: &Refs) -> Result<BTreeSet<String>, GitError> {
    let list = |arguments: &[&str], stdin: String| {
        let command = GitCommand::new(folder, arguments)
            .env("GIT_GRAFT_FILE", "/dev/null")
            .stdin(stdin.into_bytes())
            .timeout(LIST_TIMEOUT)
            .max_output(MAX_LISTED_BYTES);
        READ_COMMITS_THEMSELVES.into_iter().fold(command, GitCommand::config).run()
    };
    let format = "--batch-check=%(objectname) %(objecttype)";
    let every = ["cat-file", "--batch-all-objects", "--unordered", format];
    let all = list(&every, String::new())?;
    let mut commits: BTreeSet<String> = all
        .stdout
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.strip_suffix(b" commit"))
        .map(|id| String::from_utf8_lossy(id).into_owned())
        .collect();
    let tips: String = refs.tips().into_iter().flat_map(|tip| [tip, "\n"]).collect();
    let reached = list(&["rev-list", "--stdin"], tips)?;
    for id in reached.stdout.split(|byte| *byte == b'\n') {
        commits.remove(String::from_utf8_lossy(id).as_ref());
    }
    Ok(commits)
}

/// The digest of a file and its length; none if it does not exist. What is not a regular file is never
/// opened.
fn digest(path: &Path) -> Option<String> {
    let meta = path.metadata().ok()?;
    let mut bytes = Vec::new();
    if meta.is_file() {
        File::open(path).ok()?.take(MAX_SHALLOW).read_to_end(&mut bytes).ok()?;
    }
    Some(format!("{}-{}", hex::encode(Sha256::digest(&bytes)), meta.len()))
}
