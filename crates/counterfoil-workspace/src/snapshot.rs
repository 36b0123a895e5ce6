//! Snapshots of a work tree, and the changes between two of them.
//!
//! The first look asks git which files there are, which of them are unchanged and which are ignored.
//! What it answers is the base, and the base never changes: every further look compares the files
//! themselves with it, in this process. So nothing that happens to the repository meanwhile (its
//! index, configuration, attributes, ignore rules, objects) can hide a change, no filter or hook of
//! it runs, and committing a file is no change of it. A [`Snapshot`] is the base and the content of
//! every path that differs from it. Without git, the base is empty and all files are read. The
//! user's index, refs, stash and files are never modified, except by [`Snapshotter::restore`].

mod base;
mod blob;
mod capabilities;
mod changes;
mod compare;
mod conversions;
mod differences;
mod discover;
mod entry;
mod fingerprint;
mod git;
mod ignore_rules;
mod ignored;
mod look;
mod objects;
mod parse;
mod patch;
mod read_files;
mod repo_path;
mod restore;
mod revision;
mod saved;
mod seed;
mod start;
mod store;

pub use differences::{Difference, Differences, MovedSubmodule};
pub use git::Git;
pub use patch::{Patch, PatchError};
pub use restore::FileAt;

pub use revision::{Revision, RevisionError};

use crate::git::GitError;
use base::{Base, SnapshotData};
use blob::Conversion;
use discover::discover;
use entry::BlobRules;
use git::{FsCapabilities, RepositoryLocation};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use ignore_rules::IgnoreRules;
use look::{Known, Look};
use objects::ObjectReader;
use read_files::{Cache, read_files};
use repo_path::{RepoPath, canonicalize_existing, relative_to};
use start::Start;
use std::collections::{BTreeMap, BTreeSet};
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
    /// Those of the files that git knew before.
    pub tracked: BTreeSet<PathBuf>,
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
    /// Globs of files that are never reported as changed, relative to the folder. A glob without
    /// `/` matches at any depth. Files of the base are always reported.
    pub unreported: Vec<String>,
    /// The files that keep what the first look found, so that a later process compares with the
    /// same base. With `None`, it is not kept.
    pub start_files: Option<StartFiles>,
}

/// The files that keep what the first look found.
#[derive(Clone, Debug)]
pub struct StartFiles {
    /// Keeps the base of one folder.
    pub first_look: PathBuf,
    /// Keeps the ignore rules. Folders with the same repository can share it: then the rules of the
    /// folder that was looked at first apply to all of them.
    pub ignore_rules: PathBuf,
}

