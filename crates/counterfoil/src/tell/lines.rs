//! Events as lines: what is told while a run goes, and again, with more under each line, in its
//! story.

use super::claims::{asked_again, under};
use super::{brief, cost, many, one_line, time};
use counterfoil_flow::{
    AskedQuestion, AttemptOutcome, BuiltinStep, End, Ended, Event, Form, Reply, RunState,
    TransitionTaken, Usage, Workflow,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// What stands under a line begins below its words.
pub(crate) const INDENT: &str = "          ";

/// When a run is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Told {
    /// While it goes: an attempt has a line when it starts and one when it ends.
    #[default]
    Live,
    /// Afterwards: an attempt has one line.
    Afterwards,
}

/// Tells the events of a run, in order. It remembers who works on what, since an event names only
/// the attempt.
#[derive(Debug, Default)]
pub(crate) struct Teller {
    told: Told,
    /// What says how results are shown, as far as it is known.
    workflow: Option<Arc<Workflow>>,
    began: i64,
    attempts: BTreeMap<String, Work>,
    /// The path of each frame's last attempt.
    places: BTreeMap<String, String>,
    /// Where each frame stands.
    states: BTreeMap<String, String>,
    /// The fan-outs at work, by frame.
    fans: BTreeMap<String, Fan>,
    /// The frames that are items, with the frame of their fan-out.
    items: BTreeMap<String, String>,
    /// What was said last about a place that failed: it is not said twice.
    failed: Option<(String, String)>,
}

/// A fan-out at work.
#[derive(Clone, Debug, Default)]
struct Fan {
    place: String,
    total: usize,
    done: usize,
    /// The keys of those that have not started.
    waiting: Vec<String>,
}

impl Fan {
    fn ending(&self) -> String {
        let mark = if self.done == self.total { "✓" } else { "✗" };
        let skipped = match self.waiting.as_slice() {
            [] => String::new(),
            keys => format!(", not started: {}", one_line(&keys.join(", "))),
        };
        format!(
            "{mark} {}: {} of {} done{skipped}",
            self.place,
            self.done,
            many(self.total, "item")
        )
    }
}

/// An attempt in flight.
#[derive(Clone, Debug, Default)]
struct Work {
    place: String,
    agent: Option<String>,
    builtin: Option<BuiltinStep>,
    n: u32,
    repairs: u32,
    spent: Usage,
}

impl Teller {
    /// One who tells a run at such a time.
    pub(crate) fn new(told: Told) -> Self {
        Self { told, ..Self::default() }
    }

    /// Tells a run of this workflow.
    pub(crate) fn knows(&mut self, workflow: Arc<Workflow>) {
        self.workflow = Some(workflow);
    }

    /// The attempts that started and did not end, each in a line.
    pub(crate) fn at_work(&self) -> impl Iterator<Item = String> {
        self.attempts.values().map(Work::title)
    }

    /// An event as a line, if it is worth one.
    pub(crate) fn line(&mut self, event: &Event, at: i64, fold: &RunState) -> Option<String> {
        match event {
            Event::RunStarted(started) => {
                self.began = at;
                return Some(format!(
                    "run {} of {}, {}",
                    started.run,
                    started.workflow,
                    super::date(at)
                ));
            }
            Event::RunResumed { .. } => {
                self.began = fold.started_at;
                return Some(format!(
                    "run {} of {} goes on, {}",
                    fold.run,
                    fold.workflow,
                    super::date(at)
                ));
            }
            _ => {}
        }
        let words = self.words(event, at, fold)?;
        let clock = clock(at.saturating_sub(self.began));
        Some(words.lines().map(|line| format!("{clock} {line}")).collect::<Vec<_>>().join("\n"))
    }

    /// An event as lines, while the run goes: what an attempt changed and claimed stands under its
    /// end.
    pub(crate) fn lines(&mut self, event: &Event, at: i64, fold: &RunState) -> Option<String> {
        let mut text = self.line(event, at, fold)?;
        if let Event::AttemptEnded(ended) = event {
            for line in under(ended) {
                let _ = write!(text, "\n{INDENT}{line}");
            }
        }
        Some(text)
    }

