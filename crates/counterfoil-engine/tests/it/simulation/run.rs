//! One simulated run: drivers die and are replaced, users answer or do not, clocks jump, and all
//! invariants are checked.

use crate::dice::Dice;
use crate::simulation::audit::{Audit, waits_for_somebody};
use crate::simulation::core::DriverCore;
use crate::simulation::driver::{Driver, Pace, Stage, Step};
use crate::simulation::journal::Journal;
use crate::simulation::shapes::Made;
use crate::simulation::world::{Delivery, Weather, World};
use counterfoil_flow::{
    AssignedAgent, Budget, Changes, DECIDE, Event, Form, History, ReopenError, Request, RunState,
    Started, artifacts,
};
use std::collections::BTreeMap;

/// The maximum number of steps. A run that needs more never ends.
const MAX_STEPS: u64 = 100_000;
/// How often a run is reopened at most.
const MAX_REOPENED: u64 = 3;
/// The time at which the simulation begins.
const BEGIN: i64 = 1_800_000_000_000;

/// A fault that is injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// The driver dies.
    Crash,
    /// Another driver acquires the run, and this one does not know.
    Takeover,
    /// The driver is asked to stop.
    Stop,
    /// The run is cancelled.
    Cancel,
    /// An artifact cannot be written.
    Artifact,
}

impl Fault {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Takeover => "takeover",
            Self::Stop => "stop",
            Self::Cancel => "cancel",
            Self::Artifact => "artifact",
        }
    }
}

/// The figures of a run.
#[derive(Default)]
pub(crate) struct Tally {
    /// The number of points at which a fault could be injected.
    pub(crate) points: u64,
    pub(crate) events: u64,
    pub(crate) completions: u64,
    /// How often drivers were fenced.
    pub(crate) fenced: u64,
    /// The injected faults, by kind and stage of the driver.
    pub(crate) faults: BTreeMap<String, u64>,
    pub(crate) kinds: BTreeMap<&'static str, u64>,
    pub(crate) outcome: &'static str,
}

/// Whether the user answers questions.
#[derive(Clone, Copy)]
enum User {
    Answers,
    NeverAnswers,
}

/// The result of a step of the live driver.
enum Next {
    Goes,
    Gone,
    Over(&'static str),
}

pub(crate) struct Run<'m, C> {
    made: &'m Made,
    dice: Dice,
    started: Event,
    journal: Journal,
    world: World,
    audit: Audit<'m>,
    driver: Option<Driver<C>>,
    /// Drivers that lost the run and do not know it.
    zombies: Vec<Driver<C>>,
    /// Facts for an earlier driver that reach the next one.
    late: Vec<Delivery>,
    time: i64,
    skew: i64,
    /// The faults to inject, the next one last.
    faults: Vec<(u64, Fault)>,
    weather: Weather,
    user: User,
    user_answers_at: Option<i64>,
    /// How often the run was reopened.
    reopened: u64,
    tally: Tally,
}

impl<'m, C: DriverCore> Run<'m, C> {
    pub(crate) fn new(made: &'m Made, seed: u64, mut faults: Vec<(u64, Fault)>) -> Self {
        faults.sort_unstable();
        faults.reverse();
        let mut dice = Dice::new(seed);
        let agents = made.workflow.agents.keys().map(|name| {
            let backs_off = dice.percent(70);
            let player = AssignedAgent {
                spec: "simulated".to_owned(),
                backs_off,
                retry: BTreeMap::new(),
                model: None,
                version: None,
            };
            (name.clone(), player)
        });
        let started = Event::RunStarted(Box::new(Started {
            run: format!("run-{seed}"),
            workflow: made.workflow.name.clone(),
            version: made.workflow.version,
            bundle: String::new(),
            decide: DECIDE,
            inputs: made.inputs.clone(),
            agents: agents.collect(),
            budget: made.workflow.budget.clone(),
            repo: ".".to_owned(),
            observed: String::new(),
            own: Vec::new(),
            base: None,
            config: None,
        }));
        let weather = if dice.percent(50) { Weather::Calm } else { Weather::Rough };
        let user = if dice.percent(85) { User::Answers } else { User::NeverAnswers };
        Self {
            made,
            dice,
            started,
            journal: Journal::default(),
            world: World::default(),
            audit: Audit::new(&made.workflow),
            driver: None,
            zombies: Vec::new(),
            late: Vec::new(),
            time: BEGIN,
            skew: 0,
            faults,
            weather,
            user,
            user_answers_at: None,
            reopened: 0,
            tally: Tally::default(),
        }
    }

