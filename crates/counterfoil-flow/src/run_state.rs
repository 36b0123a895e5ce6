//! The state of a run: the sum of its events, small and serialisable. Applying an event evaluates
//! no expression.

mod attempts;
mod checks;
mod conversation;
mod frame;
mod questions;
mod reopened;
mod workspace;

pub use frame::{ClaimVerdict, FirstAttempt, Frame, Interruption, PastConversation, Phase, Streak};
pub(crate) use frame::{join, question_visits, split};
pub use questions::{AnswerError, OpenQuestion};
pub(crate) use reopened::below;
pub use workspace::{Workspace, WorkspaceStage};
pub(crate) use workspace::{with_kept, workspace_visits};

use crate::event::{
    AssignedAgent, Cause, CheckReport, Event, Outcome, Started, TransitionTaken, Usage,
    WorkspaceLifetime,
};
use crate::fan_out::{FanOut, ItemStatus};
use crate::problem::Problem;
use crate::workflow::{Budget, End, FailureKind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The same request this many times in a row, with nothing changed, counts as lack of progress.
pub(crate) const MAX_REPEATS: u32 = 3;

/// The state of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    /// The id of the run.
    pub run: String,
    /// The name of the workflow.
    pub workflow: String,
    /// The hash of the bundle.
    pub bundle: String,
    /// The version of the decision rules that the run started with.
    #[serde(default = "first_version")]
    pub decide: u32,
    /// The start time, in milliseconds since 1970.
    pub started_at: i64,
    /// The time of the last event, in milliseconds since 1970.
    pub last_at: i64,
    /// The number of applied events.
    pub seq: u64,
    /// The inputs.
    pub inputs: Map<String, Value>,
    /// The programs that are assigned to the agents, by agent.
    pub agents: BTreeMap<String, AssignedAgent>,
    /// The budget.
    pub budget: Budget,
    /// The repository.
    pub repo: String,
    /// The files of the workflow that are in the repository.
    #[serde(default)]
    pub own: Vec<String>,
    /// The commit at HEAD when the run started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The digest of the project's configuration when the run started or was resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// The outcomes of the checks before the first step, by name; none before they were run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_checks: Option<BTreeMap<String, CheckReport>>,
    /// The active frames by id; the main frame has the empty id.
    pub frames: BTreeMap<String, Frame>,
    /// The frames that need a decision.
    pub(crate) ready: BTreeSet<String>,
    /// The attempts in flight, each with its frame.
    pub attempts: BTreeMap<String, String>,
    /// Abandoned workspaces that must still be discarded, each with its frame.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) left: BTreeMap<String, String>,
    /// The number of attempts and workspaces by path, and of visits by question.
    pub(crate) visits: BTreeMap<String, u32>,
    /// The frames of items that continue when their turn comes: the run was reopened.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) parked: BTreeMap<String, Frame>,
    /// The maxima of limits that a person changed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) limits: BTreeMap<String, u64>,
    /// The open questions, and answered ones that wait for others of the same frame.
    pub questions: BTreeMap<String, OpenQuestion>,
    /// The consumption so far.
    pub usage: Usage,
    /// The number of iterations of the main loop.
    pub iterations: u64,
    /// The number of started attempts.
    pub started: u64,
    /// Whether attempts were lost with the process that drove the run, and none was started since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) interrupted: bool,
    /// The reason outside of the workflow for which the run is about to end.
    pub stopping: Option<Stopping>,
    /// The reason for a stop, until the run is resumed.
    pub stopped: Option<String>,
    /// The end of the run.
    pub ended: Option<Ending>,
    /// What was undone of the changes of the run, and by whom. If there is anything, the run stays
    /// ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<Undoing>,
}

/// States without a version were written by the first version.
fn first_version() -> u32 {
    1
}

/// The reason outside of the workflow for which a run is about to end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopping {
    /// A budget is used up.
    Budget(String),
    /// A person or program cancelled the run.
    Cancel(String),
    /// An artifact could not be written.
    Artifact(String),
}

/// The undoing of changes of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Undoing {
    /// The time, in milliseconds since 1970.
    pub at: i64,
    /// The person or program that did it.
    pub by: String,
    /// The attempts and workspaces whose changes were undone.
    pub steps: Vec<String>,
    /// The number of files.
    pub files: u64,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// The outcome.
    pub outcome: Outcome,
    /// The cause of a failure.
    pub cause: Option<Cause>,
    /// The reason, as text.
    pub reason: String,
    /// The last state of the main machine.
    pub state: String,
    /// The exit code that the end state asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<u8>,
}

