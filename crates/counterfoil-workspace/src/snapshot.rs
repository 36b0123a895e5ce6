//! What stands in a workspace, and what changed between two looks at it.
//!
//! A [`Snapshot`] is the commit that HEAD names and, for every path that differs from it, what
//! stands there now. Git says which those are (one `git status` that takes no locks and writes
//! nothing); we read only them, and only again when they may have changed. Paths that differed once
//! are looked at from then on, so that committing or ignoring a file does not make it seem changed.
//! Without git every file counts. The user's index, refs, stash and files are never touched, but by
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

/// What changed between two looks at a workspace. Paths are relative to its folder; those above it
/// begin with `..`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// What became of each file. A renamed one stands here twice, deleted and added.
    pub files: BTreeMap<PathBuf, Change>,
    /// The same bytes under another name: from, to.
    pub renamed: Vec<(PathBuf, PathBuf)>,
    /// What could not be seen, and why.
    pub notes: Vec<String>,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// It is there now and was not before.
    Added,
    /// Its bytes, its mode or its kind differ.
    Modified,
    /// It was there before and is not now.
    Deleted,
}

/// What became of a file since a time, as far as its own times tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Since {
    /// It is not there.
    Absent,
    /// Nothing of it changed.
    Untouched,
    /// It was there and something of it changed.
    Modified,
    /// It was made.
    Added,
}

/// How a workspace is looked at.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Files and folders that are ours, as absolute paths: artifacts we publish, the state folder.
    /// They are never looked at.
    pub without: BTreeSet<PathBuf>,
    /// Where contents of files that git does not have are kept, so that they can be put back;
    /// none: nothing is kept.
    pub keep: Option<PathBuf>,
    /// Globs of what is never reported as a change, relative to the folder. One without `/` holds
    /// at any depth.
    pub noise: Vec<String>,
}

/// A workspace as it stood at some time. It is small: what is as HEAD has it is not in it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// A fingerprint: two snapshots with the same have the same content. The same content may have
    /// two, one from before a commit and one from after it. None if it cannot be told.
    pub id: Option<String>,
    /// When looking began.
    pub taken: SystemTime,
    /// What could not be seen, and why.
    pub notes: Vec<String>,
    seen: Arc<SnapshotData>,
}

/// A folder that is looked at again and again. All calls block; none fails for what stands in the
/// folder.
#[derive(Debug)]
pub struct Snapshotter {
    folder: PathBuf,
    top: PathBuf,
    /// The folder below the top.
    here: RepoPath,
    place: Option<RepositoryLocation>,
    git: Git,
    excluded: BTreeSet<RepoPath>,
    noise: GlobSet,
    /// What was found wrong when it was opened.
    notes: Vec<String>,
    cache: Cache,
    listings: Listings,
    store: Store,
    /// The trees of commits.
    trees: HashMap<String, String>,
}

/// What git says of a folder in no repository.
const NO_REPOSITORY: &str = "not a git repository";

impl Snapshotter {
    /// Opens a folder. Where git cannot help, files are told apart by content, and snapshots have a
    /// note that says why.
    pub fn open(folder: &Path, settings: Settings) -> Self {
        Self::open_with(folder, settings, Git::default())
    }

