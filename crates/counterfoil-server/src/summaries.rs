//! What the list of runs says of each run besides what the journal keeps for lists: its task and its
//! claims. It is read from the events of a run, and kept until the run goes on. Of a run that is driven,
//! only the new events are read then.

use crate::growing::{Collector, GrowingRuns};
use crate::problem::Problem;
use counterfoil_engine::Engine;
use counterfoil_engine::journal::RunInfo;
use counterfoil_engine::ledger::{Ledger, Totals};
use counterfoil_engine::lists::AfterEnd;
use counterfoil_flow::Event;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The maximum number of runs that are kept. When there are more, all are read again.
const MAX_KEPT: usize = 50_000;
/// The inputs that say what a run is for, the most telling one first.
const TASK_INPUTS: [&str; 6] = ["task", "goal", "request", "spec", "feature", "issue"];

/// The claims and the task of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunDigest {
    /// What the run is for; empty if its inputs do not say it.
    pub(crate) task: String,
    /// The number of claims by verdict.
    pub(crate) claims: Totals,
    /// What happened to the run after its end.
    pub(crate) after: AfterEnd,
}

/// What was read of runs, with the number of the last event at that time.
#[derive(Debug, Default)]
pub(crate) struct Summaries {
    kept: Mutex<HashMap<(PathBuf, String), (u64, RunDigest)>>,
    growing: GrowingRuns<DigestCollector>,
}

/// Collects what lists say of a run.
#[derive(Debug, Default)]
struct DigestCollector {
    task: String,
    ledger: Ledger,
    after: AfterEnd,
}

impl Collector for DigestCollector {
    fn wants(kind: &str) -> bool {
        Ledger::KINDS.contains(&kind) || AfterEnd::KINDS.contains(&kind)
    }

    fn on_event(&mut self, event: &Event, at: i64) {
        if let Event::RunStarted(started) = event {
            self.task = task_in(&started.inputs);
        }
        self.ledger.on_event(event, at);
        self.after.on_event(event, at);
    }
}

impl Summaries {
    /// The task and the claims of a run.
    pub(crate) fn of(&self, engine: &Engine, run: &RunInfo) -> Result<RunDigest, Problem> {
        let key = (engine.journal().folder().to_owned(), run.id.clone());
        if let Some((seq, digest)) = self.kept().get(&key)
            && *seq == run.last_seq
        {
            return Ok(digest.clone());
        }
        let digest = self.growing.read(engine, &run.id, run.is_driven(), |read| RunDigest {
            task: read.task.clone(),
            claims: read.ledger.totals(),
            after: read.after.clone(),
        })?;
        let mut kept = self.kept();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(key, (run.last_seq, digest.clone()));
        Ok(digest)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, HashMap<(PathBuf, String), (u64, RunDigest)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The input that says what a run is for: one with a usual name, else the first text.
pub(crate) fn task_in(inputs: &serde_json::Map<String, serde_json::Value>) -> String {
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let usual = TASK_INPUTS.iter().filter_map(|name| inputs.get(*name)).find_map(text);
    usual.or_else(|| inputs.values().find_map(text)).unwrap_or_default()
}
