//! The report of a run: its status, its attempts and the transitions it took.

use crate::given_answers::{GivenAnswer, GivenAnswers};
use crate::ledger::{Entry, Ledger, Totals};
use crate::run_waits::{RunWait, RunWaits};
use crate::visits::{Visit, Visits};
use counterfoil_contract::Violation;
use counterfoil_contract::claim::{ClaimReport, Verdict};
use counterfoil_flow::{
    AttemptOutcome, BudgetPart, BuiltinStep, Cause, ChangedFiles, CheckReport, Event, Form,
    Outcome, Reopened, Reply, RunState, TransitionTaken, Undoing, Usage, used_up_part,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// The report of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunReport {
    /// The run's id.
    pub run: String,
    /// The name of the workflow.
    pub workflow: String,
    /// The outcome of the run; `waiting` for an answer, `answered` if it got one and was not resumed,
    /// `running`, or `interrupted` if no process drives it.
    pub outcome: String,
    /// The cause of a failure.
    pub cause: Option<Cause>,
    /// The current state, or the last one.
    pub state: String,
    /// The reason for the outcome, as text.
    pub reason: String,
    /// The exit code that the end state asks for, instead of that of the outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<u8>,
    /// The number of iterations of the main loop.
    pub iterations: u64,
    /// Agent sessions, in the order they started.
    pub attempts: Vec<Attempt>,
    /// Commands and built-in steps, in the order they started.
    pub commands: Vec<Attempt>,
    /// The number of claims by verdict, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claims: Option<Totals>,
    /// The open questions.
    pub questions: Vec<Question>,
    /// The variables of the main workflow.
    pub variables: Map<String, Value>,
    /// The total usage.
    pub usage: Usage,
    /// The transitions that were taken, with their reasons.
    pub path: Vec<Step>,
    /// When, by whom and why the run was reopened after it had ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reopened: Vec<Reopening>,
    /// When and by whom files that the run changed were put back to what they were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<RunUndoing>,
    /// When the process that drove the run ended in the middle of a step, and who took the run up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interrupted: Vec<RunInterruption>,
    /// When the run started, in milliseconds since 1970.
    pub started_at: i64,
    /// The time of the last event, in milliseconds since 1970.
    pub updated_at: i64,
    /// Whether the run has not ended, so that it can be resumed.
    pub resumable: bool,
    /// Whether the run has ended and can be reopened.
    pub reopenable: bool,
    /// The part of the budget of which the run needs more to be reopened.
    #[serde(skip)]
    pub used_up: Option<BudgetPart>,
}

/// The reopening of a run that had ended.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Reopening {
    /// The time, in milliseconds since 1970.
    pub at: i64,
    /// The person or program that reopened it.
    pub by: String,
    /// Why, as text.
    pub because: String,
    /// How the run had ended.
    pub outcome: Outcome,
    /// Why it had ended, as text.
    pub reason: String,
    /// The state in which it continued.
    pub state: String,
}

/// Files that a run changed were put back to what they were.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunUndoing {
    /// The time, in milliseconds since 1970.
    pub at: i64,
    /// The person or program that did it.
    pub by: String,
    /// The attempts and workspaces whose changes were undone.
    pub steps: Vec<String>,
    /// The number of files.
    pub files: u64,
}

/// The process that drove a run ended in the middle of a step.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunInterruption {
    /// The time of the last event before it, in milliseconds since 1970.
    pub after: i64,
    /// When another process took up the run, to continue or to cancel it, in milliseconds since 1970.
    pub taken_up_at: i64,
    /// The person or program that did so.
    pub taken_up_by: String,
}

impl Reopening {
    /// A recorded reopening.
    pub(crate) fn new(reopened: &Reopened, at: i64) -> Self {
        Self {
            at,
            by: reopened.by.clone(),
            because: reopened.changes.because.clone(),
            outcome: reopened.outcome,
            reason: reopened.reason.clone(),
            state: reopened.state.clone(),
        }
    }
}

impl RunUndoing {
    /// A recorded undoing.
    fn new(undone: &Undoing) -> Self {
        let Undoing { at, by, steps, files } = undone;
        Self { at: *at, by: by.clone(), steps: steps.clone(), files: *files }
    }
}

