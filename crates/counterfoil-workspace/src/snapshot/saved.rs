//! Snapshots on disk, so that a later process can compare with them.

use super::base::SnapshotData;
use super::entry::PathState;
use super::repo_path::RepoPath;
use super::start::base_id;
use super::{Snapshot, Snapshotter};
use crate::{Durability, save_json};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// The version of the format. A snapshot of another version is not read.
const VERSION: u32 = 2;

/// A snapshot as it is written. Maps are lists of pairs, since their keys are paths.
#[derive(Serialize, Deserialize)]
struct Saved {
    version: u32,
    id: Option<String>,
    taken: SystemTime,
    notes: Vec<String>,
    /// The top of the work tree.
    top: PathBuf,
    /// The base, which is saved on its own.
    base: String,
    entries: Vec<(RepoPath, PathState)>,
    too_large: bool,
    #[serde(default)]
    unreadable: BTreeSet<PathBuf>,
    /// The paths that the snapshot was saved for.
    #[serde(default)]
    paths: Vec<PathBuf>,
}

impl Snapshot {
    /// Writes the snapshot to a file.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        self.save_with_paths(path, &[])
    }

    /// Writes the snapshot to a file, with the paths that it is needed for.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn save_with_paths(&self, path: &Path, paths: &[PathBuf]) -> io::Result<()> {
        let entries = self.data.entries.iter();
        let saved = Saved {
            version: VERSION,
            id: self.id.clone(),
            taken: self.taken,
            notes: self.notes.clone(),
            top: self.data.top.clone(),
            base: base_id(&self.data.base),
            entries: entries.map(|(path, state)| (path.clone(), state.clone())).collect(),
            too_large: self.data.too_large,
            unreadable: self.unreadable.clone(),
            paths: paths.to_vec(),
        };
        save_json(path, Durability::Unsynced, &saved)
    }
}

impl Snapshotter {
    /// Reads a snapshot that was saved. `None` if there is none that this version can read, or if it
    /// was taken of something else.
    pub fn load(&mut self, path: &Path) -> Option<Snapshot> {
        self.load_with_paths(path).map(|(snapshot, _)| snapshot)
    }

    /// Reads a snapshot that was saved, and the paths that it was saved for.
    pub fn load_with_paths(&mut self, path: &Path) -> Option<(Snapshot, Vec<PathBuf>)> {
        let saved: Saved = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        let base = self.start().base.clone();
        if saved.version != VERSION || saved.top != self.top || saved.base != base_id(&base) {
            return None;
        }
        let Saved { id, taken, notes, top, entries, too_large, unreadable, paths, .. } = saved;
        let data = SnapshotData { top, base, entries: entries.into_iter().collect(), too_large };
        Some((Snapshot { id, taken, notes, unreadable, data: Arc::new(data) }, paths))
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
