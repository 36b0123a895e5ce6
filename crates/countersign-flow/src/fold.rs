//! What is known of a run: the sum of its events, small and serialisable. Applying an event evaluates nothing.

use crate::event::{AttemptOutcome, Cause, Ended, Event, Moved, Outcome, Player, Started, Usage};
use crate::fan::FanOut;
use crate::workflow::{Budget, End, Form, Trouble};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The same request so often in a row, with nothing changed, is no progress.
pub(crate) const SAME_AGAIN: u32 = 3;

/// What is known of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fold {
    /// The run.
    pub run: String,
    /// Its workflow.
    pub workflow: String,
    /// The hash of its bundle.
    pub bundle: String,
    /// When it began, in milliseconds since 1970.
    pub started_at: i64,
    /// When the last event happened.
    pub last_at: i64,
    /// How many events it is the sum of.
    pub seq: u64,
    /// What it was given.
    pub inputs: Map<String, Value>,
    /// Who plays which agent.
    pub agents: BTreeMap<String, Player>,
    /// What it may cost.
    pub budget: Budget,
    /// Where the work is done.
    pub repo: String,
    /// The machines at work: the main one has the empty name.
    pub frames: BTreeMap<String, Frame>,
    /// The frames that wait for a decision.
    pub(crate) ready: BTreeSet<String>,
    /// The attempts in flight, with the frame each works for.
    pub attempts: BTreeMap<String, String>,
    /// How many attempts each path had, and how often each question was asked.
    pub(crate) visits: BTreeMap<String, u32>,
    /// The questions that are open, or answered beside open ones.
    pub questions: BTreeMap<String, OpenQuestion>,
    /// What was spent.
    pub usage: Usage,
    /// Visits of the main loop.
    pub iterations: u64,
    /// Attempts that were started.
    pub started: u64,
    /// Why it is about to end from outside, if it is.
    pub stopping: Option<Stopping>,
    /// Why it was stopped, until it is taken up again.
    pub stopped: Option<String>,
    /// How it ended.
    pub ended: Option<Ending>,
}

/// Why a run is about to end from outside its workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopping {
    /// A budget is used up.
    Budget(String),
    /// Somebody cancelled it.
    Cancel(String),
    /// A file could not be written.
    Artifact(String),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// How.
    pub outcome: Outcome,
    /// Why it failed.
    pub cause: Option<Cause>,
    /// Why, in words.
    pub reason: String,
    /// Where.
    pub state: String,
}

/// A machine at work, or an item that runs an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// The frame it belongs to.
    pub parent: Option<String>,
    /// The machine it runs.
    pub machine: String,
    /// The item it is, by key.
    pub item: Option<String>,
    /// Where it stands.
    pub state: String,
    /// Where it stood before.
    pub from: String,
    /// What it was given.
    pub inputs: Map<String, Value>,
    /// What it remembers.
    pub variables: Map<String, Value>,
    /// Its counters; one that is kept by a key is named `limit[key]`.
    pub counters: BTreeMap<String, u64>,
    /// How often the step was tried again, by trouble.
    pub tries: BTreeMap<Trouble, u32>,
    /// What was asked for in a row, by transition.
    pub requests: BTreeMap<String, Streak>,
    /// The work tree as the last attempt left it.
    pub tree: Option<String>,
    /// Why it came here.
    pub reason: String,
    /// What it is doing.
    pub phase: Phase,
}

impl Frame {
    /// A machine that comes into its first state.
    pub(crate) fn opened(
        machine: &str,
        state: &str,
        inputs: &Map<String, Value>,
        variables: &Map<String, Value>,
    ) -> Self {
        Self {
            parent: None,
            machine: machine.to_owned(),
            item: None,
            state: state.to_owned(),
            from: String::new(),
            inputs: inputs.clone(),
            variables: variables.clone(),
            counters: BTreeMap::new(),
            tries: BTreeMap::new(),
            requests: BTreeMap::new(),
            tree: None,
            reason: String::new(),
            phase: Phase::Entered { not_before: None, context: false },
        }
    }
}

/// The same thing in a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Streak {
    /// What.
    pub what: String,
    /// How often.
    pub times: u32,
}

