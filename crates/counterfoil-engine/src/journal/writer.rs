//! The writer thread. All queued requests become one transaction, so that concurrent callers share
//! the wait for the disk. It also renews the leases of this journal.

use super::authenticity::Authenticity;
use super::error::{Error, Result};
use super::holder::Process;
use super::keys::Head;
use super::work::Release;
use super::{Settings, identity, now};
use rusqlite::{Connection, TransactionBehavior};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::sync::oneshot;

/// The maximum number of requests in a transaction.
const MAX_GROUP: usize = 256;

/// A write request. It may be performed more than once.
pub(super) trait WriteRequest: Send + 'static {
    /// The answer to the caller.
    type Answer: Send + 'static;
    /// Whether the request can grant a lease to this journal.
    const LEASES: bool = false;
    /// Performs the request. Mistakes of the caller are detected before the first change, since the
    /// other requests of the transaction are committed anyway.
    fn perform(&self, context: &WriteContext<'_>) -> Result<Self::Answer>;
    /// The lease that could not be released, if this is a request to release one. It is released
    /// later, so that it is not renewed forever.
    fn pending_release(self) -> Option<Release>
    where
        Self: Sized,
    {
        None
    }
}

/// What a request needs to write.
pub(super) struct WriteContext<'a> {
    pub(super) connection: &'a Connection,
    pub(super) path: &'a Path,
    pub(super) holder: &'a str,
    pub(super) process: &'a Process,
    pub(super) stale_after: i64,
    pub(super) authenticity: &'a Authenticity,
    /// How far the runs have come with this transaction.
    pub(super) heads: RefCell<Vec<(i64, Head)>>,
}

impl WriteContext<'_> {
    pub(super) fn failed(&self, error: &rusqlite::Error) -> Error {
        Error::store(self.path, error)
    }
}

trait Task: Send {
    /// Performs the request. An error means that the transaction cannot be committed.
    fn attempt(&mut self, context: &WriteContext<'_>) -> Result<()>;
    /// Answers the caller, and returns the effects on the leases of this journal.
    fn answer(self: Box<Self>, transaction: Result<()>) -> LeaseEffects;
}

#[derive(Default)]
struct LeaseEffects {
    /// A lease was granted.
    leased: bool,
    /// A lease that still has to be released.
    pending_releases: Option<Release>,
}

struct PendingRequest<W: WriteRequest> {
    work: W,
    outcome: Option<Result<W::Answer>>,
    reply: Reply<W::Answer>,
}

/// The receiver of the answer. A blocked thread uses a channel of the standard library, since the
/// one of tokio panics if a thread of its runtime blocks on it.
enum Reply<T> {
    Task(oneshot::Sender<Result<T>>),
    Thread(SyncSender<Result<T>>),
    Ignored,
}

impl<W: WriteRequest> Task for PendingRequest<W> {
    fn attempt(&mut self, context: &WriteContext<'_>) -> Result<()> {
        match self.work.perform(context) {
            Err(error) if error.aborts_transaction() => Err(error),
            outcome => {
                self.outcome = Some(outcome);
                Ok(())
            }
        }
    }

