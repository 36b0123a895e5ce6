//! What stands in a workspace, and what changed between two looks at it.
//!
//! A [`Snapshot`] is the commit that HEAD names and, for every path that differs from it, what
//! stands there now. Git says which those are (one `git status` that takes no locks and writes
//! nothing); we read only them, and only again when they may have changed. Paths that differed once
//! are looked at from then on, so that committing or ignoring a file does not make it seem changed.
//! Without git every file counts. The user's index, refs, stash and files are never touched, but by
//! [`Tree::restore`].

mod changes;
mod entry;
mod gather;
mod git;
mod ignored;
mod judge;
mod look;
mod name;
mod parse;
mod restore;
mod store;
mod walk;
mod when;

pub use git::Git;

use crate::git::Failure;
use entry::{Entry, Head, Repo, Seen, Thing, Told};
use gather::{Found, Listings};
use git::{Abilities, Place};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use look::{Cache, look};
use name::{Name, real, seen_from, tidy};
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
    seen: Arc<Seen>,
}

/// A folder that is looked at again and again. All calls block; none fails for what stands in the
/// folder.
#[derive(Debug)]
pub struct Tree {
    folder: PathBuf,
    top: PathBuf,
    /// The folder below the top.
    here: Name,
    place: Option<Place>,
    git: Git,
    ours: BTreeSet<Name>,
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

impl Tree {
    /// Opens a folder. Where git cannot help, files are told apart by content, and snapshots have a
    /// note that says why.
    pub fn open(folder: &Path, settings: Settings) -> Self {
        Self::open_with(folder, settings, Git::default())
    }