/// The state of a work tree at some time. It is small: paths that equal the base are not part of it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// A fingerprint: two snapshots with the same id have the same content. `None` if the content is
    /// not known completely.
    pub id: Option<String>,
    /// When taking the snapshot began.
    pub taken: SystemTime,
    /// What could not be determined, and why.
    pub notes: Vec<String>,
    /// Folders that could not be read, whose content is not part of the snapshot, and files that
    /// cannot be compared with the base.
    pub unreadable: BTreeSet<PathBuf>,
    data: Arc<SnapshotData>,
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
    /// Files and folders that are part of snapshots even if they are ignored.
    watched: BTreeSet<RepoPath>,
    unreported: GlobSet,
    /// Problems found when the folder was opened.
    notes: Vec<String>,
    start_files: Option<StartFiles>,
    /// What the first look found.
    start: Option<Start>,
    /// The capabilities of the file system as an earlier process found them.
    capabilities_at_start: Option<FsCapabilities>,
    cache: Cache,
    store: Store,
    objects: ObjectReader,
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
        let location = discover(&git, &folder)
            .map_err(|why| {
                notes.push(match &why {
                    GitError::Failed { message, .. } if message.contains(NO_REPOSITORY) => {
                        "this is not a git repository, so files are compared by content".to_owned()
                    }
                    why => without_git(why),
                });
            })
            .ok();
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
            start_files: settings.start_files.clone(),
            start: None,
            capabilities_at_start: None,
            cache: Cache::default(),
            objects: ObjectReader::default(),
        };
        // Our own files are excluded wherever they are.
        let kept = settings.start_files.into_iter();
        let kept = kept.flat_map(|files| [files.first_look, files.ignore_rules]);
        let own = settings.content_store.into_iter().chain(kept);
        for path in settings.excluded.into_iter().chain(own) {
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
        let mut start = self.start.take().unwrap_or_else(|| self.begin());
        let known = Known {
            top: &self.top,
            base: &start.base,
            clean: &start.clean,
            assumed: start.assumed.as_ref().map(|(files, began)| (files, *began)),
            rules: &start.rules,
            excluded: &self.excluded,
            watched: &self.watched,
        };
        let look = known.look();
        let snapshot = self.finish_look(&mut start, look, taken);
        if start.assumed.take().is_some() {
            let is_gone = |name: &RepoPath| matches!(snapshot.data.side(name), base::Side::Absent);
            start.not_checked_out.retain(is_gone);
            start.unreadable.clone_from(&snapshot.unreadable);
            start.rules.freeze();
            self.keep_start(&start);
        }
        self.start = Some(start);
        snapshot
    }

    /// Reads the files that a look found to be different, and compares them with the base.
    fn finish_look(&mut self, start: &mut Start, look: Look, taken: SystemTime) -> Snapshot {
        let Look { mut unread, gone, settled, notes: more, mut unreadable, too_large } = look;
        let mut notes: Vec<String> = self.notes.iter().chain(&start.notes).cloned().collect();
        notes.extend(more);
        let (top, base) = (self.top.clone(), start.base.clone());
        if too_large {
            // In a repository, only what git does not know counts.
            notes.push(if base.repos.is_empty() {
                format!(
                    "too much to read: more than {} files or {} GiB; changes cannot be determined",
                    look::MAX_FILES,
                    read_files::MAX_TOTAL_READ >> 30
                )
            } else {
                format!(
                    "too much to read: more than {} files and folders that are not tracked; changes cannot be determined",
                    look::MAX_ENTRIES
                )
            });
            let data = SnapshotData { top, base, too_large, ..SnapshotData::default() };
            return Snapshot { id: None, taken, notes, unreadable, data: Arc::new(data) };
        }
        // Only a filter could compare these later, so their bytes are read now.
        let mut filtered = BTreeSet::new();
        for (at, identity) in settled {
            start.clean[at] = Some(identity);
            let file = &base.files()[at];
            if file.conversion == Conversion::Filter {
                filtered.insert(file.name.clone());
            }
        }
        unread.extend(filtered.iter().cloned());
        let (states, more) = read_files(&self.top, &base, &unread, &mut self.cache, &self.store);
        notes.extend(more);
        let mut entries: BTreeMap<_, _> =
            gone.into_iter().map(|name| (name, entry::PathState::Gone)).collect();
        for (name, state) in std::iter::zip(unread, states) {
            if filtered.contains(&name) {
                start.filtered.insert(name, state);
                continue;
            }
            let is_clean = || {
                let same = |known: &entry::PathState| known.same(&state, self.file_mode());
                let rules = base.rules(&name, self.capabilities());
                start.filtered.get(&name).is_some_and(same)
                    || base.get(&name).is_some_and(|file| state.is_blob(&file.blob, rules))
            };
            let exists = !state.is_gone() || base.get(&name).is_some();
            if exists && !is_clean() {
                if start.is_revision && base.has_filter(&name) && !state.is_gone() {
                    notes.push(format!(
                        "{name}: git keeps it in another form, and no filter is run here"
                    ));
                    unreadable.insert(self.top.join(name.path()));
                }
                entries.insert(name, state);
            }
        }
        let data = SnapshotData { top, base, entries, too_large };
        let id = Some(self.fingerprint(&data));
        Snapshot { id, taken, notes, unreadable, data: Arc::new(data) }
    }

    /// Learns from git what the work tree is compared with, or from an earlier process.
    fn begin(&mut self) -> Start {
        let ignore_case = self.capabilities().ignore_case;
        let files = self.start_files.clone();
        let saved = files.as_ref().map(|files| &files.first_look);
        if let Some(start) = saved.and_then(|file| Start::load(&self.top, file, ignore_case)) {
            self.capabilities_at_start = start.capabilities;
            return start;
        }
        let began = SystemTime::now();
        let seeded = self.location.as_ref().map(|location| seed::seed(&self.git, location));
        let mut start = match seeded {
            Some(Ok(seed)) => {
                let mut start = Start::new(seed.base, seed.rules);
                start.notes = seed.notes;
                start.assumed = Some((seed.unchanged, began));
                start.not_checked_out = seed.unchecked;
                start.line_ends = seed.line_ends;
                start.capabilities = Some(self.capabilities());
                start
            }
            Some(Err(error)) => {
                let mut start = Start::new(Base::default(), self.rules_without_git());
                start.notes.push(without_git(&error));
                start
            }
            None => Start::new(Base::default(), self.rules_without_git()),
        };
        start.assumed.get_or_insert((BTreeSet::new(), began));
        let known = files.and_then(|files| IgnoreRules::load(&files.ignore_rules, ignore_case));
        if let Some(rules) = known {
            start.rules = rules;
        }
        start
    }

    fn rules_without_git(&self) -> IgnoreRules {
        IgnoreRules::learn(&self.top, false, String::new(), String::new())
    }

    /// Keeps what the first look found for later processes.
    fn keep_start(&mut self, start: &Start) {
        let Some(files) = &self.start_files else { return };
        let saved = start
            .save(&self.top, &files.first_look)
            .and_then(|()| start.rules.save(&files.ignore_rules));
        if let Err(error) = saved {
            self.notes.push(format!("the state at the start cannot be kept: {error}"));
        }
    }

    /// What the first look found. It is taken if there was none.
    fn start(&mut self) -> &Start {
        if self.start.is_none() {
            self.snapshot();
        }
        self.start.get_or_insert_with(|| Start::new(Base::default(), empty_rules()))
    }

    fn is_excluded(&self, name: &RepoPath) -> bool {
        self.excluded.iter().any(|path| name == path || name.inside(path).is_some())
    }

    /// Whether a file is never reported. Files of the base always are.
    fn is_unreported(&self, name: &RepoPath, base: &Base) -> bool {
        !self.unreported.is_empty()
            && self.unreported.is_match(relative_to(&self.here, name))
            && base.get(name).is_none()
    }

    /// What has to be known to compare files at a path with blobs.
    fn blob_rules(&self, name: &RepoPath) -> BlobRules {
        let base = self.start.as_ref().map(|start| start.base.clone()).unwrap_or_default();
        base.rules(name, self.capabilities())
    }

    /// The capabilities of the file system as they were configured at the first look.
    fn capabilities(&self) -> FsCapabilities {
        let now = || self.location.as_ref().map(|location| location.capabilities);
        self.capabilities_at_start.or_else(now).unwrap_or_default()
    }

    fn file_mode(&self) -> bool {
        self.capabilities().file_mode
    }
}

fn empty_rules() -> IgnoreRules {
    IgnoreRules::frozen(ignore_rules::IgnoreTexts::default(), false)
}

fn without_git(why: &GitError) -> String {
    format!("git could not be used, so files are compared by content: {why}")
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
