//! How far a run has come, in a few numbers for lists. It is read from those of its events that tell
//! where the run is.

use crate::engine::Engine;
use crate::error::Error;
use crate::state_progress::StateProgressBuilder;

/// The events that tell where a run is.
const KINDS: [&str; 5] = ["frame-opened", "frame-ended", "fanned-out", "moved", "run-reopened"];

/// How far a run has come. It can be read on when there are more events.
#[derive(Clone, Debug, Default)]
pub struct RunProgress {
    /// The number of events that were read.
    seq: u64,
    states: StateProgressBuilder,
}

impl RunProgress {
    /// Reads the events of a run that were recorded since.
    ///
    /// # Errors
    ///
    /// The run cannot be read.
    pub fn read(&mut self, engine: &Engine, run: &str) -> Result<(), Error> {
        let states = &mut self.states;
        let on_event = |event, _| states.on_event(&event);
        self.seq = engine.read_events(run, self.seq + 1, |kind| KINDS.contains(&kind), on_event)?;
        Ok(())
    }

    /// The number of the last event that was read.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The states of the main workflow that the run entered.
    pub fn entered(&self) -> impl Iterator<Item = &str> {
        self.states.entered()
    }

    /// The items that are done and all of them, of the last fan-out that is not inside of another one.
    pub fn items(&self) -> Option<(usize, usize)> {
        self.states.items()
    }
}
