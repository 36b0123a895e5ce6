//! Looking at files: what stands there, with the hash of its bytes, which is only computed anew
//! when it may have changed.

use super::entry::{Bytes, Identity, Thing};
use super::name::Name;
use super::store::Store;
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

/// Files larger than this are not read.
pub(super) const LARGEST_READ: u64 = 256 << 20;
/// In one look no more than this is read.
pub(super) const MOST_READ: u64 = 4 << 30;
/// A file that changes under our eyes is looked at so often.
const TRIES: usize = 3;
/// Fewer files than this are read without threads.
const FEW: usize = 16;
/// More threads than this wait for the disk only.
const MOST_THREADS: usize = 8;
/// So many names stand in a note.
const MOST_NAMED: usize = 3;

/// What was seen last, by name.
#[derive(Debug, Default)]
pub(super) struct Cache {
    known: HashMap<Name, Known>,
}

#[derive(Debug)]
struct Known {
    thing: Thing,
    /// A write since then would show in the times.
    settled: bool,
}

impl Cache {
    /// Names of all that was there at the last look.
    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.known.keys()
    }

    fn get(&self, name: &Name, at: &Identity) -> Option<Thing> {
        let known = self.known.get(name)?;
        (known.settled && known.thing.at() == Some(at)).then(|| known.thing.clone())
    }
}

/// What kept a file from being told exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Doubt {
    TooLarge,
    TooMuch,
    Unreadable,
    Moving,
    Unkept,
}

impl Doubt {
    fn words(self) -> String {
        match self {
            Self::TooLarge => {
                format!("larger than {} MiB, told apart by size and times", LARGEST_READ >> 20)
            }
            Self::TooMuch => {
                format!(
                    "beyond the {} GiB read in one look, told apart by size and times",
                    MOST_READ >> 30
                )
            }
            Self::Unreadable => "could not be read, told apart by size and times".to_owned(),
            Self::Moving => "changed while being looked at".to_owned(),
            Self::Unkept => "not kept, so what stood there cannot be put back".to_owned(),
        }
    }
}

/// Looks at files below a folder. The answers are in the order of the names; the notes say what
/// could not be told.
pub(super) fn look(
    top: &Path,
    names: &[&Name],
    cache: &mut Cache,
    store: &Store,
) -> (Vec<Thing>, Vec<String>) {
    let looker =
        Looker { top, cache, store, read: AtomicU64::new(0), doubts: Mutex::new(Vec::new()) };
    let mut folders = Folders::new(top);
    let mut seen: Vec<Option<(Thing, bool)>> = names
        .iter()
        .map(
            |name| if folders.hold(name) { looker.glance(name) } else { Some((Thing::Gone, true)) },
        )
        .collect();
    let open: Vec<usize> = (0..names.len()).filter(|at| seen[*at].is_none()).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    if open.len() < FEW || threads == 1 {
        for at in open {
            seen[at] = Some(looker.read(names[at]));
        }
    } else {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut read = Vec::new();
            while let Some(at) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                read.push((*at, looker.read(names[*at])));
            }
            read
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut read = work();
            // A thread that panicked leaves holes, which are filled below.
            read.extend(others.into_iter().flat_map(|other| other.join().unwrap_or_default()));
            for (at, thing) in read {
                seen[at] = Some(thing);
            }
        });
    }
    let seen: Vec<(Thing, bool)> = std::iter::zip(seen, names)
        .map(|(seen, name)| seen.unwrap_or_else(|| looker.read(name)))
        .collect();
    let notes = notes(looker.doubts.into_inner().unwrap_or_else(PoisonError::into_inner));
    let mut things = Vec::with_capacity(seen.len());
    let mut known = HashMap::with_capacity(seen.len());
    for ((thing, settled), name) in std::iter::zip(seen, names) {
        if !thing.is_gone() {
            known.insert((*name).clone(), Known { thing: thing.clone(), settled });
        }
        things.push(thing);
    }
    cache.known = known;
    (things, notes)
}

struct Looker<'a> {
    top: &'a Path,
    cache: &'a Cache,
    store: &'a Store,
    read: AtomicU64,
    doubts: Mutex<Vec<(Doubt, Name)>>,
}

