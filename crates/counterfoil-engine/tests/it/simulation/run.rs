//! One run in a world where processes die: drivers come and go, people answer or do not, clocks
//! jump, and the books are kept.

use crate::simulation::audit::{Audit, waits_for_somebody};
use crate::simulation::dice::Dice;
use crate::simulation::driver::{Driver, Pace, Stage, Step};
use crate::simulation::journal::Journal;
use crate::simulation::shapes::Made;
use crate::simulation::world::{Delivery, Weather, World};
use counterfoil_flow::{AssignedAgent, DECIDE, Event, Form, Started, artifacts};
use std::collections::BTreeMap;

/// More steps than any run here needs: one that is not over by then never ends.
const MOST_STEPS: u64 = 100_000;
/// When the world begins.
const BEGIN: i64 = 1_800_000_000_000;

/// What strikes a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Blow {
    /// The process dies.
    Crash,
    /// Another takes the run, and this one does not know.
    Takeover,
    /// It is asked to stop, and does.
    Stop,
    /// Somebody cancels the run.
    Cancel,
    /// A file cannot be written.
    Artifact,
}

impl Blow {
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

/// What came of a run.
#[derive(Default)]
pub(crate) struct Tally {
    /// How many points there were at which a blow could fall.
    pub(crate) points: u64,
    pub(crate) events: u64,
    pub(crate) completions: u64,
    /// How often drivers were fenced.
    pub(crate) fenced: u64,
    /// Which blows fell, by kind and by where the driver stood.
    pub(crate) blows: BTreeMap<String, u64>,
    pub(crate) kinds: BTreeMap<&'static str, u64>,
    pub(crate) outcome: &'static str,
}

/// How patient whoever is asked is.
#[derive(Clone, Copy)]
enum Person {
    Answers,
    NeverAnswers,
}

/// What a step of the live driver led to.
enum Next {
    Goes,
    Gone,
    Over(&'static str),
}

pub(crate) struct Run<'m> {
    made: &'m Made,
    dice: Dice,
    started: Event,
    journal: Journal,
    world: World,
    audit: Audit<'m>,
    driver: Option<Driver>,
    /// Drivers that lost the run and do not know.
    zombies: Vec<Driver>,
    /// What the next driver is told although it was meant for one before.
    late: Vec<Delivery>,
    time: i64,
    skew: i64,
    /// What will fall, the next one last.
    blows: Vec<(u64, Blow)>,
    weather: Weather,
    person: Person,
    person_at: Option<i64>,
    tally: Tally,
}

impl<'m> Run<'m> {
    pub(crate) fn new(made: &'m Made, seed: u64, mut blows: Vec<(u64, Blow)>) -> Self {
        blows.sort_unstable();
        blows.reverse();
        let mut dice = Dice::new(seed);
        let agents = made.workflow.agents.keys().map(|name| {
            let backs_off = dice.percent(70);
            let player = AssignedAgent {
                spec: "simulated".to_owned(),
                backs_off,
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
            own: Vec::new(),
            base: None,
        }));
        let weather = if dice.percent(50) { Weather::Calm } else { Weather::Rough };
        let person = if dice.percent(85) { Person::Answers } else { Person::NeverAnswers };
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
            blows,
            weather,
            person,
            person_at: None,
            tally: Tally::default(),
        }
    }

