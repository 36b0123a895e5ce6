//! Whether a journal is the one that was recorded. Finds its key, and compares the journal with
//! what is known beside the key.

use super::FILE;
use super::chain::Digests;
use super::error::{Error, Result};
use super::keys::{CUT_OFF, Head, JournalKey, KeyStore};
use super::schema::Reader;
use counterfoil_contract::text::display_path;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use std::fmt;
use std::path::{Path, PathBuf};

/// What the user of a journal should know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The journal has no key, because none can be stored.
    NoKey {
        /// The error of the system.
        why: String,
    },
    /// The key is missing, so that nothing that was read is checked.
    MissingKey {
        /// Where the key should be.
        path: PathBuf,
        /// The error of the system.
        why: String,
    },
    /// The journal that was there before is gone. This is a new one.
    LostBefore {
        /// The path of the journal.
        path: PathBuf,
        /// The number of its runs.
        runs: u64,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKey { why } => write!(
                formatter,
                "the journal has no key ({why}), so changes to it by other programs are not noticed"
            ),
            Self::MissingKey { path, why } => write!(
                formatter,
                "the key of the journal, {}, cannot be read ({why}), so whether the journal was altered cannot be told",
                display_path(path)
            ),
            Self::LostBefore { path, runs } => write!(
                formatter,
                "the journal {}, which had {runs} run{}, is gone; a new one was begun",
                display_path(path),
                if *runs == 1 { "" } else { "s" }
            ),
        }
    }
}

/// The key of an open journal, and what to say about it.
#[derive(Debug, Default)]
pub(super) struct Authenticity {
    pub(super) key: Option<JournalKey>,
    pub(super) notices: Vec<Notice>,
}

impl Authenticity {
    /// For a journal that is written. It gets a key if it has none.
    pub(super) fn to_write(
        connection: &mut Connection,
        folder: &Path,
        store: Option<&KeyStore>,
        is_new: bool,
    ) -> Result<Self> {
        let path = folder.join(FILE);
        let failed = |error: rusqlite::Error| Error::store(&path, &error);
        // One process at a time creates a key.
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let id = id(&transaction).map_err(failed)?;
        let Some(store) = store else {
            return match id {
                None => Ok(Self::default()),
                Some(_) => Err(Error::Key {
                    path: PathBuf::from("unknown"),
                    why: "is in no folder that was named".to_owned(),
                }),
            };
        };
        let (opened, last) = match id {
            Some(id) => {
                refuse_other(store, folder, Some(&id))?;
                let key = store.load(&id, true).map_err(|error| unusable(store, &id, &error))?;
                store.register(&id, &key, folder)?;
                let last = key.last_run();
                (Self { key: Some(key), notices: Vec::new() }, last)
            }
            None => (add_key(&transaction, folder, store, is_new)?, 0),
        };
        if let Some(key) = &opened.key {
            let found = last_run(&transaction).map_err(failed)?;
            refuse_missing_runs(key, last, found)?;
        }
        transaction.commit().map_err(failed)?;
        Ok(opened)
    }

    /// For a journal that is only read.
    pub(super) fn to_read(
        reader: &Reader,
        folder: &Path,
        store: Option<&KeyStore>,
    ) -> Result<Self> {
        let path = folder.join(FILE);
        let failed = |error: rusqlite::Error| Error::store(&path, &error);
        let Some(store) = store else { return Ok(Self::default()) };
        let id = if reader.can_be_keyed { id(&reader.connection).map_err(failed)? } else { None };
        refuse_other(store, folder, id.as_deref())?;
        let Some(id) = id else { return Ok(Self::default()) };
        match store.load(&id, false) {
            Ok(key) => {
                // Read before the journal, which may grow meanwhile.
                let last = key.last_run();
                let found = last_run(&reader.connection).map_err(failed)?;
                refuse_missing_runs(&key, last, found)?;
                Ok(Self { key: Some(key), notices: Vec::new() })
            }
            Err(error) => {
                let notice =
                    Notice::MissingKey { path: store.key_path(&id), why: error.to_string() };
                Ok(Self { key: None, notices: vec![notice] })
            }
        }
    }

    /// How the digests of a run are computed; none if they cannot be checked, because the key is
    /// not available. An error says why it cannot be a run of this journal.
    pub(super) fn digests(
        &self,
        number: i64,
        keyed: bool,
    ) -> Result<Option<Digests<'_>>, &'static str> {
        match &self.key {
            Some(key) => key.digests(number, keyed).map(Some),
            None => Ok((!keyed).then_some(Digests::Plain)),
        }
    }

