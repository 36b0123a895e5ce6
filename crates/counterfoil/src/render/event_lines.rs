//! The events of a run as lines: while the run is in progress, and in the timeline afterwards.

mod parts;

pub(crate) use parts::attempt_title;
pub(super) use parts::guard_values;

use super::checks::checks_line;
use super::claims::{Explained, attempt_details, repair_details, repair_reason};
use super::lines;
use super::text::{duration, one_line, timestamp, usage_suffix};
use counterfoil_contract::diagnostic::Style;
use counterfoil_contract::text::pluralize;
use counterfoil_engine::visits::{Visit, Visits};
use counterfoil_flow::{AttemptOutcome, BuiltinStep, End, Ended, Event, RunState, Usage, Workflow};
use parts::{
    builtin_result, clock, decided_by, exit_code, last_line, problem, question_line, reason_suffix,
    said, transition_line,
};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// The indentation of details below an event; as wide as the clock.
pub(crate) const INDENT: &str = "          ";

/// Whether the run is in progress or over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputMode {
    /// In progress: an attempt has a line when it starts and one when it ends.
    Live,
    /// Afterwards: an attempt has one line, with details below it.
    Timeline,
    /// Afterwards: an attempt has one line, with its result.
    Overview,
}

/// Formats the events of a run, in order. It keeps the agent of each attempt, because later events
/// name only the attempt.
#[derive(Debug)]
pub(crate) struct EventFormatter {
    mode: OutputMode,
    style: Style,
    visits: Visits,
    /// The workflow of the run, if it is known. Its contracts say how results are displayed.
    workflow: Option<Arc<Workflow>>,
    started_at: i64,
    attempts: BTreeMap<String, OpenAttempt>,
    /// The claims that were explained below the replies of each attempt in progress.
    explained: BTreeMap<String, Explained>,
    /// The path of the last attempt in each frame.
    paths: BTreeMap<String, String>,
    /// The current state of each frame.
    states: BTreeMap<String, String>,
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
            keys => format!(", not started: {}", one_line(&keys.join(", "))),
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

impl EventFormatter {
    /// A formatter for a run that is in progress or over.
    pub(crate) fn new(mode: OutputMode, style: Style) -> Self {
        Self {
            mode,
            style,
            visits: Visits::default(),
            workflow: None,
            started_at: 0,
            attempts: BTreeMap::new(),
            explained: BTreeMap::new(),
            paths: BTreeMap::new(),
            states: BTreeMap::new(),
            fan_outs: BTreeMap::new(),
            items: BTreeMap::new(),
            last_failure: None,
        }
    }

    /// Learns from an event of an earlier process, without a line.
    pub(crate) fn on_past_event(&mut self, event: &Event) {
        self.visits.on_event(event);
    }

    /// The title of an attempt in progress.
    pub(crate) fn title(&self, attempt: &str) -> String {
        self.attempts.get(attempt).map(OpenAttempt::title).unwrap_or_default()
    }

    /// Sets the workflow of the run.
    pub(crate) fn set_workflow(&mut self, workflow: Arc<Workflow>) {
        self.workflow = Some(workflow);
    }

    /// The titles of the attempts that started and have not ended.
    pub(crate) fn open_attempts(&self) -> impl Iterator<Item = String> {
        self.attempts.values().map(OpenAttempt::title)
    }

