//! Reads runs and their events.

use super::chain::{self, Digest};
use super::cursor::Cursor;
use super::error::{Error, Result};
use super::holder::{LeaseHolder, Process};
use super::record::{Driver, RunInfo, Snapshot, StoredEvent, StoredMessage, Summary};
use super::work::{signed, unsigned};
use super::{Inner, Journal, now};
use rusqlite::{Connection, OptionalExtension, Row};
use std::ops::ControlFlow;

/// The maximum number of candidates for an ambiguous prefix.
const CANDIDATES: usize = 10;

/// The columns of a run that its authentication code covers.
macro_rules! coded {
    () => {
        "SELECT id, workflow, version, bundle, created_at, updated_at, outcome, cause, state, reason, \
         iterations, input_tokens, output_tokens, cost_usd, wall_ms, questions, next_seq, digest"
    };
}
/// The number of these columns.
pub(super) const CODED_COLUMNS: usize = 18;
/// Selects these columns of a run.
pub(super) const CODED_ROW: &str = concat!(coded!(), " FROM runs WHERE number = ?1");

const INFO: &str = concat!(
    coded!(),
    ", number, holder, pid, started, boot, namespace, since, heartbeat, keyed, code FROM runs"
);
/// The same from a journal of the first version, which has no keys.
const FIRST_INFO: &str = concat!(
    coded!(),
    ", number, holder, pid, started, boot, namespace, since, heartbeat, 0, NULL FROM runs"
);

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
        let mut cursor = self.read(|connection| Ok(self.cursor(connection, run, from)))??;
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
        // Who reads what happened relies on what the journal says of the run, too.
        self.run(run)?;
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
        let query = format!("{} WHERE id = ?1", self.info_query());
        let found = self.read(|connection| {
            connection.prepare_cached(&query)?.query_row([run], |row| self.info(row)).optional()
        })?;
        let info = found.ok_or_else(|| Error::NoRun { run: run.to_owned() })?;
        if info.altered {
            return Err(Error::Altered { what: format!("run {run}") });
        }
        Ok(info)
    }

    /// A number that changes whenever another connection has written to the journal.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    pub fn last_change(&self) -> Result<u64> {
        let version: i64 = self.read_with_main(|connection| {
            connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
        })?;
        Ok(unsigned(version))
    }

    /// The number of the last event of a run, 0 without events.
    ///
    /// # Errors
    ///
    /// There is no such run, or the journal cannot be read.
    pub fn last_seq(&self, run: &str) -> Result<u64> {
        let found: Option<i64> = self.read(|connection| {
            let mut select =
                connection.prepare_cached("SELECT next_seq FROM runs WHERE id = ?1")?;
            select.query_row([run], |row| row.get(0)).optional()
        })?;
        let next = found.ok_or_else(|| Error::NoRun { run: run.to_owned() })?;
        Ok(unsigned(next).saturating_sub(1))
    }

    /// All runs or the newest of them, the newest first.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    pub fn runs(&self, limit: Option<usize>) -> Result<Vec<RunInfo>> {
        let query = format!("{} ORDER BY created_at DESC, id DESC LIMIT ?1", self.info_query());
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
        let query = format!(
            "{} WHERE id <> ?1 AND (holder IS NOT NULL OR updated_at >= ?2)",
            self.info_query()
        );
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
        let found: Option<(i64, Vec<u8>, Vec<u8>, bool)> = self.read(|connection| {
            // Only a writer acquires runs, and it has migrated the journal.
            let query = "SELECT seq, body, snapshots.digest, keyed FROM snapshots \
                         JOIN runs ON number = run WHERE run = ?1";
            let mut select = connection.prepare_cached(query)?;
            select
                .query_row([number], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
                .optional()
        })?;
        Ok(found.and_then(|(seq, body, digest, keyed)| {
            let seq = unsigned(seq);
            let digests = self.inner.authenticity.digests(number, keyed).ok().flatten();
            if digests.is_some_and(|by| by.snapshot(run, seq, &body).as_slice() == digest) {
                return Some(Snapshot { seq, body });
            }
            tracing::warn!(run, seq, "the snapshot is damaged; all events are read instead");
            None
        }))
    }

    /// The query for information about runs, without conditions.
    pub(super) fn info_query(&self) -> &'static str {
        if self.inner.can_be_keyed { INFO } else { FIRST_INFO }
    }

    /// The information in a row of this query.
    pub(super) fn info(&self, row: &Row<'_>) -> rusqlite::Result<RunInfo> {
        let (number, keyed) = (row.get(18)?, row.get(26)?);
        let altered = match self.inner.authenticity.digests(number, keyed) {
            Err(_) => true,
            Ok(None) => false,
            Ok(Some(digests)) => {
                let code = digests.row(row, CODED_COLUMNS)?;
                code.is_some() && code != row.get::<_, Option<Digest>>(27)?
            }
        };
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
        let driver = lease_holder(row, 19)?.map(|lease_holder| Driver {
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
            altered,
        })
    }

    /// Starts an iteration over the events of a run.
    fn cursor(&self, connection: &Connection, run: &str, from: u64) -> Result<Cursor<'_>> {
        let Inner { path, authenticity, can_be_keyed, .. } = &*self.inner;
        let number: Option<i64> = connection
            .prepare_cached("SELECT number FROM runs WHERE id = ?1")
            .and_then(|mut select| select.query_row([run], |row| row.get(0)).optional())
            .map_err(|error| Error::store(path, &error))?;
        // Read before the journal, which may grow meanwhile.
        let before = number.and_then(|number| authenticity.head(number));
        let (cursor, found) =
            Cursor::start(connection, path, authenticity, *can_be_keyed, run, from)?;
        authenticity.refuse_behind(run, before, found)?;
        Ok(cursor)
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

/// The messages for a run, or the id of one that another program put there. `empty_at` is the data version at which there were none: while it is the
/// current version, there are none.
pub(super) fn messages(
    connection: &Connection,
    number: i64,
    genuine: impl Fn(&StoredMessage, Option<Digest>) -> bool,
    empty_at: &mut Option<i64>,
) -> rusqlite::Result<Result<Vec<StoredMessage>, i64>> {
    let version =
        connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
    if *empty_at == Some(version) {
        return Ok(Ok(Vec::new()));
    }
    let query = "SELECT id, at, kind, body, code FROM inbox WHERE run = ?1 ORDER BY id";
    let mut select = connection.prepare_cached(query)?;
    let mut rows = select.query([number])?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        let message = StoredMessage {
            id: row.get(0)?,
            at: row.get(1)?,
            kind: row.get(2)?,
            body: row.get(3)?,
        };
        if !genuine(&message, row.get(4)?) {
            return Ok(Err(message.id));
        }
        messages.push(message);
    }
    *empty_at = messages.is_empty().then_some(version);
    Ok(Ok(messages))
}