/// What a frame is doing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// It came into its state.
    Entered {
        /// The step must not start before this time.
        not_before: Option<i64>,
        /// The files it needs are there.
        context: bool,
    },
    /// An attempt is in flight.
    Running {
        /// Which.
        attempt: String,
    },
    /// Somebody is asked.
    Asking,
    /// Items are at work.
    Fanned(FanOut),
    /// A sub-workflow is at work.
    Called,
    /// The step gave a result.
    Resulted(Value),
    /// The step did not.
    Troubled(Problem),
    /// The step failed in a way that nothing answers.
    Broken(String),
}

/// Why a step gave no result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// What kind.
    pub trouble: Trouble,
    /// Why it failed, if it is a sub-workflow that did.
    pub cause: Option<Cause>,
    /// Why, in words.
    pub reason: String,
    /// What could be salvaged.
    pub partial: Option<Value>,
    /// When a limit is lifted.
    pub reset_at: Option<i64>,
}

/// A question that is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// The frame that asked.
    pub frame: String,
    /// Its name among those asked together.
    pub name: String,
    /// The words.
    pub question: String,
    /// What an answer must be.
    pub form: Form,
    /// Whether it is cancelled once all others are answered.
    pub optional: bool,
    /// The answer, while others are open.
    pub answer: Option<String>,
}

impl Fold {
    /// Adds an event.
    pub fn apply(&mut self, event: &Event, at: i64) {
        let resting = self.is_resting();
        // A clock that jumped back, or a time in which nobody was at work, adds nothing.
        if self.seq > 0 && !resting && !matches!(event, Event::RunResumed { .. }) {
            self.usage.wall_ms += u64::try_from(at.saturating_sub(self.last_at)).unwrap_or(0);
        }
        self.last_at = self.last_at.max(at);
        self.seq += 1;
        match event {
            Event::RunStarted(started) => self.start(started, at),
            Event::RunResumed { .. } => self.stopped = None,
            Event::ContextChecked { frame, missing } => self.context(frame, missing),
            Event::AttemptStarted { attempt, frame, path, n, .. } => {
                self.started += 1;
                self.visits.insert(join(path), *n);
                self.attempts.insert(attempt.clone(), frame.clone());
                self.phase(frame, Phase::Running { attempt: attempt.clone() });
                self.ready.remove(frame);
            }
            Event::RepairAsked { usage, .. } => self.spend(*usage),
            Event::AttemptEnded(ended) => self.attempt_ended(ended),
            Event::AttemptLost { attempt } => {
                if let Some(frame) = self.attempts.remove(attempt) {
                    self.phase(&frame, Phase::Entered { not_before: None, context: false });
                }
            }
            Event::RetryPlanned { frame, trouble, retry, not_before, .. } => {
                if let Some(frame) = self.frames.get_mut(frame) {
                    frame.tries.insert(*trouble, *retry);
                }
                self.phase(frame, Phase::Entered { not_before: Some(*not_before), context: false });
            }
            Event::Asked { frame, questions } => {
                for asked in questions {
                    let name = visit(&asked.id);
                    *self.visits.entry(name).or_default() += 1;
                    self.questions.insert(
                        asked.id.clone(),
                        OpenQuestion {
                            frame: frame.clone(),
                            name: asked.name.clone(),
                            question: asked.question.clone(),
                            form: asked.form.clone(),
                            optional: asked.optional,
                            answer: None,
                        },
                    );
                }
                self.phase(frame, Phase::Asking);
                self.ready.remove(frame);
            }
            Event::Answered { question, answer, .. } => {
                if let Some(open) = self.questions.get_mut(question) {
                    open.answer = Some(answer.clone());
                    let frame = open.frame.clone();
                    self.answered(&frame);
                }
            }
            Event::QuestionsCancelled { frame, questions } => self.cancelled(frame, questions),
            Event::FannedOut { frame, items, parallel, strict, problem } => match problem {
                None => self.phase(frame, Phase::Fanned(FanOut::new(items, *parallel, *strict))),
                Some(reason) => self.phase(frame, Phase::Troubled(Problem::new(Trouble::Order, reason))),
            },
            Event::FrameOpened { .. } => self.open(event),
            Event::FrameEnded { frame, outcome, cause, reason, value } => {
                self.close(frame, *outcome, *cause, reason, value.as_ref());
            }
            Event::FannedIn { frame } => {
                let Some(Phase::Fanned(fan)) = self.frames.get(frame).map(|frame| &frame.phase) else {
                    return;
                };
                let phase = match (&fan.broken, fan.joined()) {
                    (Some(reason), _) => Phase::Broken(reason.clone()),
                    (None, Ok(result)) => Phase::Resulted(result),
                    (None, Err(problem)) => Phase::Troubled(problem),
                };
                self.phase(frame, phase);
            }
            Event::Moved(moved) => self.moved(moved),
            Event::StepFailed { frame, reason } => self.step_failed(frame, reason),
            Event::BudgetReached { what } => {
                self.stopping.get_or_insert(Stopping::Budget(what.clone()));
            }
            Event::CancelRequested { by } => {
                self.stopping.get_or_insert(Stopping::Cancel(by.clone()));
            }
            Event::ArtifactFailed { path, reason } => {
                self.stopping.get_or_insert(Stopping::Artifact(format!("cannot write {path}: {reason}")));
            }
            Event::RunStopped { reason } => self.stopped = Some(reason.clone()),
            Event::RunEnded { outcome, cause, reason, state } => {
                self.ended = Some(Ending {
                    outcome: *outcome,
                    cause: *cause,
                    reason: reason.clone(),
                    state: state.clone(),
                });
                self.questions.clear();
                self.ready.clear();
            }
        }
    }