impl RunState {
    /// Applies an event that happened at this time.
    pub fn apply(&mut self, event: &Event, at: i64) {
        let resting = self.is_resting();
        // Time does not count while nothing is in progress, or if the clock went back.
        let is_pause =
            matches!(event, Event::RunResumed(_) | Event::RunReopened(_) | Event::RunUndone(_));
        if self.seq > 0 && !resting && !is_pause {
            let passed = u64::try_from(at.saturating_sub(self.last_at)).unwrap_or(0);
            let skipped = if let Event::TimeSkipped { ms } = event { *ms } else { 0 };
            self.usage.wall_ms = self.usage.wall_ms.saturating_add(passed.saturating_sub(skipped));
        }
        self.last_at = self.last_at.max(at);
        self.seq += 1;
        match event {
            Event::RunStarted(started) => self.start(started, at),
            Event::RunResumed(resumed) => {
                self.stopped = None;
                self.agents.extend(resumed.agents.clone());
                self.change(&resumed.changes);
                if resumed.config.is_some() {
                    self.config.clone_from(&resumed.config);
                }
            }
            Event::RunReopened(reopened) => self.reopen(reopened),
            Event::RunUndone(undone) => self.undone.push(Undoing {
                at,
                by: undone.by.clone(),
                steps: undone.steps.clone(),
                files: undone.total,
            }),
            Event::ContextChecked { frame, missing, checks } => {
                if let Some(at) = self.frames.get_mut(frame) {
                    at.planned_checks.get_or_insert_with(|| checks.clone().unwrap_or_default());
                }
                self.context(frame, missing);
            }
            Event::AttemptStarted { attempt, frame, path, agent, n, builtin, .. } => {
                self.interrupted = false;
                self.visits.insert(join(path), *n);
                self.attempts.insert(attempt.clone(), frame.clone());
                let phase = self.started_phase(frame, attempt, builtin.as_ref());
                // Checks are a part of a step whose attempt was counted.
                if matches!(phase, Phase::Running { .. }) {
                    self.first_attempt(frame, attempt, agent.is_some());
                    self.started += 1;
                    // What the checks said of an earlier attempt says nothing of this one.
                    if let Some(frame) = self.frames.get_mut(frame) {
                        frame.checks = None;
                    }
                }
                self.phase(frame, phase);
                self.ready.remove(frame);
            }
            Event::RepairAsked { attempt, usage, claims, .. } => {
                self.spend(*usage);
                self.used_in_conversation(attempt, *usage);
                self.repair_asked(attempt, claims);
            }
            Event::AttemptEnded(ended) => self.attempt_ended(ended),
            Event::ConversationOpened { attempt, agent, conversation } => {
                self.conversation_opened(attempt, agent, conversation);
            }
            Event::AttemptLost { attempt, changed, usage } => {
                self.interrupted = true;
                self.spend(*usage);
                self.used_in_conversation(attempt, *usage);
                if let Some(frame) = self.attempts.remove(attempt)
                    && !self.checks_lost(&frame)
                {
                    self.attempt_lost(&frame, changed);
                    self.leave_workspace(&frame);
                    self.interrupted(&frame);
                    self.add_changed(&frame, changed);
                    self.phase(&frame, Phase::Entered { not_before: None, context: false });
                }
            }
            Event::RetryPlanned { frame, failure, retry, not_before, .. } => {
                if let Some(frame) = self.frames.get_mut(frame) {
                    frame.tries.insert(*failure, *retry);
                }
                self.phase(frame, Phase::Entered { not_before: Some(*not_before), context: false });
            }
            Event::Asked { frame, questions } => {
                let mut position =
                    self.questions.values().map(|open| open.position).max().unwrap_or_default();
                for asked in questions {
                    position = position.saturating_add(1);
                    let name = question_visits(&asked.id);
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
                            position,
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
                Some(reason) => {
                    self.phase(frame, Phase::Failed(Problem::new(FailureKind::Order, reason)));
                }
            },
            Event::FrameOpened { .. } => self.open(event),
            Event::FrameEnded { frame, outcome, cause, reason, value, conflict } => {
                let status = ItemStatus::Ended {
                    outcome: *outcome,
                    cause: *cause,
                    reason: reason.clone(),
                    value: value.clone(),
                    conflict: *conflict,
                };
                self.close(frame, status);
            }
            Event::WorkspacePlanned { .. }
            | Event::WorkspaceOpened { .. }
            | Event::WorkspaceFailed { .. }
            | Event::WorkspaceMerged { .. }
            | Event::WorkspaceDropped { .. } => self.workspace(event),
            Event::MergeQueued { frame } => self.queue_merge(frame),
            Event::FannedIn { frame } => {
                self.forget_parked(frame);
                let Some(Phase::Fanned(fan)) = self.frames.get(frame).map(|frame| &frame.phase)
                else {
                    return;
                };
                let phase = match (&fan.broken, fan.joined(self.decide)) {
                    (Some(reason), _) => Phase::Broken(reason.clone()),
                    (None, Ok(result)) => Phase::Resulted(result),
                    (None, Err(problem)) => Phase::Failed(problem),
                };
                self.phase(frame, phase);
            }
            Event::TransitionTaken(taken) => self.taken(taken),
            Event::StepFailed { frame, reason } => self.step_failed(frame, reason),
            Event::BudgetReached { what } => {
                self.stopping.get_or_insert(Stopping::Budget(what.clone()));
            }
            Event::CancelRequested { by, .. } => {
                self.stopping.get_or_insert(Stopping::Cancel(by.clone()));
            }
            Event::ArtifactFailed { path, reason } => {
                self.stopping
                    .get_or_insert(Stopping::Artifact(format!("cannot write {path}: {reason}")));
            }
            Event::RunStopped { reason } => self.stopped = Some(reason.clone()),
            Event::TimeSkipped { .. } => {}
            Event::RunEnded { outcome, cause, reason, state, exit } => {
                self.ended = Some(Ending {
                    outcome: *outcome,
                    cause: *cause,
                    reason: reason.clone(),
                    state: state.clone(),
                    exit: *exit,
                });
                self.questions.clear();
                self.ready.clear();
            }
        }
    }

    /// Whether nothing is in progress: the run was stopped, or it waits for an answer.
    pub fn is_resting(&self) -> bool {
        self.stopped.is_some()
            || (self.attempts.is_empty()
                && self.ready.is_empty()
                && self.left.is_empty()
                && !self.questions.is_empty())
    }

    /// The time at which the time budget is used up, in milliseconds since 1970, if the run goes on
    /// without a pause. None without a time budget, and while time does not count: the run was
    /// stopped, is about to end, or waits for a person.
    pub fn deadline(&self) -> Option<i64> {
        let counts =
            self.seq > 0 && self.ended.is_none() && self.stopping.is_none() && !self.is_resting();
        let max = self.budget.time_ms.filter(|_| counts)?;
        let left = max.saturating_sub(self.usage.wall_ms);
        Some(self.last_at.saturating_add(i64::try_from(left).unwrap_or(i64::MAX)))
    }

    /// The current state of the main machine.
    pub fn current_state(&self) -> String {
        self.frames.get("").map(|frame| frame.state.clone()).unwrap_or_default()
    }

    fn start(&mut self, started: &Started, at: i64) {
        self.run.clone_from(&started.run);
        self.workflow.clone_from(&started.workflow);
        self.bundle.clone_from(&started.bundle);
        self.decide = started.decide;
        self.inputs.clone_from(&started.inputs);
        self.agents.clone_from(&started.agents);
        self.budget = started.budget.clone();
        self.repo.clone_from(&started.repo);
        self.own.clone_from(&started.own);
        self.base.clone_from(&started.base);
        self.config.clone_from(&started.config);
        (self.started_at, self.last_at) = (at, at);
    }

    fn phase(&mut self, frame: &str, phase: Phase) {
        if let Some(at) = self.frames.get_mut(frame) {
            at.phase = phase;
            self.ready.insert(frame.to_owned());
        }
    }

    /// Notes the first attempt of a visit. The refuted claims of the visit before are settled by an
    /// agent that does the step again.
    fn first_attempt(&mut self, id: &str, attempt: &str, is_agent: bool) {
        let Some(frame) = self.frames.get(id) else { return };
        let workspace = self.workspace_of(frame).map(str::to_owned);
        let is_known = frame.first.as_ref().is_some_and(|first| first.workspace == workspace);
        let Some(frame) = self.frames.get_mut(id) else { return };
        if !is_known {
            frame.first = Some(FirstAttempt { attempt: attempt.to_owned(), workspace });
        }
        if is_agent {
            frame.observed.remove(&frame.state);
        }
    }

    fn interrupted(&mut self, frame: &str) {
        if let Some(frame) = self.frames.get_mut(frame) {
            frame.interrupted = frame.interrupted.saturating_add(1);
        }
    }

    fn step_failed(&mut self, frame: &str, reason: &str) {
        // The state fails only after the running items have ended.
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
        // Attempts run in parallel, so time is measured between events.
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
            Phase::Failed(Problem::new(FailureKind::Blocked, &reason))
        };
        self.phase(frame, phase);
    }

