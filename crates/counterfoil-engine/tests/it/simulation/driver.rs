//! A process that drives the run, step by step, so that it can be struck at any point: it takes
//! what it was told, turns the run, appends, and only then starts the work.

use crate::simulation::dice::Dice;
use crate::simulation::journal::{Batch, Journal};
use crate::simulation::world::{Delivery, Weather, World, cancelled, course};
use counterfoil_flow::{Event, FileCheck, RunState, Turn, Workflow, WorkspaceOp, turn};
use std::collections::{BTreeMap, BTreeSet};

/// Where a driver stands between two steps.
pub(crate) enum Stage {
    /// It waits for something to happen.
    Waiting,
    /// It took facts and has not turned the run.
    Told { facts: Vec<Event>, consumed: Vec<u64> },
    /// It turned the run and has not appended.
    Turned { turn: Turn, consumed: Vec<u64> },
    /// It appended, and started so many attempts.
    Appended { turn: Turn, started: usize },
}

impl Stage {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Told { .. } => "told",
            Self::Turned { .. } => "turned",
            Self::Appended { started: 0, .. } => "appended",
            Self::Appended { .. } => "started-some",
        }
    }
}

/// Whether a driver waits for what is due.
#[derive(Clone, Copy)]
pub(crate) enum Pace {
    /// It waits until the time has come.
    Timely,
    /// It takes what is due next whatever the time.
    Hurried,
}

/// What came of a step.
pub(crate) enum Step {
    /// It went on.
    Went,
    /// It appended these events.
    Appended(Vec<(Event, i64)>),
    /// Somebody else drives the run; this process ends.
    Fenced,
    /// Nothing can happen until this time; never, if there is none.
    Idle(Option<i64>),
}

pub(crate) struct Driver {
    pub(crate) epoch: u64,
    pub(crate) fold: RunState,
    pub(crate) stage: Stage,
    /// What it will be told.
    pub(crate) queue: Vec<Delivery>,
    /// The attempts that run in this process.
    pub(crate) running: BTreeSet<String>,
    /// Those that will never say anything.
    pub(crate) hung: BTreeSet<String>,
    /// How far its clock is off.
    pub(crate) skew: i64,
    weather: Weather,
    stopping: BTreeSet<String>,
    looking: BTreeSet<String>,
    /// The errands that are being seen to.
    workspace_ops: BTreeSet<WorkspaceOp>,
    wake_at: Option<i64>,
}

impl Driver {
    /// A process that begins a run or takes one up: whatever was in flight is lost.
    pub(crate) fn begin(
        epoch: u64,
        fold: RunState,
        started: &Event,
        skew: i64,
        weather: Weather,
    ) -> Self {
        let mut facts = vec![if fold.seq == 0 {
            started.clone()
        } else {
            Event::RunResumed { by: format!("driver {epoch}"), agents: BTreeMap::new() }
        }];
        facts.extend(
            fold.attempts.keys().map(|attempt| Event::AttemptLost {
                attempt: attempt.clone(),
                changed: Vec::new(),
            }),
        );
        Self {
            epoch,
            fold,
            stage: Stage::Told { facts, consumed: Vec::new() },
            queue: Vec::new(),
            running: BTreeSet::new(),
            hung: BTreeSet::new(),
            skew,
            weather,
            stopping: BTreeSet::new(),
            looking: BTreeSet::new(),
            workspace_ops: BTreeSet::new(),
            wake_at: None,
        }
    }

    /// Whether it waits for files that are being looked for, or for what is done about workspaces.
    pub(crate) fn is_busy(&self) -> bool {
        !self.looking.is_empty() || !self.workspace_ops.is_empty()
    }

    pub(crate) fn has_timer(&self) -> bool {
        self.wake_at.is_some()
    }

    /// One step at a time.
    pub(crate) fn step(
        &mut self,
        dice: &mut Dice,
        workflow: &Workflow,
        journal: &mut Journal,
        world: &mut World,
        time: i64,
        pace: Pace,
    ) -> Result<Step, String> {
        match std::mem::replace(&mut self.stage, Stage::Waiting) {
            Stage::Waiting => self.listen(dice, journal, world, time, pace),
            Stage::Told { facts, consumed } => {
                let turn = turn(workflow, &mut self.fold, facts, time + self.skew);
                self.stage = Stage::Turned { turn, consumed };
                Ok(Step::Went)
            }
            Stage::Turned { turn, consumed } => {
                let snapshot = dice
                    .percent(25)
                    .then(|| serde_json::to_vec(&self.fold).expect("the fold can be written"));
                let batch = Batch { events: &turn.events, snapshot, consumed: &consumed };
                if journal.append(self.epoch, batch).is_err() {
                    return Ok(Step::Fenced);
                }
                self.wake_at = turn.wake_at;
                let events = turn.events.clone();
                self.stage = Stage::Appended { turn, started: 0 };
                Ok(Step::Appended(events))
            }
            Stage::Appended { turn, started } => {
                match turn.attempts.get(started) {
                    Some(start) => {
                        world.start(&start.attempt)?;
                        self.running.insert(start.attempt.clone());
                        let course = course(dice, self.weather, start, time);
                        if course.deliveries.is_empty() {
                            self.hung.insert(start.attempt.clone());
                        }
                        self.queue.extend(course.deliveries);
                        self.queue.extend(course.duplicate);
                        self.stage = Stage::Appended { turn, started: started + 1 };
                    }
                    None => {
                        self.see_to(dice, world, &turn, time);
                        self.look_and_stop(dice, &turn, time);
                    }
                }
                Ok(Step::Went)
            }
        }
    }

