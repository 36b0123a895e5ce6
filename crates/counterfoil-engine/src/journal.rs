//! The journal: the events of all runs, in one `SQLite` file. The holder of a run's lease appends
//! events; any process may read them and send messages to the driver of the run. The journal does
//! not interpret events.
//!
//! When an append returns, its events are on the disk. Events carry chained digests, so that damage
//! is found at the damaged event. With a folder for keys, the digests need a key that is outside of
//! the state folder, and a journal that lacks what was recorded is found.

mod authenticity;
mod chain;
mod cursor;
mod error;
mod holder;
mod keys;
mod lease;
mod listing;
mod readers;
mod reading;
mod record;
mod schema;
mod work;
mod writer;

pub use authenticity::Notice;
pub use error::{Error, Result};
pub use lease::Lease;
pub use listing::{RunCounts, RunCursor, RunFilter, RunGroup, RunOrder, RunPage, RunSort};
pub use record::{
    AcquiredRun, Batch, Driver, NewEvent, NewRun, RunInfo, Snapshot, StoredEvent, StoredMessage,
    Summary,
};

use authenticity::Authenticity;
use counterfoil_agents::transcript::TranscriptStore;
use counterfoil_workspace::{NoRoom, make_private_folder};
use holder::Process;
use keys::KeyStore;
use readers::Readers;
use rusqlite::Connection;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use writer::Writer;

/// The name of the journal file in the state folder.
const FILE: &str = "journal.db";
/// The maximum length of a run id.
const MAX_RUN_ID: usize = 128;

/// How long a reader waits for a journal that is being created.
const CREATION_TIME: Duration = Duration::from_secs(2);
/// How often it tries.
const CREATION_POLL: Duration = Duration::from_millis(20);
/// A file that is older is not being created.
const YOUNG: Duration = Duration::from_secs(10);

/// Timeouts and limits of a journal. Tests use shorter ones than the defaults.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long to wait for another process to release its lock.
    pub busy_timeout: Duration,
    /// The interval in which leases are renewed.
    pub heartbeat: Duration,
    /// How long a lease is valid after its last renewal.
    pub stale_after: Duration,
    /// The maximum number of pages of 4096 bytes; none for no limit.
    pub page_limit: Option<u32>,
    /// The folder with the keys of journals, outside of the state folder. Without one, a new
    /// journal has no key, and one that has a key can only be read, without being checked.
    pub keys: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            busy_timeout: Duration::from_secs(10),
            heartbeat: Duration::from_secs(5),
            stale_after: Duration::from_secs(30),
            page_limit: None,
            keys: None,
        }
    }
}

