//! Outcomes of checks, kept by what was run and on which tree. A damaged one is as good as none.

use super::Figures;
use crate::config::Check;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Raised when an outcome comes to mean something else.
const VERSION: u32 = 1;

/// How a check ended, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) exit_code: i32,
    pub(super) tail: String,
    pub(super) figures: Option<Figures>,
    pub(super) wall_ms: u64,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    version: u32,
    key: String,
    kept: Kept,
}

/// Where an outcome of a check on a tree is kept.
pub(super) fn place(folder: &Path, check: &Check, cwd: &Path, tree: &str) -> PathBuf {
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
    folder.join(format!("{}.json", hex::encode(hash.finalize())))
}

/// An outcome that was kept.
pub(super) fn get(place: &Path) -> Option<Kept> {
    let bytes = std::fs::read(place).ok()?;
    let entry: Entry = serde_json::from_slice(&bytes).ok()?;
    (entry.version == VERSION && Some(entry.key.as_str()) == name(place)).then_some(entry.kept)
}

/// Keeps an outcome. Whoever reads at the same time sees the old one or the new one.
pub(super) fn put(place: &Path, kept: &Kept) -> std::io::Result<()> {
    let (Some(folder), Some(key)) = (place.parent(), name(place)) else { return Ok(()) };
    std::fs::create_dir_all(folder)?;
    let entry = Entry { version: VERSION, key: key.to_owned(), kept: kept.clone() };
    let half = folder.join(format!(".{}", uuid::Uuid::now_v7()));
    let written = std::fs::write(&half, serde_json::to_vec(&entry)?)
        .and_then(|()| std::fs::rename(&half, place));
    if written.is_err() {
        let _ = std::fs::remove_file(&half);
    }
    written
}

fn name(place: &Path) -> Option<&str> {
    place.file_stem()?.to_str()
}