    /// Opens a folder with a git of one's own choice.
    pub fn open_with(folder: &Path, settings: Settings, git: Git) -> Self {
        let folder = canonicalize_existing(
            &std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()),
        );
        let mut notes = Vec::new();
        let place = discover(&git, &folder).unwrap_or_else(|why| {
            notes.push(match &why {
                GitError::Failed { message, .. } if message.contains(NO_REPOSITORY) => {
                    "this is not a git repository: files are looked at one by one, by content"
                        .to_owned()
                }
                why => format!("looked at without git, file by file: {why}"),
            });
            None
        });
        let top = place.as_ref().map_or_else(|| folder.clone(), |place| place.top.clone());
        let here =
            folder.strip_prefix(&top).map_or(&b""[..], |here| here.as_os_str().as_bytes()).into();
        let noise = noise(&settings.noise, &mut notes);
        let mut tree = Self {
            store: Store::new(settings.keep.clone()),
            folder,
            top,
            here,
            place,
            git,
            excluded: BTreeSet::new(),
            noise,
            notes,
            cache: Cache::default(),
            listings: Listings::default(),
            trees: HashMap::new(),
        };
        // What we keep is ours wherever it is.
        for path in settings.without.into_iter().chain(settings.keep) {
            tree.exclude(path);
        }
        tree
    }

    /// From now on a file or folder is ours, and no snapshot sees it.
    pub fn exclude(&mut self, path: PathBuf) {
        let path = canonicalize_existing(&self.folder.join(path));
        // A folder of ours around all of the workspace does not make the workspace ours.
        self.excluded.extend(path.strip_prefix(&self.top).ok().and_then(RepoPath::from_path));
    }

    /// The top of the repository; the folder itself without git.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// The folder, with the links in its path followed.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether git helps.
    pub fn is_git(&self) -> bool {
        self.place.is_some()
    }

    /// Looks at the workspace.
    pub fn snapshot(&mut self) -> Snapshot {
        let taken = SystemTime::now();
        let mut notes = self.notes.clone();
        let found = match &self.place {
            Some(place) => git_status::collect(&self.git, place, &mut self.listings)
                .unwrap_or_else(|error| {
                    notes.push(format!("looked at without git, file by file: {error}"));
                    self.by_walking()
                }),
            None => self.by_walking(),
        };
        let StatusReport { repos, mut status, notes: more, too_large } = found;
        notes.extend(more);
        if too_large {
            let seen = Arc::new(SnapshotData { too_large, ..SnapshotData::default() });
            return Snapshot { id: None, taken, notes, seen };
        }
        // What was seen before is looked at again, also when it is committed or ignored by now.
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
        let seen = SnapshotData { repos, entries, too_large };
        let id = Some(self.fingerprint(&seen));
        Snapshot { id, taken, notes, seen: Arc::new(seen) }
    }

    /// A commit as if it stood in the work tree. The error names the revision and has git's words.
    pub fn revision(&mut self, revision: &str) -> Result<Snapshot, String> {
        let taken = SystemTime::now();
        let Some(place) = self.place.clone() else {
            let why = self.notes.first().map_or("this is not a git repository", String::as_str);
            return Err(format!("revision '{revision}' cannot be found: {why}"));
        };
        let wrong = |error: GitError| format!("revision '{revision}' cannot be found: {error}");
        let commit = format!("{revision}^{{commit}}");
        let arguments = ["rev-parse", "--verify", "--end-of-options", &commit];
        let output = self.git.run(&place, &arguments).map_err(wrong)?;
        let head = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        let mut seen = SnapshotData::default();
        let mut open =
            vec![(RepoPath::from(&b""[..]), Repo { head: Some(head), git_dir: place.git_dir })];
        let mut notes = self.notes.clone();
        while let Some((folder, repo)) = open.pop() {
            let place = self.location_of(&folder, &repo);
            let commit = repo.head.clone().unwrap_or_default();
            let output =
                match self.git.run(&place, &["ls-tree", "-r", "-z", "--full-tree", &commit]) {
                    Ok(output) => output,
                    Err(error) if folder.bytes().is_empty() => return Err(wrong(error)),
                    Err(error) => {
                        notes.push(format!("{folder}: not seen at '{revision}': {error}"));
                        continue;
                    }
                };
            for (name, commit) in parse::committed(&output.stdout).submodules {
                let name = folder.join(name.bytes());
                if let Some(git_dir) = git_status::git_dir_of(&self.top.join(name.path())) {
                    open.push((name, Repo { head: Some(commit), git_dir }));
                }
            }
            // What is not checked out now would not have been then.
            let unwatched = git_status::unwatched(&self.git, &place, &mut self.listings);
            for (name, blob) in unwatched.into_iter().flatten() {
                let name = folder.join(name.bytes());
                if self.top.join(name.path()).symlink_metadata().is_err() {
                    let status = GitPathStatus::new(Head::Has(blob));
                    seen.entries.insert(name, Entry { state: PathState::Gone, status });
                }
            }
            seen.repos.insert(folder, repo);
        }
        let id = Some(self.fingerprint(&seen));
        Ok(Snapshot { id, taken, notes, seen: Arc::new(seen) })
    }

    fn by_walking(&self) -> StatusReport {
        let walked = walk_files::walk(&self.top, &RepoPath::from(&b""[..]));
        let mut notes = walked.notes;
        if walked.too_much {
            notes.push(format!(
                "too much to look at: more than {} files or {} GiB; what changes cannot be told",
                walk_files::MAX_FILES,
                read_files::MAX_TOTAL_READ >> 30
            ));
        }
        let status =
            walked.files.into_iter().map(|name| (name, GitPathStatus::new(Head::Lacks))).collect();
        StatusReport { status, notes, too_large: walked.too_much, ..StatusReport::default() }
    }

    fn fingerprint(&mut self, seen: &SnapshotData) -> String {
        let mut hash = Sha256::new();
        let sized = |hash: &mut Sha256, bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        for (folder, repo) in &seen.repos {
            sized(&mut hash, folder.bytes());
            let tree = repo.head.as_ref().map(|head| self.tree_of(folder, repo, head));
            sized(&mut hash, tree.unwrap_or_default().as_bytes());
        }
        hash.update([0]);
        for (name, entry) in &seen.entries {
            let nothing = entry.state.is_gone() && entry.status.head == Head::Lacks;
            if entry.status.dirty && !nothing && !self.is_noise(name) {
                sized(&mut hash, name.bytes());
                entry.state.digest(&mut hash, self.file_mode());
            }
        }
        hex::encode(&hash.finalize()[..16])
    }

    /// The tree of a commit: amending a message changes no file. The commit itself if git does not
    /// say.
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

    fn is_noise(&self, name: &RepoPath) -> bool {
        !self.noise.is_empty() && self.noise.is_match(relative_to(&self.here, name))
    }

    fn capabilities(&self) -> FsCapabilities {
        self.place.as_ref().map_or_else(FsCapabilities::default, |place| place.capabilities)
    }

    fn file_mode(&self) -> bool {
        self.capabilities().file_mode
    }

    /// Where git is to be called for a repository of a snapshot.
    fn location_of(&self, folder: &RepoPath, repo: &Repo) -> RepositoryLocation {
        let top =
            if folder.bytes().is_empty() { self.top.clone() } else { self.top.join(folder.path()) };
        RepositoryLocation { git_dir: repo.git_dir.clone(), top, capabilities: self.capabilities() }
    }
}