    /// The digests of new runs and of messages.
    pub(super) fn own(&self) -> Digests<'_> {
        self.key.as_ref().map_or(Digests::Plain, JournalKey::own)
    }

    /// Where a run was before, if that is known.
    pub(super) fn head(&self, number: i64) -> Option<Head> {
        self.key.as_ref()?.head(number)
    }

    /// Refuses a run that has not come as far as it was before.
    pub(super) fn refuse_behind(&self, run: &str, before: Option<Head>, found: Head) -> Result<()> {
        match (&self.key, before.and_then(|before| before.compare(found))) {
            (Some(key), Some(why)) => Err(Error::Behind {
                what: format!("run {run} {why}"),
                record: key.heads_path().to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// Gives a journal a key. What it has until then stays as it is.
fn add_key(
    connection: &Connection,
    folder: &Path,
    store: &KeyStore,
    is_new: bool,
) -> Result<Authenticity> {
    let path = folder.join(FILE);
    let failed = |error: rusqlite::Error| Error::store(&path, &error);
    let last = last_run(connection).map_err(failed)?;
    let mut notices = Vec::new();
    let no_key = |why: String| Ok(Authenticity { key: None, notices: vec![Notice::NoKey { why }] });
    let earlier = match store.registered(folder) {
        Ok(earlier) => earlier,
        Err(error) => return no_key(error.to_string()),
    };
    if let Some(earlier) = &earlier {
        if last > 0 {
            return Err(Error::Replaced { path, record: store.index_path(folder) });
        }
        let runs = store.runs(earlier);
        if runs > 0 && !is_new {
            let what =
                format!("{} is empty, although runs were recorded: {CUT_OFF}", display_path(&path));
            return Err(Error::Behind { what, record: store.index_path(folder) });
        }
        if runs > 0 {
            notices.push(Notice::LostBefore { path: path.clone(), runs });
        }
    }
    let id = uuid::Uuid::now_v7().to_string();
    let key = match store.create(&id, folder, last) {
        Ok(key) => key,
        Err(error) => return no_key(error.to_string()),
    };
    if let Err(error) = store.register(&id, &key, folder) {
        store.forget(&id);
        return no_key(error.to_string());
    }
    if let Some(earlier) = earlier {
        store.forget(&earlier);
    }
    let write = || -> rusqlite::Result<()> {
        connection.execute("INSERT INTO journal (id) VALUES (?1)", [&id])?;
        // Messages that wait since before.
        let query = "SELECT inbox.id, runs.id, at, kind, body FROM inbox JOIN runs ON number = run";
        let mut select = connection.prepare(query)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let (message, run): (i64, String) = (row.get(0)?, row.get(1)?);
            let (kind, body): (String, Vec<u8>) = (row.get(3)?, row.get(4)?);
            let code = key.own().message(&run, message, row.get(2)?, &kind, &body);
            connection.execute("UPDATE inbox SET code = ?2 WHERE id = ?1", (message, code))?;
        }
        Ok(())
    };
    write().map_err(failed)?;
    Ok(Authenticity { key: Some(key), notices })
}

/// Whether runs were recorded in a state folder, as far as the keys know.
pub(super) fn had_runs(store: &KeyStore, folder: &Path) -> bool {
    matches!(store.registered(folder), Ok(Some(id)) if store.runs(&id) > 0)
}

/// Refuses another journal than the one that was in the folder before.
fn refuse_other(store: &KeyStore, folder: &Path, id: Option<&str>) -> Result<()> {
    match store.registered(folder) {
        Ok(Some(before)) if Some(before.as_str()) != id => {
            Err(Error::Replaced { path: folder.join(FILE), record: store.index_path(folder) })
        }
        _ => Ok(()),
    }
}

fn refuse_missing_runs(key: &JournalKey, recorded: i64, found: i64) -> Result<()> {
    if found >= recorded {
        return Ok(());
    }
    let what = format!(
        "the journal ends with run number {found}, although run number {recorded} was recorded: {CUT_OFF}"
    );
    Err(Error::Behind { what, record: key.heads_path().to_owned() })
}

fn unusable(store: &KeyStore, id: &str, error: &std::io::Error) -> Error {
    let why = match error.kind() {
        std::io::ErrorKind::NotFound => "is missing".to_owned(),
        _ => format!("cannot be used ({error})"),
    };
    Error::Key { path: store.key_path(id), why }
}

fn id(connection: &Connection) -> rusqlite::Result<Option<String>> {
    connection.query_row("SELECT id FROM journal", [], |row| row.get(0)).optional()
}

fn last_run(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT coalesce(max(number), 0) FROM runs", [], |row| row.get(0))
}
