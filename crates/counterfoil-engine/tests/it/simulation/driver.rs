//! A simulated driver. It works step by step, so that a fault can be injected between any two
//! steps: it receives facts, takes a turn, appends the events, and then starts the work.

use crate::dice::Dice;
use crate::simulation::checks::planned;
use crate::simulation::core::DriverCore;
use crate::simulation::journal::{Batch, Journal};
use crate::simulation::world::{Delivery, Weather, World, cancelled, course};
use counterfoil_flow::{Event, FileCheck, Turn, Workflow, WorkspaceOp};
use std::collections::BTreeSet;

/// What a driver does next.
pub(crate) enum Stage {
    /// It waits for facts.
    Waiting,
    /// It received facts and has not taken the turn.
    Told { facts: Vec<Event>, consumed: Vec<u64> },
    /// It took the turn and has not appended the events.
    Turned { turn: Turn, consumed: Vec<u64> },
    /// It appended the events, and started some of the attempts.
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

/// Whether a driver waits until a fact is due.
#[derive(Clone, Copy)]
pub(crate) enum Pace {
    /// It waits.
    Timely,
    /// It takes the next fact at once.
    Hurried,
}

/// The result of a step.
pub(crate) enum Step {
    /// The driver continues.
    Continued,
    /// It appended these events.
    Appended(Vec<(Event, i64)>),
    /// Another driver has acquired the run; this one ends.
    Fenced,
    /// Nothing happens before this time; `None` if nothing will ever happen.
    Idle(Option<i64>),
}

pub(crate) struct Driver<C> {
    pub(crate) epoch: u64,
    pub(crate) core: C,
    pub(crate) stage: Stage,
    /// The facts that will arrive.
    pub(crate) queue: Vec<Delivery>,
    /// The attempts that this driver started.
    pub(crate) running: BTreeSet<String>,
    /// The attempts that never end.
    pub(crate) hung: BTreeSet<String>,
    /// The error of its clock.
    pub(crate) skew: i64,
    weather: Weather,
    stopping: BTreeSet<String>,
    checking_files: BTreeSet<String>,
    /// The running workspace operations.
    workspace_ops: BTreeSet<WorkspaceOp>,
    wake_at: Option<i64>,
}

impl<C: DriverCore> Driver<C> {
    /// A driver that starts or resumes a run. Attempts in flight are lost.
    pub(crate) fn begin(
        epoch: u64,
        journal: &Journal,
        started: &Event,
        skew: i64,
        weather: Weather,
    ) -> Self {
        let core = C::load(journal);
        let facts = core.first_facts(started, format!("driver {epoch}"));
        Self {
            epoch,
            core,
            stage: Stage::Told { facts, consumed: Vec::new() },
            queue: Vec::new(),
            running: BTreeSet::new(),
            hung: BTreeSet::new(),
            skew,
            weather,
            stopping: BTreeSet::new(),
            checking_files: BTreeSet::new(),
            workspace_ops: BTreeSet::new(),
            wake_at: None,
        }
    }

    /// A driver that reopens a run which has ended.
    pub(crate) fn reopening(mut self, reopened: Event) -> Self {
        self.stage = Stage::Told { facts: vec![reopened], consumed: Vec::new() };
        self
    }

    /// Whether it waits for file checks or workspace operations.
    pub(crate) fn is_busy(&self) -> bool {
        !self.checking_files.is_empty() || !self.workspace_ops.is_empty()
    }

    pub(crate) fn has_timer(&self) -> bool {
        self.wake_at.is_some()
    }

    /// Takes one step.
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
            Stage::Waiting => self.receive(dice, journal, world, time, pace),
            Stage::Told { facts, consumed } => {
                let turn = self.core.turn(workflow, facts, time + self.skew);
                self.stage = Stage::Turned { turn, consumed };
                Ok(Step::Continued)
            }
            Stage::Turned { turn, consumed } => {
                let snapshot = dice.percent(25).then(|| {
                    serde_json::to_vec(self.core.run_state()).expect("the state can be written")
                });
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
                        self.perform_workspace_ops(dice, world, &turn, time);
                        self.check_files_and_stop(dice, &turn, time);
                    }
                }
                Ok(Step::Continued)
            }
        }
    }

    /// Receives the facts that are due: messages of users, and results.
    fn receive(
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
        // A driver may read the inbox late, but not if nothing else is due.
        let reads_inbox = first.is_none_or(|first| first > reached) || dice.percent(60);
        let (mut facts, mut consumed) = (Vec::new(), Vec::new());
        if reads_inbox {
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
            self.on_fact(&fact, world)?;
            facts.push(fact);
        }
        let woken = self.wake_at.is_some_and(|at| at <= time + self.skew);
        if facts.is_empty() && !woken {
            let wake = self.wake_at.map(|at| at - self.skew);
            return Ok(Step::Idle(first.into_iter().chain(wake).min()));
        }
        self.stage = Stage::Told { facts, consumed };
        Ok(Step::Continued)
    }

    fn on_fact(&mut self, fact: &Event, world: &mut World) -> Result<(), String> {
        match fact {
            Event::AttemptEnded(ended) => {
                // A duplicate, or the result of another driver, is no further work.
                let mine = self.running.remove(&ended.attempt);
                if mine && (ended.value.is_some() || !ended.checks.is_empty()) {
                    world.complete(&ended.attempt)?;
                }
            }
            Event::ContextChecked { frame, .. } => {
                self.checking_files.remove(frame);
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

    /// Performs workspace operations, each once while it is running.
    fn perform_workspace_ops(
        &mut self,
        dice: &mut Dice,
        world: &mut World,
        turn: &Turn,
        time: i64,
    ) {
        for op in &turn.workspace_ops {
            if !self.workspace_ops.insert(op.clone()) {
                continue;
            }
            let fact = world.workspace_op(dice, op);
            let due = time + i64::try_from(dice.below(20_000)).unwrap_or(0);
            if dice.percent(15) {
                self.queue.push(Delivery { due: due + 1, fact: fact.clone() });
            }
            self.queue.push(Delivery { due, fact });
        }
    }

    fn check_files_and_stop(&mut self, dice: &mut Dice, turn: &Turn, time: i64) {
        for FileCheck { frame, paths, checks, .. } in &turn.file_checks {
            if !self.checking_files.insert(frame.clone()) {
                continue;
            }
            let missing =
                if dice.percent(15) { paths.iter().take(1).cloned().collect() } else { Vec::new() };
            let checks = (!checks.is_empty()).then(|| planned(dice, checks));
            let fact = Event::ContextChecked { frame: frame.clone(), missing, checks };
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
            // Most end at once; some still deliver their result.
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