/// Finds the repository that a folder is in; none or an error if there is none to work with.
fn discover(git: &Git, folder: &Path) -> Result<Option<RepositoryLocation>, GitError> {
    let arguments = ["rev-parse", "--is-inside-work-tree", "--show-cdup", "--absolute-git-dir"];
    let output = git.discover(folder, &arguments)?.stdout;
    // The last is a path, which may have line breaks in it.
    let mut lines = output.splitn(3, |byte| *byte == b'\n');
    let (inside, up, git_dir) = (lines.next(), lines.next(), lines.next());
    let (Some(b"true"), Some(up), Some(git_dir)) = (inside, up, git_dir) else {
        let message =
            "this is inside a bare repository or a .git folder, which has no work tree".to_owned();
        return Err(GitError::Failed { command: "rev-parse".to_owned(), message });
    };
    let git_dir = git_dir.strip_suffix(b"\n").unwrap_or(git_dir);
    let keys = r"^core\.(filemode|ignorecase|symlinks)$";
    // It ends with 1 if none is set.
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

fn noise(globs: &[String], notes: &mut Vec<String>) -> GlobSet {
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
            Err(error) => notes.push(format!("the glob '{glob}' is left out: {}", error.kind())),
        }
    }
    set.build().unwrap_or_else(|error| {
        notes.push(format!("the globs of what is not reported are left out: {error}"));
        GlobSet::empty()
    })
}

/// A name that no file has yet.
fn temporary() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!(".counterfoil-{}-{count}-{now}.tmp", std::process::id())
}