    /// Runs until the run is over or only waits. The error is a violated invariant.
    pub(crate) fn go(mut self) -> Result<Tally, Box<(String, Journal)>> {
        match self.until_over() {
            Ok(outcome) => {
                self.tally.outcome = outcome;
                self.tally.events = self.journal.rows.len() as u64;
                self.tally.completions = self.world.completions() as u64;
                self.tally.kinds = self.audit.kinds;
                Ok(self.tally)
            }
            Err(why) => Err(Box::new((why, self.journal))),
        }
    }

    fn until_over(&mut self) -> Result<&'static str, String> {
        for _ in 0..MAX_STEPS {
            if self.dice.percent(20) {
                self.step_zombie()?;
            }
            self.answer_questions();
            let Some(mut driver) = self.driver.take() else {
                self.attach_driver()?;
                continue;
            };
            match self.inject_fault(&mut driver) {
                Some(Fault::Crash) => {
                    self.leave_facts(&driver);
                    continue;
                }
                Some(Fault::Takeover) => {
                    self.leave_facts(&driver);
                    self.zombies.push(driver);
                    self.attach_driver()?;
                    continue;
                }
                _ => {}
            }
            match self.step_driver(&mut driver)? {
                Next::Goes => self.driver = Some(driver),
                Next::Gone => self.journal.release(driver.epoch),
                Next::Over(outcome) => {
                    driver.core.check(&self.journal)?;
                    self.journal.release(driver.epoch);
                    self.end_zombies()?;
                    self.audit.reread(&self.journal)?;
                    if !self.reopen(outcome)? {
                        return Ok(outcome);
                    }
                }
            }
        }
        Err("the run never ends".to_owned())
    }

    /// Somebody may reopen a run that ended, with more budget and other limits.
    fn reopen(&mut self, outcome: &str) -> Result<bool, String> {
        let is_final = matches!(outcome, "done" | "cancelled" | "waiting");
        if is_final || self.reopened >= MAX_REOPENED || self.dice.percent(40) {
            return Ok(false);
        }
        self.reopened += 1;
        let mut history = History::default();
        for (event, at) in self.journal.events() {
            history.on_event(&self.made.workflow, &event, at);
        }
        let changes = self.changes(history.run_state());
        let request = Request { by: "somebody".into(), changes, ..Request::default() };
        let event = match history.reopen(&self.made.workflow, &request, self.time + self.skew) {
            Ok(event) => event,
            Err(ReopenError::SameEnd { .. }) => {
                *self.tally.faults.entry("not reopened".to_owned()).or_default() += 1;
                return Ok(false);
            }
            Err(other) => return Err(format!("it ended as {outcome} and stays so: {other}")),
        };
        *self.tally.faults.entry(format!("reopened {outcome}")).or_default() += 1;
        self.attach_driver()?;
        self.driver = self.driver.take().map(|driver| driver.reopening(event));
        Ok(true)
    }

    /// What somebody changes who reopens the run.
    fn changes(&mut self, run_state: &RunState) -> Changes {
        let (usage, mut changes) = (run_state.usage, Changes::default());
        if self.dice.percent(70) {
            changes.budget = Budget {
                tokens: Some((usage.input_tokens + usage.output_tokens) * 2 + 1000),
                cost_usd: Some(usage.cost_usd * 2.0 + 1.0),
                time_ms: Some(usage.wall_ms * 2 + 3_600_000),
                iterations: Some(run_state.iterations + 3),
                attempts: Some(run_state.started + 20),
            };
        }
        let machines = std::iter::once(&self.made.workflow.main);
        for machine in machines.chain(self.made.workflow.machines.values()) {
            for name in machine.limits.keys() {
                if self.dice.percent(40) {
                    changes.limits.insert(name.clone(), 2 + self.dice.below(6));
                }
            }
        }
        changes
    }

    /// Facts for a dead driver may reach the next one.
    fn leave_facts(&mut self, driver: &Driver<C>) {
        self.late = if self.dice.percent(50) { driver.queue.clone() } else { Vec::new() };
    }

    /// A new driver acquires the run. It only knows the journal.
    fn attach_driver(&mut self) -> Result<(), String> {
        self.audit.reread(&self.journal)?;
        let epoch = self.journal.acquire();
        let mut driver =
            Driver::begin(epoch, &self.journal, &self.started, self.skew, self.weather);
        driver.queue = std::mem::take(&mut self.late);
        self.driver = Some(driver);
        self.time += i64::try_from(self.dice.below(60_000)).unwrap_or(0);
        Ok(())
    }

    /// Injects the next fault if its point is reached.
    fn inject_fault(&mut self, driver: &mut Driver<C>) -> Option<Fault> {
        self.tally.points += 1;
        let (_, fault) = self.faults.pop_if(|(point, _)| *point <= self.tally.points)?;
        let what = match fault {
            Fault::Crash | Fault::Takeover => format!("{} {}", fault.name(), driver.stage.name()),
            _ => fault.name().to_owned(),
        };
        *self.tally.faults.entry(what).or_default() += 1;
        match fault {
            Fault::Crash | Fault::Takeover => {}
            Fault::Stop => {
                let fact = Event::RunStopped { reason: "asked to stop".to_owned() };
                driver.queue.push(Delivery { due: self.time, fact });
            }
            Fault::Cancel => {
                self.journal
                    .send_message(Event::CancelRequested { by: "somebody".to_owned(), from: None });
            }
            Fault::Artifact => {
                let fact = Event::ArtifactFailed {
                    path: "out/a.md".to_owned(),
                    reason: "no room".to_owned(),
                };
                driver.queue.push(Delivery { due: self.time, fact });
            }
        }
        Some(fault)
    }

    fn step_driver(&mut self, driver: &mut Driver<C>) -> Result<Next, String> {
        if let Stage::Appended { turn, started } = &driver.stage
            && let Some(start) = turn.attempts.get(*started)
        {
            self.audit.may_start(start, driver.epoch)?;
        }
        if matches!(driver.stage, Stage::Waiting) {
            if self.dice.percent(3) {
                // The clock jumps, back too.
                self.skew += i64::try_from(self.dice.below(7_200_000)).unwrap_or(0) - 3_600_000;
                driver.skew = self.skew;
            }
            if let Some(ended) = &driver.core.run_state().ended {
                return Ok(Next::Over(ended.outcome.name()));
            }
        }
        match self.step(driver, Pace::Timely)? {
            Step::Continued => Ok(Next::Goes),
            Step::Fenced => Err("the driver that holds the run was fenced".to_owned()),
            Step::Appended(events) => {
                self.audit.appended(
                    &self.journal,
                    driver.epoch,
                    &events,
                    driver.core.run_state(),
                )?;
                artifacts(&self.made.workflow, driver.core.run_state()).map_err(
                    |(path, why)| format!("the artifact {path} cannot be rendered: {why}"),
                )?;
                Ok(Next::Goes)
            }
            Step::Idle(due) => self.idle(driver, due),
        }
    }

    fn step(&mut self, driver: &mut Driver<C>, pace: Pace) -> Result<Step, String> {
        let (journal, world) = (&mut self.journal, &mut self.world);
        driver.step(&mut self.dice, &self.made.workflow, journal, world, self.time, pace)
    }

    /// A driver without work waits for the time or for an answer.
    fn idle(&mut self, driver: &mut Driver<C>, due: Option<i64>) -> Result<Next, String> {
        let run_state = driver.core.run_state();
        if let Some(lost) =
            run_state.attempts.keys().find(|attempt| !driver.running.contains(*attempt))
        {
            return Err(format!("nobody works on {lost}"));
        }
        if run_state.stopped.is_some() && run_state.attempts.is_empty() {
            return Ok(Next::Gone);
        }
        let asked = waits_for_somebody(run_state);
        let moves = !run_state.attempts.is_empty() || driver.has_timer() || driver.is_busy();
        if !moves && !asked {
            return Err(
                "nothing runs, nothing is due and nobody was asked, and the run is not over"
                    .to_owned(),
            );
        }
        if let Some(due) = due.into_iter().chain(self.user_answers_at).min() {
            self.time = self.time.max(due);
        } else if !driver.hung.is_empty() {
            // Only the death of the driver ends an attempt that hangs.
            *self.tally.faults.entry("crash hung".to_owned()).or_default() += 1;
            return Ok(Next::Gone);
        } else if asked && self.journal.inbox.is_empty() {
            return Ok(Next::Over("waiting"));
        }
        // A driver that only waits for an answer may end; the answer is then sent while no driver
        // is attached.
        if run_state.is_resting() && driver.queue.is_empty() && self.dice.percent(20) {
            return Ok(Next::Gone);
        }
        Ok(Next::Goes)
    }

    /// A driver that lost the run continues until it tries to append.
    fn step_zombie(&mut self) -> Result<(), String> {
        if self.zombies.is_empty() {
            return Ok(());
        }
        let at = self.dice.below(self.zombies.len() as u64);
        let mut zombie = self.zombies.swap_remove(usize::try_from(at).unwrap_or(0));
        let before = (self.journal.rows.len(), self.journal.inbox.len());
        let step = self.step(&mut zombie, Pace::Hurried)?;
        if before != (self.journal.rows.len(), self.journal.inbox.len()) {
            return Err(format!("driver {} lost the run and changed the journal", zombie.epoch));
        }
        match step {
            Step::Continued => self.zombies.push(zombie),
            Step::Fenced => self.tally.fenced += 1,
            Step::Idle(_) => {}
            Step::Appended(_) => {
                return Err(format!("driver {} lost the run and appended", zombie.epoch));
            }
        }
        Ok(())
    }

    fn end_zombies(&mut self) -> Result<(), String> {
        for _ in 0..MAX_STEPS {
            if self.zombies.is_empty() {
                return Ok(());
            }
            self.step_zombie()?;
        }
        Err("a driver that lost the run never ends".to_owned())
    }

    /// The user answers open questions after some time, sometimes wrongly, twice, or too late.
    fn answer_questions(&mut self) {
        let open: Vec<(String, Form)> = self
            .audit
            .run_state
            .open_questions()
            .map(|(id, one)| (id.clone(), one.form.clone()))
            .collect();
        if open.is_empty() || matches!(self.user, User::NeverAnswers) {
            self.user_answers_at = None;
            return;
        }
        let soon = self.time + i64::try_from(self.dice.below(3_600_000)).unwrap_or(0);
        let due = *self.user_answers_at.get_or_insert(soon);
        if due > self.time || !self.journal.inbox.is_empty() {
            return;
        }
        self.user_answers_at = None;
        let (question, form) = self.dice.pick(&open).clone();
        let answer = match &form {
            _ if self.dice.percent(10) => "  ".to_owned(),
            Form::Choices(choices) => self.dice.pick(choices).clone(),
            Form::Pattern(_) | Form::Text => "something".to_owned(),
        };
        let question = if self.dice.percent(5) { "b0#7".to_owned() } else { question };
        let answered = Event::Answered { question, answer, by: "somebody".to_owned(), from: None };
        if self.dice.percent(15) {
            self.journal.send_message(answered.clone());
        }
        self.journal.send_message(answered);
    }
}
