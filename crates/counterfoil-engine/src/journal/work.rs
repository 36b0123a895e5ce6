//! The requests to the writer thread.

use super::chain::{Digest, Digests};
use super::error::{Error, Result};
use super::holder::LeaseHolder;
use super::keys::Head;
use super::now;
use super::reading::{CODED_COLUMNS, CODED_ROW, lease_holder};
use super::record::{Batch, Summary};
use super::writer::{WriteContext, WriteRequest};
use rusqlite::{OptionalExtension, params};

/// A lease as the writer thread granted it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Granted {
    /// The number of the run's row.
    pub(super) number: i64,
    pub(super) epoch: u64,
}

/// Creates a run with its first events and acquires its lease.
pub(super) struct Create {
    pub(super) id: String,
    pub(super) workflow: String,
    pub(super) version: u32,
    pub(super) bundle: Vec<u8>,
    pub(super) bundle_hash: String,
    pub(super) at: i64,
    pub(super) first: Batch,
}

/// Acquires the lease of a run.
pub(super) struct Acquire {
    pub(super) run: String,
}

/// Appends a batch under a lease.
pub(super) struct Append {
    pub(super) run: String,
    pub(super) lease: Granted,
    pub(super) batch: Batch,
}

/// Releases a lease.
pub(super) struct Release {
    pub(super) run: String,
    pub(super) lease: Granted,
}

/// Sends a message to the driver of a run.
pub(super) struct SendMessage {
    pub(super) run: String,
    pub(super) at: i64,
    pub(super) kind: String,
    pub(super) body: Vec<u8>,
}

impl WriteRequest for Create {
    type Answer = Granted;
    const LEASES: bool = true;

    fn perform(&self, context: &WriteContext<'_>) -> Result<Granted> {
        if number(context, &self.id)?.is_some() {
            return Err(Error::Exists { run: self.id.clone() });
        }
        let digests = context.authenticity.own();
        let keyed = matches!(digests, Digests::Keyed(_));
        let origin = digests.origin(&self.id, &self.bundle_hash);
        let made = || -> rusqlite::Result<i64> {
            context
                .connection
                .prepare_cached(
                    "INSERT INTO bundles (hash, body) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                )?
                .execute((&self.bundle_hash, &self.bundle))?;
            context.connection
                .prepare_cached(
                    "INSERT INTO runs (id, workflow, version, bundle, created_at, updated_at, digest, keyed) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7)",
                )?
                .execute(params![self.id, self.workflow, self.version, self.bundle_hash, self.at, origin, keyed])?;
            Ok(context.connection.last_insert_rowid())
        };
        let number = made().map_err(|error| context.failed(&error))?;
        let granted = Granted { number, epoch: 1 };
        set_holder(context, granted)?;
        write(context, &self.id, number, &self.first, Head { next: 1, digest: origin }, digests)?;
        Ok(granted)
    }
}

impl WriteRequest for Acquire {
    type Answer = Granted;
    const LEASES: bool = true;

    fn perform(&self, context: &WriteContext<'_>) -> Result<Granted> {
        let query = "SELECT number, epoch, holder, pid, started, boot, namespace, since, heartbeat, next_seq, digest \
                     FROM runs WHERE id = ?1";
        let found: Option<(i64, u64, Option<LeaseHolder>, Head)> = context
            .connection
            .prepare_cached(query)
            .and_then(|mut select| {
                select
                    .query_row([&self.run], |row| {
                        let head = Head { next: unsigned(row.get(9)?), digest: row.get(10)? };
                        Ok((row.get(0)?, unsigned(row.get(1)?), lease_holder(row, 2)?, head))
                    })
                    .optional()
            })
            .map_err(|error| context.failed(&error))?;
        let Some((number, epoch, holder, head)) = found else {
            return Err(Error::NoRun { run: self.run.clone() });
        };
        if let Some(holder) = holder
            && holder.is_valid(context.process, now(), context.stale_after)
        {
            return Err(Error::AlreadyDriven {
                run: self.run.clone(),
                pid: holder.process.pid,
                since: holder.since,
            });
        }
        let authenticity = context.authenticity;
        authenticity.refuse_behind(&self.run, authenticity.head(number), head)?;
        let granted = Granted { number, epoch: epoch.saturating_add(1) };
        set_holder(context, granted)?;
        Ok(granted)
    }
}

impl WriteRequest for Append {
    type Answer = u64;