impl Settings {
    fn key_store(&self) -> Option<KeyStore> {
        self.keys.as_deref().map(KeyStore::new)
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
    authenticity: Arc<Authenticity>,
    readers: Readers,
    can_be_keyed: bool,
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
        let is_new = prepare(folder, &path)?;
        if !is_new {
            let began = Instant::now();
            while let Some(error) = destroyed(folder, settings.keys.as_deref()) {
                // Another process may create it at this moment.
                if !may_be_created(&error) || began.elapsed() >= CREATION_TIME || !is_young(&path) {
                    return Err(error);
                }
                std::thread::sleep(CREATION_POLL);
            }
        }
        let mut connection = schema::open_to_write(&path, &settings)?;
        let store = settings.key_store();
        let authenticity = Authenticity::to_write(&mut connection, folder, store.as_ref(), is_new)?;
        let authenticity = Arc::new(authenticity);
        let reader = schema::open_to_read(&path, &settings)?;
        let file = identity(&path).ok_or_else(|| Error::Gone { path: path.clone() })?;
        let here = Process::this();
        let writer = Writer::start(
            connection,
            &path,
            file,
            here.clone(),
            settings.clone(),
            Arc::clone(&authenticity),
        )?;
        let can_be_keyed = reader.can_be_keyed;
        let readers = Readers::new(reader.connection, &path, &settings);
        let (folder, writer) = (folder.to_owned(), Some(writer));
        let inner = Inner {
            folder,
            path,
            file,
            here,
            settings,
            authenticity,
            readers,
            can_be_keyed,
            writer,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Opens the journal in a state folder for reading only. Nothing is created or changed, and the
    /// folder may be read-only. Operations that write fail with [`Error::ReadOnly`].
    ///
    /// # Errors
    ///
    /// There is no journal, or it cannot be read.
    pub fn open_to_read(folder: &Path) -> Result<Self> {
        Self::open_to_read_with(folder, &Settings::default())
    }

    /// Opens the journal in a state folder for reading only, with custom settings.
    ///
    /// # Errors
    ///
    /// There is no journal, or it cannot be read.
    pub fn open_to_read_with(folder: &Path, settings: &Settings) -> Result<Self> {
        let began = Instant::now();
        loop {
            match Self::open_once_to_read(folder, settings.clone()) {
                // Another process may create it at this moment: its key is known before its first run.
                Err(error)
                    if may_be_created(&error)
                        && began.elapsed() < CREATION_TIME
                        && is_young(&folder.join(FILE)) =>
                {
                    std::thread::sleep(CREATION_POLL);
                }
                opened => return opened,
            }
        }
    }

    fn open_once_to_read(folder: &Path, settings: Settings) -> Result<Self> {
        let path = folder.join(FILE);
        let file = identity(&path).ok_or_else(|| Error::Missing { path: path.clone() })?;
        refuse_links(folder)?;
        if let Some(error) = destroyed(folder, settings.keys.as_deref()) {
            return Err(error);
        }
        let reader = schema::open_to_read(&path, &settings)?;
        let store = settings.key_store();
        let authenticity = Arc::new(Authenticity::to_read(&reader, folder, store.as_ref())?);
        let can_be_keyed = reader.can_be_keyed;
        let readers = Readers::new(reader.connection, &path, &settings);
        let (folder, here, writer) = (folder.to_owned(), Process::this(), None);
        let inner = Inner {
            folder,
            path,
            file,
            here,
            settings,
            authenticity,
            readers,
            can_be_keyed,
            writer,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What the user should know about the journal.
    pub fn notices(&self) -> &[Notice] {
        &self.inner.authenticity.notices
    }

    /// The transcripts in the state folder.
    pub fn transcripts(&self) -> TranscriptStore {
        TranscriptStore::new(&self.inner.folder)
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

    /// A code with the key of this journal for something that was made from a run, in hex. Without
    /// the key nobody can compute it. None if the journal has no key, or it is not available.
    pub fn seal(&self, run: &str, content: &[u8]) -> Option<String> {
        self.inner.authenticity.own().seal(run, content).map(hex::encode)
    }

    /// The state folder.
    pub fn folder(&self) -> &Path {
        &self.inner.folder
    }

    /// The folder with the keys of journals, if there is one.
    pub fn keys(&self) -> Option<&Path> {
        self.inner.settings.keys.as_deref()
    }

    /// The number of transactions since the journal was opened.
    pub fn commits(&self) -> u64 {
        self.inner.writer.as_ref().map_or(0, Writer::commits)
    }

    fn writer(&self) -> Result<&Writer> {
        self.inner.writer.as_ref().ok_or_else(|| Error::ReadOnly { path: self.inner.path.clone() })
    }

    /// Reads with a connection that no other thread uses.
    fn read<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        self.refuse_gone()?;
        self.inner.readers.read(query)
    }

    /// Reads with the same connection each time.
    fn read_with_main<T>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T> {
        self.refuse_gone()?;
        self.inner.readers.read_with_main(query)
    }

    fn refuse_gone(&self) -> Result<()> {
        let path = &self.inner.path;
        if identity(path) == Some(self.inner.file) {
            Ok(())
        } else {
            Err(Error::Gone { path: path.clone() })
        }
    }
}

/// Creates the folder and an empty file for the journal, and says whether that is new.
fn prepare(folder: &Path, path: &Path) -> Result<bool> {
    let unusable = |error: &io::Error| match error.kind() {
        _ if let Some(why) = NoRoom::of(error) => Error::Full { path: path.to_owned(), why },
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Error::ReadOnly { path: path.to_owned() }
        }
        _ if folder.is_file() => {
            Error::Folder { path: folder.to_owned(), why: "it is a file".to_owned() }
        }
        _ => Error::Folder { path: folder.to_owned(), why: error.to_string() },
    };
    refuse_lost(folder, None)?;
    make_folder(folder).map_err(|error| unusable(&error))?;
    refuse_links(folder)?;
    // SQLite would create it for all users. Its log has the mode of the file.
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(unusable(&error)),
    }
}

/// Refuses a state folder in which runs were recorded and whose journal is missing: a new one would
/// hide that. Transcripts are written for runs only; a folder of keys knows the runs, too.
///
/// # Errors
///
/// The journal is missing although runs were recorded.
pub fn refuse_lost(folder: &Path, keys: Option<&Path>) -> Result<()> {
    let path = folder.join(FILE);
    if path.symlink_metadata().is_err() && had_runs(folder, keys) {
        return Err(Error::Lost { path });
    }
    Ok(())
}

/// Whether runs were recorded in a state folder, as far as its transcripts and the keys know.
fn had_runs(folder: &Path, keys: Option<&Path>) -> bool {
    let has_transcripts = || {
        fs::read_dir(folder.join("transcripts")).is_ok_and(|mut entries| entries.next().is_some())
    };
    let is_known = || keys.is_some_and(|keys| authenticity::had_runs(&KeyStore::new(keys), folder));
    has_transcripts() || is_known()
}

/// The error about a file that is no journal any more, in a state folder in which runs were recorded.
fn destroyed(folder: &Path, keys: Option<&Path>) -> Option<Error> {
    let path = folder.join(FILE);
    let why = schema::instead_of_database(&path)?;
    had_runs(folder, keys).then_some(Error::Destroyed { path, why })
}

/// Refuses a link in the state folder or in one of its folders, which have one entry for each run:
/// what is written there would go elsewhere. The state folder itself may be one.
fn refuse_links(folder: &Path) -> Result<()> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let is = |entry: &fs::DirEntry, kind: fn(&fs::FileType) -> bool| {
        entry.file_type().is_ok_and(|found| kind(&found))
    };
    let below = entries(folder)
        .filter(|entry| is(entry, fs::FileType::is_dir))
        .flat_map(|entry| entries(&entry.path()));
    let link = entries(folder)
        .chain(below)
        .filter(|entry| is(entry, fs::FileType::is_symlink))
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
    make_private_folder(folder)?;
    let mut options = OpenOptions::new();
    match options.write(true).create_new(true).mode(0o600).open(folder.join(".gitignore")) {
        Ok(mut file) => file.write_all(b"*\n"),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether the journal that cannot be opened may be one that another process is creating.
fn may_be_created(error: &Error) -> bool {
    match error {
        Error::Missing { .. } => false,
        Error::Destroyed { why, .. } => *why == schema::EMPTY,
        _ => true,
    }
}

/// Whether a file was created a moment ago.
fn is_young(path: &Path) -> bool {
    let created = fs::metadata(path).and_then(|file| file.created().or_else(|_| file.modified()));
    created.is_ok_and(|created| created.elapsed().is_ok_and(|age| age < YOUNG))
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
