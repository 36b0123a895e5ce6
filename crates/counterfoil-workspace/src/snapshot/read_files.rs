//! Reads files and hashes their bytes. A hash is computed again only when the file may have
//! changed.

use super::base::Base;
use super::blob::{ObjectFormat, object_id};
use super::entry::{Bytes, PathState};
use super::repo_path::RepoPath;
use super::store::Store;
use crate::file_identity::Identity;
use rustix::fs::{Mode, OFlags};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::SystemTime;

/// Larger files are not read.
pub(super) const MAX_FILE_READ: u64 = 256 << 20;
/// The largest number of bytes read for one snapshot.
pub(super) const MAX_TOTAL_READ: u64 = 4 << 30;
/// How often a file that changes meanwhile is read.
const MAX_ATTEMPTS: usize = 3;
/// Fewer files than this are read without threads.
const MIN_FILES_FOR_THREADS: usize = 16;
/// The largest number of threads. More would only wait for the disk.
pub(super) const MAX_THREADS: usize = 8;
/// How many paths a note lists.
const MAX_NAMED: usize = 3;

/// The state of each path in the last snapshot.
#[derive(Debug, Default)]
pub(super) struct Cache {
    known: HashMap<RepoPath, Known>,
}

#[derive(Debug)]
struct Known {
    state: PathState,
    /// A write since then would change the times.
    settled: bool,
}

impl Cache {
    fn get(&self, name: &RepoPath, at: &Identity) -> Option<PathState> {
        let known = self.known.get(name)?;
        (known.settled && known.state.at() == Some(at)).then(|| known.state.clone())
    }
}

/// Why the state of a file is not exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ReadProblem {
    TooLarge,
    TooMuch,
    Unreadable,
    Changing,
    NotStored,
}

impl ReadProblem {
    fn message(self) -> String {
        match self {
            Self::TooLarge => {
                format!("larger than {} MiB, compared by size and times", MAX_FILE_READ >> 20)
            }
            Self::TooMuch => {
                format!(
                    "beyond the {} GiB read for one snapshot, compared by size and times",
                    MAX_TOTAL_READ >> 30
                )
            }
            Self::Unreadable => "could not be read, compared by size and times".to_owned(),
            Self::Changing => "changed while being read".to_owned(),
            Self::NotStored => "content not stored, so it cannot be restored".to_owned(),
        }
    }
}

/// Reads files below a folder. The states are in the order of the paths. The notes say what could
/// not be determined.
pub(super) fn read_files(
    top: &Path,
    base: &Base,
    names: &[RepoPath],
    cache: &mut Cache,
    store: &Store,
) -> (Vec<PathState>, Vec<String>) {
    let (read, problems) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let reader = FileReader { top, base, cache, store, read, problems };
    let mut folders = Folders::new(top);
    let mut seen: Vec<Option<(PathState, bool)>> = names
        .iter()
        .map(|name| {
            if folders.are_real(name) {
                reader.inspect(name)
            } else {
                Some((PathState::Gone, true))
            }
        })
        .collect();
    let open: Vec<usize> = (0..names.len()).filter(|at| seen[*at].is_none()).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    if open.len() < MIN_FILES_FOR_THREADS || threads == 1 {
        for at in open {
            seen[at] = Some(reader.read(&names[at]));
        }
    } else {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut read = Vec::new();
            while let Some(at) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                read.push((*at, reader.read(&names[*at])));
            }
            read
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut read = work();
            // A thread that panicked leaves gaps, which are filled below.
            read.extend(others.into_iter().flat_map(|other| other.join().unwrap_or_default()));
            for (at, state) in read {
                seen[at] = Some(state);
            }
        });
    }
    let seen: Vec<(PathState, bool)> = std::iter::zip(seen, names)
        .map(|(seen, name)| seen.unwrap_or_else(|| reader.read(name)))
        .collect();
    let notes = notes(reader.problems.into_inner().unwrap_or_else(PoisonError::into_inner));
    let mut states = Vec::with_capacity(seen.len());
    let mut known = HashMap::with_capacity(seen.len());
    for ((state, settled), name) in std::iter::zip(seen, names) {
        if !state.is_gone() {
            known.insert(name.clone(), Known { state: state.clone(), settled });
        }
        states.push(state);
    }
    cache.known = known;
    (states, notes)
}

struct FileReader<'a> {
    top: &'a Path,
    base: &'a Base,
    cache: &'a Cache,
    store: &'a Store,
    read: AtomicU64,
    problems: Mutex<Vec<(ReadProblem, RepoPath)>>,
}

