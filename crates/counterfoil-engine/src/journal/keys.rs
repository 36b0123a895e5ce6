//! The keys of journals, in a folder of their own outside of the state folders. Who can write a
//! state folder, but not read its key, cannot alter the journal without being noticed.
//!
//! Beside a key is the last position of each run, written after each append. A journal that is
//! behind it was cut off or replaced by an older one.

use super::chain::{Digest, Digests, KEY_BYTES, Key};
use super::error::{Error, Result};
use super::{FILE, chain};
use counterfoil_workspace::{Durability, make_private_folder, save_json};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The file with the key, in the folder that is named after the journal's id.
const KEY_FILE: &str = "key.json";
/// The file with the last position of each run.
const HEADS_FILE: &str = "heads";
/// The folder with a file for each state folder, which contains the id of its journal.
const FOLDERS: &str = "folders";
/// The length of a position: the next sequence number and the digest of the event before.
const HEAD_BYTES: usize = 24;
/// Runs with higher numbers have no position.
const MAX_RUNS: i64 = 1 << 32;

/// What has happened to a journal that lacks what was recorded.
pub(super) const CUT_OFF: &str = "the journal or its log was cut off, or replaced by an older one";

/// The folder with the keys of journals.
#[derive(Clone, Debug)]
pub(super) struct KeyStore {
    folder: PathBuf,
}

/// What is stored about the journal of a key.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    /// The state folder.
    folder: PathBuf,
    /// The key, in hex.
    key: String,
    /// The number of the last run from before there was a key.
    last_without_key: i64,
}

/// The key of a journal, and what is known about its runs.
#[derive(Debug)]
pub(super) struct JournalKey {
    key: Key,
    entry: Entry,
    heads: Option<File>,
    heads_path: PathBuf,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The sequence number of its next event.
    pub(super) next: u64,
    /// The digest of the event before.
    pub(super) digest: Digest,
}

impl KeyStore {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The file with the key of a journal.
    pub(super) fn key_path(&self, id: &str) -> PathBuf {
        self.folder.join(id).join(KEY_FILE)
    }

