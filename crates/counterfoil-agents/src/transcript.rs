//! Transcripts: the output of agents, in files below a state folder. They are written while the
//! output streams and verified by their hash. The store needs only the folder, not the journal.

use crate::submissions::ensure_regular_file;
use counterfoil_contract::text::display_path;
use counterfoil_workspace::path::is_strictly_inside;
use counterfoil_workspace::{NoRoom, make_private_folder};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The folder of all transcripts in the state folder.
const FOLDER: &str = "transcripts";
/// The longest name of a transcript, in characters.
const MAX_NAME_CHARS: usize = 100;
/// The most transcripts of one name in a run.
const MAX_SAME_NAME: u32 = 10_000;

/// The longest id of a run, in bytes.
const MAX_RUN_ID_BYTES: usize = 128;

/// Why a transcript cannot be written or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// There is no room.
    #[error("{why}, so that {} cannot be written; {} and try again", display_path(path), why.remedy())]
    Full {
        /// The file that was written.
        path: PathBuf,
        /// Why there is none.
        why: NoRoom,
    },
    /// The id of the run cannot be the name of a folder.
    #[error("{run:?} is not a valid run id")]
    InvalidRun {
        /// The invalid id.
        run: String,
    },
    /// The file cannot be created, written or read, or was changed.
    #[error("the transcript {} {why}", display_path(path))]
    File {
        /// The transcript file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

type Result<T, E = TranscriptError> = std::result::Result<T, E>;

/// The transcripts of a state folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptStore {
    state: PathBuf,
}

/// Receives a transcript while it streams. The driver decides where it is stored.
pub trait TranscriptSink: Send {
    /// Appends output. After an error the transcript has what could be written, and writing can
    /// continue.
    ///
    /// # Errors
    ///
    /// The bytes cannot be stored.
    fn write(&mut self, bytes: &[u8]) -> Result<(), TranscriptError>;
    /// The first error while writing.
    fn error(&self) -> Option<&TranscriptError>;
    /// Waits until the transcript is durable.
    ///
    /// # Errors
    ///
    /// The transcript cannot be made durable.
    fn finish(self: Box<Self>) -> Result<StoredTranscript, TranscriptError>;
    /// Ends the transcript without waiting until it is durable. It survives a crash of this
    /// process, but possibly not of the machine.
    fn close(self: Box<Self>) -> StoredTranscript;
}

/// A transcript that is being written to a file.
#[derive(Debug)]
pub struct Transcript {
    file: File,
    path: PathBuf,
    relative: String,
    hash: Sha256,
    cap: u64,
    written: u64,
    seen: u64,
    first_error: Option<TranscriptError>,
    /// The name of the transcript if it is stored as lines in the log of its run.
    log_name: Option<String>,
}

/// The file for transcripts without a file of their own.
const LOG: &str = "log.jsonl";

/// A finished transcript: its location and hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTranscript {
    /// The file, relative to the state folder.
    pub path: String,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
    /// How many bytes were received.
    pub bytes: u64,
    /// How many of them the file contains, if not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated_at: Option<u64>,
}

/// The reference to a finished transcript in an event.
pub fn reply_reference(stored: &StoredTranscript, status: &str) -> counterfoil_flow::Reply {
    counterfoil_flow::Reply {
        transcript: stored.path.clone(),
        sha256: stored.sha256.clone(),
        status: status.to_owned(),
        ..counterfoil_flow::Reply::default()
    }
}

impl TranscriptStore {
    /// Opens the transcripts of a state folder.
    pub fn new(state: impl Into<PathBuf>) -> Self {
        Self { state: state.into() }
    }

