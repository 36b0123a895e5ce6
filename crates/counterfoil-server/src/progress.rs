//! How far runs have come, for the list. It is read from the events that tell where a run is, and
//! read on when there are more of them.

use counterfoil_engine::journal::RunInfo;
use counterfoil_engine::{Engine, Error, RunProgress};
use counterfoil_flow::{RunState, Step};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The maximum number of runs and of workflows that are kept. When there are more, all are read again.
const MAX_KEPT: usize = 20_000;

/// How far a run has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    /// The states of the main workflow that the run entered, without those in which it ends.
    pub(crate) entered: usize,
    /// All of them; 0 if the workflow cannot be read.
    pub(crate) states: usize,
    /// The items of the last fan-out that are done, and all of them.
    pub(crate) items: Option<(usize, usize)>,
}

/// What was read of a run.
#[derive(Debug)]
struct Read {
    /// The number of the last event.
    seq: u64,
    steps: Steps,
    /// What is read on; none if the run has ended, as most have.
    progress: Option<RunProgress>,
}

/// The names of the states in which a run works.
type States = Option<Arc<BTreeSet<String>>>;

/// How far runs have come, as far as it was read.
#[derive(Debug, Default)]
pub(crate) struct KnownProgress {
    runs: Mutex<HashMap<(PathBuf, String), Read>>,
    /// By the hash of the workflow.
    workflows: Mutex<HashMap<String, States>>,
}

impl KnownProgress {
    /// How far a run has come.
    pub(crate) fn of(&self, engine: &Engine, run: &RunInfo) -> Result<Steps, Error> {
        let key = (engine.journal().folder().to_owned(), run.id.clone());
        let known = {
            let mut runs = lock(&self.runs);
            match runs.get_mut(&key) {
                Some(read) if read.seq >= run.last_seq => return Ok(read.steps),
                // Taken, so that nobody else reads it on from the same place.
                Some(read) => read.progress.take(),
                None => None,
            }
        };
        let mut progress = known.unwrap_or_default();
        progress.read(engine, &run.id)?;
        let states = self.states(engine, &run.bundle);
        let steps = Steps {
            entered: states.as_ref().map_or(0, |states| {
                progress.entered().filter(|state| states.contains(*state)).count()
            }),
            states: states.as_ref().map_or(0, |states| states.len()),
            items: progress.items(),
        };
        let seq = progress.seq();
        let outcome = run.summary.outcome.as_deref();
        let is_open = matches!(outcome, None | Some("waiting" | "answered"));
        let mut runs = lock(&self.runs);
        if runs.len() >= MAX_KEPT {
            runs.clear();
        }
        runs.insert(key, Read { seq, steps, progress: is_open.then_some(progress) });
        Ok(steps)
    }

    fn states(&self, engine: &Engine, bundle: &str) -> States {
        if let Some(states) = lock(&self.workflows).get(bundle) {
            return states.clone();
        }
        let mut run_state = RunState::default();
        bundle.clone_into(&mut run_state.bundle);
        let states = engine.workflow(&run_state).ok().map(|workflow| {
            let states = workflow.main.states.iter();
            let working = states.filter(|(_, state)| !matches!(state.kind, Step::End { .. }));
            Arc::new(working.map(|(name, _)| name.clone()).collect())
        });
        let mut workflows = lock(&self.workflows);
        if workflows.len() >= MAX_KEPT {
            workflows.clear();
        }
        workflows.insert(bundle.to_owned(), states.clone());
        states
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
