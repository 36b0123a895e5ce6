//! The journal file: recognises, creates, migrates and opens it.

use super::Settings;
use super::error::{Error, Result};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Marks the file as a journal: `CsJn`.
pub(super) const APPLICATION_ID: i64 = 0x4373_4a6e;

/// The migrations from an empty file to the current schema. A released migration is never changed.
/// The version of a file is the number of migrations that were applied to it.
const MIGRATIONS: &[&str] = &[
    "
CREATE TABLE bundles (
    hash TEXT PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;
CREATE TABLE runs (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    workflow TEXT NOT NULL,
    version INTEGER NOT NULL,
    bundle TEXT NOT NULL REFERENCES bundles (hash),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    outcome TEXT,
    cause TEXT,
    state TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '',
    iterations INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cost_usd REAL DEFAULT 0,
    wall_ms INTEGER NOT NULL DEFAULT 0,
    questions INTEGER NOT NULL DEFAULT 0,
    next_seq INTEGER NOT NULL DEFAULT 1,
    digest BLOB NOT NULL,
    epoch INTEGER NOT NULL DEFAULT 0,
    holder TEXT,
    pid INTEGER,
    started INTEGER,
    boot TEXT,
    namespace TEXT,
    since INTEGER,
    heartbeat INTEGER
) STRICT;
CREATE INDEX runs_newest ON runs (created_at DESC, id DESC);
CREATE INDEX runs_held ON runs (holder) WHERE holder IS NOT NULL;
CREATE TABLE events (
    run INTEGER NOT NULL REFERENCES runs (number),
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;
-- Apart from the runs, whose rows are rewritten with every append and stay small this way.
CREATE TABLE snapshots (
    run INTEGER PRIMARY KEY REFERENCES runs (number),
    seq INTEGER NOT NULL,
    body BLOB NOT NULL,
    digest BLOB NOT NULL
) STRICT;
CREATE TABLE inbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL REFERENCES runs (number),
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE INDEX inbox_of_run ON inbox (run, id);
",
    "
-- One row, if the journal has a key: its name.
CREATE TABLE journal (id TEXT NOT NULL) STRICT;
-- Whether the digests of the run are computed with the key.
ALTER TABLE runs ADD COLUMN keyed INTEGER NOT NULL DEFAULT 0;
-- The authentication code of the row.
ALTER TABLE runs ADD COLUMN code BLOB;
ALTER TABLE inbox ADD COLUMN code BLOB;
",
];

/// The first version whose journals can have a key.
const KEYED_VERSION: i64 = 2;
/// The first version that can be read without migrating it.
const READABLE_VERSION: i64 = 1;

/// The size to which the log is truncated after a checkpoint.
const MAX_IDLE_LOG: i64 = 64 << 20;

/// Opens the journal for writing. It is created or migrated if necessary.
pub(super) fn open_to_write(path: &Path, settings: &Settings) -> Result<Connection> {
    let migrations = MIGRATIONS;
    inspect(path, migrations.len())?;
    let store = |error: rusqlite::Error| Error::store(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection =
        Connection::open_with_flags(path, flags).map_err(|error| unopened(path, &error))?;
    connection.busy_timeout(settings.busy_timeout).map_err(store)?;
    connection.set_prepared_statement_cache_capacity(32);
    if connection.is_readonly("main").map_err(store)? {
        return Err(Error::ReadOnly { path: path.to_owned() });
    }
    migrate(&mut connection, path, migrations)?;
    use_log(&connection, path, settings.busy_timeout)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(store)?;
    // On macOS `fsync` leaves data in the cache of the disk. Elsewhere these change nothing.
    connection.pragma_update(None, "fullfsync", true).map_err(store)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true).map_err(store)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(store)?;
    connection.pragma_update(None, "journal_size_limit", MAX_IDLE_LOG).map_err(store)?;
    if let Some(pages) = settings.page_limit {
        connection.pragma_update(None, "max_page_count", pages).map_err(store)?;
    }
    Ok(connection)
}

/// A connection for reading.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) connection: Connection,
    /// Whether the journal can have a key. One of the first version cannot.
    pub(super) can_be_keyed: bool,
}

/// Opens the journal for reading. In a read-only folder with an empty log the file is opened as
/// immutable.
pub(super) fn open_to_read(path: &Path, settings: &Settings) -> Result<Reader> {
    let known = MIGRATIONS.len();
    inspect(path, known)?;
    let open = |flags: OpenFlags, name: &Path| -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(name, flags)?;
        connection.busy_timeout(settings.busy_timeout)?;
        connection.set_prepared_statement_cache_capacity(32);
        // SQLite opens files lazily: this query fails if the log cannot be used.
        version(&connection)?;
        Ok(connection)
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match open(flags, path) {
        Err(error) if unusable_log(&error) && path.exists() => {
            if !log_is_empty(path) {
                return Err(Error::Log { path: path.to_owned() });
            }
            open(flags | OpenFlags::SQLITE_OPEN_URI, &immutable_name(path))
        }
        other => other,
    };
    let connection = connection.map_err(|error| unopened(path, &error))?;
    let found = version(&connection).map_err(|error| Error::store(path, &error))?;
    if found < READABLE_VERSION {
        let why = match instead_of_database(path) {
            Some(why) => why.to_owned(),
            None => format!(
                "it has version {found}, but version {READABLE_VERSION} is required (opening it once for writing migrates it)"
            ),
        };
        return Err(Error::NotAJournal { path: path.to_owned(), why });
    }
    Ok(Reader { connection, can_be_keyed: found >= KEYED_VERSION })
}

/// The first bytes of every `SQLite` file.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// What is said of a file without content. Only such a file can be one that is being created.
pub(super) const EMPTY: &str = "it is empty";

/// What is in place of a `SQLite` file; none if there is one, or no file that can be read.
pub(super) fn instead_of_database(path: &Path) -> Option<&'static str> {
    // Opening a pipe would block.
    if !fs::metadata(path).is_ok_and(|meta| meta.is_file()) {
        return None;
    }
    let mut begin = Vec::new();
    fs::File::open(path).ok()?.take(MAGIC.len() as u64).read_to_end(&mut begin).ok()?;
    match begin.as_slice() {
        [] => Some(EMPTY),
        begin if begin != MAGIC => Some("it is not a SQLite file"),
        _ => None,
    }
}

