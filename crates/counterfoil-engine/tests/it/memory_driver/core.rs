//! The events of a run, its state, and the next turn. No I/O.

use counterfoil_flow::{Event, Resumed, RunState, Turn, Workflow, resume_facts, turn};

/// A run in memory.
#[derive(Default)]
pub(crate) struct MemoryRun {
    pub(crate) events: Vec<(Event, i64)>,
    pub(crate) run_state: RunState,
}

impl MemoryRun {
    /// A run with these events, which may be none.
    pub(crate) fn from_events(events: Vec<(Event, i64)>) -> Self {
        let mut run_state = RunState::default();
        for (event, at) in &events {
            run_state.apply(event, *at);
        }
        Self { events, run_state }
    }

    /// The first facts of a driver: the start of a new run, or those of resuming.
    pub(crate) fn first_facts(&self, started: &Event, by: String) -> Vec<Event> {
        if self.events.is_empty() {
            return vec![started.clone()];
        }
        resume_facts(&self.run_state, Resumed { by, ..Resumed::default() }, |_, _| {
            counterfoil_flow::LostWork::default()
        })
    }

    /// Takes a turn and records its events.
    pub(crate) fn turn(&mut self, workflow: &Workflow, facts: Vec<Event>, now: i64) -> Turn {
        let turn = turn(workflow, &mut self.run_state, facts, now);
        self.events.extend(turn.events.iter().cloned());
        turn
    }
}
