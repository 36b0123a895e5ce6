//! Snapshots of a work tree, and the changes between two of them.
//!
//! A [`Snapshot`] is the commit that HEAD points to and the current content of every path that
//! differs from it. Git determines these paths (one `git status` that takes no locks and writes
//! nothing); only they are read, and only when they may have changed. A path that differed once is
//! read from then on, so that committing or ignoring a file does not look like a change. Without
//! git, all files are read. The user's index, refs, stash and files are never modified, except by
//! [`Snapshotter::restore`].

mod changes;
mod commit_time;
mod compare;
mod entry;
mod git;
mod git_status;
mod ignored;
mod parse;
mod read_files;
mod repo_path;
mod restore;
mod saved;
mod store;
mod walk_files;

pub use git::Git;

use crate::git::GitError;
use entry::{Entry, GitPathStatus, Head, PathState, Repo, SnapshotData};
use git::{FsCapabilities, RepositoryLocation};
use git_status::{Listings, StatusReport};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use read_files::{Cache, read_files};
use repo_path::{RepoPath, canonicalize_existing, normalize, relative_to};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use store::Store;

/// The changes between two snapshots. Paths are relative to the folder; those above it begin with
/// `..`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The change of each file. A renamed file is listed twice, as deleted and added.
    pub files: BTreeMap<PathBuf, Change>,
    /// Files with the same bytes under another name: from, to.
    pub renamed: Vec<(PathBuf, PathBuf)>,
    /// What could not be determined, and why.
    pub notes: Vec<String>,
}

/// The change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// It exists now and did not before.
    Added,
    /// Its bytes, its mode or its kind differ.
    Modified,
    /// It existed before and does not now.
    Deleted,
}

/// The change of a file since a point in time, as far as its timestamps tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Since {
    /// It does not exist.
    Absent,
    /// It did not change.
    Untouched,
    /// It existed and was changed.
    Modified,
    /// It was created.
    Added,
}

/// Settings of a [`Snapshotter`].
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Files and folders that are never read, as absolute paths: published artifacts and the state
    /// folder.
    pub excluded: BTreeSet<PathBuf>,
    /// The folder that stores the contents of files that git does not have, so that they can be
    /// restored. With `None`, they are not stored.
    pub content_store: Option<PathBuf>,
    /// Globs of paths that are never reported as changed, relative to the folder. A glob without
    /// `/` matches at any depth.
    pub unreported: Vec<String>,
}

/// The state of a work tree at some time. It is small: paths that equal HEAD are not part of it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// A fingerprint: two snapshots with the same id have the same content. The same content may
    /// have two ids, one before a commit and one after it. `None` if the content is not known
    /// completely.
    pub id: Option<String>,
    /// When taking the snapshot began.
    pub taken: SystemTime,
    /// What could not be determined, and why.
    pub notes: Vec<String>,
    data: Arc<SnapshotData>,
}

/// A revision that is not available as a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("revision '{revision}' cannot be found: {reason}")]
pub struct RevisionError {
    /// The revision as it was given.
    pub revision: String,
    /// The message of git, or why git cannot be used.
    pub reason: String,
}

impl RevisionError {
    fn new(revision: &str, reason: &dyn std::fmt::Display) -> Self {
        Self { revision: revision.to_owned(), reason: reason.to_string() }
    }
}

/// Takes snapshots of a folder. All calls block. None fails because of the content of the folder.
#[derive(Debug)]
pub struct Snapshotter {
    folder: PathBuf,
    top: PathBuf,
    /// The folder, relative to the top.
    here: RepoPath,
    location: Option<RepositoryLocation>,
    git: Git,
    excluded: BTreeSet<RepoPath>,
    /// Files and folders that are part of snapshots even if git ignores them.
    watched: BTreeSet<RepoPath>,
    unreported: GlobSet,
    /// Problems found when the folder was opened.
    notes: Vec<String>,
    cache: Cache,
    listings: Listings,
    store: Store,
    /// The tree objects of commits.
    trees: HashMap<String, String>,
}

