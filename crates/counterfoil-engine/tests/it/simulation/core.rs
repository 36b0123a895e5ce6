//! What the simulation needs of a driver: the part that loads a run, turns it and keeps its state.

use crate::memory_driver::core::MemoryRun;
use crate::simulation::journal::Journal;
use counterfoil_flow::{Event, Resumed, RunState, Turn, Workflow, turn};

/// The core of a driver. The simulation does the rest: it appends the events, performs the work and
/// kills the driver at any point.
pub(crate) trait DriverCore: Sized {
    /// Loads the run from the journal.
    fn load(journal: &Journal) -> Self;
    /// The first facts of a driver: the start of a new run, or those of resuming.
    fn first_facts(&self, started: &Event, by: String) -> Vec<Event>;
    /// Takes a turn.
    fn turn(&mut self, workflow: &Workflow, facts: Vec<Event>, now: i64) -> Turn;
    /// The state of the run.
    fn run_state(&self) -> &RunState;
    /// Compares what the core keeps beside the state with the journal.
    fn check(&self, journal: &Journal) -> Result<(), String> {
        let _ = journal;
        Ok(())
    }
}

/// A core that loads the latest snapshot and the events after it, as the engine does.
pub(crate) struct SnapshotCore {
    run_state: RunState,
}

impl DriverCore for SnapshotCore {
    fn load(journal: &Journal) -> Self {
        Self { run_state: journal.load() }
    }

    fn first_facts(&self, started: &Event, by: String) -> Vec<Event> {
        if self.run_state.seq == 0 {
            return vec![started.clone()];
        }
        let lost = self.run_state.attempts.keys().map(|attempt| Event::AttemptLost {
            attempt: attempt.clone(),
            usage: counterfoil_flow::Usage::default(),
            changed: Vec::new(),
        });
        std::iter::once(Event::RunResumed(Box::new(Resumed { by, ..Resumed::default() })))
            .chain(lost)
            .collect()
    }

    fn turn(&mut self, workflow: &Workflow, facts: Vec<Event>, now: i64) -> Turn {
        turn(workflow, &mut self.run_state, facts, now)
    }

    fn run_state(&self) -> &RunState {
        &self.run_state
    }
}

impl DriverCore for MemoryRun {
    fn load(journal: &Journal) -> Self {
        Self::from_events(journal.events().collect())
    }

    fn first_facts(&self, started: &Event, by: String) -> Vec<Event> {
        Self::first_facts(self, started, by)
    }

    fn turn(&mut self, workflow: &Workflow, facts: Vec<Event>, now: i64) -> Turn {
        Self::turn(self, workflow, facts, now)
    }

    fn run_state(&self) -> &RunState {
        &self.run_state
    }

    fn check(&self, journal: &Journal) -> Result<(), String> {
        let bytes = |event: &Event| serde_json::to_vec(event).expect("every event can be written");
        let mine = self.events.iter().map(|(event, at)| (*at, bytes(event)));
        let recorded = journal.rows.iter().map(|row| (row.at, row.body.clone()));
        if mine.eq(recorded) {
            Ok(())
        } else {
            Err("the events in memory are not those of the journal".to_owned())
        }
    }
}
