//! A text of a transcript of which parts are read, so that a large one costs no memory.

use super::{TranscriptError, failed};
use sha2::{Digest as _, Sha256};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The bytes that are hashed at a time.
const PIECE_BYTES: usize = 256 << 10;
/// The most files whose hashes are remembered.
const MAX_KNOWN: usize = 256;
/// A file that changed so shortly ago may change again within the precision of its times.
const SETTLED: Duration = Duration::from_secs(2);

/// A text that can be read in parts.
#[derive(Debug)]
pub struct TranscriptText {
    path: String,
    content: Content,
    size: u64,
}

#[derive(Debug)]
enum Content {
    /// A file, with what it was when its hash was verified. Without that, it may be growing.
    File(File, Option<FileState>),
    Bytes(Vec<u8>),
}

/// What changes with every change of a file. Programs cannot set the time of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl FileState {
    fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    /// Whether a later change is sure to have another time.
    fn is_settled(self) -> bool {
        let seconds = u64::try_from(self.changed.0).unwrap_or(0);
        let changed = UNIX_EPOCH + Duration::from_secs(seconds);
        SystemTime::now().duration_since(changed).is_ok_and(|since| since >= SETTLED)
    }
}

/// The files whose hashes were verified, so that a large one is not hashed for each part of it.
#[derive(Debug, Default)]
pub struct VerifiedTexts {
    known: Mutex<VecDeque<(FileState, String)>>,
    /// Held while a file is hashed: one at a time.
    hashing: Mutex<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl VerifiedTexts {
    /// The hash of a file in a state.
    fn hash(&self, file: &File, state: FileState) -> io::Result<String> {
        if let Some(hash) = self.find(state) {
            return Ok(hash);
        }
        let _one_at_a_time = lock(&self.hashing);
        if let Some(hash) = self.find(state) {
            return Ok(hash);
        }
        let hash = hash(file)?;
        if state.is_settled() && FileState::of(file)? == state {
            let mut known = lock(&self.known);
            known.push_front((state, hash.clone()));
            known.truncate(MAX_KNOWN);
        }
        Ok(hash)
    }

    fn find(&self, state: FileState) -> Option<String> {
        let known = lock(&self.known);
        known.iter().find(|(known, _)| *known == state).map(|(_, hash)| hash.clone())
    }
}

fn hash(file: &File) -> io::Result<String> {
    let (mut hasher, mut at) = (Sha256::new(), 0);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let count = file.read_at(&mut piece, at)?;
        let Some(bytes) = piece.get(..count).filter(|bytes| !bytes.is_empty()) else {
            return Ok(hex::encode(hasher.finalize()));
        };
        hasher.update(bytes);
        at += count as u64;
    }
}

impl TranscriptText {
    /// A text that is in memory.
    pub(crate) fn of_bytes(path: &str, bytes: Vec<u8>) -> Self {
        let size = bytes.len() as u64;
        Self { path: path.to_owned(), content: Content::Bytes(bytes), size }
    }

    /// The text of a file, which must have this hash if one is given.
    pub(crate) fn of_file(
        path: &str,
        file: File,
        sha256: Option<&str>,
        verified: &VerifiedTexts,
    ) -> Result<Self, TranscriptError> {
        let unreadable = |error: io::Error| failed(path, &error);
        let state = FileState::of(&file).map_err(unreadable)?;
        if let Some(sha256) = sha256
            && verified.hash(&file, state).map_err(unreadable)? != sha256
        {
            return Err(TranscriptError::Changed);
        }
        let (path, size) = (path.to_owned(), state.size);
        Ok(Self { path, content: Content::File(file, sha256.map(|_| state)), size })
    }

    /// The number of its bytes. One that grows may have more by now.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Reads bytes from a place before the end: at least one, and at most so many.
    ///
    /// # Errors
    ///
    /// It cannot be read, or has changed since it was opened.
    pub fn read_at(&self, from: u64, max: usize) -> Result<Vec<u8>, TranscriptError> {
        let left = usize::try_from(self.size.saturating_sub(from)).unwrap_or(usize::MAX);
        let mut bytes = match &self.content {
            Content::Bytes(all) => {
                let from = usize::try_from(from).unwrap_or(usize::MAX);
                all.get(from..).unwrap_or_default().iter().take(max).copied().collect()
            }
            Content::File(file, state) => {
                let mut bytes = vec![0; max.min(left)];
                let unreadable = |error: io::Error| failed(&self.path, &error);
                let count = file.read_at(&mut bytes, from).map_err(unreadable)?;
                // Asked afterwards: what was read is what was there before.
                let now = FileState::of(file).map_err(unreadable)?;
                if state.is_some_and(|state| state != now) {
                    return Err(TranscriptError::Changed);
                }
                bytes.truncate(count);
                bytes
            }
        };
        bytes.truncate(left);
        if bytes.is_empty() { Err(TranscriptError::Changed) } else { Ok(bytes) }
    }

