//! The right to drive a run.

use super::Journal;
use super::error::Result;
use super::reading::posted;
use super::record::{Batch, Posted};
use super::work::{Append, Granted, Release};
use std::sync::{Mutex, PoisonError};

/// The right to append to a run, for one holder at a time. It is kept fresh while it exists and
/// given back when it is dropped; a process that dies holding it loses it.
#[derive(Debug)]
pub struct Lease {
    journal: Journal,
    run: String,
    granted: Granted,
    /// The version of the data at which the inbox was empty.
    quiet: Mutex<Option<i64>>,
    released: bool,
}

impl Lease {
    pub(super) fn new(journal: Journal, run: String, granted: Granted) -> Self {
        Self { journal, run, granted, quiet: Mutex::new(None), released: false }
    }

    /// Appends a batch and returns the place of the run's last event, once all of it is on the
    /// disk. Dropping the future does not take the batch back.
    pub async fn append(&self, batch: Batch) -> Result<u64> {
        self.journal.writer()?.ask(self.work(batch)).await
    }

    /// The same, blocking this thread.
    pub fn append_blocking(&self, batch: Batch) -> Result<u64> {
        self.journal.writer()?.ask_blocking(self.work(batch))
    }

    /// The messages that wait for this run, the oldest first. They stay until a batch consumes
    /// them. Quick where nobody has written since the last look.
    pub fn posted(&self) -> Result<Vec<Posted>> {
        let mut quiet = self.quiet.lock().unwrap_or_else(PoisonError::into_inner);
        self.journal.read(|connection| posted(connection, self.granted.number, &mut quiet))
    }

    /// Gives the run back, so that anybody may take it. Where that cannot be written now, it is
    /// tried again with every heartbeat until the journal is closed.
    pub fn release(mut self) -> Result<()> {
        self.released = true;
        self.journal.writer()?.ask_blocking(self.giving_back())
    }

    /// How often the run has been taken, this time included.
    pub fn epoch(&self) -> u64 {
        self.granted.epoch
    }

    /// The run's id.
    pub fn run(&self) -> &str {
        &self.run
    }

    fn work(&self, batch: Batch) -> Append {
        Append { run: self.run.clone(), lease: self.granted, batch }
    }

    fn giving_back(&self) -> Release {
        Release { run: self.run.clone(), lease: self.granted }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.released
            && let Ok(writer) = self.journal.writer()
        {
            writer.tell(self.giving_back());
        }
    }
}
