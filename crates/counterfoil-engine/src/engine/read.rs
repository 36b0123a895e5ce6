//! Reads runs: their events, their state, their report and their claims.

use super::Engine;
use crate::driver::works_in;
use crate::error::Error;
use crate::ledger::Ledger;
use crate::lists::AfterEnd;
use crate::run_report::{ANSWERED, Reopening, RunReport, RunReportBuilder};
use counterfoil_flow::{Bundle, Event, RunState, Workflow, reload};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

impl Engine {
    /// The report of a run, with all its attempts.
    ///
    /// # Errors
    ///
    /// There is no such run, or it cannot be read.
    pub fn report(&self, run: &str) -> Result<RunReport, Error> {
        self.view(run)?.report()
    }

    /// A run that a process drives in a folder at this moment.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    pub fn live_run_in(&self, repo: &Path) -> Result<Option<String>, Error> {
        let repo = repo.display().to_string();
        // No run has an empty id, and none has events of that time: those that are driven are left.
        let live = self.journal.concurrent_runs("", i64::MAX)?;
        let found = live.into_iter().find(|run| works_in(&self.journal, &run.id, &repo));
        Ok(found.map(|run| run.id))
    }

    /// What happened to a run after it had ended.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    pub fn after_end(&self, run: &str) -> Result<AfterEnd, Error> {
        let mut after = AfterEnd::default();
        if let Some((times, stored)) = self.journal.last_of_kind(run, "run-reopened")?
            && let Event::RunReopened(reopened) = serde_json::from_slice(&stored.body)?
        {
            after.reopened = Some((times, Reopening::new(&reopened, stored.at)));
        }
        if let Some((_, stored)) = self.journal.last_of_kind(run, "run-undone")?
            && let Event::RunUndone(undone) = serde_json::from_slice(&stored.body)?
        {
            after.undone_by = Some(undone.by);
        }
        Ok(after)
    }

    /// The state of a run, from all its events.
    ///
    /// # Errors
    ///
    /// The run cannot be read.
    pub fn run_state(&self, run: &str) -> Result<RunState, Error> {
        let mut run_state = RunState::default();
        self.each_event(run, 1, |event, at| run_state.apply(&event, at))?;
        Ok(run_state)
    }

    /// The claims of a run and their verdicts.
    ///
    /// # Errors
    ///
    /// There is no such run, or it cannot be read.
    pub fn ledger(&self, run: &str) -> Result<Ledger, Error> {
        let run = self.journal.resolve(run)?;
        let mut ledger = Ledger::new();
        self.each_event_of(&run, &Ledger::KINDS, |event, at| ledger.on_event(&event, at))?;
        Ok(ledger)
    }

    /// Visits the events of a run in order, starting with a sequence number.
    ///
    /// # Errors
    ///
    /// The run cannot be read.
    pub fn each_event(
        &self,
        run: &str,
        from: u64,
        visit: impl FnMut(Event, i64),
    ) -> Result<(), Error> {
        self.read_events(run, from, |_| true, visit).map(drop)
    }

    /// Visits the events of these kinds in order. Of the others only the digests are checked.
    ///
    /// # Errors
    ///
    /// The run cannot be read.
    pub fn each_event_of(
        &self,
        run: &str,
        kinds: &[&str],
        visit: impl FnMut(Event, i64),
    ) -> Result<(), Error> {
        self.read_events(run, 1, |kind| kinds.contains(&kind), visit).map(drop)
    }

    /// Visits the events of `wanted` kinds in order, starting with a sequence number. Of the others only
    /// the digests are checked. Returns the number of the last event, with which reading goes on later.
    ///
    /// # Errors
    ///
    /// The run cannot be read.
    pub fn read_events(
        &self,
        run: &str,
        from: u64,
        wanted: impl Fn(&str) -> bool,
        mut visit: impl FnMut(Event, i64),
    ) -> Result<u64, Error> {
        let mut failed = None;
        let visited = self.journal.visit(run, from, |stored| {
            if !wanted(&stored.kind) {
                return ControlFlow::Continue(());
            }
            match serde_json::from_slice::<Event>(&stored.body) {
                Ok(event) => {
                    visit(event, stored.at);
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    failed = Some(Error::Unreadable {
                        run: run.to_owned(),
                        seq: stored.seq,
                        why: error.to_string(),
                    });
                    ControlFlow::Break(())
                }
            }
        })?;
        failed.map_or(Ok(from.max(1) - 1 + visited), Err)
    }

    /// The workflow with which a run was started.
    ///
    /// # Errors
    ///
    /// The stored workflow cannot be read, or does not pass the checker of this version.
    pub fn workflow(&self, run_state: &RunState) -> Result<Arc<Workflow>, Error> {
        if let Some(workflow) = self.workflows.get(&run_state.bundle) {
            return Ok(workflow);
        }
        let bytes = self.journal.bundle(&run_state.bundle)?;
        let bundle = Bundle::from_bytes(&bytes)?;
        let workflow = Arc::new(reload(&bundle).map_err(Box::new)?);
        self.workflows.keep(&run_state.bundle, &workflow);
        Ok(workflow)
    }

    pub(super) fn report_of(&self, run_state: &RunState) -> Result<RunReport, Error> {
        let mut builder = RunReportBuilder::default();
        self.each_event(&run_state.run, 1, |event, at| builder.on_event(&event, at))?;
        self.finish_report(&builder, run_state, RunReportBuilder::report)
    }

    /// The report of a run, with what only the journal knows of it.
    pub(crate) fn finish_report(
        &self,
        builder: &RunReportBuilder,
        run_state: &RunState,
        make: fn(&RunReportBuilder, &RunState, bool) -> RunReport,
    ) -> Result<RunReport, Error> {
        let info = self.journal.run(&run_state.run)?;
        let live = info.driver.is_some_and(|driver| driver.live);
        let mut report = make(builder, run_state, live);
        if info.summary.outcome.as_deref() == Some(ANSWERED) && !live {
            ANSWERED.clone_into(&mut report.outcome);
        }
        Ok(report)
    }
}
