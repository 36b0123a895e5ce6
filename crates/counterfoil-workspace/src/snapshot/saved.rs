//! Snapshots on disk, so that a later process can compare with them.

use super::entry::{Entry, Repo, SnapshotData};
use super::repo_path::RepoPath;
use super::{Snapshot, Snapshotter};
use crate::{Durability, atomic_write_with};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// The version of the format. A snapshot of another version is not read.
const VERSION: u32 = 1;

/// A snapshot as it is written. Maps are lists of pairs, since their keys are paths.
#[derive(Serialize, Deserialize)]
struct Saved {
    version: u32,
    id: Option<String>,
    taken: SystemTime,
    notes: Vec<String>,
    repos: Vec<(RepoPath, Repo)>,
    entries: Vec<(RepoPath, Entry)>,
    too_large: bool,
}

impl Snapshot {
    /// Writes the snapshot to a file.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let pairs = |(path, entry): (&RepoPath, &Entry)| (path.clone(), entry.clone());
        let saved = Saved {
            version: VERSION,
            id: self.id.clone(),
            taken: self.taken,
            notes: self.notes.clone(),
            repos: self
                .data
                .repos
                .iter()
                .map(|(path, repo)| (path.clone(), repo.clone()))
                .collect(),
            entries: self.data.entries.iter().map(pairs).collect(),
            too_large: self.data.too_large,
        };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let bytes = serde_json::to_vec(&saved)?;
        // It is of no use after a crash of the machine: the agent is gone with it.
        atomic_write_with(path, Durability::Unsynced, |file| file.write_all(&bytes))
    }

    /// Reads a snapshot that was saved. `None` if there is none that this version can read.
    pub fn load(path: &Path) -> Option<Self> {
        let saved: Saved = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        if saved.version != VERSION {
            return None;
        }
        let data = SnapshotData {
            repos: saved.repos.into_iter().collect(),
            entries: saved.entries.into_iter().collect(),
            too_large: saved.too_large,
        };
        Some(Self { id: saved.id, taken: saved.taken, notes: saved.notes, data: Arc::new(data) })
    }
}

impl Snapshotter {
    /// Makes an earlier snapshot comparable with further ones: its paths are read from now on, since
    /// a path that differed once must not seem deleted when it is committed or ignored. Returns
    /// whether it is a snapshot of the same repository.
    pub fn adopt(&mut self, earlier: &Snapshot) -> bool {
        let top = RepoPath::from(&b""[..]);
        let known = earlier.data.repos.get(&top).map(|repo| &repo.git_dir);
        if known != self.location.as_ref().map(|location| &location.git_dir) {
            return false;
        }
        for (path, entry) in &earlier.data.entries {
            self.cache.remember(path, &entry.state);
        }
        true
    }
}

/// Bytes as hex digits.
pub(super) mod hex_bytes {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::sync::Arc;

    pub(in super::super) fn serialize<S: Serializer>(
        bytes: &Arc<[u8]>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(bytes))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<[u8]>, D::Error> {
        let digits = String::deserialize(deserializer)?;
        hex::decode(digits).map(Into::into).map_err(serde::de::Error::custom)
    }
}

/// A path as text: as it is, or as a zero byte and hex digits if it is not UTF-8.
impl Serialize for RepoPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(self.bytes()) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => serializer.serialize_str(&format!("\0{}", hex::encode(self.bytes()))),
        }
    }
}

impl<'de> Deserialize<'de> for RepoPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.strip_prefix('\0') {
            Some(digits) => {
                let bytes = hex::decode(digits).map_err(serde::de::Error::custom)?;
                Ok(Self::from(&bytes[..]))
            }
            None => Ok(Self::from(text.as_bytes())),
        }
    }
}
