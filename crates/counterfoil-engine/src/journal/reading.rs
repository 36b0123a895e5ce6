//! Reads runs and their events, and checks every digest.

use super::chain::{self, Digest};
use super::error::{Error, Result};
use super::holder::{LeaseHolder, Process};
use super::record::{Driver, RunInfo, Snapshot, StoredEvent, StoredMessage, Summary};
use super::work::{signed, unsigned};
use super::{Journal, now};
use rusqlite::{Connection, OptionalExtension, Row};
use std::ops::ControlFlow;
use std::path::Path;

/// Events are read in pages, so that the file is not locked while they are processed.
const PAGE_ROWS: usize = 512;
const PAGE_BYTES: usize = 4 << 20;
/// The maximum number of candidates for an ambiguous prefix.
const CANDIDATES: usize = 10;

const INFO: &str = "SELECT id, workflow, version, bundle, created_at, updated_at, outcome, cause, state, reason, \
                    iterations, input_tokens, output_tokens, cost_usd, wall_ms, questions, next_seq, \
                    holder, pid, started, boot, namespace, since, heartbeat FROM runs";

impl Journal {
    /// The events of a run, starting with a sequence number. If one is damaged, only the error is
    /// returned; [`Journal::visit`] provides the events before it.
    ///
    /// # Errors
    ///
    /// There is no such run, an event is damaged, or the journal cannot be read.
    pub fn events(&self, run: &str, from_seq: u64) -> Result<Vec<StoredEvent>> {
        let mut events = Vec::new();
        self.visit(run, from_seq, |event| {
            events.push(event);
            ControlFlow::Continue(())
        })?;
        Ok(events)
    }

    /// Visits the events of a run, starting with a sequence number, and returns their number.
    /// Events that are appended meanwhile are not included.
    ///
    /// # Errors
    ///
    /// There is no such run, an event is damaged, or the journal cannot be read.
    pub fn visit(
        &self,
        run: &str,
        from_seq: u64,
        mut visit: impl FnMut(StoredEvent) -> ControlFlow<()>,
    ) -> Result<u64> {
        let from = from_seq.max(1);
        let mut cursor =
            self.read(|connection| Ok(Cursor::start(connection, &self.inner.path, run, from)))??;
        let mut visited = 0;
        while cursor.next < cursor.end {
            let page = self.read(|connection| cursor.page(connection))?;
            for event in page.events {
                visited += 1;
                if visit(event).is_break() {
                    return Ok(visited);
                }
            }
            if let Some(why) = page.broken {
                return Err(Error::Broken { run: run.to_owned(), seq: cursor.next, why });
            }
        }
        if cursor.digest != cursor.last {
            // The chain itself is intact, so the last event is not the one that the run recorded.
            let seq = cursor.end.saturating_sub(1).max(1);
            return Err(Error::Broken {
                run: run.to_owned(),
                seq,
                why: "is not the last event that the run recorded".to_owned(),
            });
        }
        if cursor.beyond {
            let why = "does not belong to the run".to_owned();
            return Err(Error::Broken { run: run.to_owned(), seq: cursor.end, why });
        }
        Ok(visited)
    }

    /// Checks every digest of a run and returns the number of its events.
    ///
    /// # Errors
    ///
    /// There is no such run, an event is damaged, or the journal cannot be read.
    pub fn verify(&self, run: &str) -> Result<u64> {
        self.visit(run, 1, |_| ControlFlow::Continue(()))
    }

    /// The information about a run.
    ///
    /// # Errors
    ///
    /// There is no such run, or the journal cannot be read.
    pub fn run(&self, run: &str) -> Result<RunInfo> {
        let query = format!("{INFO} WHERE id = ?1");
        let found = self.read(|connection| {
            connection.prepare_cached(&query)?.query_row([run], |row| self.info(row)).optional()
        })?;
        found.ok_or_else(|| Error::NoRun { run: run.to_owned() })
    }