    fn words(&mut self, event: &Event, at: i64, fold: &RunState) -> Option<String> {
        match event {
            Event::AttemptStarted { attempt, frame, path, agent, n, builtin, .. } => {
                let (agent, builtin) = (agent.clone(), builtin.clone());
                let work = Work { place: path.join("/"), agent, builtin, n: *n, ..Work::default() };
                let line = format!("· {}", work.title());
                self.places.insert(frame.clone(), work.place.clone());
                self.attempts.insert(attempt.clone(), work);
                (self.told == Told::Live).then_some(line)
            }
            Event::RepairAsked { attempt, reply, usage, claims } => {
                let work = self.work(attempt);
                work.repairs += 1;
                work.spent += *usage;
                Some(match asked_again(claims) {
                    Some(why) => format!("↺ {}: asked again: {why}", work.place),
                    None => format!(
                        "↺ {}: {}; asked again for just the result",
                        work.place,
                        wrong(reply)
                    ),
                })
            }
            Event::AttemptEnded(ended) => Some(self.ended(ended)),
            Event::AttemptLost { attempt, .. } => {
                let place = self.work(attempt).place.clone();
                self.attempts.remove(attempt);
                Some(format!("✗ {place}: was at work when its process died; it starts anew"))
            }
            Event::WorkspaceMerged { frame, changed, conflicts, .. } if conflicts.is_empty() => {
                let place = self.place(frame, fold);
                Some(match *changed {
                    0 => format!("⇠ {place}: nothing to fold back"),
                    changed => format!(
                        "⇠ {place}: folded back, {}",
                        many(usize::try_from(changed).unwrap_or(usize::MAX), "file")
                    ),
                })
            }
            Event::WorkspaceMerged { frame, conflicts, kept, .. } => {
                let kept = kept
                    .as_ref()
                    .map(|kept| format!("; the work is kept in {kept}"))
                    .unwrap_or_default();
                let files = many(conflicts.len(), "file");
                let place = self.place(frame, fold);
                Some(format!(
                    "✗ {place}: not folded back, {files} in conflict: {}{kept}",
                    conflicts.join(", ")
                ))
            }
            Event::WorkspaceDropped { frame, kept: Some(kept), .. } => Some(format!(
                "⇠ {}: not folded back; the work is kept in {kept}",
                self.place(frame, fold)
            )),
            Event::WorkspaceFailed { frame, reason, .. } => {
                Some(format!("✗ {}: its worktree: {reason}", self.place(frame, fold)))
            }
            Event::WorkspaceOpened { frame, notes, .. } if !notes.is_empty() => {
                Some(format!("· {}: its worktree: {}", self.place(frame, fold), notes.join("; ")))
            }
            Event::RetryPlanned { frame, failure, retry, after_ms, .. } => {
                let wait =
                    if *after_ms > 0 { format!(" in {}", time(*after_ms)) } else { String::new() };
                Some(format!(
                    "↺ {}: again{wait}, retry {retry} after {}",
                    self.place(frame, fold),
                    failure.name()
                ))
            }
            Event::Asked { questions, .. } => {
                Some(questions.iter().map(asked).collect::<Vec<_>>().join("\n"))
            }
            Event::Answered { question, answer, by } => {
                Some(format!("! {question}: {} (answered by {by})", one_line(answer)))
            }
            Event::QuestionsCancelled { questions, .. } => {
                Some(format!("! {}: needs no answer any more", questions.join(", ")))
            }
            Event::FannedOut { frame, items, parallel, problem, .. } => {
                let known = self.states.get(frame).cloned();
                let state =
                    known.or_else(|| fold.frames.get(frame).map(|frame| frame.state.clone()));
                let place = [frame.as_str(), &state.unwrap_or_default()].join("/");
                let place = place.trim_start_matches('/');
                if problem.is_none() {
                    let waiting: Vec<String> = items.iter().map(|item| item.key.clone()).collect();
                    let fan =
                        Fan { place: place.to_owned(), total: waiting.len(), done: 0, waiting };
                    self.fans.insert(frame.clone(), fan);
                }
                Some(match problem {
                    Some(problem) => format!("✗ {place}: {problem}"),
                    None if *parallel > 1 => {
                        format!("· {place}: {}, {parallel} at once", many(items.len(), "item"))
                    }
                    None => format!("· {place}: {}", many(items.len(), "item")),
                })
            }
            Event::FrameOpened { frame, parent, item, state, .. } => {
                self.states.insert(frame.clone(), state.clone());
                if let (Some(parent), Some(item)) = (parent, item) {
                    self.items.insert(frame.clone(), parent.clone());
                    if let Some(fan) = self.fans.get_mut(parent) {
                        fan.waiting.retain(|key| key != item);
                    }
                }
                None
            }
            Event::FrameEnded { frame, outcome: End::Done, .. } => {
                if let Some(fan) =
                    self.items.remove(frame).and_then(|parent| self.fans.get_mut(&parent))
                {
                    fan.done += 1;
                }
                None
            }
            // A fan-out that another process began is not known here.
            Event::FannedIn { frame } => self.fans.remove(frame).map(|fan| fan.ending()),
            Event::FrameEnded { frame, outcome, reason, .. } => {
                match self.failed.as_ref().filter(|(_, said)| said == reason) {
                    Some((place, _)) if place == frame => None,
                    Some(_) => Some(format!("✗ {frame}: {}", outcome.name())),
                    None => Some(format!("✗ {frame}: {}{}", outcome.name(), because(reason))),
                }
            }
            Event::TransitionTaken(moved) => {
                self.states.insert(moved.frame.clone(), moved.to.clone());
                Some(moved_line(moved, at, self.told))
            }
            Event::StepFailed { frame, reason } => {
                Some(format!("✗ {}: {}", self.place(frame, fold), one_line(reason)))
            }
            Event::BudgetReached { what } => Some(format!("✗ the budget is used up: {what}")),
            Event::ArtifactFailed { path, reason } => {
                Some(format!("✗ {path} cannot be written: {reason}"))
            }
            Event::CancelRequested { by } => Some(format!("✗ cancelled by {by}")),
            _ => None,
        }
    }