/// Rejects files that are not journals, and newer journals, without changing them.
fn inspect(path: &Path, known: usize) -> Result<()> {
    let refuse = |why: &str| Err(Error::NotAJournal { path: path.to_owned(), why: why.to_owned() });
    let mut header = Vec::new();
    // Opening a pipe would block.
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        return refuse("it is not a regular file");
    }
    match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unreadable(path, &error)),
        Ok(file) => {
            file.take(100).read_to_end(&mut header).map_err(|error| unreadable(path, &error))?;
        }
    }
    if header.is_empty() {
        return Ok(());
    }
    if !header.starts_with(MAGIC) {
        return refuse("it is not a SQLite file");
    }
    let (Some(version), Some(application)) = (number_at(&header, 60), number_at(&header, 68))
    else {
        return Err(Error::Damaged {
            path: path.to_owned(),
            why: format!("it has only {} bytes", header.len()),
        });
    };
    if application == APPLICATION_ID {
        return refuse_newer(path, version, known);
    }
    if application != 0 {
        return refuse("it is a SQLite file of another program");
    }
    // The header has no application id: an empty database, one of another program, or a journal
    // whose content is still in the log.
    let store = |error: rusqlite::Error| unopened(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = if log_is_empty(path) {
        // Immutable, so that SQLite creates no other files.
        Connection::open_with_flags(immutable_name(path), flags | OpenFlags::SQLITE_OPEN_URI)
    } else {
        Connection::open_with_flags(path, flags)
    };
    let connection = connection.map_err(store)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(store)?;
    connection.busy_timeout(Duration::from_secs(10)).map_err(store)?;
    let application: i64 =
        connection.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(store)?;
    if application == APPLICATION_ID {
        return refuse_newer(path, version_of(&connection, path)?, known);
    }
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(store)?;
    if application != 0 || tables != 0 {
        refuse("it is a SQLite file of another program")
    } else {
        Ok(())
    }
}

/// Applies the missing migrations, all of them or none.
fn migrate(connection: &mut Connection, path: &Path, migrations: &[&str]) -> Result<()> {
    let store = |error: rusqlite::Error| Error::store(path, &error);
    let known = known_version(migrations.len());
    let found = version_of(connection, path)?;
    if found == known {
        return Ok(());
    }
    refuse_newer(path, found, migrations.len())?;
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(store)?;
    // Another process may have migrated it before the lock was acquired.
    let found = version_of(&transaction, path)?;
    refuse_newer(path, found, migrations.len())?;
    for migration in migrations.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(migration).map_err(store)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(store)?;
    transaction.pragma_update(None, "user_version", known).map_err(store)?;
    transaction.commit().map_err(store)
}

