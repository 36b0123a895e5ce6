//! What can go wrong with a journal, each with the place and the way out.

use counterfoil_agents::transcript::TranscriptError;
use std::path::{Path, PathBuf};

/// What a journal answers.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the journal did not do as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The state folder cannot be made or read.
    #[error("the state folder {} cannot be used: {why}; name another folder or make room for this one", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// Nothing can be written there.
    #[error("the journal {} cannot be written; allow writing there or open it only to read", path.display())]
    ReadOnly {
        /// The journal's file.
        path: PathBuf,
    },
    /// The log beside the file holds what was written last, and cannot be read where it is.
    #[error("the newest part of the journal {} is in its log, which cannot be read in a folder that cannot be written; copy the folder and read the copy", path.display())]
    Log {
        /// The journal's file.
        path: PathBuf,
    },
    /// There is no journal to read.
    #[error("there is no journal at {}; name the state folder of a run", path.display())]
    Missing {
        /// Where the file should be.
        path: PathBuf,
    },
    /// The file is something else; it was left as it is.
    #[error("{} is not a journal: {why}; it was left untouched, so move it away or name another folder", path.display())]
    NotAJournal {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        why: String,
    },
    /// The file was written by a later release; it was left as it is.
    #[error("the journal {} has version {found}, and this program knows versions up to {known}; it was left untouched, so upgrade the program", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The file's version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// No room is left. Nothing that was journaled is lost.
    #[error("no room is left to write the journal {}; nothing journaled is lost, so make room and go on", path.display())]
    Full {
        /// The journal's file.
        path: PathBuf,
    },
    /// Another process kept the file locked for longer than the journal waits.
    #[error("the journal {} stayed locked by another process; try again when it is done", path.display())]
    Busy {
        /// The journal's file.
        path: PathBuf,
    },
    /// The database itself is broken.
    #[error("the journal {} is damaged ({why}); restore it from a copy, or read what is left of each run", path.display())]
    Damaged {
        /// The journal's file.
        path: PathBuf,
        /// What was found.
        why: String,
    },
    /// The file was deleted or replaced while it was open.
    #[error("the journal {} was deleted or replaced while it was open; restore the folder and open it again", path.display())]
    Gone {
        /// Where the file was.
        path: PathBuf,
    },
    /// The database refused for a reason none of the others covers.
    #[error("the journal {} failed: {why}", path.display())]
    Store {
        /// The journal's file.
        path: PathBuf,
        /// What the database said.
        why: String,
    },
    /// The thread that writes has ended.
    #[error("the journal {} has stopped writing; open it again", path.display())]
    Stopped {
        /// The journal's file.
        path: PathBuf,
    },
    /// A run's chain of events is broken.
    #[error(
        "event {seq} of run {run} {why}; every event before it is intact and can be read with a visit"
    )]
    Broken {
        /// The run.
        run: String,
        /// The first event that is not as it was written.
        seq: u64,
        /// What is wrong with it.
        why: String,
    },
    /// Somebody else drives the run.
    #[error("run {run} is driven by process {pid} since {}; wait for it, or end that process", moment(*since))]
    Held {
        /// The run.
        run: String,
        /// The process that drives it.
        pid: u32,
        /// When it took the run, in Unix milliseconds.
        since: i64,
    },
    /// The lease was lost: nothing was written.
    #[error(
        "run {run} is no longer driven under epoch {epoch}: it was taken over and nothing was written; take it again"
    )]
    Fenced {
        /// The run.
        run: String,
        /// The epoch of the lease that was lost.
        epoch: u64,
    },
    /// There is no such run.
    #[error("no run is called '{run}' or starts so; list the runs to see their ids")]
    NoRun {
        /// What was asked for.
        run: String,
    },
    /// The id is taken.
    #[error("run {run} exists already; choose another id")]
    Exists {
        /// The run.
        run: String,
    },
    /// More than one run starts with what was given.
    #[error("'{prefix}' could be {}{}; give more of the id", candidates.join(", "), if *more { " and others" } else { "" })]
    Ambiguous {
        /// What was given.
        prefix: String,
        /// Runs that start with it, at most ten.
        candidates: Vec<String>,
        /// Whether there are others.
        more: bool,
    },
    /// There is no such bundle, or it is not what was stored.
    #[error("bundle {hash} {why}; restore the journal from a copy")]
    Bundle {
        /// The bundle's SHA-256.
        hash: String,
        /// What is wrong.
        why: String,
    },
    /// A run id cannot serve as the name of a folder.
    #[error("'{name}' cannot be a run id: {why}")]
    Name {
        /// The id.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A transcript cannot be written or read, or is not what was written.
    #[error("the transcript {} {why}", path.display())]
    Transcript {
        /// The transcript's file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

impl Error {
    /// Whether the write failed as such, so that the transaction around it must not be committed.
    pub(super) fn spoils_group(&self) -> bool {
        !matches!(
            self,
            Self::Held { .. } | Self::Fenced { .. } | Self::NoRun { .. } | Self::Exists { .. }
        )
    }

    /// What `SQLite` said, in the journal's words.
    pub(super) fn store(path: &Path, error: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let path_buf = || path.to_owned();
        let why = error.to_string();
        match error.sqlite_error_code() {
            Some(Code::DatabaseCorrupt) => Self::Damaged { path: path_buf(), why },
            Some(Code::NotADatabase) => Self::Damaged { path: path_buf(), why },
            // What is written is checked before: a conflict is with rows that should not be there.
            Some(Code::ConstraintViolation) => Self::Damaged { path: path_buf(), why },
            None if is_foreign(error) => Self::Damaged { path: path_buf(), why },
            _ if !path.exists() => Self::Gone { path: path_buf() },
            Some(Code::DiskFull) => Self::Full { path: path_buf() },
            // The shared index beside the log cannot grow: SQLite calls that an I/O failure.
            Some(Code::SystemIoFailure) if no_room(path) => Self::Full { path: path_buf() },
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => Self::Busy { path: path_buf() },
            Some(Code::ReadOnly) => Self::ReadOnly { path: path_buf() },
            Some(Code::CannotOpen) if !writable(path) => Self::ReadOnly { path: path_buf() },
            _ => Self::Store { path: path_buf(), why },
        }
    }
}

/// Whether a value is not of the kind that the journal writes.
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

/// Whether the file system that holds a path has nothing left to give.
fn no_room(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|system| system.f_bavail == 0)
}

/// Whether the folder around a file allows writing.
fn writable(path: &Path) -> bool {
    path.parent()
        .is_none_or(|folder| rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok())
}

/// Unix milliseconds as people read them.
fn moment(at: i64) -> String {
    jiff::Timestamp::from_millisecond(at).map_or_else(|_| format!("{at} ms"), |at| at.to_string())
}

impl From<TranscriptError> for Error {
    fn from(error: TranscriptError) -> Self {
        match error {
            TranscriptError::Full { path } => Self::Full { path },
            TranscriptError::InvalidRun { run } => {
                Self::Name { name: run, why: "it is not a valid run id" }
            }
            TranscriptError::File { path, why } => Self::Transcript { path, why },
            error => Self::Transcript { path: PathBuf::new(), why: error.to_string() },
        }
    }
}