    /// The id of the journal that was opened in a state folder before.
    pub(super) fn registered(&self, state: &Path) -> io::Result<Option<String>> {
        match fs::read_to_string(self.index_path(state)) {
            Ok(id) => Ok(Some(id.trim().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The file that says which journal is in a state folder.
    pub(super) fn index_path(&self, state: &Path) -> PathBuf {
        let hash = chain::sha256_hex(real(state).as_os_str().as_bytes());
        self.folder.join(FOLDERS).join(hash)
    }

    /// The number of runs of a journal that were recorded.
    pub(super) fn runs(&self, id: &str) -> u64 {
        let heads = fs::metadata(self.folder.join(id).join(HEADS_FILE));
        heads.map_or(0, |heads| heads.len() / HEAD_BYTES as u64)
    }

    /// Creates the key of a journal.
    pub(super) fn create(
        &self,
        id: &str,
        state: &Path,
        last_without_key: i64,
    ) -> io::Result<JournalKey> {
        let mut bytes = [0; KEY_BYTES];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let entry = Entry { folder: real(state), key: hex::encode(bytes), last_without_key };
        self.save(id, &entry)?;
        self.load(id, true)
    }

    /// The key of a journal, as it was created.
    pub(super) fn load(&self, id: &str, to_write: bool) -> io::Result<JournalKey> {
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "it does not contain a key");
        let text = fs::read(self.key_path(id))?;
        let entry: Entry = serde_json::from_slice(&text).map_err(|_| wrong())?;
        let mut bytes = [0; KEY_BYTES];
        hex::decode_to_slice(&entry.key, &mut bytes).map_err(|_| wrong())?;
        let key = Key::new(&bytes).ok_or_else(wrong)?;
        let heads_path = self.folder.join(id).join(HEADS_FILE);
        let heads = if to_write {
            let mut options = OpenOptions::new();
            let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
            Some(options.open(&heads_path)?)
        } else {
            File::open(&heads_path).ok()
        };
        Ok(JournalKey { key, entry, heads, heads_path })
    }

    /// Records that a journal is in a state folder now, unless it still is in another one too.
    pub(super) fn register(&self, id: &str, key: &JournalKey, state: &Path) -> Result<()> {
        let failed = |error: io::Error| Error::Key {
            path: self.key_path(id),
            why: format!("cannot be written ({error})"),
        };
        let now = real(state);
        if key.entry.folder != now {
            let other = key.entry.folder.join(FILE);
            if other.exists() {
                return Err(Error::Copy { path: now.join(FILE), original: other });
            }
            self.save(id, &Entry { folder: now, ..key.entry.clone() }).map_err(failed)?;
        }
        let index = self.index_path(state);
        if self.registered(state).is_ok_and(|known| known.as_deref() == Some(id)) {
            return Ok(());
        }
        make_private_folder(&self.folder.join(FOLDERS)).map_err(failed)?;
        counterfoil_workspace::atomic_write(&index, id.as_bytes()).map_err(failed)
    }

    /// Removes the key of a journal that is gone.
    pub(super) fn forget(&self, id: &str) {
        // Without its journal it is of no use. What cannot be removed is not in the way.
        let _ = fs::remove_dir_all(self.folder.join(id));
    }

    fn save(&self, id: &str, entry: &Entry) -> io::Result<()> {
        save_json(&self.key_path(id), Durability::Synced, entry)
    }
}

impl JournalKey {
    /// How the digests of a run are computed, or why it cannot be a run of this journal.
    pub(super) fn digests(&self, number: i64, keyed: bool) -> Result<Digests<'_>, &'static str> {
        match keyed {
            true => Ok(Digests::Keyed(&self.key)),
            false if number <= self.entry.last_without_key => Ok(Digests::Plain),
            false => Err("was not written with the key of the journal"),
        }
    }

    /// The digests of new runs and of messages.
    pub(super) fn own(&self) -> Digests<'_> {
        Digests::Keyed(&self.key)
    }

    /// The last position of a run that was written; none if it is not known.
    pub(super) fn head(&self, number: i64) -> Option<Head> {
        let mut bytes = [0; HEAD_BYTES];
        self.heads.as_ref()?.read_exact_at(&mut bytes, offset(number)?).ok()?;
        let (next, digest) = bytes.split_first_chunk::<8>()?;
        let head = Head { next: u64::from_be_bytes(*next), digest: digest.try_into().ok()? };
        (head.next > 0).then_some(head)
    }

    /// Writes the last position of a run, after its events are on the disk.
    pub(super) fn set_head(&self, number: i64, head: Head) -> io::Result<()> {
        let (Some(file), Some(offset)) = (&self.heads, offset(number)) else { return Ok(()) };
        let mut bytes = [0; HEAD_BYTES];
        let (next, digest) = bytes.split_at_mut(8);
        next.copy_from_slice(&head.next.to_be_bytes());
        digest.copy_from_slice(&head.digest);
        file.write_all_at(&bytes, offset)
    }

    /// The number of the last run that was recorded.
    pub(super) fn last_run(&self) -> i64 {
        let length = self.heads.as_ref().and_then(|heads| heads.metadata().ok());
        let runs = length.map_or(0, |length| length.len() / HEAD_BYTES as u64);
        i64::try_from(runs).unwrap_or(i64::MAX)
    }

    /// The file with the positions.
    pub(super) fn heads_path(&self) -> &Path {
        &self.heads_path
    }
}

impl Head {
    /// What is wrong with a run that has come to `found`, if this is where it was before.
    pub(super) fn compare(self, found: Self) -> Option<String> {
        if found.next < self.next {
            return Some(format!(
                "ends with event {}, although event {} was recorded: {CUT_OFF}",
                found.next.saturating_sub(1),
                self.next.saturating_sub(1)
            ));
        }
        (found.next == self.next && found.digest != self.digest)
            .then(|| "does not end with the event that was recorded last".to_owned())
    }
}

/// The position of a run in the file.
fn offset(number: i64) -> Option<u64> {
    let place = u64::try_from(number).ok()?.checked_sub(1)?;
    (number < MAX_RUNS).then(|| place * HEAD_BYTES as u64)
}

/// The path without symbolic links, also of a folder that does not exist.
fn real(folder: &Path) -> PathBuf {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    for existing in absolute.ancestors() {
        if let (Ok(real), Ok(rest)) = (existing.canonicalize(), absolute.strip_prefix(existing)) {
            // Joining nothing would add a slash at the end.
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    absolute
}
