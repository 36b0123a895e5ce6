//! The one thread that writes. Whatever is queued when it looks becomes one transaction, so that
//! callers who come together share the wait for the disk. It also keeps the leases of this journal
//! fresh.

use super::error::{Error, Result};
use super::holder::Process;
use super::work::Release;
use super::{Settings, identity, now};
use rusqlite::{Connection, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::sync::oneshot;

/// How many requests share one transaction at most.
const LARGEST_GROUP: usize = 256;

/// Something to be written, that may be tried more than once.
pub(super) trait Work: Send + 'static {
    /// What the caller is told.
    type Answer: Send + 'static;
    /// Whether doing it can give a lease to this journal.
    const LEASES: bool = false;
    /// Does it. What the caller got wrong is found before the first change, because the others in
    /// the transaction are committed all the same.
    fn perform(&self, desk: &Desk<'_>) -> Result<Self::Answer>;
    /// A lease that was to be given back by this and could not be: it must not be kept fresh for
    /// ever.
    fn owed(self) -> Option<Release>
    where
        Self: Sized,
    {
        None
    }
}

/// What work is done with.
pub(super) struct Desk<'a> {
    pub(super) connection: &'a Connection,
    pub(super) path: &'a Path,
    pub(super) holder: &'a str,
    pub(super) process: &'a Process,
    pub(super) stale_after: i64,
}

impl Desk<'_> {
    pub(super) fn failed(&self, error: &rusqlite::Error) -> Error {
        Error::store(self.path, error)
    }
}

trait Task: Send {
    /// Does the work; an error means that the transaction cannot be committed.
    fn attempt(&mut self, desk: &Desk<'_>) -> Result<()>;
    /// Tells the caller, and says what it means for the leases of this journal.
    fn answer(self: Box<Self>, transaction: Result<()>) -> Aftermath;
}

#[derive(Default)]
struct Aftermath {
    /// A lease was given.
    leased: bool,
    /// A lease still has to be given back.
    owed: Option<Release>,
}

struct Asked<W: Work> {
    work: W,
    outcome: Option<Result<W::Answer>>,
    reply: Reply<W::Answer>,
}

/// Who waits for the answer. A blocked thread has a channel of its own, because tokio's panics when
/// a thread of its runtime blocks on it.
enum Reply<T> {
    Task(oneshot::Sender<Result<T>>),
    Thread(SyncSender<Result<T>>),
    Nobody,
}

impl<W: Work> Task for Asked<W> {
    fn attempt(&mut self, desk: &Desk<'_>) -> Result<()> {
        match self.work.perform(desk) {
            Err(error) if error.spoils_group() => Err(error),
            outcome => {
                self.outcome = Some(outcome);
                Ok(())
            }
        }
    }

    fn answer(self: Box<Self>, transaction: Result<()>) -> Aftermath {
        let failed = transaction.is_err();
        let answer = match (transaction, self.outcome) {
            (Err(error), _) => Err(error),
            (Ok(()), Some(outcome)) => outcome,
            // Not reached: what was committed was attempted. The caller then sees a reply that
            // never comes.
            (Ok(()), None) => return Aftermath::default(),
        };
        let leased = W::LEASES && answer.is_ok();
        // A caller who no longer waits does not want to know.
        match self.reply {
            Reply::Task(reply) => drop(reply.send(answer)),
            Reply::Thread(reply) => drop(reply.send(answer)),
            Reply::Nobody => {}
        }
        Aftermath { leased, owed: if failed { self.work.owed() } else { None } }
    }
}

/// The way to the writing thread. Dropping it waits until everything sent has been written.
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
            commits: Arc::clone(&commits),
            beat_at: None,
            owed: Vec::new(),
        };
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || thread.run(&requests))
            .map_err(|error| Error::Store {
                path: path.to_owned(),
                why: format!("no thread could be started to write: {error}"),
            })?;
        Ok(Self { path: path.to_owned(), queue: Some(queue), thread: Some(thread), commits })
    }

    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Has work done and waits for it as a task does.
    pub(super) async fn ask<W: Work>(&self, work: W) -> Result<W::Answer> {
        let (reply, answer) = oneshot::channel();
        self.send(work, Reply::Task(reply))?;
        answer.await.unwrap_or_else(|_| Err(self.stopped()))
    }

    /// Has work done and blocks this thread for it.
    pub(super) fn ask_blocking<W: Work>(&self, work: W) -> Result<W::Answer> {
        let (reply, answer) = sync_channel(1);
        self.send(work, Reply::Thread(reply))?;
        answer.recv().unwrap_or_else(|_| Err(self.stopped()))
    }

    /// Has work done and does not wait.
    pub(super) fn tell<W: Work>(&self, work: W) {
        // A writer that has stopped has nothing left to tell.
        let _ = self.send(work, Reply::Nobody);
    }

    fn send<W: Work>(&self, work: W, reply: Reply<W::Answer>) -> Result<()> {
        let task: Box<dyn Task> = Box::new(Asked { work, outcome: None, reply });
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
    commits: Arc<AtomicU64>,
    /// When leases are to be kept fresh next; none while there are none.
    beat_at: Option<Instant>,
    /// Leases to be given back with the next heartbeat, because it could not be done when it was
    /// asked for.
    owed: Vec<Release>,
}