    fn perform(&self, context: &WriteContext<'_>) -> Result<u64> {
        let query = "SELECT next_seq, digest, keyed FROM runs WHERE number = ?1 AND epoch = ?2 AND holder = ?3";
        let found: Option<(i64, Digest, bool)> = context
            .connection
            .prepare_cached(query)
            .and_then(|mut select| {
                select
                    .query_row(
                        params![self.lease.number, signed(self.lease.epoch), context.holder],
                        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
                    )
                    .optional()
            })
            .map_err(|error| context.failed(&error))?;
        let Some((next, digest, keyed)) = found else {
            return Err(Error::Fenced { run: self.run.clone(), epoch: self.lease.epoch });
        };
        let (authenticity, number) = (context.authenticity, self.lease.number);
        let head = Head { next: unsigned(next), digest };
        authenticity.refuse_behind(&self.run, authenticity.head(number), head)?;
        let altered = || Error::Altered { what: format!("run {}", self.run) };
        let digests = authenticity.digests(number, keyed).ok().flatten().ok_or_else(altered)?;
        write(context, &self.run, number, &self.batch, head, digests)
    }
}

impl WriteRequest for Release {
    type Answer = ();

    fn perform(&self, context: &WriteContext<'_>) -> Result<()> {
        let update = "UPDATE runs SET holder = NULL, pid = NULL, started = NULL, boot = NULL, namespace = NULL, \
                      since = NULL, heartbeat = NULL WHERE number = ?1 AND epoch = ?2 AND holder = ?3";
        let changed = context
            .connection
            .prepare_cached(update)
            .and_then(|mut update| {
                update.execute(params![self.lease.number, signed(self.lease.epoch), context.holder])
            })
            .map_err(|error| context.failed(&error))?;
        if changed == 0 {
            return Err(Error::Fenced { run: self.run.clone(), epoch: self.lease.epoch });
        }
        Ok(())
    }

    fn pending_release(self) -> Option<Release> {
        Some(self)
    }
}

impl WriteRequest for SendMessage {
    type Answer = i64;