    /// All runs or the newest of them, the newest first.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    pub fn runs(&self, limit: Option<usize>) -> Result<Vec<RunInfo>> {
        let query = format!("{INFO} ORDER BY created_at DESC, id DESC LIMIT ?1");
        let limit = limit.map_or(-1, |limit| signed(limit as u64));
        self.read(|connection| {
            connection.prepare_cached(&query)?.query_map([limit], |row| self.info(row))?.collect()
        })
    }

    /// The number of events of a kind in a run, and the last one of them.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    pub fn last_of_kind(&self, run: &str, kind: &str) -> Result<Option<(u64, StoredEvent)>> {
        let query = "SELECT count(*), max(seq), at, body FROM events \
                     WHERE run = (SELECT number FROM runs WHERE id = ?1) AND kind = ?2";
        self.read(|connection| {
            connection.prepare_cached(query)?.query_row((run, kind), |row| {
                let Some(seq) = row.get::<_, Option<i64>>(1)? else { return Ok(None) };
                let stored = StoredEvent {
                    seq: unsigned(seq),
                    at: row.get(2)?,
                    kind: kind.to_owned(),
                    body: row.get(3)?,
                };
                Ok(Some((unsigned(row.get(0)?), stored)))
            })
        })
    }

    /// The other runs that a process drives, or that recorded events since a time.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    pub fn concurrent_runs(&self, run: &str, since: i64) -> Result<Vec<RunInfo>> {
        let query = format!("{INFO} WHERE id <> ?1 AND (holder IS NOT NULL OR updated_at >= ?2)");
        let found: Vec<RunInfo> = self.read(|connection| {
            connection
                .prepare_cached(&query)?
                .query_map((run, since), |row| self.info(row))?
                .collect()
        })?;
        let is_active = |run: &RunInfo| {
            run.updated_at >= since || run.driver.as_ref().is_some_and(|driver| driver.live)
        };
        Ok(found.into_iter().filter(is_active).collect())
    }

    /// The bundle of a run, by its hash.
    ///
    /// # Errors
    ///
    /// The bundle is missing or damaged, or the journal cannot be read.
    pub fn bundle(&self, hash: &str) -> Result<Vec<u8>> {
        let wrong = |why: &str| Error::Bundle { hash: hash.to_owned(), why: why.to_owned() };
        let found: Option<Vec<u8>> = self.read(|connection| {
            let mut select =
                connection.prepare_cached("SELECT body FROM bundles WHERE hash = ?1")?;
            select.query_row([hash], |row| row.get(0)).optional()
        })?;
        let body = found.ok_or_else(|| wrong("is not in the journal"))?;
        if chain::sha256_hex(&body) == hash { Ok(body) } else { Err(wrong("is damaged")) }
    }

    /// The id of a run, given its id, a prefix of it, or `last` for the newest run.
    ///
    /// # Errors
    ///
    /// There is no such run, the prefix is ambiguous, or the journal cannot be read.
    pub fn resolve(&self, prefix: &str) -> Result<String> {
        let none = || Error::NoRun { run: prefix.to_owned() };
        if prefix == "last" {
            let newest = self.read(|connection| {
                let query = "SELECT id FROM runs ORDER BY created_at DESC, id DESC LIMIT 1";
                connection.prepare_cached(query)?.query_row([], |row| row.get(0)).optional()
            })?;
            return newest.ok_or_else(none);
        }
        let mut candidates: Vec<String> = self.read(|connection| {
            // The upper bound is beyond all ids with this prefix, so that the index is used.
            let query =
                "SELECT id FROM runs WHERE id >= ?1 AND id < ?1 || char(0x10ffff) ORDER BY id LIMIT ?2";
            let mut select = connection.prepare_cached(query)?;
            select.query_map((prefix, signed(CANDIDATES as u64 + 1)), |row| row.get(0))?.collect()
        })?;
        match candidates.as_slice() {
            [] => Err(none()),
            // An id that is a prefix of others sorts before them.
            [first, ..] if first == prefix || candidates.len() == 1 => Ok(first.clone()),
            _ => {
                let more = candidates.len() > CANDIDATES;
                candidates.truncate(CANDIDATES);
                Err(Error::Ambiguous { prefix: prefix.to_owned(), candidates, more })
            }
        }
    }

    /// The latest snapshot. A damaged snapshot is ignored, since the events have the same content.
    pub(super) fn snapshot(&self, run: &str, number: i64) -> Result<Option<Snapshot>> {
        let found: Option<(i64, Vec<u8>, Vec<u8>)> = self.read(|connection| {
            let mut select = connection
                .prepare_cached("SELECT seq, body, digest FROM snapshots WHERE run = ?1")?;
            select.query_row([number], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()
        })?;
        Ok(found.and_then(|(seq, body, digest)| {
            let seq = unsigned(seq);
            if chain::snapshot_digest(run, seq, &body).as_slice() == digest {
                return Some(Snapshot { seq, body });
            }
            tracing::warn!(run, seq, "the snapshot is damaged; all events are read instead");
            None
        }))
    }

    fn info(&self, row: &Row<'_>) -> rusqlite::Result<RunInfo> {
        let summary = Summary {
            outcome: row.get(6)?,
            cause: row.get(7)?,
            state: row.get(8)?,
            reason: row.get(9)?,
            iterations: unsigned(row.get(10)?),
            input_tokens: unsigned(row.get(11)?),
            output_tokens: unsigned(row.get(12)?),
            // SQLite stores NaN as NULL.
            cost_usd: row.get::<_, Option<f64>>(13)?.unwrap_or(f64::NAN),
            wall_ms: unsigned(row.get(14)?),
            questions: unsigned(row.get(15)?),
        };
        let driver = lease_holder(row, 17)?.map(|lease_holder| Driver {
            pid: lease_holder.process.pid,
            since: lease_holder.since,
            heartbeat: lease_holder.heartbeat,
            live: lease_holder.is_valid(&self.inner.here, now(), self.inner.stale_after()),
        });
        Ok(RunInfo {
            id: row.get(0)?,
            workflow: row.get(1)?,
            version: row.get(2)?,
            bundle: row.get(3)?,
            created_at: row.get(4)?,
            updated_at: row.get(5)?,
            summary,
            last_seq: unsigned(row.get(16)?).saturating_sub(1),
            driver,
        })
    }
}