    /// Takes what is due: messages of people, replies, or the time.
    fn listen(
        &mut self,
        dice: &mut Dice,
        journal: &Journal,
        world: &mut World,
        time: i64,
        pace: Pace,
    ) -> Result<Step, String> {
        let first = self.queue.iter().map(|one| one.due).min();
        let reached = match pace {
            Pace::Hurried => first.unwrap_or(time).max(time),
            Pace::Timely => time,
        };
        // A driver may see what people say late, but not while there is nothing else.
        let hears = first.is_none_or(|first| first > reached) || dice.percent(60);
        let (mut facts, mut consumed) = (Vec::new(), Vec::new());
        if hears {
            for (id, message) in &journal.inbox {
                facts.push(message.clone());
                consumed.push(*id);
            }
        }
        let at_once = if dice.percent(30) { usize::MAX } else { 1 };
        while facts.len() < consumed.len().saturating_add(at_once) {
            let due = self.queue.iter().enumerate().filter(|(_, one)| one.due <= reached);
            let Some((at, _)) = due.min_by_key(|(at, one)| (one.due, *at)) else { break };
            let fact = self.queue.remove(at).fact;
            self.hear(&fact, world)?;
            facts.push(fact);
        }
        let woken = self.wake_at.is_some_and(|at| at <= time + self.skew);
        if facts.is_empty() && !woken {
            let wake = self.wake_at.map(|at| at - self.skew);
            return Ok(Step::Idle(first.into_iter().chain(wake).min()));
        }
        self.stage = Stage::Told { facts, consumed };
        Ok(Step::Went)
    }

    fn hear(&mut self, fact: &Event, world: &mut World) -> Result<(), String> {
        match fact {
            Event::AttemptEnded(ended) => {
                // What comes a second time, or from another process, is no further work.
                let mine = self.running.remove(&ended.attempt);
                if mine && ended.value.is_some() {
                    world.complete(&ended.attempt)?;
                }
            }
            Event::ContextChecked { frame, .. } => {
                self.looking.remove(frame);
            }
            Event::WorkspaceOpened { workspace, .. }
            | Event::WorkspaceFailed { workspace, .. }
            | Event::WorkspaceMerged { workspace, .. }
            | Event::WorkspaceDropped { workspace, .. } => {
                self.workspace_ops.retain(|op| op.workspace != *workspace);
            }
            _ => {}
        }
        Ok(())
    }

    /// Sees to workspaces, each errand once while it is on its way.
    fn see_to(&mut self, dice: &mut Dice, world: &mut World, turn: &Turn, time: i64) {
        for op in &turn.workspace_ops {
            if !self.workspace_ops.insert(op.clone()) {
                continue;
            }
            let fact = world.see_to(dice, op);
            let due = time + i64::try_from(dice.below(20_000)).unwrap_or(0);
            if dice.percent(15) {
                self.queue.push(Delivery { due: due + 1, fact: fact.clone() });
            }
            self.queue.push(Delivery { due, fact });
        }
    }

    fn look_and_stop(&mut self, dice: &mut Dice, turn: &Turn, time: i64) {
        for FileCheck { frame, paths, .. } in &turn.file_checks {
            if !self.looking.insert(frame.clone()) {
                continue;
            }
            let missing =
                if dice.percent(15) { paths.iter().take(1).cloned().collect() } else { Vec::new() };
            let fact = Event::ContextChecked { frame: frame.clone(), missing };
            let due = time + i64::try_from(dice.below(50)).unwrap_or(0);
            if dice.percent(15) {
                self.queue.push(Delivery { due: due + 1, fact: fact.clone() });
            }
            self.queue.push(Delivery { due, fact });
        }
        for attempt in &turn.stops {
            if !self.running.contains(attempt) || !self.stopping.insert(attempt.clone()) {
                continue;
            }
            // Most end at once; some get their last word in before.
            if dice.percent(80) {
                self.queue.retain(|one| !concerns(&one.fact, attempt));
            }
            self.hung.remove(attempt);
            let due = time + i64::try_from(dice.below(10_000)).unwrap_or(0);
            self.queue.push(cancelled(attempt, due));
        }
    }
}

fn concerns(fact: &Event, wanted: &str) -> bool {
    match fact {
        Event::AttemptEnded(ended) => ended.attempt == wanted,
        Event::RepairAsked { attempt, .. } => attempt == wanted,
        _ => false,
    }
}