    /// Whether nothing is at work and only a person can move it.
    pub fn is_resting(&self) -> bool {
        self.stopped.is_some()
            || (self.attempts.is_empty() && self.ready.is_empty() && !self.questions.is_empty())
    }

    /// The questions that wait for an answer, by id.
    pub fn open_questions(&self) -> impl Iterator<Item = (&String, &OpenQuestion)> {
        self.questions.iter().filter(|(_, question)| question.answer.is_none())
    }

    /// Whether an answer can be taken; the error says why not.
    pub fn check_answer(&self, question: &str, answer: &str) -> Result<(), Refused> {
        let Some(open) = self.questions.get(question).filter(|question| question.answer.is_none()) else {
            let open = self.open_questions().map(|(id, _)| id.clone()).collect();
            return Err(Refused::NotOpen { question: question.to_owned(), open });
        };
        let wrong = |expected: String| Err(Refused::Invalid { answer: answer.to_owned(), expected });
        match &open.form {
            Form::Choices(choices) if choices.iter().any(|choice| choice == answer) => Ok(()),
            Form::Choices(choices) => {
                let near = countersign_contract::did_you_mean(answer, choices.iter().map(String::as_str));
                let near = near.map(|near| format!("; {near}")).unwrap_or_default();
                wrong(format!("one of {}{near}", choices.join(", ")))
            }
            Form::Pattern(pattern) => match regex::Regex::new(&format!("^(?:{pattern})$")) {
                Ok(regex) if regex.is_match(answer) => Ok(()),
                _ => wrong(format!("a text of the form {pattern}")),
            },
            Form::Text if answer.trim().is_empty() => wrong("a text".to_owned()),
            Form::Text => Ok(()),
        }
    }

    /// The path of a frame's state, as people read it.
    pub fn place(&self) -> String {
        self.frames.get("").map(|frame| frame.state.clone()).unwrap_or_default()
    }

    fn start(&mut self, started: &Started, at: i64) {
        self.run.clone_from(&started.run);
        self.workflow.clone_from(&started.workflow);
        self.bundle.clone_from(&started.bundle);
        self.inputs.clone_from(&started.inputs);
        self.agents.clone_from(&started.agents);
        self.budget = started.budget.clone();
        self.repo.clone_from(&started.repo);
        (self.started_at, self.last_at) = (at, at);
    }

    fn phase(&mut self, frame: &str, phase: Phase) {
        if let Some(at) = self.frames.get_mut(frame) {
            at.phase = phase;
            self.ready.insert(frame.to_owned());
        }
    }

    fn step_failed(&mut self, frame: &str, reason: &str) {
        // Items at work are not left behind: the state fails when the last of them has ended.
        if let Some(Frame { phase: Phase::Fanned(fan), .. }) = self.frames.get_mut(frame)
            && fan.is_working()
        {
            fan.broken = Some(reason.to_owned());
            self.ready.remove(frame);
            return;
        }
        self.phase(frame, Phase::Broken(reason.to_owned()));
    }

