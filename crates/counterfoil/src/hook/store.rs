//! The files in which hooks keep the history of blocked turns: one small file for each agent of
//! each session.

use super::BlockHistory;
use crate::digest;
use anyhow::{Context, Result, bail};
use counterfoil_contract::text::display_path;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The age at which a file is removed: its session is over.
const MAX_AGE: Duration = Duration::from_hours(7 * 24);
/// The most files that are kept. The oldest ones are removed.
const MAX_FILES: usize = 500;
/// The most entries of the folder that are examined for removal.
const MAX_SCANNED: usize = 10_000;
/// The size limit of a file.
const MAX_FILE_BYTES: u64 = 64 << 10;
/// The number of attempts to lock a file that another hook has locked.
const LOCK_ATTEMPTS: usize = 100;
/// The delay between two attempts.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// The history file of one agent of one session, locked until it is dropped.
#[derive(Debug)]
pub(crate) struct HistoryStore {
    file: File,
    path: PathBuf,
}

impl HistoryStore {
    /// Opens and locks the history of an agent. The folder is created if it does not exist.
    pub(crate) fn open(folder: &Path, session: &str, agent: &str) -> Result<Self> {
        create_private_folder(folder)
            .with_context(|| format!("cannot create the folder {}", display_path(folder)))?;
        let path = folder.join(file_name(session, agent));
        if !path.exists() {
            remove_stale(folder);
        }
        let file =
            open_locked(&path).with_context(|| format!("cannot open {}", display_path(&path)))?;
        Ok(Self { file, path })
    }

    /// Whether an agent has a history.
    pub(crate) fn exists(folder: &Path, session: &str, agent: &str) -> bool {
        folder.join(file_name(session, agent)).is_file()
    }