/// Switches to a write-ahead log. `SQLite` ignores the busy timeout here, so this function retries.
fn use_log(connection: &Connection, path: &Path, wait: Duration) -> Result<()> {
    let until = Instant::now() + wait;
    loop {
        let mode =
            connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
        match mode.map_err(|error| Error::store(path, &error)) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                let why = format!(
                    "a write-ahead log cannot be used there (the journal mode is '{mode}')"
                );
                return Err(Error::Store { path: path.to_owned(), why });
            }
            Err(Error::Busy { .. }) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(error) => return Err(error),
        }
    }
}

fn refuse_newer(path: &Path, found: i64, known: usize) -> Result<()> {
    let known = known_version(known);
    if found > known { Err(Error::Newer { path: path.to_owned(), found, known }) } else { Ok(()) }
}

fn known_version(migrations: usize) -> i64 {
    i64::try_from(migrations).unwrap_or(i64::MAX)
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

fn version_of(connection: &Connection, path: &Path) -> Result<i64> {
    version(connection).map_err(|error| Error::store(path, &error))
}

fn number_at(header: &[u8], at: usize) -> Option<i64> {
    let bytes: [u8; 4] = header.get(at..at + 4)?.try_into().ok()?;
    // A file with an incomplete header is damaged.
    (header.len() == 100).then_some(i64::from(u32::from_be_bytes(bytes)))
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::Folder { path: path.to_owned(), why: error.to_string() }
}

/// A file that does not exist when it is opened is missing, not deleted meanwhile.
fn unopened(path: &Path, error: &rusqlite::Error) -> Error {
    match Error::store(path, error) {
        Error::Gone { path } => Error::Missing { path },
        other => other,
    }
}

fn unusable_log(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode as Code;
    matches!(
        error.sqlite_error_code(),
        Some(Code::CannotOpen | Code::ReadOnly | Code::SystemIoFailure | Code::PermissionDenied)
    )
}

fn log_is_empty(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    match fs::metadata(PathBuf::from(log)) {
        Ok(metadata) => metadata.len() == 0,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// The name of the file as a `SQLite` URI with the option `immutable`. Special bytes are escaped.
fn immutable_name(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut name = String::from("file://");
    for byte in absolute.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                name.push(char::from(*byte));
            }
            other => name.push_str(&format!("%{other:02X}")),
        }
    }
    name.push_str("?immutable=1");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "CREATE TABLE notes (text TEXT NOT NULL) STRICT;";
    const SECOND: &str = "ALTER TABLE notes ADD COLUMN author TEXT NOT NULL DEFAULT 'nobody';";

    #[test]
    fn a_journal_is_synced_through_the_cache_of_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let connection = open_to_write(&path, &Settings::default()).unwrap();
        for (pragma, expected) in
            [("synchronous", 2), ("fullfsync", 1), ("checkpoint_fullfsync", 1)]
        {
            let value = connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
            assert_eq!(value.unwrap(), expected, "{pragma}");
        }
    }

    #[test]
    fn an_older_file_goes_only_through_the_steps_it_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let mut connection = Connection::open(&path).unwrap();
        migrate(&mut connection, &path, &[FIRST]).unwrap();
        connection.execute("INSERT INTO notes VALUES ('kept')", []).unwrap();
        assert_eq!(version(&connection).unwrap(), 1);

        migrate(&mut connection, &path, &[FIRST, SECOND]).unwrap();
        let row = connection
            .query_row("SELECT text, author FROM notes", [], |row| Ok((row.get(0)?, row.get(1)?)));
        assert_eq!(row.unwrap(), ("kept".to_owned(), "nobody".to_owned()));
        assert_eq!(version(&connection).unwrap(), 2);
        migrate(&mut connection, &path, &[FIRST, SECOND]).unwrap();

        let error = migrate(&mut connection, &path, &[FIRST]).unwrap_err();
        assert_eq!(error, Error::Newer { path, found: 2, known: 1 });
    }

    #[test]
    fn a_step_that_fails_leaves_the_file_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let mut connection = Connection::open(&path).unwrap();
        migrate(&mut connection, &path, &[FIRST]).unwrap();
        migrate(&mut connection, &path, &[FIRST, SECOND, "CREATE TABLE notes (again TEXT);"])
            .unwrap_err();
        assert_eq!(version(&connection).unwrap(), 1);
        connection.execute("INSERT INTO notes VALUES ('one column still')", []).unwrap();
    }
}