/// An agent session, a command or a built-in step.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Attempt {
    /// The path of the state: its name, or state, item key and inner state.
    pub path: Vec<String>,
    /// The key of the item.
    pub item: Option<String>,
    /// The name of the agent; none for commands and built-in steps.
    pub agent: Option<String>,
    /// The built-in step; none for an agent or a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "deed")]
    pub builtin: Option<BuiltinStep>,
    /// The number of the attempt at this path, from 1, over all visits.
    pub n: u32,
    /// The number of the visit of the state, from 1.
    pub visit: u32,
    /// The number of the attempt in the visit, from 1.
    pub attempt: u32,
    /// The outcome; none while the attempt runs.
    #[schemars(with = "Option<AttemptOutcome>")]
    pub outcome: Option<String>,
    /// Whether the process that drove the run ended in the middle of it. Programs know it as cancelled.
    #[serde(skip)]
    pub is_lost: bool,
    /// The contract of the result.
    pub contract: Option<String>,
    /// The accepted result.
    pub value: Option<Value>,
    /// The violations of the last reply.
    #[schemars(with = "Vec<Violation>")]
    pub violations: Vec<Value>,
    /// The verified claims of the last reply.
    pub claims: Vec<ClaimReport>,
    /// The claims of earlier replies, by the number of the reply.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub earlier_claims: BTreeMap<u32, Vec<ClaimReport>>,
    /// The files that the attempt changed.
    pub changed: Option<ChangedFiles>,
    /// The outcomes of checks, by name, if it ran checks.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub checks: BTreeMap<String, CheckReport>,
    /// How many repairs were requested.
    pub repairs_asked: u32,
    /// When they were requested, in milliseconds since 1970.
    #[serde(skip)]
    pub repairs_at: Vec<i64>,
    /// The replies, without their text.
    pub replies: Vec<Reply>,
    /// The usage of the attempt.
    pub usage: Usage,
    /// The reason for the outcome, as text.
    pub reason: String,
    /// When it started, in milliseconds since 1970.
    pub started_at: i64,
    /// When it ended, in milliseconds since 1970.
    pub ended_at: Option<i64>,
}

impl Attempt {
    /// The visit that it belongs to.
    pub fn place(&self) -> Visit {
        Visit::new(self.visit, self.attempt)
    }
}

/// An open question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// The question's id.
    pub id: String,
    /// The text of the question.
    pub question: String,
    /// The possible answers; empty for free text.
    pub choices: Vec<String>,
    /// The pattern that the answer has to match.
    pub pattern: Option<String>,
    /// Whether the question can be left unanswered.
    pub optional: bool,
}

impl Question {
    /// A digest of the question as a person sees it. An answer can name it, so that it is not taken
    /// for the answer to another question with the same id.
    ///
    /// It is the SHA-256 hash, in hex, of the JSON array of the run's id, the question's id, its
    /// text, its choices, its pattern or null, and whether it is optional, without white space.
    pub fn digest(&self, run: &str) -> String {
        let Self { id, question, choices, pattern, optional } = self;
        let all = json!([run, id, question, choices, pattern, optional]);
        hex::encode(Sha256::digest(all.to_string()))
    }
}

/// A transition that was taken.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Transition")]
pub struct Step {
    /// The time of the transition, in milliseconds since 1970.
    pub at: i64,
    /// The transition with its reason.
    #[serde(flatten)]
    pub transition: TransitionTaken,
}

/// The outcome of a run that no process drives and that did not end.
const INTERRUPTED: &str = "interrupted";
/// The outcome of a run whose questions were answered and that nobody resumed since.
pub(crate) const ANSWERED: &str = "answered";

/// The status of a run.
pub(crate) struct RunStatus {
    /// `None` while the run continues.
    pub(crate) outcome: Option<&'static str>,
    pub(crate) cause: Option<Cause>,
    pub(crate) state: String,
    pub(crate) reason: String,
}