impl FileReader<'_> {
    fn format(&self, name: &RepoPath) -> ObjectFormat {
        self.base.repo_of(name).map(|repo| repo.format).unwrap_or_default()
    }

    fn problem(&self, problem: ReadProblem, name: &RepoPath) {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).push((problem, name.clone()));
    }

    /// The state that is known without reading. `None` if the file must be read.
    fn inspect(&self, name: &RepoPath) -> Option<(PathState, bool)> {
        let path = self.top.join(name.path());
        // A file that vanished is gone, and so is one below something that is not a folder any
        // more.
        let meta = match path.symlink_metadata() {
            Ok(meta) => meta,
            Err(error) if is_gone(&error) => return Some((PathState::Gone, true)),
            Err(_) => {
                self.problem(ReadProblem::Unreadable, name);
                return Some((PathState::Other(0), false));
            }
        };
        let at = Identity::from_metadata(&meta);
        let kind = meta.file_type();
        if kind.is_symlink() {
            let target = std::fs::read_link(&path).map(|target| target.into_os_string().into_vec());
            return Some(target.map_or((PathState::Gone, true), |target| {
                let blob = object_id(self.format(name), "blob", &target);
                (PathState::Link { target: target.into(), blob, at }, true)
            }));
        }
        if kind.is_dir() {
            return Some((PathState::Gone, true));
        }
        if !kind.is_file() {
            return Some((PathState::Other(meta_type(at.mode)), true));
        }
        if at.size > MAX_FILE_READ {
            self.problem(ReadProblem::TooLarge, name);
            return Some((PathState::File { bytes: Bytes::Unread, at }, false));
        }
        self.cache.get(name, &at).map(|state| (state, true))
    }

    /// Reads a file. If it changes meanwhile, it is read again.
    fn read(&self, name: &RepoPath) -> (PathState, bool) {
        let path = self.top.join(name.path());
        let mut last = PathState::Gone;
        for _ in 0..MAX_ATTEMPTS {
            let began = SystemTime::now();
            let Ok(mut file) = open(&path) else {
                return self.inspect(name).unwrap_or_else(|| self.unread(name, &path));
            };
            let Ok(meta) = file.metadata() else { return self.unread(name, &path) };
            if !meta.is_file() {
                match self.inspect(name) {
                    Some(seen) => return seen,
                    None => continue,
                }
            }
            let at = Identity::from_metadata(&meta);
            let so_far = self.read.fetch_add(at.size, Ordering::Relaxed);
            if at.size > MAX_FILE_READ || so_far.saturating_add(at.size) > MAX_TOTAL_READ {
                self.problem(
                    if at.size > MAX_FILE_READ {
                        ReadProblem::TooLarge
                    } else {
                        ReadProblem::TooMuch
                    },
                    name,
                );
                return (PathState::File { bytes: Bytes::Unread, at }, false);
            }
            let known = self.base.get(name).map(|file| file.blob.oid.as_str());
            let stored = self.store.store(&mut file, at.size, self.format(name), known);
            let Ok(stored) = stored else {
                return self.unread(name, &path);
            };
            let bytes = Bytes::Read { hash: stored.hash, blobs: stored.blobs };
            last = PathState::File { bytes, at };
            if file.metadata().is_ok_and(|meta| Identity::from_metadata(&meta) == at) {
                if stored.store_error.is_some() {
                    self.problem(ReadProblem::NotStored, name);
                }
                return (last, at.is_settled_at(began));
            }
        }
        self.problem(ReadProblem::Changing, name);
        (last, false)
    }

    fn unread(&self, name: &RepoPath, path: &Path) -> (PathState, bool) {
        let Ok(meta) = path.symlink_metadata() else { return (PathState::Gone, true) };
        self.problem(ReadProblem::Unreadable, name);
        (PathState::File { bytes: Bytes::Unread, at: Identity::from_metadata(&meta) }, false)
    }
}

/// Caches which folders below the top are real folders rather than links: a link would lead to
/// files elsewhere.
#[derive(Debug)]
pub(super) struct Folders<'a> {
    top: &'a Path,
    real: HashMap<RepoPath, bool>,
}

impl<'a> Folders<'a> {
    pub(super) fn new(top: &'a Path) -> Self {
        Self { top, real: HashMap::new() }
    }

    /// Whether all parents of a file are real folders.
    pub(super) fn are_real(&mut self, name: &RepoPath) -> bool {
        name.folders().next().is_none_or(|folder| self.is_real(&folder))
    }

    /// Whether a folder exists and no parent is a link. A folder that cannot be accessed may be
    /// real.
    pub(super) fn is_real(&mut self, folder: &RepoPath) -> bool {
        if let Some(real) = self.real.get(folder) {
            return *real;
        }
        // Iteratively from the top: a deep path could overflow the stack.
        let mut way: Vec<RepoPath> = folder.folders().collect();
        way.reverse();
        way.push(folder.clone());
        let mut real = true;
        for folder in way {
            if let Some(known) = self.real.get(&folder) {
                real = *known;
                continue;
            }
            real = real
                && match self.top.join(folder.path()).symlink_metadata() {
                    Ok(meta) => meta.is_dir(),
                    Err(error) => !is_gone(&error),
                };
            self.real.insert(folder, real);
        }
        real
    }
}

/// Opens a file without following a link or blocking on a pipe.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// Whether an error means that nothing exists there.
pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn meta_type(mode: u32) -> u32 {
    mode & 0o170_000
}

fn notes(mut problems: Vec<(ReadProblem, RepoPath)>) -> Vec<String> {
    problems.sort();
    problems.dedup();
    let kinds = problems.chunk_by(|(a, _), (b, _)| a == b);
    kinds
        .map(|of_a_kind| {
            note_about(of_a_kind.iter().map(|(_, name)| name), &of_a_kind[0].0.message())
        })
        .collect()
}

/// A note about some files: the first of them, how many more, and what it is about.
pub(super) fn note_about<'a>(
    names: impl ExactSizeIterator<Item = &'a RepoPath>,
    what: &str,
) -> String {
    let more = names.len().saturating_sub(MAX_NAMED);
    let first: Vec<String> = names.take(MAX_NAMED).map(ToString::to_string).collect();
    let and = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{and}: {what}", first.join(", "))
}