    fn perform(&self, context: &WriteContext<'_>) -> Result<i64> {
        let Some(number) = number(context, &self.run)? else {
            return Err(Error::NoRun { run: self.run.clone() });
        };
        let insert = || -> rusqlite::Result<i64> {
            let id = context
                .connection
                .prepare_cached("INSERT INTO inbox (run, at, kind, body) VALUES (?1, ?2, ?3, ?4)")?
                .insert(params![number, self.at, self.kind, self.body])?;
            let digests = context.authenticity.own();
            if let Some(code) = digests.message(&self.run, id, self.at, &self.kind, &self.body) {
                context
                    .connection
                    .prepare_cached("UPDATE inbox SET code = ?2 WHERE id = ?1")?
                    .execute((id, code))?;
            }
            Ok(id)
        };
        insert().map_err(|error| context.failed(&error))
    }
}

fn number(context: &WriteContext<'_>, run: &str) -> Result<Option<i64>> {
    context
        .connection
        .prepare_cached("SELECT number FROM runs WHERE id = ?1")
        .and_then(|mut select| select.query_row([run], |row| row.get(0)).optional())
        .map_err(|error| context.failed(&error))
}

/// Makes this journal the holder of a lease.
fn set_holder(context: &WriteContext<'_>, to: Granted) -> Result<()> {
    let update = "UPDATE runs SET epoch = ?2, holder = ?3, pid = ?4, started = ?5, boot = ?6, namespace = ?7, \
                  since = ?8, heartbeat = ?8 WHERE number = ?1";
    let process = context.process;
    context
        .connection
        .prepare_cached(update)
        .and_then(|mut update| {
            update.execute(params![
                to.number,
                signed(to.epoch),
                context.holder,
                process.pid,
                process.started,
                process.boot,
                process.namespace,
                now()
            ])
        })
        .map_err(|error| context.failed(&error))?;
    Ok(())
}

/// Writes a batch after the events of the run, and returns the sequence number of the last event.
fn write(
    context: &WriteContext<'_>,
    run: &str,
    number: i64,
    batch: &Batch,
    head: Head,
    digests: Digests<'_>,
) -> Result<u64> {
    let Head { next: mut seq, mut digest } = head;
    let mut all = || -> rusqlite::Result<u64> {
        let mut insert = context.connection.prepare_cached(
            "INSERT INTO events (run, seq, at, kind, body, digest) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        for event in &batch.events {
            digest = digests.link(&digest, seq, event.at, &event.kind, &event.body);
            insert.execute(params![
                number,
                signed(seq),
                event.at,
                event.kind,
                event.body,
                digest
            ])?;
            seq = seq.saturating_add(1);
        }
        let last = seq.saturating_sub(1);
        let newest = batch.events.iter().map(|event| event.at).max().unwrap_or(i64::MIN);
        match &batch.summary {
            None => {
                context.connection
                    .prepare_cached(
                        "UPDATE runs SET next_seq = ?2, digest = ?3, updated_at = max(updated_at, ?4) \
                         WHERE number = ?1",
                    )?
                    .execute(params![number, signed(seq), digest, newest])?;
            }
            Some(Summary {
                outcome,
                cause,
                state,
                reason,
                iterations,
                input_tokens,
                output_tokens,
                cost_usd,
                wall_ms,
                questions,
            }) => {
                context.connection
                    .prepare_cached(
                        "UPDATE runs SET next_seq = ?2, digest = ?3, updated_at = max(updated_at, ?4), \
                         outcome = ?5, cause = ?6, state = ?7, reason = ?8, iterations = ?9, \
                         input_tokens = ?10, output_tokens = ?11, cost_usd = ?12, wall_ms = ?13, \
                         questions = ?14 WHERE number = ?1",
                    )?
                    .execute(params![
                        number,
                        signed(seq),
                        digest,
                        newest,
                        outcome,
                        cause,
                        state,
                        reason,
                        signed(*iterations),
                        signed(*input_tokens),
                        signed(*output_tokens),
                        cost_usd,
                        signed(*wall_ms),
                        signed(*questions)
                    ])?;
            }
        }
        if let Some(body) = &batch.snapshot {
            context
                .connection
                .prepare_cached(
                    "INSERT INTO snapshots (run, seq, body, digest) VALUES (?1, ?2, ?3, ?4) \
                     ON CONFLICT (run) DO UPDATE SET seq = ?2, body = ?3, digest = ?4",
                )?
                .execute(params![number, signed(last), body, digests.snapshot(run, last, body)])?;
        }
        for id in &batch.consumed {
            context
                .connection
                .prepare_cached("DELETE FROM inbox WHERE id = ?1 AND run = ?2")?
                .execute((id, number))?;
        }
        write_code(context, number, digests)?;
        Ok(last)
    };
    let last = all().map_err(|error| context.failed(&error))?;
    context.heads.borrow_mut().push((number, Head { next: seq, digest }));
    Ok(last)
}

/// Writes the authentication code of the row of a run.
fn write_code(
    context: &WriteContext<'_>,
    number: i64,
    digests: Digests<'_>,
) -> rusqlite::Result<()> {
    let mut select = context.connection.prepare_cached(CODED_ROW)?;
    let code = select.query_row([number], |row| digests.row(row, CODED_COLUMNS))?;
    if let Some(code) = code {
        context
            .connection
            .prepare_cached("UPDATE runs SET code = ?2 WHERE number = ?1")?
            .execute((number, code))?;
    }
    Ok(())
}

/// Converts to the signed integers of `SQLite`. Larger values are clamped.
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Converts from the signed integers of `SQLite`. Negative values are read as 0.
pub(super) fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