/// The status of a run, from its state.
pub(crate) fn status(run_state: &RunState) -> RunStatus {
    match (&run_state.ended, &run_state.stopped) {
        (Some(ended), _) => RunStatus {
            outcome: Some(ended.outcome.name()),
            cause: ended.cause,
            state: ended.state.clone(),
            reason: ended.reason.clone(),
        },
        // It can be resumed, other than one that was cancelled.
        (None, Some(stopped)) => RunStatus {
            outcome: Some(INTERRUPTED),
            cause: None,
            state: run_state.current_state(),
            reason: stopped.clone(),
        },
        (None, None) => {
            let waiting = run_state.is_resting();
            let asked: Vec<&str> =
                run_state.open_questions().map(|(_, open)| open.question.as_str()).collect();
            RunStatus {
                outcome: waiting.then_some("waiting"),
                cause: None,
                state: run_state.current_state(),
                reason: if waiting { asked.join("; ") } else { String::new() },
            }
        }
    }
}

/// Builds the report of a run from its events.
#[derive(Debug, Default)]
pub(crate) struct RunReportBuilder {
    attempts: Vec<Attempt>,
    index: BTreeMap<String, usize>,
    /// The key of the item to which a frame belongs.
    items: BTreeMap<String, Option<String>>,
    path: Vec<Step>,
    reopened: Vec<Reopening>,
    interrupted: Vec<RunInterruption>,
    /// An interruption, if the event that the run was taken up is followed by a lost attempt.
    taken_up: Option<RunInterruption>,
    /// The time of the last event.
    last_at: i64,
    answers: GivenAnswers,
    waits: RunWaits,
    ledger: Ledger,
    visits: Visits,
}

impl RunReportBuilder {
    /// Adds an event.
    pub(crate) fn on_event(&mut self, event: &Event, at: i64) {
        self.ledger.on_event(event, at);
        self.answers.on_event(event, at);
        self.waits.on_event(event, at);
        let before = self.last_at;
        // It is recorded by the process that takes the run up.
        if !matches!(event, Event::TimeSkipped { .. }) {
            self.last_at = at;
        }
        let visit = self.visits.on_event(event).unwrap_or_default();
        match event {
            Event::FrameOpened { frame, parent, item, .. } => {
                let above =
                    parent.as_ref().and_then(|parent| self.items.get(parent).cloned().flatten());
                self.items.insert(frame.clone(), item.clone().or(above));
            }
            Event::AttemptStarted { attempt, frame, path, agent, n, contract, builtin } => {
                self.index.insert(attempt.clone(), self.attempts.len());
                self.attempts.push(Attempt {
                    path: path.clone(),
                    item: self.items.get(frame).cloned().flatten(),
                    agent: agent.clone(),
                    builtin: builtin.clone(),
                    n: *n,
                    visit: visit.number,
                    attempt: visit.attempt,
                    outcome: None,
                    is_lost: false,
                    contract: contract.clone(),
                    value: None,
                    violations: Vec::new(),
                    claims: Vec::new(),
                    earlier_claims: BTreeMap::new(),
                    changed: None,
                    checks: BTreeMap::new(),
                    repairs_asked: 0,
                    repairs_at: Vec::new(),
                    replies: Vec::new(),
                    usage: Usage::default(),
                    reason: String::new(),
                    started_at: at,
                    ended_at: None,
                });
            }
            Event::RepairAsked { attempt, reply, usage, claims } => {
                if let Some(attempt) = self.attempt(attempt) {
                    attempt.repairs_asked += 1;
                    attempt.repairs_at.push(at);
                    let claims = reported_claims(claims);
                    if !claims.is_empty() {
                        attempt.earlier_claims.insert(attempt.repairs_asked, claims);
                    }
                    attempt.replies.push(reply.clone());
                    attempt.usage += *usage;
                }
            }
            Event::AttemptEnded(ended) => {
                if let Some(attempt) = self.attempt(&ended.attempt) {
                    attempt.outcome = Some(ended.outcome.name().to_owned());
                    attempt.value.clone_from(&ended.value);
                    attempt.violations.clone_from(&ended.violations);
                    attempt.claims = reported_claims(&ended.claims);
                    attempt.changed.clone_from(&ended.changed);
                    attempt.checks.clone_from(&ended.checks);
                    attempt.replies.extend(ended.reply.clone());
                    attempt.usage += ended.usage;
                    attempt.reason.clone_from(&ended.reason);
                    attempt.ended_at = Some(at);
                }
            }
            Event::RunResumed(resumed) => {
                self.taken_up = Some(RunInterruption {
                    after: before,
                    taken_up_at: at,
                    taken_up_by: resumed.by.clone(),
                });
            }
            Event::AttemptLost { attempt, usage, .. } => {
                self.interrupted.extend(self.taken_up.take());
                if let Some(attempt) = self.attempt(attempt) {
                    attempt.usage += *usage;
                    attempt.outcome = Some(AttemptOutcome::Cancelled.name().to_owned());
                    attempt.is_lost = true;
                    "its driver process exited".clone_into(&mut attempt.reason);
                    attempt.ended_at = Some(at);
                }
            }
            Event::RunReopened(reopened) => self.reopened.push(Reopening::new(reopened, at)),
            Event::TransitionTaken(taken) => {
                self.path.push(Step { at, transition: (**taken).clone() });
            }
            _ => {}
        }
    }