    fn answer(self: Box<Self>, transaction: Result<()>) -> LeaseEffects {
        let failed = transaction.is_err();
        let answer = match (transaction, self.outcome) {
            (Err(error), _) => Err(error),
            (Ok(()), Some(outcome)) => outcome,
            // Not reached: every committed request was performed. The caller sees a closed channel.
            (Ok(()), None) => return LeaseEffects::default(),
        };
        let leased = W::LEASES && answer.is_ok();
        // The caller may no longer wait for the answer.
        match self.reply {
            Reply::Task(reply) => drop(reply.send(answer)),
            Reply::Thread(reply) => drop(reply.send(answer)),
            Reply::Ignored => {}
        }
        LeaseEffects {
            leased,
            pending_releases: if failed { self.work.pending_release() } else { None },
        }
    }
}

/// The handle of the writer thread. Dropping it waits until all requests are written.
#[derive(Debug)]
pub(super) struct Writer {
    path: PathBuf,
    queue: Option<Sender<Box<dyn Task>>>,
    thread: Option<JoinHandle<()>>,
    commits: Arc<AtomicU64>,
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        path: &Path,
        file: (u64, u64),
        process: Process,
        settings: Settings,
        authenticity: Arc<Authenticity>,
    ) -> Result<Self> {
        let (queue, requests) = channel();
        let commits = Arc::new(AtomicU64::new(0));
        let thread = Thread {
            connection,
            path: path.to_owned(),
            file,
            holder: uuid::Uuid::now_v7().to_string(),
            process,
            settings,
            authenticity,
            commits: Arc::clone(&commits),
            next_heartbeat: None,
            pending_releases: Vec::new(),
        };
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || thread.run(&requests))
            .map_err(|error| Error::Store {
                path: path.to_owned(),
                why: format!("the writer thread could not be started: {error}"),
            })?;
        Ok(Self { path: path.to_owned(), queue: Some(queue), thread: Some(thread), commits })
    }

    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Sends a request and waits for the answer.
    pub(super) async fn ask<W: WriteRequest>(&self, work: W) -> Result<W::Answer> {
        let (reply, answer) = oneshot::channel();
        self.send(work, Reply::Task(reply))?;
        answer.await.unwrap_or_else(|_| Err(self.stopped()))
    }

    /// Sends a request and blocks this thread until the answer.
    pub(super) fn ask_blocking<W: WriteRequest>(&self, work: W) -> Result<W::Answer> {
        let (reply, answer) = sync_channel(1);
        self.send(work, Reply::Thread(reply))?;
        answer.recv().unwrap_or_else(|_| Err(self.stopped()))
    }

    /// Sends a request without waiting for the answer.
    pub(super) fn send_and_forget<W: WriteRequest>(&self, work: W) {
        // If the writer has stopped, there is nothing to write to.
        let _ = self.send(work, Reply::Ignored);
    }

    fn send<W: WriteRequest>(&self, work: W, reply: Reply<W::Answer>) -> Result<()> {
        let task: Box<dyn Task> = Box::new(PendingRequest { work, outcome: None, reply });
        self.queue.as_ref().and_then(|queue| queue.send(task).ok()).ok_or_else(|| self.stopped())
    }

    fn stopped(&self) -> Error {
        Error::Stopped { path: self.path.clone() }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

struct Thread {
    connection: Connection,
    path: PathBuf,
    file: (u64, u64),
    holder: String,
    process: Process,
    settings: Settings,
    authenticity: Arc<Authenticity>,
    commits: Arc<AtomicU64>,
    /// When leases are renewed next; none while there are none.
    next_heartbeat: Option<Instant>,
    /// Leases to release with the next heartbeat, because it failed before.
    pending_releases: Vec<Release>,
}

impl Thread {
    /// Serves requests until every sender is dropped.
    fn run(mut self, requests: &Receiver<Box<dyn Task>>) {
        loop {
            let first = match self.next_heartbeat {
                None => requests.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(at) => requests.recv_timeout(at.saturating_duration_since(Instant::now())),
            };
            let mut group = match first {
                Ok(first) => vec![first],
                Err(RecvTimeoutError::Timeout) => Vec::new(),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if !group.is_empty() {
                group.extend(requests.try_iter().take(MAX_GROUP - 1));
            }
            self.serve(group);
        }
        if !self.pending_releases.is_empty() {
            self.next_heartbeat = Some(Instant::now());
            self.serve(Vec::new());
        }
    }

    fn serve(&mut self, mut group: Vec<Box<dyn Task>>) {
        let whole = self.write(&mut group);
        match whole {
            // Retried one by one: a request that cannot be written, for example because it is too
            // large for the remaining space, must not fail the others.
            Err(ref error)
                if group.len() > 1 && !matches!(error, Error::Busy { .. } | Error::Gone { .. }) =>
            {
                for mut task in group {
                    let alone = self.write(std::slice::from_mut(&mut task));
                    self.settle(task.answer(alone));
                }
            }
            whole => {
                if let Err(error) = &whole
                    && group.is_empty()
                {
                    tracing::warn!(%error, "the leases of this journal could not be renewed");
                }
                for task in group {
                    self.settle(task.answer(whole.clone()));
                }
            }
        }
    }

    fn settle(&mut self, after: LeaseEffects) {
        self.pending_releases.extend(after.pending_releases);
        if after.leased && self.next_heartbeat.is_none() {
            self.next_heartbeat = Some(Instant::now() + self.settings.heartbeat);
        }
    }

    /// Writes a group of requests in one transaction, and the heartbeat if it is due.
    fn write(&mut self, group: &mut [Box<dyn Task>]) -> Result<()> {
        let heartbeat_due = self.next_heartbeat.is_some_and(|at| at <= Instant::now());
        if heartbeat_due {
            // Set before the attempt, so that a failure is not retried immediately.
            self.next_heartbeat = Some(Instant::now() + self.settings.heartbeat);
        }
        // Writes to a deleted file would be lost without an error.
        if identity(&self.path) != Some(self.file) {
            return Err(Error::Gone { path: self.path.clone() });
        }
        let store = |error: rusqlite::Error| Error::store(&self.path, &error);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(store)?;
        let context = WriteContext {
            connection: &transaction,
            path: &self.path,
            holder: &self.holder,
            process: &self.process,
            stale_after: i64::try_from(self.settings.stale_after.as_millis()).unwrap_or(i64::MAX),
            authenticity: &self.authenticity,
            heads: RefCell::default(),
        };
        let mut renewed = 0;
        if heartbeat_due {
            for release in &self.pending_releases {
                // A lease that was acquired by another process does not need to be released.
                release.perform(&context).or_else(|error| {
                    if error.aborts_transaction() { Err(error) } else { Ok(()) }
                })?;
            }
            // Only rows with this holder: a lease that was taken over has another one.
            renewed = transaction
                .prepare_cached("UPDATE runs SET heartbeat = ?1 WHERE holder = ?2")
                .and_then(|mut update| update.execute((now(), &self.holder)))
                .map_err(store)?;
        }
        for task in group {
            task.attempt(&context)?;
        }
        let heads = context.heads.into_inner();
        transaction.commit().map_err(store)?;
        self.record_heads(&heads);
        self.commits.fetch_add(1, Ordering::Relaxed);
        if heartbeat_due {
            self.pending_releases.clear();
            if renewed == 0 {
                self.next_heartbeat = None;
            }
        }
        Ok(())
    }

    /// Writes beside the key how far runs have come. If that fails, less is known, and the events
    /// are on the disk anyway.
    fn record_heads(&self, heads: &[(i64, Head)]) {
        let Some(key) = &self.authenticity.key else { return };
        for (number, head) in heads {
            if let Err(error) = key.set_head(*number, *head) {
                tracing::warn!(%error, "the position of a run cannot be written beside the key");
            }
        }
    }
}