    fn ended(&mut self, ended: &Ended) -> String {
        let mut work =
            self.attempts.remove(&ended.attempt).unwrap_or_else(|| Work::unheard(&ended.attempt));
        work.spent += ended.usage;
        let place = match self.told {
            Told::Live => work.place.clone(),
            Told::Afterwards => work.title(),
        };
        let repairs = match work.repairs {
            0 => String::new(),
            more => format!(", {} asked", many(more as usize, "repair")),
        };
        self.failed = None;
        let line = match (ended.outcome, exit_code(&work, ended)) {
            (AttemptOutcome::Accepted, Some(0)) => format!("✓ {place}: exit code 0"),
            (AttemptOutcome::Accepted, Some(code)) => {
                format!("✗ {place}: exit code {code}{}", because(last_line(ended.value.as_ref())))
            }
            (AttemptOutcome::Accepted, None) => match (&work.builtin, &ended.value) {
                (Some(builtin), Some(value)) => done(builtin, &place, value),
                _ => format!("✓ {place}: accepted{repairs}{}", self.shown(&work, ended)),
            },
            (other, _) => {
                self.failed = Some((work.place.clone(), ended.reason.clone()));
                format!("✗ {place}: {}{}", other.name(), because(&ended.reason))
            }
        };
        line + &cost(&work.spent)
    }

    /// A result as its contract shows it, if that says how. A story has it in a line of its own.
    fn shown(&self, work: &Work, ended: &Ended) -> String {
        let role = self
            .workflow
            .as_ref()
            .zip(work.agent.as_ref())
            .and_then(|(workflow, agent)| workflow.agents.get(agent));
        match (role, &ended.value) {
            (Some(role), Some(value))
                if self.told == Told::Live && role.contract.definition().display.is_some() =>
            {
                format!("; {}", one_line(&role.contract.show(value)))
            }
            _ => String::new(),
        }
    }

    /// Who works on an attempt.
    pub(crate) fn agent(&self, attempt: &str) -> Option<&str> {
        self.attempts.get(attempt).and_then(|work| work.agent.as_deref())
    }

    fn work(&mut self, attempt: &str) -> &mut Work {
        self.attempts.entry(attempt.to_owned()).or_insert_with(|| Work::unheard(attempt))
    }

    fn place(&self, frame: &str, fold: &RunState) -> String {
        match self.places.get(frame) {
            Some(place) => place.clone(),
            None if frame.is_empty() => fold.current_state(),
            None => frame.to_owned(),
        }
    }
}

impl Work {
    /// An attempt whose start was told by another process.
    fn unheard(attempt: &str) -> Self {
        let place = attempt.rsplit_once('#').map_or(attempt, |(place, _)| place);
        Self { place: place.to_owned(), ..Self::default() }
    }

    fn title(&self) -> String {
        title(&self.place, self.agent.as_deref(), self.builtin.as_ref(), self.n)
    }
}

