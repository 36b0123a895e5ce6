//! The figures of all runs of all state folders. Each run is read once and kept until it goes on. One
//! request reads for a bounded time, the newest runs first: the next one goes on where it stopped.

use crate::folders::Folders;
use crate::growing::{Collector, GrowingRuns};
use crate::problem::Problem;
use counterfoil_engine::Engine;
use counterfoil_engine::journal::RunInfo;
use counterfoil_engine::ledger::{
    CountedRun, Dimension, Figures, Ledger, RunCounter, Weeks, week_of,
};
use counterfoil_flow::Event;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most runs that are counted, the newest ones.
const MAX_RUNS: usize = 20_000;
/// How long one request reads runs.
const MAX_READ: Duration = Duration::from_millis(300);
/// The number of runs whose single attempts and claims are kept.
const MAX_DETAILS: usize = 128;
/// How long open pages wait before they are made again, if all runs were read.
const INTERVAL: Duration = Duration::from_secs(1);
/// The same while there are runs to read.
const INTERVAL_WHILE_READING: Duration = Duration::from_millis(400);

/// The properties by which the health of runs is shown.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum By {
    /// The contract and the field that makes the claim.
    #[default]
    Field,
    /// The agent, as the workflow names it, with its program.
    Agent,
    /// The model of the agent.
    Model,
    /// The program and its version.
    Version,
}

impl By {
    /// All of them.
    pub(crate) const EACH: [Self; 4] = [Self::Field, Self::Agent, Self::Model, Self::Version];

    /// The name in addresses.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Field => "field",
            Self::Agent => "agent",
            Self::Model => "model",
            Self::Version => "version",
        }
    }

    /// The properties.
    pub(crate) fn dimensions(self) -> &'static [Dimension] {
        match self {
            Self::Field => &[Dimension::Contract, Dimension::Field],
            Self::Agent => &[Dimension::Agent],
            Self::Model => &[Dimension::Model],
            Self::Version => &[Dimension::Player, Dimension::Version],
        }
    }
}

/// How many runs the figures are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Coverage {
    /// The runs of all state folders, at most the newest 20000.
    pub(crate) runs: usize,
    /// Those that were read as they are now. The others are read by the next requests.
    pub(crate) read: usize,
    /// Those of the read ones that are damaged, and counted up to the damage.
    pub(crate) damaged: usize,
    /// Whether there are older runs, which are not counted.
    pub(crate) has_older: bool,
}

impl Coverage {
    /// Whether all runs were read.
    pub(crate) fn is_complete(self) -> bool {
        self.read >= self.runs
    }
}

/// A run with its figures.
#[derive(Debug)]
pub(crate) struct RunFigures {
    engine: Engine,
    /// The name of its state folder.
    pub(crate) folder: String,
    /// Its id.
    pub(crate) run: String,
    /// The name of its workflow.
    pub(crate) workflow: String,
    /// When it was created, in milliseconds since 1970.
    pub(crate) created_at: i64,
    last_seq: u64,
    /// What it adds to the figures.
    pub(crate) figures: Figures,
    is_damaged: bool,
}

/// The figures of all runs that were read.
#[derive(Debug, Default)]
pub(crate) struct Overview {
    /// How many runs there are and were read.
    pub(crate) coverage: Coverage,
    /// The runs, the newest first.
    pub(crate) runs: Vec<Arc<RunFigures>>,
    /// Their sums.
    pub(crate) weeks: Weeks,
}

/// A run of a state folder.
type RunKey = (PathBuf, String);

/// What was read of runs.
#[derive(Debug, Default)]
pub(crate) struct CountedRuns {
    kept: Mutex<Kept>,
    /// Single attempts and claims, those that were asked for last in front.
    details: Mutex<VecDeque<(RunKey, u64, Arc<CountedRun>)>>,
    growing: GrowingRuns<RunCounter>,
    asked: Mutex<Asked>,
}

impl Collector for RunCounter {
    fn wants(kind: &str) -> bool {
        Ledger::KINDS.contains(&kind)
    }

    fn on_event(&mut self, event: &Event, at: i64) {
        RunCounter::on_event(self, event, at);
    }
}

