//! Iterates over the events of a run, and checks every digest.

use super::authenticity::Authenticity;
use super::chain::{Digest, Digests};
use super::error::{Error, Result};
use super::keys::Head;
use super::record::StoredEvent;
use super::work::{signed, unsigned};
use rusqlite::{Connection, OptionalExtension, Row};
use std::path::Path;

/// Events are read in pages, so that the file is not locked while they are processed.
const PAGE_ROWS: usize = 512;
const PAGE_BYTES: usize = 4 << 20;

/// Iterates over the events of a run, up to the last one at the start of the iteration.
pub(super) struct Cursor<'a> {
    number: i64,
    /// How digests are computed; none if they cannot be checked.
    digests: Option<Digests<'a>>,
    pub(super) next: u64,
    pub(super) end: u64,
    /// The digest of the event before `next`.
    pub(super) digest: Digest,
    /// The digest of the event before `end`, as the row of the run has it.
    pub(super) last: Digest,
    /// Whether there were events after `end` at the start.
    pub(super) beyond: bool,
}

pub(super) struct Page {
    pub(super) events: Vec<StoredEvent>,
    /// What is wrong with the event after these.
    pub(super) broken: Option<String>,
}

impl<'a> Cursor<'a> {
    /// The cursor, and how far the run has come.
    pub(super) fn start(
        connection: &Connection,
        path: &Path,
        authenticity: &'a Authenticity,
        can_be_keyed: bool,
        run: &str,
        from: u64,
    ) -> Result<(Self, Head)> {
        let broken = |seq: u64, why: String| Error::Broken { run: run.to_owned(), seq, why };
        let unread = |seq: u64, error: &rusqlite::Error| {
            let why = format!("cannot be read ({error})");
            if is_damage(error) { broken(seq, why) } else { Error::store(path, error) }
        };
        let begin = || -> rusqlite::Result<Option<(Self, String, bool)>> {
            // One transaction: an append between the two queries would look like a stray event.
            let _one_state = connection.unchecked_transaction()?;
            let query = if can_be_keyed {
                "SELECT number, bundle, next_seq, digest, keyed FROM runs WHERE id = ?1"
            } else {
                "SELECT number, bundle, next_seq, digest, 0 FROM runs WHERE id = ?1"
            };
            let found = connection.prepare_cached(query)?.query_row([run], |row| {
                let cursor = Self {
                    number: row.get(0)?,
                    digests: None,
                    next: 1,
                    end: unsigned(row.get(2)?).max(1),
                    digest: row.get(3)?,
                    last: row.get(3)?,
                    beyond: false,
                };
                Ok((cursor, row.get(1)?, row.get(4)?))
            });
            let Some((mut cursor, bundle, keyed)) = found.optional()? else {
                return Ok(None);
            };
            let query = "SELECT 1 FROM events WHERE run = ?1 AND seq >= ?2";
            // An error here means damage, which is reported after the intact events.
            cursor.beyond = connection
                .prepare_cached(query)?
                .exists((cursor.number, signed(cursor.end)))
                .unwrap_or(false);
            Ok(Some((cursor, bundle, keyed)))
        };
        let Some((mut cursor, bundle, keyed)) = begin().map_err(|error| unread(1, &error))? else {
            return Err(Error::NoRun { run: run.to_owned() });
        };
        cursor.digests =
            authenticity.digests(cursor.number, keyed).map_err(|why| broken(1, why.to_owned()))?;
        let origin = |last: Digest| cursor.digests.map_or(last, |by| by.origin(run, &bundle));
        if from >= cursor.end {
            cursor.next = cursor.end;
        } else if from == 1 {
            cursor.digest = origin(cursor.last);
        } else {
            cursor.next = from;
            let before = connection
                .prepare_cached("SELECT digest FROM events WHERE run = ?1 AND seq = ?2")
                .and_then(|mut select| {
                    select.query_row((cursor.number, signed(from - 1)), |row| row.get(0)).optional()
                })
                .map_err(|error| unread(from - 1, &error))?;
            cursor.digest = before.ok_or_else(|| broken(from - 1, "is missing".to_owned()))?;
        }
        if cursor.end == 1 {
            // Without events, the row of the run has the start of the chain.
            cursor.digest = origin(cursor.last);
        }
        let found = Head { next: cursor.end, digest: cursor.last };
        Ok((cursor, found))
    }

    /// Reads the next events. A damaged event is reported separately from an unreadable file.
    pub(super) fn page(&mut self, connection: &Connection) -> rusqlite::Result<Page> {
        let mut page = Page { events: Vec::new(), broken: None };
        let query = "SELECT seq, at, kind, body, digest FROM events WHERE run = ?1 AND seq >= ?2 AND seq < ?3 \
                     ORDER BY seq LIMIT ?4";
        let mut select = connection.prepare_cached(query)?;
        let rows = signed(PAGE_ROWS as u64);
        let mut rows = select.query((self.number, signed(self.next), signed(self.end), rows))?;
        let mut bytes = 0;
        for _ in 0..PAGE_ROWS {
            let row = match rows.next() {
                Ok(row) => row,
                Err(error) if is_damage(&error) => {
                    page.broken = Some(format!("cannot be read ({error})"));
                    return Ok(page);
                }
                Err(error) => return Err(error),
            };
            let Some(row) = row else {
                break;
            };
            match self.step(row) {
                Ok(event) => {
                    bytes += event.body.len();
                    page.events.push(event);
                }
                Err(why) => {
                    page.broken = Some(why);
                    return Ok(page);
                }
            }
            if bytes > PAGE_BYTES {
                return Ok(page);
            }
        }
        if page.events.is_empty() {
            page.broken = Some("is missing".to_owned());
        }
        Ok(page)
    }

    fn step(&mut self, row: &Row<'_>) -> std::result::Result<StoredEvent, String> {
        let unreadable = |error: rusqlite::Error| format!("cannot be read ({error})");
        let seq = unsigned(row.get(0).map_err(unreadable)?);
        if seq != self.next {
            return Err("is missing".to_owned());
        }
        let event = StoredEvent {
            seq,
            at: row.get(1).map_err(unreadable)?,
            kind: row.get(2).map_err(unreadable)?,
            body: row.get(3).map_err(unreadable)?,
        };
        let written: Vec<u8> = row.get(4).map_err(unreadable)?;
        self.digest = match self.digests {
            Some(by) => {
                let digest = by.link(&self.digest, seq, event.at, &event.kind, &event.body);
                if digest.as_slice() != written {
                    return Err("is damaged".to_owned());
                }
                digest
            }
            None => written.try_into().map_err(|_| "is damaged".to_owned())?,
        };
        self.next += 1;
        Ok(event)
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode as Code;
    // An error without a code is a value of an unexpected type.
    matches!(error.sqlite_error_code(), None | Some(Code::DatabaseCorrupt | Code::NotADatabase))
}
