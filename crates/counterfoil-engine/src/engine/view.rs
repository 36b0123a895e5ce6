//! A run as its events tell it, which catches up with those that any process records.

use super::Engine;
use crate::error::Error;
use crate::given_answers::GivenAnswer;
use crate::ledger::Entry;
use crate::run_report::{Attempt, RunReport, RunReportBuilder};
use crate::run_waits::RunWait;
use crate::state_progress::{StateKey, StateProgress, StateProgressBuilder};
use counterfoil_flow::{Event, RunState};
use std::collections::BTreeMap;

/// A run after some of its events. To follow a run that another process drives, let it catch up from
/// time to time: only events that were recorded since are read.
#[derive(Debug)]
pub struct RunView {
    engine: Engine,
    run: String,
    /// The number of events that were read.
    seq: u64,
    run_state: RunState,
    report: RunReportBuilder,
    states: StateProgressBuilder,
}

impl Engine {
    /// A run as it is now.
    ///
    /// # Errors
    ///
    /// There is no such run, or it cannot be read.
    pub fn view(&self, run: &str) -> Result<RunView, Error> {
        let mut view = self.view_from_start(run)?;
        view.catch_up(|_, _, _| {})?;
        Ok(view)
    }

    /// A run before its first event.
    ///
    /// # Errors
    ///
    /// There is no such run, or the journal cannot be read.
    pub fn view_from_start(&self, run: &str) -> Result<RunView, Error> {
        Ok(RunView {
            engine: self.clone(),
            run: self.journal().resolve(run)?,
            seq: 0,
            run_state: RunState::default(),
            report: RunReportBuilder::default(),
            states: StateProgressBuilder::default(),
        })
    }
}

impl RunView {
    /// Reads the events that were recorded since, and shows each of them with the time and the state
    /// of the run after it. Returns their number.
    ///
    /// # Errors
    ///
    /// The run cannot be read. The view has the events before the one that cannot be read.
    pub fn catch_up(
        &mut self,
        mut visit: impl FnMut(&Event, i64, &RunState),
    ) -> Result<u64, Error> {
        let Self { engine, run, seq, run_state, report, states } = self;
        let before = *seq;
        // Without this, the chain of digests would be looked up for nothing.
        if before > 0 && engine.journal().last_seq(run)? == before {
            return Ok(0);
        }
        engine.each_event(run, before + 1, |event, at| {
            *seq += 1;
            run_state.apply(&event, at);
            report.on_event(&event, at);
            states.on_event(&event);
            visit(&event, at, run_state);
        })?;
        Ok(*seq - before)
    }

    /// The id of the run.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The number of the last event that was read.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The state of the run.
    pub fn run_state(&self) -> &RunState {
        &self.run_state
    }

    /// The report of the run.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    pub fn report(&self) -> Result<RunReport, Error> {
        self.engine.finish_report(&self.report, &self.run_state, RunReportBuilder::report)
    }

    /// The report of the run without its attempts and transitions, of which there may be many.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    pub fn outline(&self) -> Result<RunReport, Error> {
        self.engine.finish_report(&self.report, &self.run_state, RunReportBuilder::outline)
    }

    /// All attempts of agents, commands and built-in steps, in the order they started.
    pub fn attempts(&self) -> &[Attempt] {
        self.report.attempts()
    }

    /// The answers that people gave, in order.
    pub fn answers(&self) -> &[GivenAnswer] {
        self.report.answers()
    }

    /// When the run waited, and for what.
    pub fn waits(&self) -> &[RunWait] {
        self.report.waits()
    }

    /// The claims of the run and their verdicts.
    pub fn claims(&self) -> Vec<Entry> {
        self.report.claims()
    }

    /// What the run did in each state of its workflow, and where it is now.
    pub fn states(&self) -> BTreeMap<StateKey, StateProgress> {
        self.states.states(&self.run_state)
    }

    /// Whether a process drives the run.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    pub fn is_driven(&self) -> Result<bool, Error> {
        let info = self.engine.journal().run(&self.run)?;
        Ok(info.driver.is_some_and(|driver| driver.live))
    }
}
