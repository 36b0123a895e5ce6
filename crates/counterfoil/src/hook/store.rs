//! Where hooks keep how often they sent an agent back: one small file for each agent of each
//! session. It decides nothing.

use super::Chain;
use crate::digest;
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A file that nobody touched for so long belongs to a session that is over.
const OLD: Duration = Duration::from_hours(7 * 24);
/// So many files are kept; of more, the oldest go.
const MOST: usize = 500;
/// So many entries of the folder are looked at.
const MOST_SEEN: usize = 10_000;
/// A longer file is none of ours.
const LONGEST: u64 = 64 << 10;
/// So often a file that another hook holds is tried again, with a pause before each.
const TRIES: usize = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// The memory of one agent of one session, held by us alone until it is dropped.
#[derive(Debug)]
pub(crate) struct Store {
    file: File,
    path: PathBuf,
}

impl Store {
    /// Opens the memory of an agent in a folder, which is made if there is none.
    pub(crate) fn open(folder: &Path, session: &str, agent: &str) -> Result<Self> {
        make(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let path = folder.join(name(session, agent));
        if !path.exists() {
            sweep(folder);
        }
        let file = held(&path).with_context(|| format!("cannot keep {}", path.display()))?;
        Ok(Self { file, path })
    }

    /// Whether anything is remembered of an agent.
    pub(crate) fn is_there(folder: &Path, session: &str, agent: &str) -> bool {
        folder.join(name(session, agent)).is_file()
    }

    /// What is remembered. A file that was cut by a crash says nothing.
    pub(crate) fn chain(&mut self) -> Chain {
        let mut bytes = Vec::new();
        let read = self
            .file
            .seek(SeekFrom::Start(0))
            .and_then(|_| (&self.file).take(LONGEST).read_to_end(&mut bytes));
        read.ok().and_then(|_| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Remembers. When this returns, the next one to open it finds it.
    pub(crate) fn keep(&mut self, chain: &Chain) -> Result<()> {
        let bytes = serde_json::to_vec(chain)?;
        let mut written = || -> std::io::Result<()> {
            self.file.set_len(0)?;
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(&bytes)
        };
        written().with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// Makes a folder that only we can look into. One that is a link is not ours.
fn make(folder: &Path) -> Result<()> {
    match folder.symlink_metadata() {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(_) => bail!("it is not a folder"),
        Err(_) => Ok(DirBuilder::new().recursive(true).mode(0o700).create(folder)?),
    }
}

/// Opens a file and locks it; it is made if there is none. A file that was swept away in between is
/// made anew.
fn held(path: &Path) -> Result<File> {
    for _ in 0..TRIES {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)?;
        let ours = file.metadata()?;
        if !ours.is_file() {
            bail!("it is not a file");
        }
        match file.try_lock() {
            Ok(()) => {
                if path
                    .symlink_metadata()
                    .is_ok_and(|now| (now.dev(), now.ino()) == (ours.dev(), ours.ino()))
                {
                    return Ok(file);
                }
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
    }
    bail!("another hook of the same agent holds it")
}

/// Names come from outside: only their digest becomes a part of a path.
fn name(session: &str, agent: &str) -> String {
    format!("{}.json", digest::of(format!("{session}\0{agent}").as_bytes()))
}

/// Whether a file is one of ours, by its name.
fn is_ours(name: &OsStr) -> bool {
    name.to_str().and_then(|name| name.strip_suffix(".json")).is_some_and(digest::is_one)
}

/// Removes what is old, and of the rest what is too much. What cannot be removed stays.
fn sweep(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let now = SystemTime::now();
    let mut kept: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in entries.flatten().take(MOST_SEEN).filter(|entry| is_ours(&entry.file_name())) {
        let Ok(touched) = entry.metadata().and_then(|meta| meta.modified()) else { continue };
        if now.duration_since(touched).is_ok_and(|age| age > OLD) {
            remove(&entry.path());
        } else {
            kept.push((touched, entry.path()));
        }
    }
    if kept.len() >= MOST {
        kept.sort();
        let much = kept.len() + 1 - MOST;
        kept.iter().take(much).for_each(|(_, path)| remove(path));
    }
}

/// Removes a file that nobody holds.
fn remove(path: &Path) {
    let held =
        File::open(path).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)));
    if !held {
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked(store: &mut Store) -> usize {
        let longer = store.chain().block(&format!("no {}", store.chain().len()), "").unwrap();
        store.keep(&longer).unwrap();
        longer.len()
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn aged(path: &Path, age: Duration) {
        std::fs::write(path, "{}").unwrap();
        File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(SystemTime::now() - age)
            .unwrap();
    }

    #[test]
    fn each_agent_of_each_session_has_a_memory_of_its_own() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("deep/hooks");
        for (session, agent, count) in
            [("s", "", 1), ("s", "a", 1), ("s", "", 2), ("t", "", 1), ("s\0a", "", 1)]
        {
            let mut store = Store::open(&folder, session, agent).unwrap();
            assert_eq!(blocked(&mut store), count, "{session:?} {agent:?}");
        }
        assert_eq!(names(&folder).len(), 4);
    }

    #[test]
    fn two_at_once_both_count() {
        let home = tempfile::tempdir().unwrap();
        let counts: Vec<usize> = std::thread::scope(|scope| {
            let open = || blocked(&mut Store::open(home.path(), "s", "a").unwrap());
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(counts.iter().max(), Some(&3), "{counts:?}");
    }

    #[test]
    fn a_file_that_was_cut_is_begun_anew() {
        let home = tempfile::tempdir().unwrap();
        blocked(&mut Store::open(home.path(), "s", "a").unwrap());
        let path = home.path().join(&names(home.path())[0]);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert_eq!(blocked(&mut Store::open(home.path(), "s", "a").unwrap()), 1);
        assert_eq!(blocked(&mut Store::open(home.path(), "s", "a").unwrap()), 2);
    }

    #[test]
    fn old_files_of_ours_go_and_others_stay() {
        let home = tempfile::tempdir().unwrap();
        let old = name("old", "");
        aged(&home.path().join(&old), OLD * 2);
        aged(&home.path().join("notes.json"), OLD * 2);
        aged(&home.path().join(name("young", "")), OLD / 2);
        drop(Store::open(home.path(), "new", "").unwrap());
        let left = names(home.path());
        assert!(!left.contains(&old), "{left:?}");
        assert_eq!(left.len(), 3, "{left:?}");
    }

    #[test]
    fn there_are_never_more_than_so_many() {
        let home = tempfile::tempdir().unwrap();
        let seconds = |n: usize| Duration::from_secs(n as u64);
        (0..MOST + 20).for_each(|n| aged(&home.path().join(name(&n.to_string(), "")), seconds(n)));
        drop(Store::open(home.path(), "new", "").unwrap());
        let left = names(home.path());
        assert_eq!(left.len(), MOST);
        assert!(
            left.contains(&name("0", "")) && !left.contains(&name(&(MOST + 19).to_string(), ""))
        );
    }

    #[test]
    fn a_place_that_is_not_ours_is_an_error_and_nothing_is_written_there() {
        let home = tempfile::tempdir().unwrap();
        let (file, link, elsewhere) =
            (home.path().join("file"), home.path().join("link"), home.path().join("elsewhere"));
        std::fs::write(&file, "").unwrap();
        std::fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
        for folder in [&file, &link] {
            let error = format!("{:#}", Store::open(folder, "s", "a").unwrap_err());
            assert!(error.contains(&folder.display().to_string()), "{error}");
        }
        assert!(names(&elsewhere).is_empty());
    }
}