    /// Opens a folder with a git of one's own choice.
    pub fn open_with(folder: &Path, settings: Settings, git: Git) -> Self {
        let folder = real(&std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()));
        let mut notes = Vec::new();
        let place = discover(&git, &folder).unwrap_or_else(|why| {
            notes.push(match &why {
                Failure::Refused { words, .. } if words.contains(NO_REPOSITORY) => {
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
            ours: BTreeSet::new(),
            noise,
            notes,
            cache: Cache::default(),
            listings: Listings::default(),
            trees: HashMap::new(),
        };
        // What we keep is ours wherever it is.
        for path in settings.without.into_iter().chain(settings.keep) {
            tree.note_ours(path);
        }
        tree
    }

    /// From now on a file or folder is ours, and no snapshot sees it.
    pub fn note_ours(&mut self, path: PathBuf) {
        let path = real(&self.folder.join(path));
        // A folder of ours around all of the workspace does not make the workspace ours.
        self.ours.extend(path.strip_prefix(&self.top).ok().and_then(Name::of));
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
            Some(place) => {
                gather::gather(&self.git, place, &mut self.listings).unwrap_or_else(|trouble| {
                    notes.push(format!("looked at without git, file by file: {trouble}"));
                    self.by_walking()
                })
            }
            None => self.by_walking(),
        };
        let Found { repos, mut told, notes: more, blind } = found;
        notes.extend(more);
        if blind {
            let seen = Arc::new(Seen { blind, ..Seen::default() });
            return Snapshot { id: None, taken, notes, seen };
        }
        // What was seen before is looked at again, also when it is committed or ignored by now.
        for name in self.cache.names() {
            if !told.contains_key(name) {
                told.insert(name.clone(), Told { dirty: false, ..Told::new(Head::Unknown) });
            }
        }
        told.retain(|name, _| !self.is_ours(name));
        let names: Vec<&Name> = told.keys().collect();
        let (things, more) = look(&self.top, &names, &mut self.cache, &self.store);
        notes.extend(more);
        let entries = std::iter::zip(told, things)
            .filter(|((_, told), thing)| told.dirty || !thing.is_gone())
            .map(|((name, told), thing)| (name, Entry { thing, told }))
            .collect();
        let seen = Seen { repos, entries, blind };
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
        let wrong = |trouble: Failure| format!("revision '{revision}' cannot be found: {trouble}");
        let commit = format!("{revision}^{{commit}}");
        let arguments = ["rev-parse", "--verify", "--end-of-options", &commit];
        let said = self.git.ask(&place, &arguments).map_err(wrong)?;
        let head = String::from_utf8_lossy(&said.stdout).trim_end().to_owned();
        let mut seen = Seen::default();
        let mut open =
            vec![(Name::from(&b""[..]), Repo { head: Some(head), git_dir: place.git_dir })];
        let mut notes = self.notes.clone();
        while let Some((folder, repo)) = open.pop() {
            let place = self.place_of(&folder, &repo);
            let commit = repo.head.clone().unwrap_or_default();
            let said = match self.git.ask(&place, &["ls-tree", "-r", "-z", "--full-tree", &commit])
            {
                Ok(said) => said,
                Err(trouble) if folder.bytes().is_empty() => return Err(wrong(trouble)),
                Err(trouble) => {
                    notes.push(format!("{folder}: not seen at '{revision}': {trouble}"));
                    continue;
                }
            };
            for (name, commit) in parse::committed(&said.stdout).submodules {
                let name = folder.join(name.bytes());
                if let Some(git_dir) = gather::git_dir_of(&self.top.join(name.path())) {
                    open.push((name, Repo { head: Some(commit), git_dir }));
                }
            }
            // What is not checked out now would not have been then.
            let unwatched = gather::unwatched(&self.git, &place, &mut self.listings);
            for (name, blob) in unwatched.into_iter().flatten() {
                let name = folder.join(name.bytes());
                if self.top.join(name.path()).symlink_metadata().is_err() {
                    let told = Told::new(Head::Has(blob));
                    seen.entries.insert(name, Entry { thing: Thing::Gone, told });
                }
            }
            seen.repos.insert(folder, repo);
        }
        let id = Some(self.fingerprint(&seen));
        Ok(Snapshot { id, taken, notes, seen: Arc::new(seen) })
    }

    fn by_walking(&self) -> Found {
        let walked = walk::walk(&self.top, &Name::from(&b""[..]));
        let mut notes = walked.notes;
        if walked.too_much {
            notes.push(format!(
                "too much to look at: more than {} files or {} GiB; what changes cannot be told",
                walk::MOST_FILES,
                look::MOST_READ >> 30
            ));
        }
        let told = walked.files.into_iter().map(|name| (name, Told::new(Head::Lacks))).collect();
        Found { told, notes, blind: walked.too_much, ..Found::default() }
    }

    fn fingerprint(&mut self, seen: &Seen) -> String {
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
            let nothing = entry.thing.is_gone() && entry.told.head == Head::Lacks;
            if entry.told.dirty && !nothing && !self.is_noise(name) {
                sized(&mut hash, name.bytes());
                entry.thing.digest(&mut hash, self.file_mode());
            }
        }
        hex::encode(&hash.finalize()[..16])
    }

    /// The tree of a commit: amending a message changes no file. The commit itself if git does not
    /// say.
    fn tree_of(&mut self, folder: &Name, repo: &Repo, commit: &str) -> String {
        if let Some(tree) = self.trees.get(commit) {
            return tree.clone();
        }
        let revision = format!("{commit}^{{tree}}");
        let said =
            self.git.ask(&self.place_of(folder, repo), &["rev-parse", "--verify", &revision]);
        let Ok(said) = said else { return commit.to_owned() };
        let tree = String::from_utf8_lossy(&said.stdout).trim_end().to_owned();
        self.trees.insert(commit.to_owned(), tree.clone());
        tree
    }

    fn is_ours(&self, name: &Name) -> bool {
        !self.ours.is_empty()
            && (self.ours.contains(name)
                || name.folders().any(|folder| self.ours.contains(&folder)))
    }

    fn is_noise(&self, name: &Name) -> bool {
        !self.noise.is_empty() && self.noise.is_match(seen_from(&self.here, name))
    }

    fn abilities(&self) -> Abilities {
        self.place.as_ref().map_or_else(Abilities::default, |place| place.abilities)
    }

    fn file_mode(&self) -> bool {
        self.abilities().file_mode
    }

    /// Where git is to be called for a repository of a snapshot.
    fn place_of(&self, folder: &Name, repo: &Repo) -> Place {
        let top =
            if folder.bytes().is_empty() { self.top.clone() } else { self.top.join(folder.path()) };
        Place { git_dir: repo.git_dir.clone(), top, abilities: self.abilities() }
    }
}

/// Finds the repository that a folder is in; none or an error if there is none to work with.
fn discover(git: &Git, folder: &Path) -> Result<Option<Place>, Failure> {
    let arguments = ["rev-parse", "--is-inside-work-tree", "--show-cdup", "--absolute-git-dir"];
    let said = git.discover(folder, &arguments)?.stdout;
    // The last is a path, which may have line breaks in it.
    let mut lines = said.splitn(3, |byte| *byte == b'\n');
    let (inside, up, git_dir) = (lines.next(), lines.next(), lines.next());
    let (Some(b"true"), Some(up), Some(git_dir)) = (inside, up, git_dir) else {
        let words =
            "this is inside a bare repository or a .git folder, which has no work tree".to_owned();
        return Err(Failure::Refused { what: "rev-parse".to_owned(), words });
    };
    let git_dir = git_dir.strip_suffix(b"\n").unwrap_or(git_dir);
    let keys = r"^core\.(filemode|ignorecase|symlinks)$";
    // It ends with 1 if none is set.
    let said = git.discover(folder, &["config", "-z", "--type=bool", "--get-regexp", keys]);
    let mut abilities = Abilities::default();
    for line in said.map(|said| said.stdout).unwrap_or_default().split(|byte| *byte == 0) {
        match line {
            b"core.filemode\nfalse" => abilities.file_mode = false,
            b"core.ignorecase\ntrue" => abilities.ignore_case = true,
            b"core.symlinks\nfalse" => abilities.symlinks = false,
            _ => {}
        }
    }
    Ok(Some(Place {
        git_dir: PathBuf::from(OsStr::from_bytes(git_dir)),
        top: tidy(&folder.join(OsStr::from_bytes(up))),
        abilities,
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
