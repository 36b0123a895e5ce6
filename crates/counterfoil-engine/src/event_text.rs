//! The events of a run in words. What follows a run in a terminal, shows it afterwards or lists its
//! events on a page says the same of them.

mod blocks;
mod checks;
mod claims;
mod evidence;
mod failure;
mod parts;
mod pieces;
mod places;
mod quiet;

pub use blocks::{EventInWords, EventsInWords};
pub use claims::doubted;
pub use evidence::evidence;
pub(crate) use failure::step_failure;
pub(crate) use parts::decided_by;
pub use parts::{attempt_title, guard_values};
pub use pieces::{abbreviate, one_line, truncate_json, usage_suffix};

use crate::visits::{Visit, Visits};
use checks::checks_line;
use claims::repair_reason;
use counterfoil_contract::text::{join_limited, pluralize};
use counterfoil_flow::amount::duration;
use counterfoil_flow::{AttemptOutcome, BuiltinStep, End, Ended, Event, RunState, Usage, Workflow};
use parts::{
    builtin_result, exit_code, problem, question_line, reason_suffix, said, transition_line,
};
use places::Places;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most files that the text about an undo names.
const MAX_UNDONE: usize = 5;

/// Whether the run is in progress or over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputMode {
    /// In progress: an attempt has a line when it starts and one when it ends.
    Live,
    /// Afterwards: an attempt has one line, with details below it.
    Timeline,
    /// Afterwards: an attempt has one line, with its result.
    Overview,
}

/// Says what the events of a run are, in order. It keeps the agent of each attempt, because later
/// events name only the attempt.
#[derive(Debug)]
pub struct EventText {
    mode: OutputMode,
    /// None if the events before are not known: then the visits cannot be counted.
    visits: Option<Visits>,
    /// The workflow of the run, if it is known. Its contracts say how results are displayed.
    workflow: Option<Arc<Workflow>>,
    attempts: BTreeMap<String, OpenAttempt>,
    /// The path of the last attempt in each frame.
    paths: BTreeMap<String, String>,
    /// The current state of each frame.
    states: BTreeMap<String, String>,
    places: Places,
    /// The fan-outs in progress, by frame.
    fan_outs: BTreeMap<String, FanOut>,
    /// The frames of fan-out items, with the frame of their fan-out.
    items: BTreeMap<String, String>,
    /// The path and reason of the last failure, so that a reason is not printed twice.
    last_failure: Option<(String, String)>,
}

/// A fan-out in progress.
#[derive(Clone, Debug, Default)]
struct FanOut {
    path: String,
    total: usize,
    done: usize,
    /// The keys of the items that have not started.
    waiting: Vec<String>,
}

impl FanOut {
    fn summary(&self) -> String {
        let mark = if self.done == self.total { "✓" } else { "✗" };
        let skipped = match self.waiting.as_slice() {
            [] => String::new(),
            keys => {
                let keys: Vec<String> = keys.iter().map(|key| format!("'{key}'")).collect();
                format!(", not started: {}", one_line(&keys.join(", ")))
            }
        };
        format!(
            "{mark} {}: {} of {} done{skipped}",
            self.path,
            self.done,
            pluralize(self.total, "item")
        )
    }
}

/// An attempt in flight.
#[derive(Clone, Debug, Default)]
struct OpenAttempt {
    path: String,
    agent: Option<String>,
    builtin: Option<BuiltinStep>,
    visit: Visit,
    repairs: u32,
    usage: Usage,
}

impl EventText {
    /// For all events of a run that is in progress or over.
    pub fn new(mode: OutputMode) -> Self {
        Self {
            mode,
            visits: Some(Visits::default()),
            workflow: None,
            attempts: BTreeMap::new(),
            paths: BTreeMap::new(),
            states: BTreeMap::new(),
            places: Places::default(),
            fan_outs: BTreeMap::new(),
            items: BTreeMap::new(),
            last_failure: None,
        }
    }

    /// For events in the middle of a run. What earlier events say is not known.
    pub fn from_middle() -> Self {
        Self { visits: None, ..Self::new(OutputMode::Live) }
    }

    /// Learns from an event of an earlier process, without a text.
    pub fn on_past_event(&mut self, event: &Event) {
        if let Some(visits) = &mut self.visits {
            visits.on_event(event);
        }
    }

