//! The journal: the events of all runs, in one `SQLite` file. The holder of a run's lease appends
//! events; any process may read them and send messages to the driver of the run. The journal does
//! not interpret events.
//!
//! When an append returns, its events are on the disk. Events carry chained digests, so that damage
//! is found at the damaged event.

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
pub use record::{
    AcquiredRun, Batch, Driver, NewEvent, NewRun, RunInfo, Snapshot, StoredEvent, StoredMessage,
    Summary,
};

use counterfoil_agents::transcript::TranscriptStore;
use holder::Process;
use rusqlite::Connection;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use writer::Writer;

/// The name of the journal file in the state folder.
const FILE: &str = "journal.db";
/// The maximum length of a run id.
const MAX_RUN_ID: usize = 128;

/// Timeouts and limits of a journal. Tests use shorter ones than the defaults.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long to wait for another process to release its lock.
    pub busy_timeout: Duration,
    /// The interval in which leases are renewed.
    pub heartbeat: Duration,
    /// How long a lease is valid after its last renewal.
    pub stale_after: Duration,
    /// The maximum number of pages of 4096 bytes; none for no limit.
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

/// An open journal. Clones share it; the file is closed with the last clone and the last lease.
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
    /// Opens the journal in a state folder, and creates both if necessary.
    ///
    /// # Errors
    ///
    /// The folder or the file cannot be created, read or written.
    pub fn open(folder: &Path) -> Result<Self> {
        Self::open_with(folder, Settings::default())
    }

    /// Opens the journal in a state folder with custom settings.
    ///
    /// # Errors
    ///
    /// The folder or the file cannot be created, read or written.
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

    /// Opens the journal in a state folder for reading only. Nothing is created or changed, and the
    /// folder may be read-only. Operations that write fail with [`Error::ReadOnly`].
    ///
    /// # Errors
    ///
    /// There is no journal, or it cannot be read.
    pub fn open_to_read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let settings = Settings::default();
        let file = identity(&path).ok_or_else(|| Error::Missing { path: path.clone() })?;
        refuse_links(folder)?;
        let reader = schema::open_to_read(&path, &settings)?;
        Ok(Self::new(folder, path, file, Process::this(), settings, reader, None))
    }

    /// The transcripts in the state folder.
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

    /// Creates a run with its first events and acquires its lease.
    ///
    /// # Errors
    ///
    /// The id is not valid or is used already, or the journal cannot be written.
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

    /// Acquires the lease of a run that no process drives, or whose driver is dead or unresponsive.
    ///
    /// # Errors
    ///
    /// There is no such run, another process drives it, or the journal cannot be written.
    pub fn acquire(&self, run: &str) -> Result<(Lease, AcquiredRun)> {
        let granted = self.writer()?.ask_blocking(work::Acquire { run: run.to_owned() })?;
        let lease = Lease::new(self.clone(), run.to_owned(), granted);
        let acquired =
            AcquiredRun { info: self.run(run)?, snapshot: self.snapshot(run, granted.number)? };
        Ok((lease, acquired))
    }

    /// Sends a message to the current or next driver of a run, and returns its id.
    ///
    /// # Errors
    ///
    /// There is no such run, or the journal cannot be written.
    pub fn send_message(&self, run: &str, kind: &str, body: &[u8], at: i64) -> Result<i64> {
        let (run, kind, body) = (run.to_owned(), kind.to_owned(), body.to_owned());
        self.writer()?.ask_blocking(work::SendMessage { run, at, kind, body })
    }

    /// The state folder.
    pub fn folder(&self) -> &Path {
        &self.inner.folder
    }

    /// The number of transactions since the journal was opened.
    pub fn commits(&self) -> u64 {
        self.inner.writer.as_ref().map_or(0, Writer::commits)
    }

    fn writer(&self) -> Result<&Writer> {
        self.inner.writer.as_ref().ok_or_else(|| Error::ReadOnly { path: self.inner.path.clone() })
    }

    /// Reads with the shared read connection.
    fn read<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let path = &self.inner.path;
        if identity(path) != Some(self.inner.file) {
            return Err(Error::Gone { path: path.clone() });
        }
        // A poisoned lock is harmless: reading leaves no inconsistent state.
        let reader = self.inner.reader.lock().unwrap_or_else(PoisonError::into_inner);
        query(&reader).map_err(|error| Error::store(path, &error))
    }
}

/// Creates the folder.
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
    refuse_lost(folder)?;
    make_folder(folder).map_err(|error| unusable(&error))?;
    refuse_links(folder)?;
    // SQLite would create it for all users. Its log has the mode of the file.
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(unusable(&error)),
        _ => Ok(()),
    }
}

/// Refuses a state folder in which runs were recorded and whose journal is missing: a new one would
/// hide that. Transcripts are written for runs only.
///
/// # Errors
///
/// The journal is missing although there are transcripts.
pub fn refuse_lost(folder: &Path) -> Result<()> {
    let path = folder.join(FILE);
    let has_transcripts = || {
        fs::read_dir(folder.join("transcripts")).is_ok_and(|mut entries| entries.next().is_some())
    };
    if path.symlink_metadata().is_err() && has_transcripts() {
        return Err(Error::Lost { path });
    }
    Ok(())
}

/// Refuses a link in the state folder: what is written there would go elsewhere. The folder itself
/// may be one.
fn refuse_links(folder: &Path) -> Result<()> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let link = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
        .map(|entry| entry.path())
        .min();
    link.map_or(Ok(()), |path| Err(Error::Link { path }))
}

/// Creates a state folder if it does not exist, with a `.gitignore` that excludes all of it.
///
/// # Errors
///
/// The folder or the file cannot be created.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    // What agents said and what they were told is nobody else's business.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    match OpenOptions::new().write(true).create_new(true).open(folder.join(".gitignore")) {
        Ok(mut file) => file.write_all(b"*\n"),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Checks that a run id can be the name of a folder.
fn check_id(id: &str) -> Result<()> {
    let wrong = |why| Err(Error::Name { name: id.to_owned(), why });
    if id.is_empty() || id.len() > MAX_RUN_ID {
        return wrong("it must have 1 to 128 characters");
    }
    if !id.chars().all(|char| char.is_ascii_alphanumeric() || "._-".contains(char))
        || id.starts_with('.')
    {
        return wrong("it may contain letters, digits, '_', '-' and, except at the beginning, '.'");
    }
    if id == "last" {
        return wrong("'last' means the newest run");
    }
    Ok(())
}

/// The device and inode of a file, which differ if it was replaced.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// The time in milliseconds since 1970.
fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
