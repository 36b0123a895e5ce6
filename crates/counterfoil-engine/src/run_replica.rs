//! A run whose journal is elsewhere, as its events tell it.

use crate::ledger::Entry;
use crate::run_report::{ANSWERED, RunReport, RunReportBuilder};
use counterfoil_flow::{Event, RunState};

/// A run after the events that it was given. Its report and claims are those of the run itself.
#[derive(Debug, Default)]
pub struct RunReplica {
    run_state: RunState,
    report: RunReportBuilder,
}

impl RunReplica {
    /// Adds the next event.
    pub fn apply(&mut self, event: &Event, at: i64) {
        self.run_state.apply(event, at);
        self.report.on_event(event, at);
    }

    /// The state of the run.
    pub fn run_state(&self) -> &RunState {
        &self.run_state
    }

    /// The claims of the run and their verdicts.
    pub fn claims(&self) -> Vec<Entry> {
        self.report.claims()
    }

    /// The report of the run. Events do not tell whether a process drives it, nor whether it was
    /// answered and nobody has resumed it since.
    pub fn report(&self, is_driven: bool, is_answered: bool) -> RunReport {
        let mut report = self.report.report(&self.run_state, is_driven);
        if is_answered && !is_driven {
            ANSWERED.clone_into(&mut report.outcome);
        }
        report
    }
}
