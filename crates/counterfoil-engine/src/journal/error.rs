//! The errors of the journal.

use counterfoil_agents::transcript::TranscriptError;
use counterfoil_contract::text::display_path;
use counterfoil_workspace::NoRoom;
use std::path::{Path, PathBuf};

/// The result of an operation on the journal.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation on the journal failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The state folder cannot be created or read.
    #[error("the state folder {} cannot be used: {why}; choose another folder", display_path(path))]
    Folder {
        /// The path of the state folder.
        path: PathBuf,
        /// The error of the system.
        why: String,
    },
    /// The journal is missing although runs were recorded.
    #[error(
        "the journal {} is missing, although runs were recorded; restore it from a backup; to start anew, move the rest of the folder away and start a run",
        display_path(path)
    )]
    Lost {
        /// Where the file was.
        path: PathBuf,
    },
    /// There is a link in the state folder.
    #[error(
        "{} is a link, and links in a state folder are not followed; remove it, or put back what was there",
        display_path(path)
    )]
    Link {
        /// The path of the link.
        path: PathBuf,
    },
    /// The journal is read-only.
    #[error(
        "the journal {} cannot be written; allow writing there or open it for reading only",
        display_path(path)
    )]
    ReadOnly {
        /// The path of the journal.
        path: PathBuf,
    },
    /// The write-ahead log has the latest events, but cannot be read in a read-only folder.
    #[error(
        "the latest events of the journal {} are in its log, which cannot be read in a read-only folder; copy the folder and read the copy",
        display_path(path)
    )]
    Log {
        /// The path of the journal.
        path: PathBuf,
    },
    /// There is no journal.
    #[error("there is no journal at {}; specify the state folder of a run", display_path(path))]
    Missing {
        /// Where the file should be.
        path: PathBuf,
    },
    /// The file is not a journal. It was not changed.
    #[error(
        "{} is not a journal: {why}; it was not changed; move it or choose another folder",
        display_path(path)
    )]
    NotAJournal {
        /// The path of the file.
        path: PathBuf,
        /// Why it is not a journal.
        why: String,
    },
    /// The file was written by a later version. It was not changed.
    #[error(
        "the journal {} has version {found}, but this program supports versions up to {known}; it was not changed; upgrade the program",
        display_path(path)
    )]
    Newer {
        /// The path of the file.
        path: PathBuf,
        /// The version of the file.
        found: i64,
        /// The latest supported version.
        known: i64,
    },
    /// There is no room. No recorded event is lost.
    #[error("{why}, so that {} cannot be written; no recorded event is lost; {} and continue", display_path(path), why.remedy())]
    Full {
        /// The file that could not be written: the journal, a transcript or an artifact.
        path: PathBuf,
        /// Why there is none.
        why: NoRoom,
    },
    /// Another process kept the file locked for longer than the timeout.
    #[error("the journal {} is locked by another process; try again later", display_path(path))]
    Busy {
        /// The path of the journal.
        path: PathBuf,
    },
    /// The database is damaged.
    #[error(
        "the journal {} is damaged ({why}); restore it from a backup, or read the intact events of each run",
        display_path(path)
    )]
    Damaged {
        /// The path of the journal.
        path: PathBuf,
        /// The damage that was found.
        why: String,
    },
    /// Nothing of the journal is left in its file. It was not changed.
    #[error(
        "the journal {} is destroyed: {why}; it was not changed; restore it from a backup; to start anew, move the folder away and start a run",
        display_path(path)
    )]
    Destroyed {
        /// The path of the file.
        path: PathBuf,
        /// What is there instead.
        why: &'static str,
    },
    /// The file was deleted or replaced while it was open.
    #[error(
        "the journal {} was deleted or replaced while it was open; restore the folder and open it again",
        display_path(path)
    )]
    Gone {
        /// Where the file was.
        path: PathBuf,
    },
    /// The database failed for another reason.
    #[error("the journal {} failed: {why}", display_path(path))]
    Store {
        /// The path of the journal.
        path: PathBuf,
        /// The error of the database.
        why: String,
    },
    /// The writer thread has ended.
    #[error("the journal {} has stopped writing; open it again", display_path(path))]
    Stopped {
        /// The path of the journal.
        path: PathBuf,
    },
    /// An event of a run is damaged or missing.
    #[error("event {seq} of run {run} {why}; all events before it are intact and can be read")]
    Broken {
        /// The run's id.
        run: String,
        /// The first damaged event.
        seq: u64,
        /// What is wrong with it.
        why: String,
    },
    /// The key of the journal is missing or cannot be used.
    #[error(
        "the key of the journal, {}, {why}: whether the journal was altered cannot be told; restore the key, or keep new runs in another state folder",
        display_path(path)
    )]
    Key {
        /// The path of the key.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// There is another journal than the one that was there before.
    #[error(
        "the journal {} is not the one that was there before; put that one back, or remove {} to accept this one",
        display_path(path),
        display_path(record)
    )]
    Replaced {
        /// The path of the journal.
        path: PathBuf,
        /// The file that says which journal was there.
        record: PathBuf,
    },
    /// The journal is a copy of another one.
    #[error(
        "the journal {} is a copy of {}, and both cannot be continued; use that one, or another state folder",
        display_path(path),
        display_path(original)
    )]
    Copy {
        /// The path of the copy.
        path: PathBuf,
        /// The path of the original.
        original: PathBuf,
    },
    /// Events or runs that were recorded are not in the journal.
    #[error(
        "{what}; restore the newest journal.db with journal.db-wal, or remove {} to accept what is there",
        display_path(record)
    )]
    Behind {
        /// What is missing.
        what: String,
        /// The file that says what was recorded.
        record: PathBuf,
    },
    /// The row of a run or a message to it was altered by another program.
    #[error(
        "{what} was altered by another program; restore the journal from a backup, or continue with another run"
    )]
    Altered {
        /// What was altered.
        what: String,
    },
    /// Another process drives the run.
    #[error("run {run} has been driven by process {pid} since {}; wait for it, or end that process", moment(*since))]
    AlreadyDriven {
        /// The run's id.
        run: String,
        /// The process that drives it.
        pid: u32,
        /// When it acquired the lease, in milliseconds since 1970.
        since: i64,
    },
    /// The lease was lost. Nothing was written.
    #[error(
        "the lease of run {run} with epoch {epoch} was lost: another process has acquired it, and nothing was written"
    )]
    Fenced {
        /// The run's id.
        run: String,
        /// The epoch of the lease that was lost.
        epoch: u64,
    },
    /// There is no such run.
    #[error("there is no run '{run}', and no run id starts with it")]
    NoRun {
        /// The id that was requested.
        run: String,
    },
    /// The id is already used.
    #[error("run {run} already exists; choose another id")]
    Exists {
        /// The run's id.
        run: String,
    },
    /// Several run ids start with the prefix.
    #[error("'{prefix}' is ambiguous: {}{}; use a longer prefix", candidates.join(", "), if *more { " and others" } else { "" })]
    Ambiguous {
        /// The prefix that was given.
        prefix: String,
        /// Run ids that start with it, at most ten.
        candidates: Vec<String>,
        /// Whether there are more.
        more: bool,
    },
    /// A bundle is missing or damaged.
    #[error("bundle {hash} {why}; restore the journal from a backup")]
    Bundle {
        /// The SHA-256 hash of the bundle.
        hash: String,
        /// What is wrong with it.
        why: String,
    },
    /// A run id is not valid as the name of a folder.
    #[error("'{name}' cannot be a run id: {why}")]
    Name {
        /// The id that is not valid.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A place in the list of runs is not one, or belongs to another list.
    #[error("the place in the list of runs {why}; begin with the first page")]
    Cursor {
        /// What is wrong with it.
        why: &'static str,
    },
    /// A transcript cannot be written or read, or is damaged.
    #[error("the transcript {} {why}", display_path(path))]
    Transcript {
        /// The path of the transcript.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl Error {
    /// Whether the transaction around the operation must not be committed.
    pub(super) fn aborts_transaction(&self) -> bool {
        !matches!(
            self,
            Self::AlreadyDriven { .. }
                | Self::Fenced { .. }
                | Self::NoRun { .. }
                | Self::Exists { .. }
        )
    }

    /// Converts an error of `SQLite`.
    pub(super) fn store(path: &Path, error: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let path_buf = || path.to_owned();
        let why = error.to_string();
        match error.sqlite_error_code() {
            Some(Code::DatabaseCorrupt) => Self::Damaged { path: path_buf(), why },
            Some(Code::NotADatabase) => Self::Damaged { path: path_buf(), why },
            // Requests are checked before they are written, so a conflict means damaged rows.
            Some(Code::ConstraintViolation) => Self::Damaged { path: path_buf(), why },
            None if is_foreign(error) => Self::Damaged { path: path_buf(), why },
            _ if !path.exists() => Self::Gone { path: path_buf() },
            Some(Code::DiskFull) => Self::Full { path: path_buf(), why: NoRoom::Disk },
            // SQLite reports an I/O failure if the shared index of its log cannot grow, and if a file
            // reaches the limit on the size of files.
            Some(Code::SystemIoFailure) if let Some(why) = no_room(path) => {
                Self::Full { path: path_buf(), why }
            }
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => Self::Busy { path: path_buf() },
            Some(Code::ReadOnly) => Self::ReadOnly { path: path_buf() },
            Some(Code::CannotOpen) if !writable(path) => Self::ReadOnly { path: path_buf() },
            _ => Self::Store { path: path_buf(), why },
        }
    }
}

/// Whether a value has another type than the journal writes.
fn is_foreign(error: &rusqlite::Error) -> bool {
    use rusqlite::Error as Sql;
    matches!(
        error,
        Sql::InvalidColumnType(..)
            | Sql::FromSqlConversionFailure(..)
            | Sql::IntegralValueOutOfRange(..)
            | Sql::Utf8Error(..)
    )
}

/// Why the journal, its log or the index of the log cannot grow, if that is so.
fn no_room(path: &Path) -> Option<NoRoom> {
    let beside = |suffix: &str| PathBuf::from(format!("{}{suffix}", path.display()));
    let files = [path.to_owned(), beside("-wal"), beside("-shm")];
    NoRoom::likely(files.iter().map(PathBuf::as_path))
}

/// Whether the folder of a file is writable.
fn writable(path: &Path) -> bool {
    path.parent()
        .is_none_or(|folder| rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok())
}

/// Formats milliseconds since 1970.
fn moment(at: i64) -> String {
    jiff::Timestamp::from_millisecond(at).map_or_else(|_| format!("{at} ms"), |at| at.to_string())
}

impl From<TranscriptError> for Error {
    fn from(error: TranscriptError) -> Self {
        match error {
            TranscriptError::Full { path, why } => Self::Full { path, why },
            TranscriptError::InvalidRun { run } => {
                Self::Name { name: run, why: "it is not a valid run id" }
            }
            TranscriptError::File { path, why } => Self::Transcript { path, why },
            error => Self::Transcript { path: PathBuf::new(), why: error.to_string() },
        }
    }
}