#[derive(Debug, Default)]
struct Kept {
    runs: HashMap<RunKey, Arc<RunFigures>>,
    weeks: BTreeMap<i64, Arc<Figures>>,
    /// The last overview, with the changes of the state folders before it.
    last: Option<(Vec<u64>, Arc<Overview>)>,
}

/// When open pages were made again.
#[derive(Debug, Default)]
struct Asked {
    number: u64,
    at: Option<Instant>,
    changes: Vec<u64>,
    /// Whether something was left to read.
    has_more: bool,
}

impl CountedRuns {
    /// The figures of all runs that are read by now.
    pub(crate) fn overview(&self, folders: &Folders) -> Result<Arc<Overview>, Problem> {
        // One request at a time reads. The others find what it has read.
        let mut kept = locked(&self.kept);
        // Asked before the runs are read: what is recorded afterwards is read the next time.
        let changes = changes(folders)?;
        if let Some((before, overview)) = &kept.last
            && *before == changes
            && overview.coverage.is_complete()
        {
            return Ok(Arc::clone(overview));
        }
        let overview = Arc::new(kept.read(folders, &self.growing)?);
        if !overview.coverage.is_complete() {
            self.ask_again();
        }
        kept.last = Some((changes, Arc::clone(&overview)));
        Ok(overview)
    }

    /// The attempts and claims of a run.
    pub(crate) fn details(&self, run: &RunFigures) -> Result<Arc<CountedRun>, Problem> {
        let key = (run.engine.journal().folder().to_owned(), run.run.clone());
        {
            let mut details = locked(&self.details);
            let at =
                details.iter().position(|(known, seq, _)| *known == key && *seq == run.last_seq);
            if let Some(found) = at.and_then(|at| details.remove(at)) {
                let counted = Arc::clone(&found.2);
                details.push_front(found);
                return Ok(counted);
            }
        }
        let counted = self.growing.read(&run.engine, &run.run, false, RunCounter::counted)?;
        let counted = Arc::new(counted);
        let mut details = locked(&self.details);
        details.push_front((key, run.last_seq, Arc::clone(&counted)));
        details.truncate(MAX_DETAILS);
        Ok(counted)
    }

    /// Lets open pages be made again, because something was left to read.
    pub(crate) fn ask_again(&self) {
        locked(&self.asked).has_more = true;
    }

    /// A number that changes when pages about all runs have to be made again, but not too often.
    pub(crate) fn stamp(&self, folders: &Folders) -> Result<u64, Problem> {
        let changes = changes(folders)?;
        let mut asked = locked(&self.asked);
        let interval = if asked.has_more { INTERVAL_WHILE_READING } else { INTERVAL };
        let is_due = asked.at.is_none_or(|at| at.elapsed() >= interval);
        if is_due && (asked.has_more || asked.changes != changes) {
            asked.number += 1;
            asked.at = Some(Instant::now());
            asked.changes = changes;
            asked.has_more = false;
        }
        Ok(asked.number)
    }
}

impl Kept {
    /// Reads runs that are new or went on, for a bounded time.
    fn read(
        &mut self,
        folders: &Folders,
        growing: &GrowingRuns<RunCounter>,
    ) -> Result<Overview, Problem> {
        let engines = folders.engines()?;
        let mut listed: Vec<(&str, &Engine, RunInfo)> = Vec::new();
        let mut coverage = Coverage::default();
        for (folder, engine) in &engines {
            let runs = engine.journal().runs(Some(MAX_RUNS + 1))?;
            listed.extend(runs.into_iter().map(|info| (*folder, engine, info)));
        }
        listed.sort_by(|(.., one), (.., other)| {
            other.created_at.cmp(&one.created_at).then_with(|| other.id.cmp(&one.id))
        });
        coverage.has_older = listed.len() > MAX_RUNS;
        listed.truncate(MAX_RUNS);
        coverage.runs = listed.len();
        let started = Instant::now();
        let mut changed: BTreeSet<i64> = BTreeSet::new();
        let mut known: HashSet<RunKey> = HashSet::with_capacity(listed.len());
        let mut runs = Vec::with_capacity(listed.len());
        for (folder, engine, info) in listed {
            let key = (engine.journal().folder().to_owned(), info.id.clone());
            let before = self.runs.get(&key).cloned();
            let is_current = before.as_ref().is_some_and(|run| run.last_seq == info.last_seq);
            let run = if is_current || started.elapsed() >= MAX_READ {
                before
            } else {
                let read = Arc::new(read(folder, engine, &info, growing));
                self.runs.insert(key.clone(), Arc::clone(&read));
                changed.insert(week_of(read.created_at));
                Some(read)
            };
            let Some(run) = run else { continue };
            coverage.read += usize::from(run.last_seq == info.last_seq);
            coverage.damaged += usize::from(run.is_damaged);
            known.insert(key);
            runs.push(run);
        }
        self.runs.retain(|key, run| {
            let is_known = known.contains(key);
            if !is_known {
                changed.insert(week_of(run.created_at));
            }
            is_known
        });
        self.sum(&runs, &changed);
        Ok(Overview { coverage, runs, weeks: Weeks(self.weeks.clone()) })
    }