    fn spend(&mut self, usage: Usage) {
        // Time is counted between events: attempts run beside each other.
        self.usage += Usage { wall_ms: 0, ..usage };
    }

    fn context(&mut self, frame: &str, missing: &[String]) {
        let phase = if missing.is_empty() {
            let not_before = match self.frames.get(frame).map(|frame| &frame.phase) {
                Some(Phase::Entered { not_before, .. }) => *not_before,
                _ => return,
            };
            Phase::Entered { not_before, context: true }
        } else {
            let reason = format!("missing before the agent can start: {}", missing.join(", "));
            Phase::Troubled(Problem::new(Trouble::Blocked, &reason))
        };
        self.phase(frame, phase);
    }

    fn attempt_ended(&mut self, ended: &Ended) {
        self.spend(ended.usage);
        let Some(id) = self.attempts.remove(&ended.attempt) else { return };
        let Some(frame) = self.frames.get_mut(&id) else { return };
        if ended.tree.is_some() {
            frame.tree.clone_from(&ended.tree);
        }
        let phase = match (ended.outcome, ended.outcome.trouble()) {
            (AttemptOutcome::Accepted, _) => Phase::Resulted(ended.value.clone().unwrap_or(Value::Null)),
            (_, Some(trouble)) => Phase::Troubled(Problem {
                trouble,
                cause: None,
                reason: ended.reason.clone(),
                partial: ended.partial.clone(),
                reset_at: ended.reset_at,
            }),
            // Stopped from outside: it starts again if the run goes on.
            (_, None) => Phase::Entered { not_before: None, context: false },
        };
        let same = format!("{}!", frame.state);
        match ended.outcome {
            AttemptOutcome::Contract => {
                let what = ended.violations.iter().map(signature).collect::<Vec<_>>().join(" ");
                again(&mut frame.requests, same, what);
            }
            AttemptOutcome::Accepted => {
                frame.requests.remove(&same);
            }
            _ => {}
        }
        self.phase(&id, phase);
    }

    fn answered(&mut self, frame: &str) {
        let mut mine = self.questions.values().filter(|question| question.frame == frame);
        if mine.clone().any(|question| question.answer.is_none() && !question.optional) {
            return;
        }
        if mine.any(|question| question.answer.is_none()) {
            // Only optional ones are left: deciding cancels them.
            self.ready.insert(frame.to_owned());
            return;
        }
        self.resulted_by_answers(frame);
    }

    fn cancelled(&mut self, frame: &str, cancelled: &[String]) {
        for id in cancelled {
            if let Some(question) = self.questions.get_mut(id) {
                question.answer = None;
            }
        }
        self.resulted_by_answers(frame);
    }