    fn attempt(&mut self, id: &str) -> Option<&mut Attempt> {
        let at = *self.index.get(id)?;
        self.attempts.get_mut(at)
    }

    /// The claims so far.
    pub(crate) fn claims(&self) -> Vec<Entry> {
        self.ledger.entries()
    }

    /// All attempts, in the order they started.
    pub(crate) fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// The answers that people gave, in order.
    pub(crate) fn answers(&self) -> &[GivenAnswer] {
        self.answers.given()
    }

    /// When the run waited, and for what.
    pub(crate) fn waits(&self) -> &[RunWait] {
        self.waits.all()
    }

    /// The report. `live` says whether a process drives the run.
    pub(crate) fn report(&self, run_state: &RunState, live: bool) -> RunReport {
        let (attempts, commands) =
            self.attempts.iter().cloned().partition(|attempt| attempt.agent.is_some());
        let path = self.path.clone();
        RunReport { attempts, commands, path, ..self.outline(run_state, live) }
    }

    /// The report without attempts and transitions, of which there may be many.
    pub(crate) fn outline(&self, run_state: &RunState, live: bool) -> RunReport {
        let status = status(run_state);
        let claims = (!self.ledger.is_empty()).then(|| self.ledger.totals());
        let questions = run_state.open_questions().map(|(id, open)| {
            let (choices, pattern) = match &open.form {
                Form::Choices(choices) => (choices.clone(), None),
                Form::Pattern(pattern) => (Vec::new(), Some(pattern.clone())),
                Form::Text => (Vec::new(), None),
            };
            Question {
                id: id.clone(),
                question: open.question.clone(),
                choices,
                pattern,
                optional: open.optional,
            }
        });
        let outcome = match status.outcome {
            // Programs know it as `cancelled` and `resumable`.
            Some(INTERRUPTED) => Outcome::Cancelled.name(),
            Some(outcome) => outcome,
            None if live => "running",
            None => INTERRUPTED,
        };
        RunReport {
            run: run_state.run.clone(),
            workflow: run_state.workflow.clone(),
            outcome: outcome.to_owned(),
            cause: status.cause,
            state: status.state,
            reason: status.reason,
            exit: run_state.ended.as_ref().and_then(|ended| ended.exit),
            iterations: run_state.iterations,
            attempts: Vec::new(),
            commands: Vec::new(),
            claims,
            questions: questions.collect(),
            variables: run_state
                .frames
                .get("")
                .map(|frame| frame.variables.clone())
                .unwrap_or_default(),
            usage: run_state.usage,
            path: Vec::new(),
            reopened: self.reopened.clone(),
            undone: run_state.undone.iter().map(RunUndoing::new).collect(),
            interrupted: self.interrupted.clone(),
            started_at: run_state.started_at,
            updated_at: run_state.last_at,
            resumable: run_state.ended.is_none(),
            used_up: used_up_part(run_state).map(|(part, _)| part),
            reopenable: run_state.undone.is_empty()
                && run_state.ended.as_ref().is_some_and(|ended| {
                    !matches!(ended.outcome, Outcome::Done | Outcome::Cancelled)
                }),
        }
    }
}

/// The claims without the engine's own claims that were verified.
fn reported_claims(claims: &[ClaimReport]) -> Vec<ClaimReport> {
    let is_reported = |claim: &&ClaimReport| !claim.is_own() || claim.verdict != Verdict::Verified;
    claims.iter().filter(is_reported).cloned().collect()
}
