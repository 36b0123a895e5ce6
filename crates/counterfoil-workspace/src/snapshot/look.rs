//! Looks at a work tree without git: which files have the identity that they had while they were
//! known to be equal to the base, and which have to be read.

use super::base::Base;
use super::ignore_rules::IgnoreRules;
use super::read_files::{Folders, MAX_FILE_READ, MAX_THREADS, MAX_TOTAL_READ};
use super::repo_path::RepoPath;
use crate::file_identity::Identity;
use ignore::{DirEntry, ParallelVisitor, ParallelVisitorBuilder, WalkBuilder, WalkState};
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// The largest number of files that are not part of the base.
pub(super) const MAX_FILES: usize = 200_000;
/// The largest number of entries, including folders and unreadable ones, without those of the base.
pub(super) const MAX_ENTRIES: usize = 4 * MAX_FILES;
/// How many folders that cannot be read are named.
const MAX_NAMED: usize = 3;
/// How many folders that cannot be read are remembered.
const MAX_UNREADABLE: usize = 1000;

/// What is known of a work tree, and what is not to be looked at.
pub(super) struct Known<'a> {
    pub(super) top: &'a Path,
    pub(super) base: &'a Base,
    /// The identity of each file of the base while it was equal to it.
    pub(super) clean: &'a [Option<Identity>],
    /// Which files of the base git has just found to be equal to it, and when it began to look.
    pub(super) assumed: Option<(&'a BTreeSet<usize>, SystemTime)>,
    pub(super) rules: &'a IgnoreRules,
    pub(super) excluded: &'a BTreeSet<RepoPath>,
    /// Files and folders that are looked at even if they are ignored.
    pub(super) watched: &'a BTreeSet<RepoPath>,
}

/// The result of a look.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Files that have to be read.
    pub(super) unread: Vec<RepoPath>,
    /// Files of the base that do not exist.
    pub(super) gone: Vec<RepoPath>,
    /// Files of the base that are now known to be equal to it.
    pub(super) settled: Vec<(usize, Identity)>,
    /// Why folders could not be read.
    pub(super) notes: Vec<String>,
    /// The folders that could not be read.
    pub(super) unreadable: BTreeSet<PathBuf>,
    /// There is too much to read.
    pub(super) too_large: bool,
}

impl Known<'_> {
    /// Looks at every file below the top that is not ignored, and at every file of the base. Links
    /// are not followed. Nested repositories are included without their `.git`.
    pub(super) fn look(&self) -> Look {
        let mut looker = Looker {
            known: self,
            top: rustix::fs::open(
                self.top,
                OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            )
            .ok(),
            seen: self.base.files().iter().map(|_| AtomicBool::new(false)).collect(),
            entries: AtomicUsize::new(0),
            others: AtomicUsize::new(0),
            size: AtomicU64::new(0),
            too_large: AtomicBool::new(false),
            found: Mutex::default(),
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        let mut builder = WalkBuilder::new(self.top);
        builder.standard_filters(false).follow_links(false).threads(threads);
        builder.build_parallel().visit(&mut Visitors { looker: &looker });
        for place in self.watched {
            let mut builder = WalkBuilder::new(self.top.join(place.path()));
            builder.standard_filters(false).follow_links(false);
            builder.filter_entry(|entry| entry.file_name() != OsStr::new(".git"));
            if Folders::new(self.top).are_real(place) {
                let mut visitor =
                    Visitor { looker: &looker, watched: true, found: Found::default() };
                for entry in builder.build() {
                    if matches!(visitor.visit(entry), WalkState::Quit) {
                        break;
                    }
                }
            }
        }
        let seen = std::mem::take(&mut looker.seen);
        let too_large = looker.too_large.into_inner();
        let Found { look: mut found, failed } =
            looker.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        if failed > MAX_NAMED {
            let more = failed - MAX_NAMED;
            let folders = if more == 1 { "folder" } else { "folders" };
            found.notes.push(format!("{more} more {folders} could not be read"));
        }
        // What is left is in ignored folders, or gone.
        let mut folders = Folders::new(self.top);
        for (at, file) in self.base.files().iter().enumerate() {
            if seen.get(at).is_some_and(|seen| seen.load(Ordering::Relaxed))
                || self.is_excluded(&file.name)
            {
                continue;
            }
            let path = self.top.join(file.name.path());
            match path.symlink_metadata() {
                _ if !folders.are_real(&file.name) => found.gone.push(file.name.clone()),
                Err(error) if super::read_files::is_gone(&error) => {
                    found.gone.push(file.name.clone());
                }
                Ok(meta) if meta.is_dir() => found.gone.push(file.name.clone()),
                Ok(meta) => {
                    let identity = Identity::from_metadata(&meta);
                    self.compare(at, &file.name, identity, &mut found);
                }
                Err(_) => found.unread.push(file.name.clone()),
            }
        }
        found.unread.sort();
        found.unread.dedup();
        Look { too_large, ..found }
    }

    /// Compares a file of the base with what is known of it.
    fn compare(&self, at: usize, name: &RepoPath, identity: Identity, found: &mut Look) {
        if self.clean.get(at).copied().flatten() == Some(identity) {
            return;
        }
        match self.assumed {
            // A write since then would show in its times.
            Some((assumed, began)) if assumed.contains(&at) && identity.is_settled_at(began) => {
                found.settled.push((at, identity));
            }
            _ => found.unread.push(name.clone()),
        }
    }

    fn is_excluded(&self, name: &RepoPath) -> bool {
        !self.excluded.is_empty()
            && (self.excluded.contains(name)
                || name.folders().any(|folder| self.excluded.contains(&folder)))
    }
}