    /// Starts a transcript of a run that stores at most `cap` bytes. Characters that are unsafe in
    /// file names are replaced. A name that exists gets a number, so nothing is overwritten.
    ///
    /// # Errors
    ///
    /// The id of the run is invalid, or the file cannot be created.
    pub fn create(&self, run: &str, name: &str, cap: u64) -> Result<Transcript> {
        let folder = self.folder(run)?;
        let name = safe_file_name(name);
        for number in 1..=MAX_SAME_NAME {
            let name = if number == 1 { name.clone() } else { format!("{name}-{number}") };
            let path = folder.join(&name);
            let open = || private_file().create_new(true).open(&path);
            let opened = match open() {
                // The first transcript of a run.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    make_private_folder(&folder)
                        .map_err(|error| failed(&folder, "cannot be created", &error))?;
                    open()
                }
                other => other,
            };
            match opened {
                Ok(file) => {
                    let relative = format!("{FOLDER}/{run}/{name}");
                    return Ok(Transcript {
                        file,
                        path,
                        relative,
                        hash: Sha256::new(),
                        cap,
                        written: 0,
                        seen: 0,
                        first_error: None,
                        log_name: None,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&path, "cannot be created", &error)),
            }
        }
        Err(TranscriptError::File {
            path: folder.join(name),
            why: format!("exists {MAX_SAME_NAME} times; give another name"),
        })
    }

    /// Starts a transcript that is stored as lines `{"name": …, "text": …}` in one file of the run.
    /// For many short replies, creating a file each would cost more than the rest of a step.
    ///
    /// # Errors
    ///
    /// The id of the run is invalid, or the file cannot be opened.
    pub fn create_in_log(&self, run: &str, name: &str, cap: u64) -> Result<Transcript> {
        let folder = self.folder(run)?;
        let path = folder.join(LOG);
        let open = || private_file().create(true).open(&path);
        let opened = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_private_folder(&folder)
                    .map_err(|error| failed(&folder, "cannot be created", &error))?;
                open()
            }
            other => other,
        };
        let file = opened.map_err(|error| failed(&path, "cannot be opened", &error))?;
        let relative = format!("{FOLDER}/{run}/{LOG}#{name}");
        let (hash, log_name) = (Sha256::new(), Some(name.to_owned()));
        Ok(Transcript {
            file,
            path,
            relative,
            hash,
            cap,
            written: 0,
            seen: 0,
            first_error: None,
            log_name,
        })
    }

    /// Reads a transcript and verifies its hash.
    ///
    /// # Errors
    ///
    /// The path is not that of a transcript, or the file cannot be read or was changed.
    pub fn read(&self, stored: &StoredTranscript) -> Result<Vec<u8>> {
        let relative = Path::new(&stored.path);
        let path = self.state.join(relative);
        let inside = relative.starts_with(FOLDER) && is_strictly_inside(relative);
        let wrong = |why: &str| TranscriptError::File { path: path.clone(), why: why.to_owned() };
        if !inside {
            return Err(wrong("is not in the folder of the transcripts"));
        }
        let size = stored.truncated_at.unwrap_or(stored.bytes);
        let mut bytes = Vec::new();
        ensure_regular_file(&path)
            .and_then(|()| File::open(&path))
            // One more byte is enough to detect that the file has grown.
            .and_then(|file| file.take(size.saturating_add(1)).read_to_end(&mut bytes))
            .map_err(|error| failed(&path, "cannot be read", &error))?;
        if bytes.len() as u64 != size || hex::encode(Sha256::digest(&bytes)) != stored.sha256 {
            return Err(wrong("was changed; restore it from a copy"));
        }
        Ok(bytes)
    }

    /// The first reference that a transcript with this name can have, without its number.
    pub fn reference(run: &str, name: &str) -> String {
        format!("{FOLDER}/{run}/{}", safe_file_name(name))
    }

    /// The transcript with this name that is being written, and its size: the only one that is not
    /// finished. Other names can lead to the same file name. None if it is not clear which one it is.
    pub fn unfinished(
        &self,
        run: &str,
        name: &str,
        is_finished: &dyn Fn(&str) -> bool,
    ) -> Option<(String, u64)> {
        let first = Self::reference(run, name);
        self.folder(run).ok()?;
        let mut found = None;
        for number in 1..=MAX_SAME_NAME {
            let reference = if number == 1 { first.clone() } else { format!("{first}-{number}") };
            let Ok(file) = self.state.join(&reference).symlink_metadata() else { break };
            if file.is_file() && !is_finished(&reference) {
                if found.is_some() {
                    return None;
                }
                found = Some((reference, file.len()));
            }
        }
        found
    }

    /// The folder of a run's transcripts.
    fn folder(&self, run: &str) -> Result<PathBuf> {
        let is_safe = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
        if run.is_empty()
            || run.len() > MAX_RUN_ID_BYTES
            || run.starts_with('.')
            || !run.chars().all(is_safe)
        {
            return Err(TranscriptError::InvalidRun { run: run.to_owned() });
        }
        Ok(self.state.join(FOLDER).join(run))
    }
}