    /// The whole text, if it has at most so many bytes.
    ///
    /// # Errors
    ///
    /// It cannot be read, or has changed since it was opened.
    pub fn whole(&self, max: u64) -> Result<Option<Vec<u8>>, TranscriptError> {
        if self.size > max {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < self.size {
            bytes.extend(self.read_at(bytes.len() as u64, PIECE_BYTES * 4)?);
        }
        Ok(Some(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript_reader::TranscriptReader;
    use counterfoil_agents::recording::digest;
    use std::fs;

    /// A state folder with the transcript `t/a`.
    fn folder(text: &str) -> (tempfile::TempDir, TranscriptReader) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("t")).unwrap();
        fs::write(folder.path().join("t/a"), text).unwrap();
        let reader = TranscriptReader::new(folder.path());
        (folder, reader)
    }

    #[test]
    fn parts_are_read() {
        let (folder, reader) = folder("0123456789");
        let known = VerifiedTexts::default();
        let log = "{\"name\":\"a#1\",\"text\":\"0123456789\"}\n";
        fs::write(folder.path().join("t/log.jsonl"), log).unwrap();
        let hash = digest(b"0123456789");
        for (reference, sha256) in
            [("t/a", None), ("t/a", Some(hash.as_str())), ("t/log.jsonl#a#1", Some(hash.as_str()))]
        {
            let text = reader.text(reference, sha256, &known).unwrap();
            assert_eq!(text.size(), 10, "{reference}");
            assert_eq!(text.read_at(2, 3), Ok(b"234".to_vec()), "{reference}");
            assert_eq!(text.read_at(8, 100), Ok(b"89".to_vec()), "{reference}");
            assert!(text.read_at(10, 100).is_err(), "{reference}");
            assert_eq!(text.whole(10), Ok(Some(b"0123456789".to_vec())), "{reference}");
            assert_eq!(text.whole(9), Ok(None), "{reference}");
        }
    }

    #[test]
    fn another_text_is_refused_and_so_is_one_that_changes_while_it_is_read() {
        let (folder, reader) = folder("0123456789");
        let known = VerifiedTexts::default();
        let hash = digest(b"0123456789");
        let wrong = reader.text("t/a", Some(&digest(b"other")), &known);
        assert_eq!(wrong.unwrap_err(), TranscriptError::Changed);
        let text = reader.text("t/a", Some(&hash), &known).unwrap();
        assert!(text.read_at(0, 1).is_ok());
        // As long as it was, in the same file.
        fs::write(folder.path().join("t/a"), "9876543210").unwrap();
        assert_eq!(text.read_at(0, 1), Err(TranscriptError::Changed));
        assert!(reader.text("t/a", Some(&hash), &known).is_err());
    }

    #[test]
    fn a_hash_is_remembered_until_the_file_changes() {
        let (folder, _) = folder("0123456789");
        let known = VerifiedTexts::default();
        let file = File::open(folder.path().join("t/a")).unwrap();
        let state = FileState::of(&file).unwrap();
        known.hash(&file, state).unwrap();
        assert!(known.find(state).is_none(), "it changed just now");
        let settled = FileState { changed: (0, 0), ..state };
        lock(&known.known).push_front((settled, "known".to_owned()));
        assert_eq!(known.hash(&file, settled).unwrap(), "known");
        assert_eq!(known.hash(&file, state).unwrap(), digest(b"0123456789"));
        assert!(settled.is_settled() && !state.is_settled());
    }

    #[test]
    fn what_grows_is_read_as_far_as_it_was_there() {
        let (folder, reader) = folder("0123456789");
        let text = reader.text("t/a", None, &VerifiedTexts::default()).unwrap();
        fs::write(folder.path().join("t/a"), "0123456789ab").unwrap();
        assert_eq!(text.read_at(8, 100), Ok(b"89".to_vec()));
        fs::write(folder.path().join("t/a"), "").unwrap();
        assert_eq!(text.read_at(8, 100), Err(TranscriptError::Changed));
    }
}
