//! The lease of a run: the right to drive it.

use super::Journal;
use super::error::{Error, Result};
use super::reading::messages;
use super::record::{Batch, StoredMessage};
use super::work::{Append, Granted, Release};
use std::sync::{Mutex, PoisonError};

/// The right to append to a run, for one holder at a time. It is renewed while it exists and
/// released when it is dropped. A process that dies loses its leases.
#[derive(Debug)]
pub struct Lease {
    journal: Journal,
    run: String,
    granted: Granted,
    /// The data version at which the inbox was empty.
    empty_at: Mutex<Option<i64>>,
    released: bool,
}

impl Lease {
    pub(super) fn new(journal: Journal, run: String, granted: Granted) -> Self {
        Self { journal, run, granted, empty_at: Mutex::new(None), released: false }
    }

    /// Appends a batch, and returns the sequence number of the last event once everything is on the
    /// disk. Dropping the future does not undo the append.
    ///
    /// # Errors
    ///
    /// The lease was lost, or the journal cannot be written.
    pub async fn append(&self, batch: Batch) -> Result<u64> {
        self.journal.writer()?.ask(self.append_request(batch)).await
    }

    /// Appends a batch and blocks the thread until it is on the disk.
    ///
    /// # Errors
    ///
    /// The lease was lost, or the journal cannot be written.
    pub fn append_blocking(&self, batch: Batch) -> Result<u64> {
        self.journal.writer()?.ask_blocking(self.append_request(batch))
    }

    /// The messages for this run, the oldest first. They stay until a batch consumes them. The call
    /// is fast if the journal has not changed since the inbox was empty.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    pub fn messages(&self) -> Result<Vec<StoredMessage>> {
        let mut empty_at = self.empty_at.lock().unwrap_or_else(PoisonError::into_inner);
        let digests = self.journal.inner.authenticity.own();
        let genuine = |message: &StoredMessage, code| {
            let StoredMessage { id, at, kind, body } = message;
            let expected = digests.message(&self.run, *id, *at, kind, body);
            expected.is_none() || expected == code
        };
        let found = self.journal.read_with_main(|connection| {
            messages(connection, self.granted.number, genuine, &mut empty_at)
        })?;
        let altered = |id| Error::Altered { what: format!("message {id} to run {}", self.run) };
        found.map_err(altered)
    }

    /// Releases the lease, so that others can acquire it. If that cannot be written now, it is
    /// retried with every heartbeat until the journal is closed.
    ///
    /// # Errors
    ///
    /// The lease was lost, or the journal cannot be written.
    pub fn release(mut self) -> Result<()> {
        self.released = true;
        self.journal.writer()?.ask_blocking(self.release_request())
    }

    /// How often the run has been acquired, including this time.
    pub fn epoch(&self) -> u64 {
        self.granted.epoch
    }

    /// The run's id.
    pub fn run(&self) -> &str {
        &self.run
    }

    fn append_request(&self, batch: Batch) -> Append {
        Append { run: self.run.clone(), lease: self.granted, batch }
    }

    fn release_request(&self) -> Release {
        Release { run: self.run.clone(), lease: self.granted }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.released
            && let Ok(writer) = self.journal.writer()
        {
            writer.send_and_forget(self.release_request());
        }
    }
}