impl TranscriptSink for Transcript {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let added = match self.log_name.clone() {
            Some(name) => self.add_line(&name, bytes),
            None => self.add(bytes),
        };
        if let Err(error) = &added {
            self.first_error.get_or_insert_with(|| error.clone());
        }
        added
    }

    fn error(&self) -> Option<&TranscriptError> {
        self.first_error.as_ref()
    }

    fn finish(self: Box<Self>) -> Result<StoredTranscript> {
        let synced = self.file.sync_all().and_then(|()| {
            let folder = self.path.parent().unwrap_or(Path::new("."));
            File::open(folder)?.sync_all()
        });
        synced.map_err(|error| failed(&self.path, "cannot be synced to disk", &error))?;
        Ok(self.close())
    }

    fn close(self: Box<Self>) -> StoredTranscript {
        StoredTranscript {
            path: self.relative,
            sha256: hex::encode(self.hash.finalize()),
            bytes: self.seen,
            truncated_at: (self.written < self.seen).then_some(self.written),
        }
    }
}

impl Transcript {
    fn add_line(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let text = String::from_utf8_lossy(bytes);
        // One write, so that lines of concurrent attempts do not mix.
        let line = format!("{}\n", serde_json::json!({"name": name, "text": text}));
        self.file
            .write_all(line.as_bytes())
            .map_err(|error| failed(&self.path, "cannot be written", &error))?;
        self.hash.update(bytes);
        self.written += bytes.len() as u64;
        self.seen = self.written;
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let room = usize::try_from(self.cap - self.written).unwrap_or(usize::MAX);
        // After a gap, nothing more is written.
        let without_gap = self.seen == self.written;
        let mut left = if without_gap { &bytes[..bytes.len().min(room)] } else { &[] };
        let beyond = bytes.len() - left.len();
        while !left.is_empty() {
            match self.file.write(left) {
                Ok(0) => {
                    return Err(failed(
                        &self.path,
                        "cannot be written",
                        &io::ErrorKind::WriteZero.into(),
                    ));
                }
                Ok(count) => {
                    let (done, rest) = left.split_at(count.min(left.len()));
                    self.hash.update(done);
                    self.written += done.len() as u64;
                    self.seen += done.len() as u64;
                    left = rest;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&self.path, "cannot be written", &error)),
            }
        }
        self.seen += beyond as u64;
        Ok(())
    }
}

/// To open a file that only its owner can read. A link in its place is not followed.
fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    let nofollow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    options.append(true).mode(0o600).custom_flags(nofollow);
    options
}

fn failed(path: &Path, what: &str, error: &io::Error) -> TranscriptError {
    if let Some(why) = NoRoom::of(error) {
        return TranscriptError::Full { path: path.to_owned(), why };
    }
    TranscriptError::File { path: path.to_owned(), why: format!("{what}: {error}") }
}

/// A name without separators and leading dots, of limited length.
fn safe_file_name(name: &str) -> String {
    let mut safe: String = name
        .chars()
        .take(MAX_NAME_CHARS)
        .map(|char| if char.is_ascii_alphanumeric() || "._-".contains(char) { char } else { '_' })
        .collect();
    if safe.is_empty() || safe.starts_with('.') {
        safe.insert(0, '_');
    }
    safe
}