    fn resulted_by_answers(&mut self, frame: &str) {
        let (mine, rest): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut self.questions)
            .into_iter()
            .partition(|(_, question)| question.frame == frame);
        self.questions = rest;
        let answers = mine
            .into_values()
            .map(|question| (question.name, question.answer.map_or(Value::Null, Value::String)))
            .collect();
        self.phase(frame, Phase::Resulted(Value::Object(answers)));
    }

    fn open(&mut self, event: &Event) {
        let Event::FrameOpened { frame, parent, machine, item, state, inputs, variables, counts, iteration } =
            event
        else {
            return;
        };
        if let Some(parent) = parent
            && let Some(at) = self.frames.get_mut(parent)
        {
            let waits = match (&mut at.phase, item) {
                (Phase::Fanned(fan), Some(key)) => {
                    fan.opened(key);
                    fan.next() == crate::fan::Next::Wait
                }
                (phase, _) => {
                    *phase = Phase::Called;
                    true
                }
            };
            if waits {
                self.ready.remove(parent);
            }
        }
        self.iterations = iteration.unwrap_or(self.iterations);
        let mut opened = Frame::opened(machine, state, inputs, variables);
        (opened.parent, opened.item, opened.counters) = (parent.clone(), item.clone(), counts.clone());
        self.frames.insert(frame.clone(), opened);
        self.ready.insert(frame.clone());
    }

    fn close(
        &mut self,
        frame: &str,
        outcome: End,
        cause: Option<Cause>,
        reason: &str,
        value: Option<&Value>,
    ) {
        self.ready.remove(frame);
        let Some(closed) = self.frames.remove(frame) else { return };
        let Some(parent) = closed.parent else { return };
        let Some(at) = self.frames.get_mut(&parent) else { return };
        if closed.tree.is_some() {
            at.tree.clone_from(&closed.tree);
        }
        match (&mut at.phase, closed.item) {
            (Phase::Fanned(fan), Some(key)) => {
                fan.ended(&key, outcome, cause, reason, value);
                if fan.next() == crate::fan::Next::Wait {
                    return;
                }
            }
            (phase, _) => {
                *phase = match outcome {
                    End::Done => Phase::Resulted(value.cloned().unwrap_or_else(|| Value::Object(Map::new()))),
                    other => Phase::Troubled(Problem::ended(other, cause, reason)),
                }
            }
        }
        self.ready.insert(parent);
    }

    fn moved(&mut self, moved: &Moved) {
        self.iterations = moved.iteration.unwrap_or(self.iterations);
        let Some(frame) = self.frames.get_mut(&moved.frame) else { return };
        frame.from.clone_from(&moved.from);
        frame.state.clone_from(&moved.to);
        for (name, value) in &moved.set {
            frame.variables.insert(name.clone(), value.clone());
        }
        for limit in &moved.resets {
            let keyed = format!("{limit}[");
            frame.counters.retain(|name, _| name != limit && !name.starts_with(&keyed));
        }
        for (name, count) in &moved.counts {
            frame.counters.insert(name.clone(), *count);
        }
        let edge = format!("{}>{}", moved.from, moved.to);
        match &moved.request {
            Some(what) => again(&mut frame.requests, edge, what.clone()),
            None => {
                frame.requests.remove(&edge);
            }
        }
        frame.tries.clear();
        frame.reason.clone_from(&moved.reason);
        frame.phase = Phase::Entered { not_before: None, context: false };
        self.ready.insert(moved.frame.clone());
    }
}

fn again(requests: &mut BTreeMap<String, Streak>, edge: String, what: String) {
    match requests.get_mut(&edge) {
        Some(streak) if streak.what == what => streak.times += 1,
        _ => {
            requests.insert(edge, Streak { what, times: 1 });
        }
    }
}

/// What a violation is, whatever its words.
fn signature(violation: &Value) -> String {
    let part = |name: &str| violation.get(name).and_then(Value::as_str).unwrap_or_default();
    format!("{}{}", part("code"), part("pointer"))
}

impl Problem {
    pub(crate) fn new(trouble: Trouble, reason: &str) -> Self {
        Self { trouble, cause: None, reason: reason.to_owned(), partial: None, reset_at: None }
    }

    /// A sub-workflow or item that did not end well.
    pub(crate) fn ended(outcome: End, cause: Option<Cause>, reason: &str) -> Self {
        let trouble = match outcome {
            End::Blocked => Trouble::Blocked,
            End::Exhausted => Trouble::Exhausted,
            End::Done | End::Failed => Trouble::Failed,
        };
        Self { cause, ..Self::new(trouble, reason) }
    }
}

/// Why an answer was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The question is not open.
    #[error("question '{question}' is not open{}", listed(open))]
    NotOpen {
        /// The question.
        question: String,
        /// Those that are.
        open: Vec<String>,
    },
    /// The answer is not one it can take.
    #[error("'{answer}' is not an answer to it: expected {expected}")]
    Invalid {
        /// The answer.
        answer: String,
        /// What it must be.
        expected: String,
    },
}

fn listed(open: &[String]) -> String {
    if open.is_empty() { "; none is".to_owned() } else { format!("; open: {}", open.join(", ")) }
}

/// A path as one word; `/` inside a part is written `~1`.
pub(crate) fn join(path: &[String]) -> String {
    path.iter().map(|part| part.replace('~', "~0").replace('/', "~1")).collect::<Vec<_>>().join("/")
}

/// The parts of a path.
pub(crate) fn split(path: &str) -> Vec<String> {
    if path.is_empty() {
        return Vec::new();
    }
    path.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect()
}

/// The name under which the visits of a question are counted. The key of an item may hold a `#` of its own, and a state or a name
/// stands behind it.
pub(crate) fn visit(id: &str) -> String {
    let number = |tail: &str| !tail.is_empty() && tail.bytes().all(|byte| byte.is_ascii_digit());
    format!("?{}", id.rsplit_once('#').filter(|(_, tail)| number(tail)).map_or(id, |(name, _)| name))
}
