//! Reading runs and their events, with every digest checked on the way.

use super::chain::{self, Digest};
use super::error::{Error, Result};
use super::holder::{Claim, Process};
use super::record::{Driver, Event, Posted, RunInfo, Snapshot, Summary};
use super::work::{signed, unsigned};
use super::{Journal, now};
use rusqlite::{Connection, OptionalExtension, Row};
use std::ops::ControlFlow;
use std::path::Path;

/// Events are fetched in pages: the lock on the file is not kept while somebody looks at them.
const PAGE_ROWS: usize = 512;
const PAGE_BYTES: usize = 4 << 20;
/// How many runs an ambiguous prefix is told.
const CANDIDATES: usize = 10;

const INFO: &str = "SELECT id, workflow, version, bundle, created_at, updated_at, outcome, cause, state, reason, \
                    iterations, input_tokens, output_tokens, cost_usd, wall_ms, questions, next_seq, \
                    holder, pid, started, boot, namespace, since, heartbeat FROM runs";

impl Journal {
    /// The events of a run from a place on. Should one not be as it was written, there is only the
    /// error: a visit gets the events before it.
    pub fn events(&self, run: &str, from_seq: u64) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        self.visit(run, from_seq, |event| {
            events.push(event);
            ControlFlow::Continue(())
        })?;
        Ok(events)
    }

    /// Shows the events of a run from a place on, one after the other, and returns how many were
    /// shown. Events appended meanwhile are not among them.
    pub fn visit(
        &self,
        run: &str,
        from_seq: u64,
        mut look: impl FnMut(Event) -> ControlFlow<()>,
    ) -> Result<u64> {
        let from = from_seq.max(1);
        let mut walk =
            self.read(|connection| Ok(Walk::start(connection, &self.inner.path, run, from)))??;
        let mut shown = 0;
        while walk.next < walk.end {
            let page = self.read(|connection| walk.page(connection))?;
            for event in page.events {
                shown += 1;
                if look(event).is_break() {
                    return Ok(shown);
                }
            }
            if let Some(why) = page.broken {
                return Err(Error::Broken { run: run.to_owned(), seq: walk.next, why });
            }
        }
        if walk.digest != walk.last {
            // Each link fits the one before, so what does not fit is the end that the run's row
            // knows.
            let seq = walk.end.saturating_sub(1).max(1);
            return Err(Error::Broken {
                run: run.to_owned(),
                seq,
                why: "is not the one the run ended with".to_owned(),
            });
        }
        if walk.beyond {
            let why = "is not one the run knows of".to_owned();
            return Err(Error::Broken { run: run.to_owned(), seq: walk.end, why });
        }
        Ok(shown)
    }

    /// Checks every digest of a run and returns how many events it has.
    pub fn verify(&self, run: &str) -> Result<u64> {
        self.visit(run, 1, |_| ControlFlow::Continue(()))
    }

    /// What the journal knows of a run.
    pub fn run(&self, run: &str) -> Result<RunInfo> {
        let query = format!("{INFO} WHERE id = ?1");
        let found = self.read(|connection| {
            connection.prepare_cached(&query)?.query_row([run], |row| self.info(row)).optional()
        })?;
        found.ok_or_else(|| Error::NoRun { run: run.to_owned() })
    }

    /// All runs or the newest of them, the newest first.
    pub fn runs(&self, limit: Option<usize>) -> Result<Vec<RunInfo>> {
        let query = format!("{INFO} ORDER BY created_at DESC, id DESC LIMIT ?1");
        let limit = limit.map_or(-1, |limit| signed(limit as u64));
        self.read(|connection| {
            connection.prepare_cached(&query)?.query_map([limit], |row| self.info(row))?.collect()
        })
    }

    /// The other runs that somebody drives, or that recorded something since that time.
    pub fn beside(&self, run: &str, since: i64) -> Result<Vec<RunInfo>> {
        let query = format!("{INFO} WHERE id <> ?1 AND (holder IS NOT NULL OR updated_at >= ?2)");
        let found: Vec<RunInfo> = self.read(|connection| {
            connection
                .prepare_cached(&query)?
                .query_map((run, since), |row| self.info(row))?
                .collect()
        })?;
        let at_work = |run: &RunInfo| {
            run.updated_at >= since || run.driver.as_ref().is_some_and(|driver| driver.live)
        };
        Ok(found.into_iter().filter(at_work).collect())
    }

    /// What a run started from, by the hash its information names.
    pub fn bundle(&self, hash: &str) -> Result<Vec<u8>> {
        let wrong = |why: &str| Error::Bundle { hash: hash.to_owned(), why: why.to_owned() };
        let found: Option<Vec<u8>> = self.read(|connection| {
            let mut select =
                connection.prepare_cached("SELECT body FROM bundles WHERE hash = ?1")?;
            select.query_row([hash], |row| row.get(0)).optional()
        })?;
        let body = found.ok_or_else(|| wrong("is not in the journal"))?;
        if chain::sha256_hex(&body) == hash {
            Ok(body)
        } else {
            Err(wrong("is not what was stored"))
        }
    }

    /// The id that is meant by an id, the beginning of one, or `last` for the newest run.
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
            // An upper end that no id reaches, so that the index serves.
            let query =
                "SELECT id FROM runs WHERE id >= ?1 AND id < ?1 || char(0x10ffff) ORDER BY id LIMIT ?2";
            let mut select = connection.prepare_cached(query)?;
            select.query_map((prefix, signed(CANDIDATES as u64 + 1)), |row| row.get(0))?.collect()
        })?;
        match candidates.as_slice() {
            [] => Err(none()),
            // An id that others begin with sorts before them.
            [first, ..] if first == prefix || candidates.len() == 1 => Ok(first.clone()),
            _ => {
                let more = candidates.len() > CANDIDATES;
                candidates.truncate(CANDIDATES);
                Err(Error::Ambiguous { prefix: prefix.to_owned(), candidates, more })
            }
        }
    }

    /// The newest snapshot. One that is not as it was written is as good as none: the events tell
    /// the same.
    pub(super) fn snapshot(&self, run: &str, number: i64) -> Result<Option<Snapshot>> {
        let found: Option<(i64, Vec<u8>, Vec<u8>)> = self.read(|connection| {
            let mut select = connection
                .prepare_cached("SELECT seq, body, digest FROM snapshots WHERE run = ?1")?;
            select.query_row([number], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()
        })?;
        Ok(found.and_then(|(seq, body, digest)| {
            let seq = unsigned(seq);
            if chain::of_snapshot(run, seq, &body).as_slice() == digest {
                return Some(Snapshot { seq, body });
            }
            tracing::warn!(
                run,
                seq,
                "the snapshot is not what was stored; all events are read instead"
            );
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
            // SQLite writes what is not a number as NULL.
            cost_usd: row.get::<_, Option<f64>>(13)?.unwrap_or(f64::NAN),
            wall_ms: unsigned(row.get(14)?),
            questions: unsigned(row.get(15)?),
        };
        let driver = claim(row, 17)?.map(|claim| Driver {
            pid: claim.process.pid,
            since: claim.since,
            heartbeat: claim.heartbeat,
            live: claim.stands(&self.inner.here, now(), self.inner.stale_after()),
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

/// The lease in a row, from the column of the holder on.
pub(super) fn claim(row: &Row<'_>, from: usize) -> rusqlite::Result<Option<Claim>> {
    if row.get_ref(from)? == rusqlite::types::ValueRef::Null {
        return Ok(None);
    }
    Ok(Some(Claim {
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

/// The messages that wait for a run. `quiet` is the version of the data at which there were none:
/// as long as nobody has written since, there are none.
pub(super) fn posted(
    connection: &Connection,
    number: i64,
    quiet: &mut Option<i64>,
) -> rusqlite::Result<Vec<Posted>> {
    let version =
        connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
    if *quiet == Some(version) {
        return Ok(Vec::new());
    }
    let query = "SELECT id, at, kind, body FROM inbox WHERE run = ?1 ORDER BY id";
    let posted: Vec<Posted> = connection
        .prepare_cached(query)?
        .query_map([number], |row| {
            Ok(Posted { id: row.get(0)?, at: row.get(1)?, kind: row.get(2)?, body: row.get(3)? })
        })?
        .collect::<rusqlite::Result<_>>()?;
    *quiet = posted.is_empty().then_some(version);
    Ok(posted)
}

/// A way along a run's events, up to the end it had when the way began.
struct Walk {
    number: i64,
    next: u64,
    end: u64,
    /// The digest of the event before `next`.
    digest: Digest,
    /// The digest of the event before `end`, as the run's row has it.
    last: Digest,
    /// There were events behind `end` when the way began.
    beyond: bool,
}

struct Page {
    events: Vec<Event>,
    /// What is wrong with the event behind these.
    broken: Option<String>,
}

impl Walk {
    fn start(connection: &Connection, path: &Path, run: &str, from: u64) -> Result<Self> {
        let broken = |seq: u64, why: String| Error::Broken { run: run.to_owned(), seq, why };
        let unread = |seq: u64, error: &rusqlite::Error| {
            let why = format!("cannot be read ({error})");
            if is_damage(error) { broken(seq, why) } else { Error::store(path, error) }
        };
        let begin = || -> rusqlite::Result<Option<(Self, String)>> {
            // Both looks see one state: an append between them would be taken for a stray event.
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
            let Some((mut walk, bundle)) = found.optional()? else {
                return Ok(None);
            };
            let query = "SELECT 1 FROM events WHERE run = ?1 AND seq >= ?2";
            // Where this hits upon damage, the way ends there: what comes before can still be
            // shown.
            walk.beyond = connection
                .prepare_cached(query)?
                .exists((walk.number, signed(walk.end)))
                .unwrap_or(false);
            Ok(Some((walk, bundle)))
        };
        let Some((mut walk, bundle)) = begin().map_err(|error| unread(1, &error))? else {
            return Err(Error::NoRun { run: run.to_owned() });
        };
        if from >= walk.end {
            walk.next = walk.end;
        } else if from == 1 {
            walk.digest = chain::origin(run, &bundle);
        } else {
            walk.next = from;
            let before = connection
                .prepare_cached("SELECT digest FROM events WHERE run = ?1 AND seq = ?2")
                .and_then(|mut select| {
                    select.query_row((walk.number, signed(from - 1)), |row| row.get(0)).optional()
                })
                .map_err(|error| unread(from - 1, &error))?;
            walk.digest = before.ok_or_else(|| broken(from - 1, "is missing".to_owned()))?;
        }
        if walk.end == 1 {
            // Nothing was written, so the run's row still has what the first event would build on.
            walk.digest = chain::origin(run, &bundle);
        }
        Ok(walk)
    }

    /// The next events. What cannot be read is told apart from a file that cannot be read at all.
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

    fn step(&mut self, row: &Row<'_>) -> std::result::Result<Event, String> {
        let unreadable = |error: rusqlite::Error| format!("cannot be read ({error})");
        let seq = unsigned(row.get(0).map_err(unreadable)?);
        if seq != self.next {
            return Err("is missing".to_owned());
        }
        let event = Event {
            seq,
            at: row.get(1).map_err(unreadable)?,
            kind: row.get(2).map_err(unreadable)?,
            body: row.get(3).map_err(unreadable)?,
        };
        let written: Vec<u8> = row.get(4).map_err(unreadable)?;
        let digest = chain::link(&self.digest, seq, event.at, &event.kind, &event.body);
        if digest.as_slice() != written {
            return Err("is not as it was written".to_owned());
        }
        self.digest = digest;
        self.next += 1;
        Ok(event)
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode as Code;
    // Without a code it is a value that is not of the kind that was written.
    matches!(error.sqlite_error_code(), None | Some(Code::DatabaseCorrupt | Code::NotADatabase))
}
