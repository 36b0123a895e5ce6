//! Stores the contents of files that git does not have, by their hash, so that they can be
//! restored.

use super::blob::{ObjectFormat, ObjectHasher, blob_ids};
use crate::{Durability, atomic_write_with, make_private_folder};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A larger file is not stored.
pub(super) const MAX_STORED_FILE: u64 = 64 << 20;
/// The largest total size of stored files.
const MAX_STORED_TOTAL: u64 = 2 << 30;
/// Files up to this size are read into memory.
const SMALL_FILE: u64 = 4 << 20;

/// The folder with the stored contents, if there is one.
#[derive(Debug)]
pub(super) struct Store {
    folder: Option<PathBuf>,
    remaining: AtomicU64,
}

/// The hash of a file that was read.
pub(super) struct StoredContent {
    pub(super) hash: [u8; 32],
    /// The blobs it can be. A large file is one without a conversion only.
    pub(super) blobs: Vec<String>,
    /// Why the content could not be stored, if it should have been.
    pub(super) store_error: Option<String>,
}

impl Store {
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, remaining: AtomicU64::new(MAX_STORED_TOTAL) }
    }

    /// Hashes an open file and stores its content if there is a folder, unless it is the blob that git
    /// has of it. Reads at most one byte more than its size: a file that grows meanwhile is read
    /// again.
    pub(super) fn store(
        &self,
        file: &mut File,
        size: u64,
        format: ObjectFormat,
        known: Option<&str>,
    ) -> io::Result<StoredContent> {
        let keep = |blobs: &[String]| {
            let folder = self.folder.as_ref().filter(|_| size <= MAX_STORED_FILE);
            folder.filter(|_| blobs.first().map(String::as_str) != known)
        };
        let mut from = file.take(size + 1);
        if size <= SMALL_FILE {
            let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
            from.read_to_end(&mut bytes)?;
            let hash = Sha256::digest(&bytes).into();
            let blobs = blob_ids(format, &bytes);
            let store_error = keep(&blobs)
                .and_then(|folder| self.put(folder, &hash, |file| file.write_all(&bytes), size));
            return Ok(StoredContent { hash, blobs, store_error });
        }
        let mut id = ObjectHasher::new(format, "blob", size);
        let hash = copy_and_hash(&mut from, &mut id)?;
        let blobs = vec![id.finish()];
        let store_error = keep(&blobs).and_then(|folder| {
            let copy = |to: &mut File| {
                io::Seek::rewind(file)?;
                // Content is stored only under its own hash, even if the file changes meanwhile.
                let copied = copy_and_hash(&mut (&*file).take(size + 1), to)?;
                if copied == hash {
                    Ok(())
                } else {
                    Err(io::Error::other("it changed while it was read"))
                }
            };
            self.put(folder, &hash, copy, size)
        });
        Ok(StoredContent { hash, blobs, store_error })
    }

    /// Stores a content. Returns the reason if that fails.
    fn put(
        &self,
        folder: &Path,
        hash: &[u8; 32],
        write: impl FnOnce(&mut File) -> io::Result<()>,
        size: u64,
    ) -> Option<String> {
        let path = path_of(folder, hash);
        if path.exists() {
            return None;
        }
        let spend = |remaining: u64| remaining.checked_sub(size);
        if self.remaining.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).is_err() {
            return Some(format!("more than {} MiB are stored already", MAX_STORED_TOTAL >> 20));
        }
        let put = || {
            make_private_folder(path.parent().unwrap_or(folder))?;
            atomic_write_with(&path, Durability::Unsynced, write)
        };
        put().err().map(|error| error.to_string())
    }

    /// The content with a hash. `None` if it is not stored.
    pub(super) fn get(&self, hash: &[u8; 32]) -> io::Result<Option<Vec<u8>>> {
        let Some(folder) = &self.folder else { return Ok(None) };
        match fs::read(path_of(folder, hash)) {
            Ok(bytes) if Sha256::digest(&bytes)[..] == hash[..] => Ok(Some(bytes)),
            Ok(_) => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "its stored content is corrupt"))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn path_of(folder: &Path, hash: &[u8; 32]) -> PathBuf {
    let hex = hex::encode(hash);
    folder.join(&hex[..2]).join(&hex[2..])
}

/// Copies and hashes in chunks.
pub(super) fn copy_and_hash(from: &mut impl Read, to: &mut impl Write) -> io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 256 << 10];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(hash.finalize().into()),
            Ok(count) => {
                hash.update(&chunk[..count]);
                to.write_all(&chunk[..count])?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