    /// Loads the history. A file truncated by a crash counts as empty.
    pub(crate) fn load(&mut self) -> BlockHistory {
        let mut bytes = Vec::new();
        let read = self
            .file
            .seek(SeekFrom::Start(0))
            .and_then(|_| (&self.file).take(MAX_FILE_BYTES).read_to_end(&mut bytes));
        read.ok().and_then(|_| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Saves the history.
    pub(crate) fn save(&mut self, history: &BlockHistory) -> Result<()> {
        let bytes = serde_json::to_vec(history)?;
        let mut write = || -> std::io::Result<()> {
            self.file.set_len(0)?;
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(&bytes)
        };
        write().with_context(|| format!("cannot write {}", display_path(&self.path)))
    }
}

/// Creates a folder that only the current user can access. A symbolic link is refused.
fn create_private_folder(folder: &Path) -> Result<()> {
    match folder.symlink_metadata() {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(_) => bail!("it is not a folder"),
        Err(_) => Ok(DirBuilder::new().recursive(true).mode(0o700).create(folder)?),
    }
}

/// Opens and locks a file, which is created if it does not exist. If another process removes the
/// file in between, it is created again.
fn open_locked(path: &Path) -> Result<File> {
    for _ in 0..LOCK_ATTEMPTS {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)?;
        let opened = file.metadata()?;
        if !opened.is_file() {
            bail!("it is not a regular file");
        }
        match file.try_lock() {
            Ok(()) => {
                if path.symlink_metadata().is_ok_and(|current| {
                    (current.dev(), current.ino()) == (opened.dev(), opened.ino())
                }) {
                    return Ok(file);
                }
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_RETRY_INTERVAL),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
    }
    bail!("it is locked by another hook of the same agent")
}

/// The name of a history file. Session and agent are untrusted, so only their digest is used.
fn file_name(session: &str, agent: &str) -> String {
    format!("{}.json", digest::sha256_hex(format!("{session}\0{agent}").as_bytes()))
}

/// Whether a file name is that of a history file.
fn is_history_file(name: &OsStr) -> bool {
    name.to_str().and_then(|name| name.strip_suffix(".json")).is_some_and(digest::is_sha256_hex)
}

/// Removes files that are too old, and the oldest ones if there are too many. A file that cannot be
/// removed stays.
fn remove_stale(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let now = SystemTime::now();
    let mut kept: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in
        entries.flatten().take(MAX_SCANNED).filter(|entry| is_history_file(&entry.file_name()))
    {
        let Ok(modified) = entry.metadata().and_then(|meta| meta.modified()) else { continue };
        if now.duration_since(modified).is_ok_and(|age| age > MAX_AGE) {
            remove_unlocked(&entry.path());
        } else {
            kept.push((modified, entry.path()));
        }
    }
    if kept.len() >= MAX_FILES {
        kept.sort();
        let excess = kept.len() + 1 - MAX_FILES;
        kept.iter().take(excess).for_each(|(_, path)| remove_unlocked(path));
    }
}

/// Removes a file that is not locked.
fn remove_unlocked(path: &Path) {
    let is_locked =
        File::open(path).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)));
    if !is_locked {
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add_block(store: &mut HistoryStore) -> usize {
        let history = store.load();
        let message = format!("no {}", history.len());
        let longer = history.add_block(&message, "").unwrap();
        store.save(&longer).unwrap();
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

    fn write_aged(path: &Path, age: Duration) {
        std::fs::write(path, "{}").unwrap();
        File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(SystemTime::now() - age)
            .unwrap();
    }

    #[test]
    fn each_agent_of_each_session_has_its_own_history() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("deep/hooks");
        for (session, agent, count) in
            [("s", "", 1), ("s", "a", 1), ("s", "", 2), ("t", "", 1), ("s\0a", "", 1)]
        {
            let mut store = HistoryStore::open(&folder, session, agent).unwrap();
            assert_eq!(add_block(&mut store), count, "{session:?} {agent:?}");
        }
        assert_eq!(names(&folder).len(), 4);
    }

    #[test]
    fn concurrent_blocks_are_all_counted() {
        let home = tempfile::tempdir().unwrap();
        let counts: Vec<usize> = std::thread::scope(|scope| {
            let open = || add_block(&mut HistoryStore::open(home.path(), "s", "a").unwrap());
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(counts.iter().max(), Some(&3), "{counts:?}");
    }

    #[test]
    fn a_truncated_file_starts_over() {
        let home = tempfile::tempdir().unwrap();
        add_block(&mut HistoryStore::open(home.path(), "s", "a").unwrap());
        let path = home.path().join(&names(home.path())[0]);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert_eq!(add_block(&mut HistoryStore::open(home.path(), "s", "a").unwrap()), 1);
        assert_eq!(add_block(&mut HistoryStore::open(home.path(), "s", "a").unwrap()), 2);
    }

    #[test]
    fn old_history_files_are_removed_and_others_stay() {
        let home = tempfile::tempdir().unwrap();
        let old = file_name("old", "");
        write_aged(&home.path().join(&old), MAX_AGE * 2);
        write_aged(&home.path().join("notes.json"), MAX_AGE * 2);
        write_aged(&home.path().join(file_name("young", "")), MAX_AGE / 2);
        drop(HistoryStore::open(home.path(), "new", "").unwrap());
        let left = names(home.path());
        assert!(!left.contains(&old), "{left:?}");
        assert_eq!(left.len(), 3, "{left:?}");
    }

    #[test]
    fn the_number_of_files_is_limited() {
        let home = tempfile::tempdir().unwrap();
        let seconds = |n: usize| Duration::from_secs(n as u64);
        (0..MAX_FILES + 20)
            .for_each(|n| write_aged(&home.path().join(file_name(&n.to_string(), "")), seconds(n)));
        drop(HistoryStore::open(home.path(), "new", "").unwrap());
        let left = names(home.path());
        assert_eq!(left.len(), MAX_FILES);
        assert!(
            left.contains(&file_name("0", ""))
                && !left.contains(&file_name(&(MAX_FILES + 19).to_string(), ""))
        );
    }

    #[test]
    fn a_folder_that_is_a_file_or_a_link_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        let (file, link, elsewhere) =
            (home.path().join("file"), home.path().join("link"), home.path().join("elsewhere"));
        std::fs::write(&file, "").unwrap();
        std::fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
        for folder in [&file, &link] {
            let error = format!("{:#}", HistoryStore::open(folder, "s", "a").unwrap_err());
            assert!(error.contains(&folder.display().to_string()), "{error}");
        }
        assert!(names(&elsewhere).is_empty());
    }
}