impl Thread {
    /// Serves until every sender is gone.
    fn run(mut self, requests: &Receiver<Box<dyn Task>>) {
        loop {
            let first = match self.beat_at {
                None => requests.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(at) => requests.recv_timeout(at.saturating_duration_since(Instant::now())),
            };
            let mut group = match first {
                Ok(first) => vec![first],
                Err(RecvTimeoutError::Timeout) => Vec::new(),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if !group.is_empty() {
                group.extend(requests.try_iter().take(LARGEST_GROUP - 1));
            }
            self.serve(group);
        }
        if !self.owed.is_empty() {
            self.beat_at = Some(Instant::now());
            self.serve(Vec::new());
        }
    }

    fn serve(&mut self, mut group: Vec<Box<dyn Task>>) {
        let whole = self.write(&mut group);
        match whole {
            // Each on its own: one that cannot be written (too big for what room is left) is not to
            // fail the others.
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
                    tracing::warn!(%error, "the leases of this journal could not be kept fresh");
                }
                for task in group {
                    self.settle(task.answer(whole.clone()));
                }
            }
        }
    }

    fn settle(&mut self, after: Aftermath) {
        self.owed.extend(after.owed);
        if after.leased && self.beat_at.is_none() {
            self.beat_at = Some(Instant::now() + self.settings.heartbeat);
        }
    }

    /// Writes a group in one transaction, and the heartbeat with it when it is due.
    fn write(&mut self, group: &mut [Box<dyn Task>]) -> Result<()> {
        let beat_due = self.beat_at.is_some_and(|at| at <= Instant::now());
        if beat_due {
            // Set before it is tried, so that a failure is not followed by another at once.
            self.beat_at = Some(Instant::now() + self.settings.heartbeat);
        }
        // A file that was deleted takes everything written to it along without a word.
        if identity(&self.path) != Some(self.file) {
            return Err(Error::Gone { path: self.path.clone() });
        }
        let store = |error: rusqlite::Error| Error::store(&self.path, &error);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(store)?;
        let desk = Desk {
            connection: &transaction,
            path: &self.path,
            holder: &self.holder,
            process: &self.process,
            stale_after: i64::try_from(self.settings.stale_after.as_millis()).unwrap_or(i64::MAX),
        };
        let mut held = 0;
        if beat_due {
            for release in &self.owed {
                // One that was taken over meanwhile is given back already.
                release
                    .perform(&desk)
                    .or_else(|error| if error.spoils_group() { Err(error) } else { Ok(()) })?;
            }
            // Only rows that still name this holder: a lease that was taken over names another.
            held = transaction
                .prepare_cached("UPDATE runs SET heartbeat = ?1 WHERE holder = ?2")
                .and_then(|mut update| update.execute((now(), &self.holder)))
                .map_err(store)?;
        }
        for task in group {
            task.attempt(&desk)?;
        }
        transaction.commit().map_err(store)?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        if beat_due {
            self.owed.clear();
            if held == 0 {
                self.beat_at = None;
            }
        }
        Ok(())
    }
}