    /// The line of an event, if it has one.
    pub(crate) fn event_line(&mut self, event: &Event, at: i64, run: &RunState) -> Option<String> {
        let beginning = match event {
            Event::RunStarted(started) => {
                self.started_at = at;
                let place = match started.observed.as_str() {
                    "" => String::new(),
                    folder => format!(" in {}", one_line(folder)),
                };
                Some(format!(
                    "run {} of {}{place}, {}",
                    started.run,
                    started.workflow,
                    timestamp(at)
                ))
            }
            Event::RunResumed(_) => {
                self.started_at = run.started_at;
                Some(format!("run {} of {} resumed, {}", run.run, run.workflow, timestamp(at)))
            }
            Event::RunReopened(reopened) => {
                self.started_at = run.started_at;
                let because = match reopened.changes.because.as_str() {
                    "" => String::new(),
                    because => format!(": {}", one_line(because)),
                };
                Some(format!(
                    "run {} of {} reopened in '{}' by {}, {}{because}",
                    run.run,
                    run.workflow,
                    reopened.state,
                    decided_by(&reopened.by, reopened.from.as_deref()),
                    timestamp(at)
                ))
            }
            _ => None,
        };
        if let Some(beginning) = beginning {
            return Some(lines::line("", &beginning, self.style));
        }
        let text = self.message(event, at, run)?;
        let clock = format!("{} ", clock(at.saturating_sub(self.started_at)));
        // The lines of a text that continues have no clock of their own.
        let beside = " ".repeat(clock.len());
        let all = text.lines().map(|line| {
            let prefix = if line.starts_with(' ') { &beside } else { &clock };
            lines::line(prefix, line, self.style)
        });
        Some(all.collect::<Vec<_>>().join("\n"))
    }

    /// The lines below that of an event: below the end of an attempt its changes and claims, below a
    /// requested repair the claims that it is requested for.
    pub(crate) fn details(&mut self, event: &Event) -> Vec<String> {
        match event {
            Event::AttemptEnded(ended) => {
                let mut explained = self.explained.remove(&ended.attempt).unwrap_or_default();
                attempt_details(ended, &mut explained)
            }
            Event::RepairAsked { attempt, claims, .. } => {
                repair_details(claims, self.explained.entry(attempt.clone()).or_default())
            }
            _ => Vec::new(),
        }
    }

    /// The lines of an event while the run is in progress, with those below it.
    pub(crate) fn event_lines(&mut self, event: &Event, at: i64, run: &RunState) -> Option<String> {
        let mut text = self.event_line(event, at, run)?;
        for line in self.details(event) {
            let _ = write!(text, "\n{}", lines::line(INDENT, &line, self.style));
        }
        Some(text)
    }

    fn message(&mut self, event: &Event, at: i64, run: &RunState) -> Option<String> {
        let visit = self.visits.on_event(event).unwrap_or_default();
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
                Some(format!("✗ {path}: interrupted by a crash; it is started again"))
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
                let path = [frame.as_str(), &state.unwrap_or_default()].join("/");
                let path = path.trim_start_matches('/');
                if problem.is_none() {
                    let waiting: Vec<String> = items.iter().map(|item| item.key.clone()).collect();
                    let fan =
                        FanOut { path: path.to_owned(), total: waiting.len(), done: 0, waiting };
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
        let line = match (ended.outcome, exit_code(&open, ended)) {
            (AttemptOutcome::Accepted, Some(0)) => format!("✓ {label}: exit code 0"),
            (AttemptOutcome::Accepted, Some(code)) => {
                format!(
                    "✗ {label}: exit code {code}{}",
                    reason_suffix(last_line(ended.value.as_ref()))
                )
            }
            (AttemptOutcome::Accepted, None) => match (&open.builtin, &ended.value) {
                (Some(checks), None) => checks_line(checks, &label, &ended.checks),
                (Some(builtin), Some(value)) => builtin_result(builtin, &label, value),
                _ => format!("✓ {label}: accepted{repairs}{}", self.displayed_result(&open, ended)),
            },
            (other, _) => {
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
    pub(crate) fn attempt_path(&self, attempt: &str) -> String {
        self.attempts.get(attempt).map(|open| open.path.clone()).unwrap_or_default()
    }

    /// The agent of an attempt in progress.
    pub(crate) fn agent(&self, attempt: &str) -> Option<&str> {
        self.attempts.get(attempt).and_then(|open| open.agent.as_deref())
    }

    fn open_attempt(&mut self, attempt: &str) -> &mut OpenAttempt {
        self.attempts.entry(attempt.to_owned()).or_insert_with(|| OpenAttempt::from_id(attempt))
    }

    fn path(&self, frame: &str, run: &RunState) -> String {
        match self.paths.get(frame) {
            Some(path) => path.clone(),
            None if frame.is_empty() => run.current_state(),
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