/// The lease holder of a row; its columns start at `from`.
pub(super) fn lease_holder(row: &Row<'_>, from: usize) -> rusqlite::Result<Option<LeaseHolder>> {
    if row.get_ref(from)? == rusqlite::types::ValueRef::Null {
        return Ok(None);
    }
    Ok(Some(LeaseHolder {
        process: Process {
            pid: row.get(from + 1)?,
            started: row.get(from + 2)?,
            boot: row.get(from + 3)?,
            namespace: row.get(from + 4)?,
        },
        since: row.get(from + 5)?,
        heartbeat: row.get(from + 6)?,
    }))
}

/// The messages for a run. `empty_at` is the data version at which there were none: while it is the
/// current version, there are none.
pub(super) fn messages(
    connection: &Connection,
    number: i64,
    empty_at: &mut Option<i64>,
) -> rusqlite::Result<Vec<StoredMessage>> {
    let version =
        connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
    if *empty_at == Some(version) {
        return Ok(Vec::new());
    }
    let query = "SELECT id, at, kind, body FROM inbox WHERE run = ?1 ORDER BY id";
    let messages: Vec<StoredMessage> = connection
        .prepare_cached(query)?
        .query_map([number], |row| {
            Ok(StoredMessage {
                id: row.get(0)?,
                at: row.get(1)?,
                kind: row.get(2)?,
                body: row.get(3)?,
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    *empty_at = messages.is_empty().then_some(version);
    Ok(messages)
}

/// Iterates over the events of a run, up to the last one at the start of the iteration.
struct Cursor {
    number: i64,
    next: u64,
    end: u64,
    /// The digest of the event before `next`.
    digest: Digest,
    /// The digest of the event before `end`, as the row of the run has it.
    last: Digest,
    /// Whether there were events after `end` at the start.
    beyond: bool,
}

struct Page {
    events: Vec<StoredEvent>,
    /// What is wrong with the event after these.
    broken: Option<String>,
}

impl Cursor {
    fn start(connection: &Connection, path: &Path, run: &str, from: u64) -> Result<Self> {
        let broken = |seq: u64, why: String| Error::Broken { run: run.to_owned(), seq, why };
        let unread = |seq: u64, error: &rusqlite::Error| {
            let why = format!("cannot be read ({error})");
            if is_damage(error) { broken(seq, why) } else { Error::store(path, error) }
        };
        let begin = || -> rusqlite::Result<Option<(Self, String)>> {
            // One transaction: an append between the two queries would look like a stray event.
            let _one_state = connection.unchecked_transaction()?;
            let query = "SELECT number, bundle, next_seq, digest FROM runs WHERE id = ?1";
            let found = connection.prepare_cached(query)?.query_row([run], |row| {
                let end = unsigned(row.get(2)?).max(1);
                let last = row.get(3)?;
                Ok((
                    Self { number: row.get(0)?, next: 1, end, digest: last, last, beyond: false },
                    row.get(1)?,
                ))
            });
            let Some((mut cursor, bundle)) = found.optional()? else {
                return Ok(None);
            };
            let query = "SELECT 1 FROM events WHERE run = ?1 AND seq >= ?2";
            // An error here means damage, which is reported after the intact events.
            cursor.beyond = connection
                .prepare_cached(query)?
                .exists((cursor.number, signed(cursor.end)))
                .unwrap_or(false);
            Ok(Some((cursor, bundle)))
        };
        let Some((mut cursor, bundle)) = begin().map_err(|error| unread(1, &error))? else {
            return Err(Error::NoRun { run: run.to_owned() });
        };
        if from >= cursor.end {
            cursor.next = cursor.end;
        } else if from == 1 {
            cursor.digest = chain::origin(run, &bundle);
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
            cursor.digest = chain::origin(run, &bundle);
        }
        Ok(cursor)
    }

    /// Reads the next events. A damaged event is reported separately from an unreadable file.
    fn page(&mut self, connection: &Connection) -> rusqlite::Result<Page> {
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
        let digest = chain::link(&self.digest, seq, event.at, &event.kind, &event.body);
        if digest.as_slice() != written {
            return Err("is damaged".to_owned());
        }
        self.digest = digest;
        self.next += 1;
        Ok(event)
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode as Code;
    // An error without a code is a value of an unexpected type.
    matches!(error.sqlite_error_code(), None | Some(Code::DatabaseCorrupt | Code::NotADatabase))
}