#[derive(Default)]
struct Found {
    look: Look,
    failed: usize,
}

struct Looker<'a> {
    known: &'a Known<'a>,
    /// The top, so that the system does not look up the folders above it for each file.
    top: Option<OwnedFd>,
    /// Which files of the base were reached.
    seen: Vec<AtomicBool>,
    entries: AtomicUsize,
    others: AtomicUsize,
    size: AtomicU64,
    too_large: AtomicBool,
    found: Mutex<Found>,
}

impl Looker<'_> {
    fn identity(&self, name: &[u8]) -> Option<Identity> {
        Identity::at(self.top.as_ref()?, name).ok()
    }
}

struct Visitors<'a> {
    looker: &'a Looker<'a>,
}

impl<'a> ParallelVisitorBuilder<'a> for Visitors<'a> {
    fn build(&mut self) -> Box<dyn ParallelVisitor + 'a> {
        Box::new(Visitor { looker: self.looker, watched: false, found: Found::default() })
    }
}

struct Visitor<'a> {
    looker: &'a Looker<'a>,
    /// Ignored files are included.
    watched: bool,
    found: Found,
}

impl ParallelVisitor for Visitor<'_> {
    fn visit(&mut self, entry: Result<DirEntry, ignore::Error>) -> WalkState {
        let looker = self.looker;
        if looker.too_large.load(Ordering::Relaxed) {
            return WalkState::Quit;
        }
        match entry {
            Ok(entry) => self.entry(&entry),
            Err(error) => {
                // What vanishes meanwhile is gone.
                let is_gone = error.io_error().is_some_and(super::read_files::is_gone);
                if !is_gone {
                    self.found.failed += 1;
                    if self.found.look.unreadable.len() < MAX_UNREADABLE {
                        let path = path_of(&error).unwrap_or(looker.known.top);
                        self.found.look.unreadable.insert(path.to_owned());
                    }
                    if self.found.failed <= MAX_NAMED {
                        self.found.look.notes.push(error.to_string());
                    }
                }
                WalkState::Continue
            }
        }
    }
}

impl Visitor<'_> {
    fn entry(&mut self, entry: &DirEntry) -> WalkState {
        let Looker { known, .. } = self.looker;
        // Every path begins with the top.
        let (path, top) = (entry.path().as_os_str().as_bytes(), known.top.as_os_str().as_bytes());
        let Some(bytes) =
            path.get(top.len()..).map(|inner| inner.strip_prefix(b"/").unwrap_or(inner))
        else {
            return WalkState::Continue;
        };
        if bytes.is_empty() {
            return WalkState::Continue;
        }
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        if let Some(at) = known.base.position(bytes).filter(|_| !is_folder) {
            let name = &known.base.files()[at].name;
            // What vanishes meanwhile is looked for again.
            if !known.is_excluded(name)
                && let Some(identity) = self.looker.identity(bytes)
                && !self.looker.seen[at].swap(true, Ordering::Relaxed)
            {
                known.compare(at, name, identity, &mut self.found.look);
            }
            return WalkState::Continue;
        }
        if entry.file_name() == OsStr::new(".git") {
            return WalkState::Skip;
        }
        let name = RepoPath::from(bytes);
        let skips = known.excluded.contains(&name)
            || (!self.watched && known.rules.matches(&name, is_folder));
        let entries = self.looker.entries.fetch_add(1, Ordering::Relaxed);
        if entries >= MAX_ENTRIES {
            self.looker.too_large.store(true, Ordering::Relaxed);
        }
        if skips {
            return WalkState::Skip;
        }
        // Like git, a pipe or a socket that is in the place of no file is not listed.
        let has_content = entry.file_type().is_some_and(|kind| kind.is_file() || kind.is_symlink());
        if !is_folder && (has_content || known.base.repos.is_empty()) {
            self.add_other(entry, name);
        }
        WalkState::Continue
    }

    /// Adds a file that is not part of the base.
    fn add_other(&mut self, entry: &DirEntry, name: RepoPath) {
        let Looker { known, others, size, too_large, .. } = self.looker;
        self.found.look.unread.push(name);
        // Without git, all files are read at the first look.
        if known.base.repos.is_empty() {
            let length = entry.metadata().map_or(0, |meta| meta.len());
            // Larger files are not read.
            let length = if length <= MAX_FILE_READ { length } else { 0 };
            let total = size.fetch_add(length, Ordering::Relaxed) + length;
            let count = others.fetch_add(1, Ordering::Relaxed);
            if total > MAX_TOTAL_READ || count >= MAX_FILES {
                too_large.store(true, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Visitor<'_> {
    fn drop(&mut self) {
        let mut all = self.looker.found.lock().unwrap_or_else(PoisonError::into_inner);
        let Found { look, failed } = std::mem::take(&mut self.found);
        all.look.unread.extend(look.unread);
        all.look.settled.extend(look.settled);
        all.look.unreadable.extend(look.unreadable);
        let room = MAX_NAMED.saturating_sub(all.look.notes.len());
        all.look.notes.extend(look.notes.into_iter().take(room));
        all.failed += failed;
    }
}

/// The path that an error of the walk is about.
fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            path_of(err)
        }
        _ => None,
    }
}