    /// The title of an attempt in progress.
    pub fn title(&self, attempt: &str) -> String {
        self.attempts.get(attempt).map(OpenAttempt::title).unwrap_or_default()
    }

    /// Sets the workflow of the run.
    pub fn set_workflow(&mut self, workflow: Arc<Workflow>) {
        self.workflow = Some(workflow);
    }

    /// The titles of the attempts that started and have not ended.
    pub fn open_attempts(&self) -> impl Iterator<Item = String> {
        self.attempts.values().map(OpenAttempt::title)
    }

    /// The text of an event, if it has one. Its first character is a mark, and further lines of it are
    /// indented.
    pub fn message(&mut self, event: &Event, at: i64, run: &RunState) -> Option<String> {
        let visit = self.visits.as_mut().and_then(|visits| visits.on_event(event));
        let visit = visit.unwrap_or_default();
        self.places.on_event(event);
        match event {
            Event::AttemptStarted { attempt, frame, path, agent, builtin, .. } => {
                let open = OpenAttempt {
                    path: path.join("/"),
                    agent: agent.clone(),
                    builtin: builtin.clone(),
                    visit,
                    ..OpenAttempt::default()
                };
                let line = format!("· {}", open.title());
                self.paths.insert(frame.clone(), open.path.clone());
                self.attempts.insert(attempt.clone(), open);
                (self.mode == OutputMode::Live).then_some(line)
            }
            Event::RepairAsked { attempt, reply, usage, claims } => {
                let open = self.open_attempt(attempt);
                open.repairs += 1;
                open.usage += *usage;
                Some(match repair_reason(claims) {
                    Some(reason) => format!("↺ {}: repair requested: {reason}", open.path),
                    None => format!("↺ {}: repair requested: {}", open.path, problem(reply)),
                })
            }
            Event::AttemptEnded(ended) => Some(self.ended(ended)),
            Event::AttemptLost { attempt, .. } => {
                let path = self.open_attempt(attempt).path.clone();
                self.attempts.remove(attempt);
                Some(format!("✗ {path}: interrupted: the process that drove the run ended"))
            }
            Event::WorkspaceMerged { frame, changed, conflicts, .. } if conflicts.is_empty() => {
                let path = self.path(frame, run);
                Some(match *changed {
                    0 => format!("⇠ {path}: no changes to merge"),
                    changed => format!(
                        "⇠ {path}: merged {}",
                        pluralize(usize::try_from(changed).unwrap_or(usize::MAX), "file")
                    ),
                })
            }
            Event::WorkspaceMerged { frame, conflicts, kept, .. } => {
                let kept = kept
                    .as_ref()
                    .map(|kept| format!("; the changes are saved in {kept}"))
                    .unwrap_or_default();
                let files = pluralize(conflicts.len(), "file");
                let path = self.path(frame, run);
                Some(format!(
                    "✗ {path}: not merged, {files} in conflict: {}{kept}",
                    one_line(&conflicts.join(", "))
                ))
            }
            Event::WorkspaceDropped { frame, kept: Some(kept), .. } => Some(format!(
                "⇠ {}: not merged; the changes are saved in {kept}",
                self.path(frame, run)
            )),
            Event::WorkspaceFailed { frame, reason, .. } => {
                Some(format!("✗ {}: worktree: {reason}", self.path(frame, run)))
            }
            Event::WorkspaceOpened { frame, notes, .. } if !notes.is_empty() => {
                Some(format!("· {}: worktree: {}", self.path(frame, run), notes.join("; ")))
            }
            Event::RetryPlanned { frame, failure, retry, after_ms, .. } => {
                let wait = if *after_ms > 0 {
                    format!(" in {}", duration(*after_ms))
                } else {
                    String::new()
                };
                Some(format!(
                    "↺ {}: retry {retry}{wait} after {}",
                    self.path(frame, run),
                    failure.name()
                ))
            }
            Event::Asked { questions, .. } => {
                Some(questions.iter().map(question_line).collect::<Vec<_>>().join("\n"))
            }
            Event::Answered { question, answer, by, from } => {
                let by = decided_by(by, from.as_deref());
                Some(format!("! {question}: {} (answered by {by})", one_line(answer)))
            }
            Event::QuestionsCancelled { questions, .. } => {
                Some(format!("! {}: an answer is not needed any more", questions.join(", ")))
            }
            Event::FannedOut { frame, items, parallel, problem, .. } => {
                let known = self.states.get(frame).cloned();
                let state =
                    known.or_else(|| run.frames.get(frame).map(|frame| frame.state.clone()));
                let path = inside(frame, &state.unwrap_or_default());
                if problem.is_none() {
                    let waiting: Vec<String> = items.iter().map(|item| item.key.clone()).collect();
                    let fan = FanOut { path: path.clone(), total: waiting.len(), done: 0, waiting };
                    self.fan_outs.insert(frame.clone(), fan);
                }
                Some(match problem {
                    Some(problem) => format!("✗ {path}: {problem}"),
                    None if *parallel > 1 => {
                        format!(
                            "· {path}: {}, {parallel} in parallel",
                            pluralize(items.len(), "item")
                        )
                    }
                    None => format!("· {path}: {}", pluralize(items.len(), "item")),
                })
            }
            Event::FrameOpened { frame, parent, item, state, .. } => {
                self.states.insert(frame.clone(), state.clone());
                if let (Some(parent), Some(item)) = (parent, item) {
                    self.items.insert(frame.clone(), parent.clone());
                    if let Some(fan) = self.fan_outs.get_mut(parent) {
                        fan.waiting.retain(|key| key != item);
                    }
                }
                None
            }
            Event::FrameEnded { frame, outcome: End::Done, .. } => {
                if let Some(fan) =
                    self.items.remove(frame).and_then(|parent| self.fan_outs.get_mut(&parent))
                {
                    fan.done += 1;
                }
                None
            }
            // A fan-out that another process started is not known here.
            Event::FannedIn { frame } => self.fan_outs.remove(frame).map(|fan| fan.summary()),
            Event::FrameEnded { frame, outcome, reason, .. } => {
                match self.last_failure.as_ref().filter(|(_, printed)| printed == reason) {
                    Some((path, _)) if path == frame => None,
                    Some(_) => Some(format!("✗ {frame}: {}", outcome.name())),
                    None => Some(format!("✗ {frame}: {}{}", outcome.name(), reason_suffix(reason))),
                }
            }
            Event::TransitionTaken(transition) => {
                self.states.insert(transition.frame.clone(), transition.to.clone());
                Some(transition_line(transition, at, self.mode))
            }
            Event::StepFailed { frame, reason } => {
                Some(format!("✗ {}: {}", self.path(frame, run), one_line(reason)))
            }
            Event::BudgetReached { what } => Some(format!("✗ budget exhausted: {what}")),
            Event::ArtifactFailed { path, reason } => {
                Some(format!("✗ cannot write {path}: {reason}"))
            }
            Event::CancelRequested { by, from } => {
                Some(format!("✗ cancelled by {}", decided_by(by, from.as_deref())))
            }
            _ => None,
        }
    }

