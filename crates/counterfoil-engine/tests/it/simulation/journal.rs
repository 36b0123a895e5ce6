//! A journal in memory with the guarantees of the real one: a batch is appended completely or not
//! at all, sequence numbers have no gaps, and an append under an old lease fails and changes
//! nothing.

use counterfoil_flow::{Event, RunState};
use std::collections::BTreeMap;

/// A stored event.
pub(crate) struct Row {
    pub(crate) seq: u64,
    pub(crate) at: i64,
    pub(crate) body: Vec<u8>,
}

/// The content of one append.
pub(crate) struct Batch<'a> {
    pub(crate) events: &'a [(Event, i64)],
    pub(crate) snapshot: Option<Vec<u8>>,
    pub(crate) consumed: &'a [u64],
}

/// Reads an event. It is parsed into a value first: the buffer that serde uses for tagged enums
/// does not keep numbers with a fraction that come directly from text.
pub(crate) fn read(body: &[u8]) -> Result<Event, serde_json::Error> {
    serde_json::from_slice(body).and_then(serde_json::from_value::<Event>)
}

/// Another driver has acquired the run.
#[derive(Debug)]
pub(crate) struct Fenced;

#[derive(Default)]
pub(crate) struct Journal {
    pub(crate) rows: Vec<Row>,
    /// How often the run was acquired. Only the last holder may append.
    pub(crate) epoch: u64,
    acquired: bool,
    /// The latest snapshot, with the sequence number of its last event.
    pub(crate) snapshot: Option<(u64, Vec<u8>)>,
    /// Messages for the driver of the run, by id.
    pub(crate) inbox: BTreeMap<u64, Event>,
    posted: u64,
}

impl Journal {
    /// Acquires the run, even if another driver holds it.
    pub(crate) fn acquire(&mut self) -> u64 {
        self.epoch += 1;
        self.acquired = true;
        self.epoch
    }

    pub(crate) fn release(&mut self, epoch: u64) {
        self.acquired &= epoch != self.epoch;
    }

    pub(crate) fn append(&mut self, epoch: u64, batch: Batch<'_>) -> Result<(), Fenced> {
        if epoch != self.epoch || !self.acquired {
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

    pub(crate) fn send_message(&mut self, message: Event) {
        self.posted += 1;
        self.inbox.insert(self.posted, message);
    }

    /// The state of the run, from the snapshot and the events after it.
    pub(crate) fn load(&self) -> RunState {
        let (seq, mut run_state) = match &self.snapshot {
            Some((seq, body)) => (*seq, serde_json::from_slice(body).expect("the snapshot reads")),
            None => (0, RunState::default()),
        };
        self.replay_onto(&mut run_state, seq);
        run_state
    }

    /// The state of the run, from its events alone.
    pub(crate) fn replay(&self) -> RunState {
        let mut run_state = RunState::default();
        self.replay_onto(&mut run_state, 0);
        run_state
    }

    /// The events of the run, as they are read back.
    pub(crate) fn events(&self) -> impl Iterator<Item = (Event, i64)> {
        self.rows.iter().map(|row| (read(&row.body).expect("the event reads"), row.at))
    }

    fn replay_onto(&self, run_state: &mut RunState, after: u64) {
        for row in self.rows.iter().filter(|row| row.seq > after) {
            let event = read(&row.body).expect("the event reads");
            run_state.apply(&event, row.at);
        }
    }
}
