//! The journal: a run is a list of events in one `SQLite` file, and nothing else. Whoever holds a
//! run's lease appends to it; everybody may read it and leave messages for the one who drives it.
//! The journal does not know what events mean.
//!
//! What an append has returned from is on the disk. Events carry chained digests, so damage is
//! found where it is.

mod chain;
mod error;
mod holder;
mod lease;
mod reading;
mod record;
mod schema;
mod work;
mod writer;

pub use error::{Error, Result};
pub use lease::Lease;
pub use record::{Batch, Driver, Event, NewRun, Posted, Row, RunInfo, Snapshot, Standing, Summary};

use counterfoil_agents::transcript::TranscriptStore;
use holder::Process;
use rusqlite::Connection;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use writer::Writer;

/// The journal's file within the state folder.
const FILE: &str = "journal.db";
/// The longest run id.
const LONGEST_ID: usize = 128;

/// How long the journal waits and how large it may grow. The defaults serve; tests shorten them.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long to wait for another process to let go of the file.
    pub busy_timeout: Duration,
    /// How often leases are kept fresh.
    pub heartbeat: Duration,
    /// How long a lease counts after it was last kept fresh.
    pub stale_after: Duration,
    /// How many pages of 4096 bytes the file may have; none for as many as there is room for.
    pub page_limit: Option<u32>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            busy_timeout: Duration::from_secs(10),
            heartbeat: Duration::from_secs(5),
            stale_after: Duration::from_secs(30),
            page_limit: None,
        }
    }
}

/// An open journal. Clones share it; the file is closed with the last of them and the last lease.
#[derive(Clone, Debug)]
pub struct Journal {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    path: PathBuf,
    file: (u64, u64),
    here: Process,
    settings: Settings,
    reader: Mutex<Connection>,
    writer: Option<Writer>,
}

impl Inner {
    fn stale_after(&self) -> i64 {
        i64::try_from(self.settings.stale_after.as_millis()).unwrap_or(i64::MAX)
    }
}

impl Journal {
    /// Opens the journal in a state folder, making both if need be.
    pub fn open(folder: &Path) -> Result<Self> {
        Self::open_with(folder, Settings::default())
    }

    /// Opens the journal in a state folder with waits and limits of one's own.
    pub fn open_with(folder: &Path, settings: Settings) -> Result<Self> {
        let path = folder.join(FILE);
        prepare(folder, &path)?;
        let connection = schema::open_to_write(&path, &settings)?;
        let reader = schema::open_to_read(&path, &settings)?;
        let file = identity(&path).ok_or_else(|| Error::Gone { path: path.clone() })?;
        let here = Process::this();
        let writer = Writer::start(connection, &path, file, here.clone(), settings)?;
        Ok(Self::new(folder, path, file, here, settings, reader, Some(writer)))
    }

    /// Opens the journal in a state folder to read it; nothing is made or changed, and the folder
    /// may be one that cannot be written. What needs writing is refused with
    /// [`Error::ReadOnly`].
    pub fn open_to_read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let settings = Settings::default();
        let file = identity(&path).ok_or_else(|| Error::Missing { path: path.clone() })?;
        let reader = schema::open_to_read(&path, &settings)?;
        Ok(Self::new(folder, path, file, Process::this(), settings, reader, None))
    }

    /// The transcripts beside the journal.
    pub fn transcripts(&self) -> TranscriptStore {
        TranscriptStore::new(&self.inner.folder)
    }

    fn new(
        folder: &Path,
        path: PathBuf,
        file: (u64, u64),
        here: Process,
        settings: Settings,
        reader: Connection,
        writer: Option<Writer>,
    ) -> Self {
        let folder = folder.to_owned();
        let reader = Mutex::new(reader);
        Self { inner: Arc::new(Inner { folder, path, file, here, settings, reader, writer }) }
    }

    /// Makes a run with its first events and takes it.
    pub fn create(&self, run: NewRun<'_>, first: Batch) -> Result<Lease> {
        check_id(run.id)?;
        let granted = self.writer()?.ask_blocking(work::Create {
            id: run.id.to_owned(),
            workflow: run.workflow.to_owned(),
            version: run.version,
            bundle: run.bundle.to_owned(),
            bundle_hash: chain::sha256_hex(run.bundle),
            at: run.at,
            first,
        })?;
        Ok(Lease::new(self.clone(), run.id.to_owned(), granted))
    }

    /// Takes a run that nobody drives, or whose driver is dead or silent, and says where it stands.
    pub fn take(&self, run: &str) -> Result<(Lease, Standing)> {
        let granted = self.writer()?.ask_blocking(work::Take { run: run.to_owned() })?;
        let lease = Lease::new(self.clone(), run.to_owned(), granted);
        let standing =
            Standing { info: self.run(run)?, snapshot: self.snapshot(run, granted.number)? };
        Ok((lease, standing))
    }

    /// Leaves a message for whoever drives a run, now or later, and returns its number.
    pub fn post(&self, run: &str, kind: &str, body: &[u8], at: i64) -> Result<i64> {
        let (run, kind, body) = (run.to_owned(), kind.to_owned(), body.to_owned());
        self.writer()?.ask_blocking(work::Post { run, at, kind, body })
    }

    /// The state folder.
    pub fn folder(&self) -> &Path {
        &self.inner.folder
    }

    /// How many transactions this journal has committed since it was opened.
    pub fn commits(&self) -> u64 {
        self.inner.writer.as_ref().map_or(0, Writer::commits)
    }

    fn writer(&self) -> Result<&Writer> {
        self.inner.writer.as_ref().ok_or_else(|| Error::ReadOnly { path: self.inner.path.clone() })
    }

    /// Reads with the one connection that is there to read.
    fn read<T>(&self, look: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let path = &self.inner.path;
        if identity(path) != Some(self.inner.file) {
            return Err(Error::Gone { path: path.clone() });
        }
        // A panic elsewhere leaves no half-done reading behind that would matter here.
        let reader = self.inner.reader.lock().unwrap_or_else(PoisonError::into_inner);
        look(&reader).map_err(|error| Error::store(path, &error))
    }
}

/// Makes the folder; the error says what is in the way.
fn prepare(folder: &Path, path: &Path) -> Result<()> {
    let unusable = |error: &io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Error::ReadOnly { path: path.to_owned() }
        }
        io::ErrorKind::StorageFull => Error::Full { path: path.to_owned() },
        _ if folder.is_file() => {
            Error::Folder { path: folder.to_owned(), why: "it is a file".to_owned() }
        }
        _ => Error::Folder { path: folder.to_owned(), why: error.to_string() },
    };
    make_folder(folder).map_err(|error| unusable(&error))
}

/// Makes a state folder if there is none, and keeps it out of commits.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    match OpenOptions::new().write(true).create_new(true).open(folder.join(".gitignore")) {
        Ok(mut file) => file.write_all(b"*\n"),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// A run's id names a folder too.
fn check_id(id: &str) -> Result<()> {
    let wrong = |why| Err(Error::Name { name: id.to_owned(), why });
    if id.is_empty() || id.len() > LONGEST_ID {
        return wrong("it must have 1 to 128 characters");
    }
    if !id.chars().all(|char| char.is_ascii_alphanumeric() || "._-".contains(char))
        || id.starts_with('.')
    {
        return wrong("it may have letters, digits, '_', '-' and, not in front, '.'");
    }
    if id == "last" {
        return wrong("'last' means the newest run");
    }
    Ok(())
}

/// What tells a file from one that took its place.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Unix milliseconds.
fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