/// An attempt by its place, who works on it or what is done, and which it is.
pub(crate) fn title(
    place: &str,
    agent: Option<&str>,
    builtin: Option<&BuiltinStep>,
    n: u32,
) -> String {
    let again = if n > 1 { format!(", attempt {n}") } else { String::new() };
    let what = match (agent, builtin) {
        (Some(agent), _) => agent.to_owned(),
        (None, Some(builtin)) => builtin.to_string(),
        (None, None) => "command".to_owned(),
    };
    format!("{place}: {what}{again}")
}

/// What came of something that the engine did itself.
fn done(builtin: &BuiltinStep, place: &str, value: &Value) -> String {
    let count = |name: &str| match value[name].as_array() {
        Some(list) => list.len(),
        None => value[name].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(0),
    };
    let files = many(count("files"), "file");
    match builtin {
        BuiltinStep::Read(_) => format!("✓ {place}: accepted"),
        BuiltinStep::Changes(_) => {
            let (added, removed) = (count("added"), count("removed"));
            let chunks = many(count("chunks"), "chunk");
            format!(
                "✓ {place}: {files}, {} added, {removed} removed, {chunks}",
                many(added, "line")
            )
        }
        BuiltinStep::Commit(_) if value["ok"] == false => {
            format!("✗ {place}: not committed{}", because(last_line(Some(value))))
        }
        BuiltinStep::Commit(_) => match value["commit"].as_str().unwrap_or_default() {
            "" => format!("✓ {place}: nothing to commit"),
            commit => {
                format!("✓ {place}: committed {}, {files}", commit.get(..12).unwrap_or(commit))
            }
        },
    }
}

/// The last line that a command said.
fn last_line(value: Option<&Value>) -> &str {
    let output = value.and_then(|value| value["output"].as_str()).unwrap_or_default();
    output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default()
}

fn exit_code(work: &Work, ended: &Ended) -> Option<i64> {
    let value = ended.value.as_ref().filter(|_| work.agent.is_none())?;
    value.get("ok").and(value.get("exit_code"))?.as_i64()
}

fn wrong(reply: &Reply) -> String {
    let codes = if reply.codes.is_empty() {
        String::new()
    } else {
        format!(" ({})", reply.codes.join(", "))
    };
    match reply.status.as_str() {
        "absent" => format!("no result was found{codes}"),
        _ if reply.why.is_empty() => format!("the result does not satisfy its contract{codes}"),
        _ => format!("{}{codes}", one_line(&reply.why)),
    }
}

fn asked(asked: &AskedQuestion) -> String {
    let form = match &asked.form {
        Form::Choices(choices) => format!(" [{}]", choices.join(", ")),
        Form::Pattern(_) | Form::Text => String::new(),
    };
    let optional = if asked.optional { " (optional)" } else { "" };
    format!("? {}: {}{form}{optional}", asked.id, one_line(&asked.question))
}

fn moved_line(moved: &TransitionTaken, at: i64, told: Told) -> String {
    let place = if moved.frame.is_empty() { String::new() } else { format!("{}: ", moved.frame) };
    let why = match (&moved.exhausted, moved.failure, &moved.guard) {
        (Some(limit), _, _) => format!(", since the limit '{limit}' is used up"),
        (None, Some(failure), _) => format!(", on {}", failure.name()),
        // Afterwards the reason stands below, and the guard here.
        (None, None, _) if told == Told::Live && !moved.reason.is_empty() => because(&moved.reason),
        (None, None, Some(guard)) => format!(", since {}", one_line(guard)),
        (None, None, None) if moved.saw.is_empty() => String::new(),
        (None, None, None) => format!(", otherwise ({})", saw(moved)),
    };
    let mut line = format!("→ {place}{} to {}{why}", moved.from, moved.to);
    for (name, count) in &moved.counts {
        let _ = write!(line, ", {name} = {count}");
    }
    if let Some(ms) =
        moved.not_before.and_then(|time| u64::try_from(time - at).ok()).filter(|ms| *ms > 0)
    {
        let _ = write!(line, ", in {}", time(ms));
    }
    line
}

/// The values that the guards saw.
pub(super) fn saw(moved: &TransitionTaken) -> String {
    moved
        .saw
        .iter()
        .map(|(path, value)| format!("{path} = {}", brief(value)))
        .collect::<Vec<_>>()
        .join(", ")
}

fn because(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {}", one_line(reason)) }
}

/// The time since a run began.
fn clock(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    format!("{}:{:02}:{:02}", seconds / 3600, seconds % 3600 / 60, seconds % 60)
}