/// The message of git for a folder outside of a repository.
const NO_REPOSITORY: &str = "not a git repository";

impl Snapshotter {
    /// Opens a folder. Where git cannot be used, files are compared by content, and snapshots carry
    /// a note with the reason.
    pub fn open(folder: &Path, settings: Settings) -> Self {
        Self::open_with(folder, settings, Git::default())
    }

    /// Opens a folder with a specific git program.
    pub fn open_with(folder: &Path, settings: Settings, git: Git) -> Self {
        let folder = canonicalize_existing(
            &std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()),
        );
        let mut notes = Vec::new();
        let location = discover(&git, &folder).unwrap_or_else(|why| {
            notes.push(match &why {
                GitError::Failed { message, .. } if message.contains(NO_REPOSITORY) => {
                    "this is not a git repository, so files are compared by content".to_owned()
                }
                why => format!("git could not be used, so files are compared by content: {why}"),
            });
            None
        });
        let top = location.as_ref().map_or_else(|| folder.clone(), |location| location.top.clone());
        let here =
            folder.strip_prefix(&top).map_or(&b""[..], |here| here.as_os_str().as_bytes()).into();
        let unreported = glob_set(&settings.unreported, &mut notes);
        let mut snapshotter = Self {
            store: Store::new(settings.content_store.clone()),
            folder,
            top,
            here,
            location,
            git,
            excluded: BTreeSet::new(),
            watched: BTreeSet::new(),
            unreported,
            notes,
            cache: Cache::default(),
            listings: Listings::default(),
            trees: HashMap::new(),
        };
        // The content store is excluded wherever it is.
        for path in settings.excluded.into_iter().chain(settings.content_store) {
            snapshotter.exclude(path);
        }
        snapshotter
    }

    /// Excludes a file or folder from all further snapshots.
    pub fn exclude(&mut self, path: PathBuf) {
        let path = canonicalize_existing(&self.folder.join(path));
        // An excluded folder that contains the whole work tree does not exclude it.
        self.excluded.extend(path.strip_prefix(&self.top).ok().and_then(RepoPath::from_path));
    }

    /// The top of the repository. Without git, the folder itself.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// The folder with the links in its path resolved.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether git is used.
    pub fn is_git(&self) -> bool {
        self.location.is_some()
    }

    /// Takes a snapshot.
    pub fn snapshot(&mut self) -> Snapshot {
        let taken = SystemTime::now();
        let mut notes = self.notes.clone();
        let found = match &self.location {
            Some(location) => git_status::collect(&self.git, location, &mut self.listings)
                .unwrap_or_else(|error| {
                    notes.push(format!(
                        "git could not be used, so files are compared by content: {error}"
                    ));
                    self.walk()
                }),
            None => self.walk(),
        };
        let StatusReport { repos, mut status, notes: more, too_large } = found;
        notes.extend(more);
        if too_large {
            let data = Arc::new(SnapshotData { too_large, ..SnapshotData::default() });
            return Snapshot { id: None, taken, notes, data };
        }
        for name in self.watched_files(&mut notes) {
            status.entry(name).or_insert_with(|| GitPathStatus::new(Head::Lacks));
        }
        // Paths of earlier snapshots are read again, even if they are committed or ignored by now.
        for name in self.cache.names() {
            if !status.contains_key(name) {
                status.insert(
                    name.clone(),
                    GitPathStatus { dirty: false, ..GitPathStatus::new(Head::Unknown) },
                );
            }
        }
        status.retain(|name, _| !self.is_excluded(name));
        let names: Vec<&RepoPath> = status.keys().collect();
        let (states, more) = read_files(&self.top, &names, &mut self.cache, &self.store);
        notes.extend(more);
        let entries = std::iter::zip(status, states)
            .filter(|((_, status), state)| status.dirty || !state.is_gone())
            .map(|((name, status), state)| (name, Entry { state, status }))
            .collect();
        let data = SnapshotData { repos, entries, too_large };
        let id = Some(self.fingerprint(&data));
        Snapshot { id, taken, notes, data: Arc::new(data) }
    }

    /// A snapshot of a commit, as if it were checked out.
    ///
    /// # Errors
    ///
    /// There is no git repository, or git does not know the revision.
    pub fn revision(&mut self, revision: &str) -> Result<Snapshot, RevisionError> {
        let taken = SystemTime::now();
        let Some(location) = self.location.clone() else {
            let reason = self.notes.first().map_or("this is not a git repository", String::as_str);
            return Err(RevisionError::new(revision, &reason));
        };
        let wrong = |error: GitError| RevisionError::new(revision, &error);
        let commit = format!("{revision}^{{commit}}");
        let arguments = ["rev-parse", "--verify", "--end-of-options", &commit];
        let output = self.git.run(&location, &arguments).map_err(wrong)?;
        let head = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        let mut data = SnapshotData::default();
        let mut open =
            vec![(RepoPath::from(&b""[..]), Repo { head: Some(head), git_dir: location.git_dir })];
        let mut notes = self.notes.clone();
        while let Some((folder, repo)) = open.pop() {
            let location = self.location_of(&folder, &repo);
            let commit = repo.head.clone().unwrap_or_default();
            let output =
                match self.git.run(&location, &["ls-tree", "-r", "-z", "--full-tree", &commit]) {
                    Ok(output) => output,
                    Err(error) if folder.bytes().is_empty() => return Err(wrong(error)),
                    Err(error) => {
                        notes.push(format!("{folder}: not included at '{revision}': {error}"));
                        continue;
                    }
                };
            for (name, commit) in parse::committed(&output.stdout).submodules {
                let name = folder.join(name.bytes());
                if let Some(git_dir) = git_status::git_dir_of(&self.top.join(name.path())) {
                    open.push((name, Repo { head: Some(commit), git_dir }));
                }
            }
            // A file that is not checked out now would not have been checked out then.
            let unchecked = git_status::unchecked(&self.git, &location, &mut self.listings);
            for (name, blob) in unchecked.into_iter().flatten() {
                let name = folder.join(name.bytes());
                if self.top.join(name.path()).symlink_metadata().is_err() {
                    let status = GitPathStatus::new(Head::Has(blob));
                    data.entries.insert(name, Entry { state: PathState::Gone, status });
                }
            }
            data.repos.insert(folder, repo);
        }
        let id = Some(self.fingerprint(&data));
        Ok(Snapshot { id, taken, notes, data: Arc::new(data) })
    }

    fn walk(&self) -> StatusReport {
        let walked = walk_files::walk(&self.top, &RepoPath::from(&b""[..]));
        let mut notes = walked.notes;
        if walked.too_much {
            notes.push(format!(
                "too much to read: more than {} files or {} GiB; changes cannot be determined",
                walk_files::MAX_FILES,
                read_files::MAX_TOTAL_READ >> 30
            ));
        }
        let status =
            walked.files.into_iter().map(|name| (name, GitPathStatus::new(Head::Lacks))).collect();
        StatusReport { status, notes, too_large: walked.too_much, ..StatusReport::default() }
    }

    fn fingerprint(&mut self, data: &SnapshotData) -> String {
        let mut hash = Sha256::new();
        let sized = |hash: &mut Sha256, bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        for (folder, repo) in &data.repos {
            sized(&mut hash, folder.bytes());
            let tree = repo.head.as_ref().map(|head| self.tree_of(folder, repo, head));
            sized(&mut hash, tree.unwrap_or_default().as_bytes());
        }
        hash.update([0]);
        for (name, entry) in &data.entries {
            let absent = entry.state.is_gone() && entry.status.head == Head::Lacks;
            if entry.status.dirty && !absent && !self.is_unreported(name) {
                sized(&mut hash, name.bytes());
                entry.state.digest(&mut hash, self.file_mode());
            }
        }
        hex::encode(&hash.finalize()[..16])
    }

    /// The tree object of a commit, since amending a message changes no file. The commit itself if
    /// git does not return the tree.
    fn tree_of(&mut self, folder: &RepoPath, repo: &Repo, commit: &str) -> String {
        if let Some(tree) = self.trees.get(commit) {
            return tree.clone();
        }
        let revision = format!("{commit}^{{tree}}");
        let output =
            self.git.run(&self.location_of(folder, repo), &["rev-parse", "--verify", &revision]);
        let Ok(output) = output else { return commit.to_owned() };
        let tree = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        self.trees.insert(commit.to_owned(), tree.clone());
        tree
    }

    fn is_excluded(&self, name: &RepoPath) -> bool {
        !self.excluded.is_empty()
            && (self.excluded.contains(name)
                || name.folders().any(|folder| self.excluded.contains(&folder)))
    }

    fn is_unreported(&self, name: &RepoPath) -> bool {
        !self.unreported.is_empty() && self.unreported.is_match(relative_to(&self.here, name))
    }

    fn capabilities(&self) -> FsCapabilities {
        self.location
            .as_ref()
            .map_or_else(FsCapabilities::default, |location| location.capabilities)
    }

    fn file_mode(&self) -> bool {
        self.capabilities().file_mode
    }

    /// The location of a repository of a snapshot.
    fn location_of(&self, folder: &RepoPath, repo: &Repo) -> RepositoryLocation {
        let top =
            if folder.bytes().is_empty() { self.top.clone() } else { self.top.join(folder.path()) };
        RepositoryLocation { git_dir: repo.git_dir.clone(), top, capabilities: self.capabilities() }
    }
}