    fn ended(&mut self, ended: &Ended) -> String {
        let mut open = self
            .attempts
            .remove(&ended.attempt)
            .unwrap_or_else(|| OpenAttempt::from_id(&ended.attempt));
        open.usage += ended.usage;
        let label = match self.mode {
            OutputMode::Live => open.path.clone(),
            OutputMode::Timeline | OutputMode::Overview => open.title(),
        };
        let repairs = match open.repairs {
            0 => String::new(),
            count => format!(", {} requested", pluralize(count as usize, "repair")),
        };
        self.last_failure = None;
        let (agent, builtin) = (open.agent.as_deref(), open.builtin.as_ref());
        let value = ended.value.as_ref();
        let failure = step_failure(agent, builtin, value, &ended.checks);
        let line = match ended.outcome {
            AttemptOutcome::Accepted => match (failure, builtin, value) {
                // Checks that passed are named beside those that failed.
                (_, Some(checks), None) => checks_line(checks, &label, &ended.checks),
                (Some(failure), ..) => format!("✗ {label}: {failure}"),
                (None, None, _) if exit_code(agent, builtin, value).is_some() => {
                    format!("✓ {label}: exit code 0")
                }
                (None, Some(builtin), Some(value)) => builtin_result(builtin, &label, value),
                _ => format!("✓ {label}: accepted{repairs}{}", self.displayed_result(&open, ended)),
            },
            other => {
                self.last_failure = Some((open.path.clone(), ended.reason.clone()));
                // The claims themselves are below.
                let is_claim = other == AttemptOutcome::Claim;
                match repair_reason(&ended.claims).filter(|_| is_claim) {
                    Some(claims) => format!("✗ {label}: {claims}{repairs}"),
                    None => {
                        let said = ended.reply.as_ref().map(said).unwrap_or_default();
                        format!("✗ {label}: {}{}{said}", other.name(), reason_suffix(&ended.reason))
                    }
                }
            }
        };
        line + &usage_suffix(&open.usage)
    }