impl Looker<'_> {
    fn doubt(&self, doubt: Doubt, name: &Name) {
        self.doubts.lock().unwrap_or_else(PoisonError::into_inner).push((doubt, name.clone()));
    }

    /// What can be told without reading; none if it must be read.
    fn glance(&self, name: &Name) -> Option<(Thing, bool)> {
        let path = self.top.join(name.path());
        // A file that vanishes is gone, and so is one below something that is no folder any more.
        let meta = match path.symlink_metadata() {
            Ok(meta) => meta,
            Err(error) if is_gone(&error) => return Some((Thing::Gone, true)),
            Err(_) => {
                self.doubt(Doubt::Unreadable, name);
                return Some((Thing::Other(0), false));
            }
        };
        let at = Identity::of(&meta);
        let kind = meta.file_type();
        if kind.is_symlink() {
            let target = std::fs::read_link(&path).map(|target| target.into_os_string().into_vec());
            return Some(target.map_or((Thing::Gone, true), |target| {
                (Thing::Link { target: target.into(), at }, true)
            }));
        }
        if kind.is_dir() {
            return Some((Thing::Gone, true));
        }
        if !kind.is_file() {
            return Some((Thing::Other(meta_type(at.mode)), true));
        }
        if at.size > LARGEST_READ {
            self.doubt(Doubt::TooLarge, name);
            return Some((Thing::File { bytes: Bytes::Unread, at }, false));
        }
        self.cache.get(name, &at).map(|thing| (thing, true))
    }

    /// Reads a file. One that changes meanwhile is read again.
    fn read(&self, name: &Name) -> (Thing, bool) {
        let path = self.top.join(name.path());
        let mut last = Thing::Gone;
        for _ in 0..TRIES {
            let began = SystemTime::now();
            let Ok(mut file) = open(&path) else {
                return self.glance(name).unwrap_or_else(|| self.unread(name, &path));
            };
            let Ok(meta) = file.metadata() else { return self.unread(name, &path) };
            if !meta.is_file() {
                match self.glance(name) {
                    Some(seen) => return seen,
                    None => continue,
                }
            }
            let at = Identity::of(&meta);
            let so_far = self.read.fetch_add(at.size, Ordering::Relaxed);
            if at.size > LARGEST_READ || so_far.saturating_add(at.size) > MOST_READ {
                self.doubt(
                    if at.size > LARGEST_READ { Doubt::TooLarge } else { Doubt::TooMuch },
                    name,
                );
                return (Thing::File { bytes: Bytes::Unread, at }, false);
            }
            let Ok(took) = self.store.take(&mut file, at.size) else {
                return self.unread(name, &path);
            };
            last = Thing::File { bytes: Bytes::Hash(took.hash), at };
            if file.metadata().is_ok_and(|meta| Identity::of(&meta) == at) {
                if took.unkept.is_some() {
                    self.doubt(Doubt::Unkept, name);
                }
                return (last, at.is_settled_at(began));
            }
        }
        self.doubt(Doubt::Moving, name);
        (last, false)
    }

    fn unread(&self, name: &Name, path: &Path) -> (Thing, bool) {
        let Ok(meta) = path.symlink_metadata() else { return (Thing::Gone, true) };
        self.doubt(Doubt::Unreadable, name);
        (Thing::File { bytes: Bytes::Unread, at: Identity::of(&meta) }, false)
    }
}

/// Which folders below the top are folders and no links: through a link one would see files that
/// are elsewhere.
#[derive(Debug)]
pub(super) struct Folders<'a> {
    top: &'a Path,
    real: HashMap<Name, bool>,
}

impl<'a> Folders<'a> {
    pub(super) fn new(top: &'a Path) -> Self {
        Self { top, real: HashMap::new() }
    }

    /// Whether all folders that a file is in are real.
    fn hold(&mut self, name: &Name) -> bool {
        name.folders().next().is_none_or(|folder| self.is_real(&folder))
    }

    /// Whether a folder is there, and no link is on the way to it. What cannot be looked at may be
    /// real.
    pub(super) fn is_real(&mut self, folder: &Name) -> bool {
        if let Some(real) = self.real.get(folder) {
            return *real;
        }
        // From the outside in, and not by calling ourselves: paths can be deep.
        let mut way: Vec<Name> = folder.folders().collect();
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

/// Opens a file, and only that: a link is not followed and a pipe that took its place is not waited
/// for.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// Whether an error says that nothing stands there.
pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn meta_type(mode: u32) -> u32 {
    mode & 0o170_000
}

fn notes(mut doubts: Vec<(Doubt, Name)>) -> Vec<String> {
    doubts.sort();
    doubts.dedup();
    let kinds = doubts.chunk_by(|(a, _), (b, _)| a == b);
    kinds
        .map(|of_a_kind| named(of_a_kind.iter().map(|(_, name)| name), &of_a_kind[0].0.words()))
        .collect()
}

/// A note on some files: the first of them, how many more, what of them.
pub(super) fn named<'a>(names: impl ExactSizeIterator<Item = &'a Name>, what: &str) -> String {
    let more = names.len().saturating_sub(MOST_NAMED);
    let first: Vec<String> = names.take(MOST_NAMED).map(ToString::to_string).collect();
    let and = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{and}: {what}", first.join(", "))
}