/// Finds the repository of a folder. `None` or an error if there is none that can be used.
fn discover(git: &Git, folder: &Path) -> Result<Option<RepositoryLocation>, GitError> {
    let arguments = ["rev-parse", "--is-inside-work-tree", "--show-cdup", "--absolute-git-dir"];
    let output = git.discover(folder, &arguments)?.stdout;
    // The last line is a path, which may contain line breaks.
    let mut lines = output.splitn(3, |byte| *byte == b'\n');
    let (inside, up, git_dir) = (lines.next(), lines.next(), lines.next());
    let (Some(b"true"), Some(up), Some(git_dir)) = (inside, up, git_dir) else {
        let message =
            "this is inside a bare repository or a .git folder, which has no work tree".to_owned();
        return Err(GitError::Failed { command: "rev-parse".to_owned(), message });
    };
    let git_dir = git_dir.strip_suffix(b"\n").unwrap_or(git_dir);
    let keys = r"^core\.(filemode|ignorecase|symlinks)$";
    // The exit code is 1 if none is set.
    let output = git.discover(folder, &["config", "-z", "--type=bool", "--get-regexp", keys]);
    let mut capabilities = FsCapabilities::default();
    for line in output.map(|output| output.stdout).unwrap_or_default().split(|byte| *byte == 0) {
        match line {
            b"core.filemode\nfalse" => capabilities.file_mode = false,
            b"core.ignorecase\ntrue" => capabilities.ignore_case = true,
            b"core.symlinks\nfalse" => capabilities.symlinks = false,
            _ => {}
        }
    }
    Ok(Some(RepositoryLocation {
        git_dir: PathBuf::from(OsStr::from_bytes(git_dir)),
        top: normalize(&folder.join(OsStr::from_bytes(up))),
        capabilities,
    }))
}

fn glob_set(globs: &[String], notes: &mut Vec<String>) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        let anywhere =
            if glob.trim_end_matches('/').contains('/') { String::new() } else { "**/".to_owned() };
        let folder = glob.strip_suffix('/').map(|folder| format!("{anywhere}{folder}/**"));
        let pattern = folder.unwrap_or_else(|| format!("{anywhere}{glob}"));
        match GlobBuilder::new(&pattern).literal_separator(true).build() {
            Ok(glob) => {
                set.add(glob);
            }
            Err(error) => notes.push(format!("the glob '{glob}' is ignored: {}", error.kind())),
        }
    }
    set.build().unwrap_or_else(|error| {
        notes.push(format!("the globs of unreported paths are ignored: {error}"));
        GlobSet::empty()
    })
}

/// A file name that is not in use.
fn temporary_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!(".counterfoil-{}-{count}-{now}.tmp", std::process::id())
}
