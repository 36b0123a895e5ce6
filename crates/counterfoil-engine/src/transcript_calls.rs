//! The tool calls of a transcript, read piece by piece while it grows.

use crate::transcript_reader::{TranscriptError, TranscriptReader};
use counterfoil_agents::tool_calls::ToolCalls;
use counterfoil_agents::transcript::TranscriptStore;
use std::collections::BTreeSet;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

pub use counterfoil_agents::tool_calls::{CallOutcome, ToolCall};

/// The most bytes that are read at a time.
const MAX_READ_BYTES: u64 = 64 << 20;
/// The bytes that are in memory at a time.
const PIECE_BYTES: usize = 256 << 10;

/// The tool calls of a transcript, as far as it was read. Its hash is not verified: it may be growing.
pub struct TranscriptCalls {
    state: PathBuf,
    reference: String,
    max_calls: usize,
    calls: ToolCalls,
    /// The bytes that were read.
    read: u64,
    /// The size when it was read last.
    size: u64,
}

impl TranscriptCalls {
    /// The transcript with this reference in a state folder. The last `max_calls` calls are kept.
    pub fn new(state: &Path, reference: &str, max_calls: usize) -> Self {
        Self {
            state: state.to_owned(),
            reference: reference.to_owned(),
            max_calls,
            calls: ToolCalls::new(max_calls),
            read: 0,
            size: 0,
        }
    }

    /// Reads what was added, or a part of it.
    ///
    /// # Errors
    ///
    /// The transcript is outside the state folder, missing, or cannot be read.
    pub fn read_on(&mut self) -> Result<(), TranscriptError> {
        // Transcripts in the log of a run are replies without events.
        if self.reference.contains('#') {
            return Ok(());
        }
        let reader = TranscriptReader::new(&self.state);
        let mut file = reader.open(&self.reference)?;
        let failed = |error: std::io::Error| TranscriptError::Unreadable {
            path: self.reference.clone(),
            why: error.to_string(),
        };
        let size = file.metadata().map_err(failed)?.len();
        if size < self.read {
            self.calls = ToolCalls::new(self.max_calls);
            self.read = 0;
        }
        self.size = size;
        file.seek(SeekFrom::Start(self.read)).map_err(failed)?;
        let mut added = file.take(MAX_READ_BYTES.min(size - self.read));
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let count = added.read(&mut piece).map_err(failed)?;
            let Some(bytes) = piece.get(..count).filter(|bytes| !bytes.is_empty()) else {
                return Ok(());
            };
            self.calls.push(bytes);
            self.read += count as u64;
        }
    }

    /// The last calls, oldest first.
    pub fn last(&self) -> impl DoubleEndedIterator<Item = &ToolCall> {
        self.calls.last()
    }

    /// The number of all calls.
    pub fn total(&self) -> u64 {
        self.calls.total()
    }

    /// Whether the transcript has events of a program that we know.
    pub fn has_events(&self) -> bool {
        self.calls.has_events()
    }

    /// The bytes that were read.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// The bytes that were there and not read.
    pub fn unread(&self) -> u64 {
        self.size.saturating_sub(self.read)
    }
}

/// The transcript that an attempt at work is writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrowingTranscript {
    state: PathBuf,
    run: String,
    name: String,
    finished: BTreeSet<String>,
}

impl GrowingTranscript {
    /// The transcript of a reply, by its number from 1. `finished` are the references of all replies of
    /// the run that are recorded.
    pub fn new<'r>(
        state: &Path,
        run: &str,
        (attempt, reply): (&str, usize),
        finished: impl IntoIterator<Item = &'r str>,
    ) -> Self {
        let name = format!("{attempt}.{reply}");
        let reference = TranscriptStore::reference(run, &name);
        let finished = finished.into_iter().filter(|other| other.starts_with(&reference));
        let finished = finished.map(str::to_owned).collect();
        Self { state: state.to_owned(), run: run.to_owned(), name, finished }
    }

    /// Its reference and size now, if it is there.
    pub fn find(&self) -> Option<(String, u64)> {
        let is_finished = |reference: &str| self.finished.contains(reference);
        TranscriptStore::new(&self.state).unfinished(&self.run, &self.name, &is_finished)
    }

    /// When it was written to last, in milliseconds since 1970. None if nothing was.
    pub fn changed_at(&self) -> Option<i64> {
        let (reference, _) = self.find()?;
        let file = TranscriptReader::new(&self.state).open(&reference).ok()?;
        let metadata = file.metadata().ok().filter(|metadata| metadata.len() > 0)?;
        let since = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        i64::try_from(since.as_millis()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write as _;

    const CALL: &str = "{\"type\":\"tool_use\",\"tool_name\":\"read\",\"tool_id\":\"ID\"}\n";

    fn add(path: &Path, text: &str) {
        let mut file = fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn only_what_was_added_is_read() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("transcripts/r")).unwrap();
        let path = folder.path().join("transcripts/r/a_1.1");
        let mut calls = TranscriptCalls::new(folder.path(), "transcripts/r/a_1.1", 9);
        assert!(matches!(calls.read_on(), Err(TranscriptError::Missing { .. })));
        add(&path, &CALL.replace("ID", "1"));
        calls.read_on().unwrap();
        assert_eq!((calls.total(), calls.unread(), calls.has_events()), (1, 0, true));
        let second = CALL.replace("ID", "2");
        let (one, other) = second.split_at(9);
        add(&path, one);
        calls.read_on().unwrap();
        assert_eq!(calls.total(), 1);
        add(&path, other);
        calls.read_on().unwrap();
        assert_eq!((calls.total(), calls.read()), (2, path.metadata().unwrap().len()));
        fs::write(&path, "").unwrap();
        calls.read_on().unwrap();
        assert_eq!(calls.total(), 0, "it was replaced");
    }

    #[test]
    fn the_transcript_that_grows_is_the_one_that_no_reply_has() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("transcripts/r")).unwrap();
        let finished = ["transcripts/r/a_b_1.1", "transcripts/r/other_1.1"];
        let growing = GrowingTranscript::new(folder.path(), "r", ("a/b#1", 1), finished);
        assert_eq!(growing.find(), None);
        add(&folder.path().join("transcripts/r/a_b_1.1"), "of another attempt");
        assert_eq!(growing.find(), None);
        add(&folder.path().join("transcripts/r/a_b_1.1-2"), "own");
        assert_eq!(growing.find(), Some(("transcripts/r/a_b_1.1-2".to_owned(), 3)));
        let file =
            fs::File::options().write(true).open(folder.path().join("transcripts/r/a_b_1.1-2"));
        let long_ago = UNIX_EPOCH + std::time::Duration::from_millis(1_700_000_000_123);
        file.unwrap().set_modified(long_ago).unwrap();
        assert_eq!(growing.changed_at(), Some(1_700_000_000_123));
        add(&folder.path().join("transcripts/r/a_b_1.1-3"), "whose?");
        assert_eq!(growing.find(), None);
    }
}
