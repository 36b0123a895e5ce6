//! A cache of check outcomes, keyed by command and tree. A damaged entry counts as missing.

use super::Figures;
use crate::config::Check;
use counterfoil_workspace::{Durability, atomic_write_with};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The version of the format. Increase it when the meaning of an entry changes.
const VERSION: u32 = 1;

/// The outcome of a check as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CachedOutcome {
    pub(super) exit_code: i32,
    pub(super) tail: String,
    pub(super) figures: Option<Figures>,
    pub(super) wall_ms: u64,
    /// The excerpt of the output; entries of earlier versions have none.
    #[serde(default)]
    pub(super) excerpt: String,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    version: u32,
    key: String,
    kept: CachedOutcome,
}

/// The file in which the outcome of a check on a tree is stored.
pub(super) fn entry_path(folder: &Path, check: &Check, cwd: &Path, tree: &str) -> PathBuf {
    let mut hash = Sha256::new();
    hash.update(VERSION.to_le_bytes());
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(cwd.as_os_str().as_encoded_bytes());
    part(tree.as_bytes());
    part(check.report.as_deref().unwrap_or_default().as_bytes());
    for word in check.run.argv() {
        part(word.as_bytes());
    }
    if let Some(names) = &check.scrubbed {
        part(b"scrubbed");
        for name in names {
            part(name.as_bytes());
        }
    }
    folder.join(format!("{}.json", hex::encode(hash.finalize())))
}

/// Reads a stored outcome.
pub(super) fn get(path: &Path) -> Option<CachedOutcome> {
    let bytes = std::fs::read(path).ok()?;
    let entry: Entry = serde_json::from_slice(&bytes).ok()?;
    (entry.version == VERSION && Some(entry.key.as_str()) == key_of(path)).then_some(entry.kept)
}

/// Stores an outcome atomically: concurrent readers see the old entry or the new one.
pub(super) fn put(path: &Path, kept: &CachedOutcome) -> std::io::Result<()> {
    let (Some(folder), Some(key)) = (path.parent(), key_of(path)) else { return Ok(()) };
    std::fs::create_dir_all(folder)?;
    let entry = Entry { version: VERSION, key: key.to_owned(), kept: kept.clone() };
    let bytes = serde_json::to_vec(&entry)?;
    atomic_write_with(path, Durability::Unsynced, |file| file.write_all(&bytes))
}

fn key_of(path: &Path) -> Option<&str> {
    path.file_stem()?.to_str()
}