    /// Runs until the run is over or only waits; the error is what must never be.
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
        for _ in 0..MOST_STEPS {
            if self.dice.percent(20) {
                self.step_zombie()?;
            }
            self.hear_person();
            let Some(mut driver) = self.driver.take() else {
                self.take_up()?;
                continue;
            };
            match self.strike(&mut driver) {
                Some(Blow::Crash) => {
                    self.leave_replies(&driver);
                    continue;
                }
                Some(Blow::Takeover) => {
                    self.leave_replies(&driver);
                    self.zombies.push(driver);
                    self.take_up()?;
                    continue;
                }
                _ => {}
            }
            match self.step_driver(&mut driver)? {
                Next::Goes => self.driver = Some(driver),
                Next::Gone => self.journal.release(driver.epoch),
                Next::Over(outcome) => {
                    self.journal.release(driver.epoch);
                    self.end_zombies()?;
                    self.audit.reread(&self.journal)?;
                    return Ok(outcome);
                }
            }
        }
        Err("the run never ends".to_owned())
    }

    /// What was on its way to a driver may reach the next one.
    fn leave_replies(&mut self, driver: &Driver) {
        self.late = if self.dice.percent(50) { driver.queue.clone() } else { Vec::new() };
    }

    /// A new driver takes the run: it knows what stands in the journal and nothing else.
    fn take_up(&mut self) -> Result<(), String> {
        self.audit.reread(&self.journal)?;
        let epoch = self.journal.take();
        let mut driver =
            Driver::begin(epoch, self.journal.load(), &self.started, self.skew, self.weather);
        driver.queue = std::mem::take(&mut self.late);
        self.driver = Some(driver);
        self.time += i64::try_from(self.dice.below(60_000)).unwrap_or(0);
        Ok(())
    }

    /// Lets the next blow fall if its time has come.
    fn strike(&mut self, driver: &mut Driver) -> Option<Blow> {
        self.tally.points += 1;
        let (_, blow) = self.blows.pop_if(|(point, _)| *point <= self.tally.points)?;
        let what = match blow {
            Blow::Crash | Blow::Takeover => format!("{} {}", blow.name(), driver.stage.name()),
            _ => blow.name().to_owned(),
        };
        *self.tally.blows.entry(what).or_default() += 1;
        match blow {
            Blow::Crash | Blow::Takeover => {}
            Blow::Stop => {
                let fact = Event::RunStopped { reason: "asked to stop".to_owned() };
                driver.queue.push(Delivery { due: self.time, fact });
            }
            Blow::Cancel => self.journal.post(Event::CancelRequested { by: "somebody".to_owned() }),
            Blow::Artifact => {
                let fact = Event::ArtifactFailed {
                    path: "out/a.md".to_owned(),
                    reason: "no room".to_owned(),
                };
                driver.queue.push(Delivery { due: self.time, fact });
            }
        }
        Some(blow)
    }

    fn step_driver(&mut self, driver: &mut Driver) -> Result<Next, String> {
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
            if let Some(ended) = &driver.fold.ended {
                return Ok(Next::Over(ended.outcome.name()));
            }
        }
        match self.step(driver, Pace::Timely)? {
            Step::Went => Ok(Next::Goes),
            Step::Fenced => Err("the driver that holds the run was fenced".to_owned()),
            Step::Appended(events) => {
                self.audit.appended(&self.journal, driver.epoch, &events, &driver.fold)?;
                artifacts(&self.made.workflow, &driver.fold).map_err(|(path, why)| {
                    format!("the artifact {path} cannot be rendered: {why}")
                })?;
                Ok(Next::Goes)
            }
            Step::Idle(due) => self.idle(driver, due),
        }
    }

    fn step(&mut self, driver: &mut Driver, pace: Pace) -> Result<Step, String> {
        let (journal, world) = (&mut self.journal, &mut self.world);
        driver.step(&mut self.dice, &self.made.workflow, journal, world, self.time, pace)
    }

    /// A driver that has nothing to do waits for the time, for a person, or not at all.
    fn idle(&mut self, driver: &mut Driver, due: Option<i64>) -> Result<Next, String> {
        let fold = &driver.fold;
        if let Some(lost) = fold.attempts.keys().find(|attempt| !driver.running.contains(*attempt))
        {
            return Err(format!("nobody works on {lost}"));
        }
        if fold.stopped.is_some() && fold.attempts.is_empty() {
            return Ok(Next::Gone);
        }
        let asked = waits_for_somebody(fold);
        let moves = !fold.attempts.is_empty() || driver.has_timer() || driver.is_busy();
        if !moves && !asked {
            return Err(
                "nothing runs, nothing is due and nobody was asked, and the run is not over"
                    .to_owned(),
            );
        }
        if let Some(due) = due.into_iter().chain(self.person_at).min() {
            self.time = self.time.max(due);
        } else if !driver.hung.is_empty() {
            // Only a process that dies ends what never says anything again.
            *self.tally.blows.entry("crash hung".to_owned()).or_default() += 1;
            return Ok(Next::Gone);
        } else if asked && self.journal.inbox.is_empty() {
            return Ok(Next::Over("waiting"));
        }
        // Whoever only waits for a person may as well go home; an answer is posted then while
        // nobody drives.
        if fold.is_resting() && driver.queue.is_empty() && self.dice.percent(20) {
            return Ok(Next::Gone);
        }
        Ok(Next::Goes)
    }

    /// One that lost the run goes on as if it had not, until it tries to append.
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
            Step::Went => self.zombies.push(zombie),
            Step::Fenced => self.tally.fenced += 1,
            Step::Idle(_) => {}
            Step::Appended(_) => {
                return Err(format!("driver {} lost the run and appended", zombie.epoch));
            }
        }
        Ok(())
    }

    fn end_zombies(&mut self) -> Result<(), String> {
        for _ in 0..MOST_STEPS {
            if self.zombies.is_empty() {
                return Ok(());
            }
            self.step_zombie()?;
        }
        Err("a driver that lost the run never ends".to_owned())
    }

    /// Whoever is asked sees the journal and answers in their own time, sometimes wrongly, twice,
    /// or something that is settled.
    fn hear_person(&mut self) {
        let open: Vec<(String, Form)> = self
            .audit
            .fold
            .open_questions()
            .map(|(id, one)| (id.clone(), one.form.clone()))
            .collect();
        if open.is_empty() || matches!(self.person, Person::NeverAnswers) {
            self.person_at = None;
            return;
        }
        let soon = self.time + i64::try_from(self.dice.below(3_600_000)).unwrap_or(0);
        let due = *self.person_at.get_or_insert(soon);
        if due > self.time || !self.journal.inbox.is_empty() {
            return;
        }
        self.person_at = None;
        let (question, form) = self.dice.pick(&open).clone();
        let answer = match &form {
            _ if self.dice.percent(10) => "  ".to_owned(),
            Form::Choices(choices) => self.dice.pick(choices).clone(),
            Form::Pattern(_) | Form::Text => "something".to_owned(),
        };
        let question = if self.dice.percent(5) { "b0#7".to_owned() } else { question };
        let answered = Event::Answered { question, answer, by: "somebody".to_owned() };
        if self.dice.percent(15) {
            self.journal.post(answered.clone());
        }
        self.journal.post(answered);
    }
}