    fn open(&mut self, event: &Event) {
        let Event::FrameOpened {
            frame,
            parent,
            machine,
            item,
            state,
            inputs,
            variables,
            counts,
            iteration,
        } = event
        else {
            return;
        };
        if let Some(parent) = parent
            && let Some(at) = self.frames.get_mut(parent)
        {
            let waits = match (&mut at.phase, item) {
                (Phase::Fanned(fan), Some(key)) => {
                    fan.opened(key, frame);
                    fan.next() == crate::fan_out::Next::Wait
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
        if self.unpark(frame) {
            return;
        }
        let mut opened = Frame::opened(machine, state, inputs, variables);
        (opened.parent, opened.item, opened.counters) =
            (parent.clone(), item.clone(), counts.clone());
        self.frames.insert(frame.clone(), opened);
        self.ready.insert(frame.clone());
    }

    fn close(&mut self, frame: &str, status: ItemStatus) {
        self.ready.remove(frame);
        let Some(closed) = self.frames.remove(frame) else { return };
        let Some(parent) = closed.parent.clone() else { return };
        let Some(at) = self.frames.get_mut(&parent) else { return };
        if closed.tree.is_some() {
            at.tree.clone_from(&closed.tree);
        }
        // What was observed inside is known outside.
        let place = match &closed.item {
            Some(key) => format!("{}/{key}", at.state),
            None => at.state.clone(),
        };
        let inside = format!("{place}/");
        at.observed.retain(|step, _| *step != place && !step.starts_with(&inside));
        let refuted = closed.refuted();
        if !refuted.is_empty() {
            at.observed.insert(place, refuted);
        }
        let below = closed.observed.iter();
        at.observed
            .extend(below.map(|(step, refuted)| (format!("{inside}{step}"), refuted.clone())));
        match (&mut at.phase, closed.item) {
            (Phase::Fanned(fan), Some(key)) => {
                // A queued item may be next to merge.
                self.ready.extend(fan.ended(&key, frame, status));
                if fan.next() == crate::fan_out::Next::Wait {
                    return;
                }
            }
            (phase, _) => {
                *phase = match status {
                    ItemStatus::Ended { outcome: End::Done, value, .. } => {
                        Phase::Resulted(value.unwrap_or_else(|| Value::Object(Map::new())))
                    }
                    ItemStatus::Ended { outcome, cause, reason, conflict, value } => {
                        let problem = Problem::ended(outcome, cause, &reason, conflict);
                        Phase::Failed(Problem { partial: value, ..problem })
                    }
                    ItemStatus::Waiting | ItemStatus::Running => return,
                }
            }
        }
        self.ready.insert(parent);
    }

    fn taken(&mut self, taken: &TransitionTaken) {
        self.iterations = taken.iteration.unwrap_or(self.iterations);
        let Some(frame) = self.frames.get_mut(&taken.frame) else { return };
        let refuted = frame.refuted();
        if !refuted.is_empty() {
            frame.observed.insert(frame.state.clone(), refuted);
        }
        frame.first = None;
        frame.from.clone_from(&taken.from);
        frame.state.clone_from(&taken.to);
        for (name, value) in &taken.set {
            frame.variables.insert(name.clone(), value.clone());
        }
        for limit in &taken.resets {
            let keyed = format!("{limit}[");
            frame.counters.retain(|name, _| name != limit && !name.starts_with(&keyed));
        }
        for (name, count) in &taken.counts {
            frame.counters.insert(name.clone(), *count);
        }
        let edge = format!("{}>{}", taken.from, taken.to);
        match &taken.request {
            Some(what) => count_repeat(&mut frame.requests, edge, what.clone()),
            None => {
                frame.requests.remove(&edge);
            }
        }
        frame.tries.clear();
        frame.interrupted = 0;
        (frame.interruption, frame.conversation) = (None, None);
        frame.claims.clear();
        frame.end_claims.clear();
        frame.rejected.clear();
        frame.step_changed = None;
        (frame.planned_checks, frame.checks) = (None, None);
        frame.workspace.take_if(|own| own.lifetime == WorkspaceLifetime::State);
        frame.reason.clone_from(&taken.reason);
        frame.phase = Phase::Entered { not_before: taken.not_before, context: false };
        self.ready.insert(taken.frame.clone());
    }
}

fn count_repeat(requests: &mut BTreeMap<String, Streak>, edge: String, what: String) {
    match requests.get_mut(&edge) {
        Some(streak) if streak.what == what => streak.times += 1,
        _ => {
            requests.insert(edge, Streak { what, times: 1 });
        }
    }
}
