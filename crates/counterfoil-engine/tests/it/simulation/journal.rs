//! A journal in memory that keeps the promises of the real one: batches whole or not at all, places
//! without a gap, and an append under an old lease refused with nothing changed.

use counterfoil_flow::{Event, RunState};
use std::collections::BTreeMap;

/// One event as it was written.
pub(crate) struct Row {
    pub(crate) seq: u64,
    pub(crate) at: i64,
    pub(crate) body: Vec<u8>,
}

/// What one append writes.
pub(crate) struct Batch<'a> {
    pub(crate) events: &'a [(Event, i64)],
    pub(crate) snapshot: Option<Vec<u8>>,
    pub(crate) consumed: &'a [u64],
}

/// Reads an event as it was written. It goes by way of a value: serde keeps what stands beside a
/// tag aside, and there a number with a fraction that was read from a text is no longer one.
pub(crate) fn read(body: &[u8]) -> Result<Event, serde_json::Error> {
    serde_json::from_slice(body).and_then(serde_json::from_value::<Event>)
}

/// Somebody else drives the run by now.
#[derive(Debug)]
pub(crate) struct Fenced;

#[derive(Default)]
pub(crate) struct Journal {
    pub(crate) rows: Vec<Row>,
    /// How often the run has been taken; only the last taker may append.
    pub(crate) epoch: u64,
    held: bool,
    /// The last event that the snapshot covers, and the fold.
    pub(crate) snapshot: Option<(u64, Vec<u8>)>,
    /// Messages for whoever drives the run, by number.
    pub(crate) inbox: BTreeMap<u64, Event>,
    posted: u64,
}

impl Journal {
    /// Takes the run, from a dead or silent driver too.
    pub(crate) fn take(&mut self) -> u64 {
        self.epoch += 1;
        self.held = true;
        self.epoch
    }

    pub(crate) fn release(&mut self, epoch: u64) {
        self.held &= epoch != self.epoch;
    }

    pub(crate) fn append(&mut self, epoch: u64, batch: Batch<'_>) -> Result<(), Fenced> {
        if epoch != self.epoch || !self.held {
            return Err(Fenced);
        }
        for (event, at) in batch.events {
            let body = serde_json::to_vec(event).expect("every event can be written");
            self.rows.push(Row { seq: self.rows.len() as u64 + 1, at: *at, body });
        }
        if let Some(body) = batch.snapshot {
            self.snapshot = Some((self.rows.len() as u64, body));
        }
        for id in batch.consumed {
            self.inbox.remove(id);
        }
        Ok(())
    }

    pub(crate) fn post(&mut self, message: Event) {
        self.posted += 1;
        self.inbox.insert(self.posted, message);
    }

    /// What is known of the run: the snapshot, and the events behind it.
    pub(crate) fn load(&self) -> RunState {
        let (seq, mut fold) = match &self.snapshot {
            Some((seq, body)) => (*seq, serde_json::from_slice(body).expect("the snapshot reads")),
            None => (0, RunState::default()),
        };
        self.replay_onto(&mut fold, seq);
        fold
    }

    /// What is known of the run from its events alone.
    pub(crate) fn replay(&self) -> RunState {
        let mut fold = RunState::default();
        self.replay_onto(&mut fold, 0);
        fold
    }

    fn replay_onto(&self, fold: &mut RunState, after: u64) {
        for row in self.rows.iter().filter(|row| row.seq > after) {
            let event = read(&row.body).expect("the event reads");
            fold.apply(&event, row.at);
        }
    }
}