    /// Adds up the weeks whose runs have changed.
    fn sum(&mut self, runs: &[Arc<RunFigures>], changed: &BTreeSet<i64>) {
        let mut sums: BTreeMap<i64, Figures> = BTreeMap::new();
        for run in runs {
            let week = week_of(run.created_at);
            if changed.contains(&week) {
                sums.entry(week).or_default().add(&run.figures);
            }
        }
        for week in changed {
            match sums.remove(week) {
                Some(sum) => {
                    self.weeks.insert(*week, Arc::new(sum));
                }
                None => {
                    self.weeks.remove(week);
                }
            }
        }
    }
}

/// Reads a run. One that is damaged counts up to the damage.
fn read(
    folder: &str,
    engine: &Engine,
    info: &RunInfo,
    growing: &GrowingRuns<RunCounter>,
) -> RunFigures {
    let whole = growing
        .read(engine, &info.id, info.is_driven(), |counter| Figures::of_run(&counter.counted()));
    let is_damaged = whole.is_err();
    let figures = whole.unwrap_or_else(|error| {
        tracing::warn!(run = %info.id, %error, "a run is only counted in part");
        let mut counter = RunCounter::default();
        let add = |event, at| counter.on_event(&event, at);
        // What is wrong is known by now.
        let _ = engine.each_event_of(&info.id, &Ledger::KINDS, add);
        Figures::of_run(&counter.finish())
    });
    RunFigures {
        engine: engine.clone(),
        folder: folder.to_owned(),
        run: info.id.clone(),
        workflow: info.workflow.clone(),
        created_at: info.created_at,
        last_seq: info.last_seq,
        figures,
        is_damaged,
    }
}

/// What changes with the journals of the state folders.
fn changes(folders: &Folders) -> Result<Vec<u64>, Problem> {
    let engines = folders.engines()?;
    engines.iter().map(|(_, engine)| Ok(engine.journal().last_change()?)).collect()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The runs of a page among those that have something, and where the next page begins.
pub(crate) struct Portion<T> {
    /// What was found, with its run.
    pub(crate) found: Vec<(Arc<RunFigures>, T)>,
    /// The number of runs before the next page.
    pub(crate) next: Option<usize>,
    /// Whether the time was over before all runs of the page were read.
    pub(crate) is_cut: bool,
    /// The runs that could not be read.
    pub(crate) unreadable: usize,
}

/// The number of runs whose attempts or claims one page shows.
const PORTION: usize = 40;

impl CountedRuns {
    /// Finds something in some of the runs, after the first `from` of them, for a bounded time.
    pub(crate) fn search<T>(
        &self,
        runs: &[Arc<RunFigures>],
        from: usize,
        find: impl Fn(&CountedRun) -> T,
    ) -> Portion<T> {
        let started = Instant::now();
        let mut portion = Portion { found: Vec::new(), next: None, is_cut: false, unreadable: 0 };
        let page = runs.iter().skip(from).take(PORTION);
        for (at, run) in page.enumerate() {
            // What was read before is at hand, so the next request comes further.
            if at > 0 && started.elapsed() >= MAX_READ {
                portion.is_cut = true;
                self.ask_again();
                return portion;
            }
            match self.details(run) {
                Ok(details) => portion.found.push((Arc::clone(run), find(&details))),
                Err(_) => portion.unreadable += 1,
            }
        }
        let next = from.saturating_add(PORTION);
        portion.next = (next < runs.len()).then_some(next);
        portion
    }
}