    /// A result as its contract displays it, if the contract defines that. The timeline prints it
    /// on a line of its own.
    fn displayed_result(&self, open: &OpenAttempt, ended: &Ended) -> String {
        let role = self
            .workflow
            .as_ref()
            .zip(open.agent.as_ref())
            .and_then(|(workflow, agent)| workflow.agents.get(agent));
        match (role, &ended.value) {
            (Some(role), Some(value))
                if self.mode != OutputMode::Timeline
                    && role.contract.definition().display.is_some() =>
            {
                format!("; {}", one_line(&role.contract.display_line(value)))
            }
            _ => String::new(),
        }
    }

    /// The path of an attempt in progress.
    pub fn attempt_path(&self, attempt: &str) -> String {
        self.attempts.get(attempt).map(|open| open.path.clone()).unwrap_or_default()
    }

    /// The agent of an attempt in progress.
    pub fn agent(&self, attempt: &str) -> Option<&str> {
        self.attempts.get(attempt).and_then(|open| open.agent.as_deref())
    }

    fn open_attempt(&mut self, attempt: &str) -> &mut OpenAttempt {
        self.attempts.entry(attempt.to_owned()).or_insert_with(|| OpenAttempt::from_id(attempt))
    }

    fn path(&self, frame: &str, run: &RunState) -> String {
        match self.paths.get(frame) {
            Some(path) => path.clone(),
            None if frame.is_empty() => match run.current_state() {
                state if state.is_empty() => "the run".to_owned(),
                state => state,
            },
            None => frame.to_owned(),
        }
    }
}

impl OpenAttempt {
    /// An attempt whose start this process did not see.
    fn from_id(attempt: &str) -> Self {
        let path = attempt.rsplit_once('#').map_or(attempt, |(path, _)| path);
        Self { path: path.to_owned(), ..Self::default() }
    }

    fn title(&self) -> String {
        attempt_title(&self.path, self.agent.as_deref(), self.builtin.as_ref(), self.visit)
    }
}

/// The path of a state in a frame.
fn inside(frame: &str, state: &str) -> String {
    [frame, state].join("/").trim_start_matches('/').to_owned()
}

/// What an event is about, if it begins a run or a part of it, or is about a run that has ended: the
/// text before the time and the one after it. `run` and `workflow` name the run.
pub fn beginning(event: &Event, run: &str, workflow: &str) -> Option<(String, String)> {
    match event {
        Event::RunStarted(started) => {
            let place = match started.observed.as_str() {
                "" => String::new(),
                folder => format!(" in {}", one_line(folder)),
            };
            Some((format!("run {} of {}{place}", started.run, started.workflow), String::new()))
        }
        Event::RunResumed(resumed) => {
            let how = if resumed.to_cancel { "taken up to be cancelled" } else { "resumed" };
            Some((format!("run {run} of {workflow} {how}"), String::new()))
        }
        Event::RunReopened(reopened) => {
            let because = match reopened.changes.because.as_str() {
                "" => String::new(),
                because => format!(": {}", one_line(because)),
            };
            let by = decided_by(&reopened.by, reopened.from.as_deref());
            let text = format!("run {run} of {workflow} reopened in '{}' by {by}", reopened.state);
            Some((text, because))
        }
        Event::RunUndone(undone) => {
            let by = decided_by(&undone.by, undone.from.as_deref());
            let files = pluralize(usize::try_from(undone.total).unwrap_or(usize::MAX), "file");
            let names = match undone.files.as_slice() {
                [] => String::new(),
                names => format!(" ({})", one_line(&join_limited(names, MAX_UNDONE))),
            };
            Some((format!("run {run} of {workflow} undone by {by}"), format!(": {files}{names}")))
        }
        _ => None,
    }
}
