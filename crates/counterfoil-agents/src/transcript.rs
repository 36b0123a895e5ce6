//! Transcripts: what agents said, in files below a state folder, written while it streams and known
//! by their hash. The store needs only the folder; it knows no journal.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

/// The folder of all transcripts, within the state folder.
const FOLDER: &str = "transcripts";
/// The longest name of a transcript.
const LONGEST_NAME: usize = 100;
/// How many transcripts of one name a run may have.
const MOST_OF_A_NAME: u32 = 10_000;

/// The longest id of a run.
const MAX_RUN_ID: usize = 128;

/// Why a transcript cannot be written or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// No room is left on the disk.
    #[error("no room is left to write {}; make room and try again", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The id of the run cannot be the name of a folder.
    #[error("{run:?} is not a valid run id")]
    InvalidRun {
        /// The id.
        run: String,
    },
    /// The file cannot be made, written or read, or is not what was written.
    #[error("the transcript {} {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

type Result<T, E = TranscriptError> = std::result::Result<T, E>;

/// The transcripts below a state folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptStore {
    state: PathBuf,
}

/// Receives a transcript while it streams. A driver decides where it is kept.
pub trait TranscriptSink: Send {
    /// Appends what has streamed in. After an error the transcript holds what could be written, and
    /// writing can go on.
    ///
    /// # Errors
    ///
    /// The bytes cannot be kept.
    fn write(&mut self, bytes: &[u8]) -> Result<(), TranscriptError>;
    /// The first error that writing met.
    fn error(&self) -> Option<&TranscriptError>;
    /// Waits until all of it is durable.
    ///
    /// # Errors
    ///
    /// It cannot be made durable.
    fn finish(self: Box<Self>) -> Result<Stored, TranscriptError>;
    /// Ends the transcript without waiting until it is durable: a crash of this process loses
    /// nothing of it, one of the machine may.
    fn close(self: Box<Self>) -> Stored;
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
    /// Its name, if it is a line among others in the log of its run.
    line: Option<String>,
}

/// The file for transcripts that get no file of their own.
const LOG: &str = "log.jsonl";

/// A finished transcript: where it is and what is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// The file, relative to the state folder.
    pub path: String,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
    /// How many bytes streamed by.
    pub bytes: u64,
    /// How many of them the file has, if not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated_at: Option<u64>,
}

impl TranscriptStore {
    /// The transcripts of this state folder.
    pub fn new(state: impl Into<PathBuf>) -> Self {
        Self { state: state.into() }
    }

    /// Begins a transcript of a run that keeps at most `cap` bytes. Characters that do not belong
    /// in a file's name are replaced; a name that is taken gets a number, so nothing is ever
    /// written over.
    pub fn create(&self, run: &str, name: &str, cap: u64) -> Result<Transcript> {
        let folder = self.folder(run)?;
        let name = plain_name(name);
        for number in 1..=MOST_OF_A_NAME {
            let name = if number == 1 { name.clone() } else { format!("{name}-{number}") };
            let path = folder.join(&name);
            let open = || OpenOptions::new().append(true).create_new(true).open(&path);
            let opened = match open() {
                // The first transcript of a run.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    fs::create_dir_all(&folder)
                        .map_err(|error| failed(&folder, "cannot be made", &error))?;
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
                        line: None,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&path, "cannot be made", &error)),
            }
        }
        Err(TranscriptError::File {
            path: folder.join(name),
            why: format!("exists {MOST_OF_A_NAME} times; give another name"),
        })
    }

    /// Begins a transcript that becomes lines `{"name": …, "text": …}` of one file of the run: a
    /// new file for each of many short replies costs more than all the rest of a step.
    pub fn in_log(&self, run: &str, name: &str, cap: u64) -> Result<Transcript> {
        let folder = self.folder(run)?;
        let path = folder.join(LOG);
        let open = || OpenOptions::new().append(true).create(true).open(&path);
        let opened = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(&folder)
                    .map_err(|error| failed(&folder, "cannot be made", &error))?;
                open()
            }
            other => other,
        };
        let file = opened.map_err(|error| failed(&path, "cannot be opened", &error))?;
        let relative = format!("{FOLDER}/{run}/{LOG}#{name}");
        let (hash, line) = (Sha256::new(), Some(name.to_owned()));
        Ok(Transcript {
            file,
            path,
            relative,
            hash,
            cap,
            written: 0,
            seen: 0,
            first_error: None,
            line,
        })
    }

    /// Reads a transcript and checks that it is what was written.
    pub fn read(&self, stored: &Stored) -> Result<Vec<u8>> {
        let relative = Path::new(&stored.path);
        let path = self.state.join(relative);
        let inside = relative.starts_with(FOLDER)
            && relative.components().all(|component| matches!(component, Component::Normal(_)));
        let wrong = |why: &str| TranscriptError::File { path: path.clone(), why: why.to_owned() };
        if !inside {
            return Err(wrong("is not among the transcripts of this journal; name one that is"));
        }
        let size = stored.truncated_at.unwrap_or(stored.bytes);
        let mut bytes = Vec::new();
        File::open(&path)
            // One byte more than there should be is enough to see that the file has grown.
            .and_then(|file| file.take(size.saturating_add(1)).read_to_end(&mut bytes))
            .map_err(|error| failed(&path, "cannot be read", &error))?;
        if bytes.len() as u64 != size || hex::encode(Sha256::digest(&bytes)) != stored.sha256 {
            return Err(wrong("is not what was written; restore it from a copy"));
        }
        Ok(bytes)
    }

    /// The folder of a run's transcripts.
    fn folder(&self, run: &str) -> Result<PathBuf> {
        let plain = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
        if run.is_empty()
            || run.len() > MAX_RUN_ID
            || run.starts_with('.')
            || !run.chars().all(plain)
        {
            return Err(TranscriptError::InvalidRun { run: run.to_owned() });
        }
        Ok(self.state.join(FOLDER).join(run))
    }
}

impl TranscriptSink for Transcript {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let added = match self.line.clone() {
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

    fn finish(self: Box<Self>) -> Result<Stored> {
        let synced = self.file.sync_all().and_then(|()| {
            let folder = self.path.parent().unwrap_or(Path::new("."));
            File::open(folder)?.sync_all()
        });
        synced.map_err(|error| failed(&self.path, "cannot be brought to the disk", &error))?;
        Ok(self.close())
    }

    fn close(self: Box<Self>) -> Stored {
        Stored {
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
        // One write, so that lines of attempts that run beside each other do not mix.
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
        // What was left out once must not be followed by what came later.
        let whole = self.seen == self.written;
        let mut left = if whole { &bytes[..bytes.len().min(room)] } else { &[] };
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

fn failed(path: &Path, what: &str, error: &io::Error) -> TranscriptError {
    if error.kind() == io::ErrorKind::StorageFull {
        return TranscriptError::Full { path: path.to_owned() };
    }
    TranscriptError::File { path: path.to_owned(), why: format!("{what}: {error}") }
}

/// A name without separators, without a dot in front and not too long.
fn plain_name(name: &str) -> String {
    let mut plain: String = name
        .chars()
        .take(LONGEST_NAME)
        .map(|char| if char.is_ascii_alphanumeric() || "._-".contains(char) { char } else { '_' })
        .collect();
    if plain.is_empty() || plain.starts_with('.') {
        plain.insert(0, '_');
    }
    plain
}
