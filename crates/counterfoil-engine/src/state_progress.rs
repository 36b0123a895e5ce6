//! What a run did in each state of its workflow, for diagrams of a run.

use crate::event_text::step_failure;
use counterfoil_contract::claim::Verdict;
use counterfoil_flow::graph::MarkStatus;
use counterfoil_flow::{
    AttemptOutcome, BuiltinStep, End, Ended, Event, Phase, Reopened, RunState, TransitionTaken,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A state by the name of its machine, which is empty for the main one, and its own.
pub type StateKey = (String, String);

/// What a run did in a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateProgress {
    /// How often the run entered the state.
    pub visits: u32,
    /// How it went, or that the run is there now.
    pub status: Option<MarkStatus>,
    /// The items of a fan-out that are done, and all of them.
    pub items: Option<(usize, usize)>,
    /// The last attempt in the state.
    pub last_attempt: Option<String>,
}

/// Collects what a run did in each state from its events, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct StateProgressBuilder {
    /// The frames in progress.
    frames: BTreeMap<String, OpenFrame>,
    /// The frames that go on when their turn comes: the run was reopened.
    parked: BTreeSet<String>,
    /// The attempts that run.
    attempts: BTreeMap<String, OpenAttempt>,
    /// The last visit of each state in each frame.
    visits: BTreeMap<(String, StateKey), LastVisit>,
    /// What is known of each state without its visits.
    states: BTreeMap<StateKey, StateProgress>,
    /// The number of visits that began.
    begun: usize,
    /// The last fan-out of each frame and state, by the beginning of the ids of its items.
    fan_outs: BTreeMap<String, FanOutProgress>,
    /// The beginning of the ids of the items of the last fan-out that is not inside of another one.
    outermost: Option<String>,
}

/// How far a fan-out has come.
#[derive(Clone, Debug)]
struct FanOutProgress {
    /// The state that runs it.
    state: StateKey,
    done: usize,
    all: usize,
}

/// A frame in progress.
#[derive(Clone, Debug)]
struct OpenFrame {
    parent: Option<String>,
    /// The state in which it is.
    state: StateKey,
}

/// The last visit of a state in a frame.
#[derive(Clone, Debug, Default)]
struct LastVisit {
    /// Its number among the visits of all states.
    id: usize,
    /// The visit of the state that runs the frame, as a sub-workflow or as an item.
    caller: Option<usize>,
    /// How the last attempt of each step of the state went: of its agent, command or built-in step,
    /// and of its checks.
    steps: BTreeMap<Vec<String>, StepEnd>,
    /// How the state was left, or that it failed without an attempt.
    conclusion: Option<MarkStatus>,
    /// Whether the frame belongs to an earlier visit of a fan-out or of a state that runs a
    /// sub-workflow.
    is_past: bool,
}

/// How a step of a state went.
#[derive(Clone, Copy, Debug)]
struct StepEnd {
    status: MarkStatus,
    /// Whether a claim of it is refuted. Its status may be a worse one.
    is_refuted: bool,
}

impl LastVisit {
    /// The worst that is known of it.
    fn status(&self) -> Option<MarkStatus> {
        let steps = self.steps.values().map(|step| step.status);
        steps.chain(self.conclusion).reduce(MarkStatus::worse)
    }

    /// What the state that runs the frame takes over. A failure is not: whether it fails that state is
    /// decided by how the frame ends. The frame of what was cancelled does not end.
    fn passed_on(&self) -> Option<MarkStatus> {
        let is_refuted = self.steps.values().any(|step| step.is_refuted);
        let cancelled = self.status().filter(|status| *status == MarkStatus::Cancelled);
        if is_refuted { Some(MarkStatus::Refuted) } else { cancelled }
    }

    fn conclude(&mut self, status: MarkStatus) {
        self.conclusion = worse(self.conclusion, Some(status));
    }
}

/// The worse status of those that are known.
fn worse(one: Option<MarkStatus>, other: Option<MarkStatus>) -> Option<MarkStatus> {
    one.into_iter().chain(other).reduce(MarkStatus::worse)
}

/// The id of the frame that a state runs, and the beginning of those of its items.
fn below(frame: &str, state: &str) -> String {
    if frame.is_empty() { state.to_owned() } else { format!("{frame}/{state}") }
}

/// Whether an id is that of a frame, or of one inside of it.
fn is_inside(id: &str, frame: &str) -> bool {
    id.strip_prefix(frame).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// An attempt that runs.
#[derive(Clone, Debug)]
struct OpenAttempt {
    frame: String,
    state: StateKey,
    path: Vec<String>,
    agent: Option<String>,
    builtin: Option<BuiltinStep>,
}

impl OpenAttempt {
    /// How it went. A command, a commit or checks that failed are accepted, because the workflow decides
    /// what follows; they are no success. An attempt that was cancelled did not fail.
    fn end(&self, ended: &Ended) -> StepEnd {
        let (agent, builtin) = (self.agent.as_deref(), self.builtin.as_ref());
        let is_cancelled = ended.outcome == AttemptOutcome::Cancelled;
        let has_failed = if ended.outcome == AttemptOutcome::Accepted {
            step_failure(agent, builtin, ended.value.as_ref(), &ended.checks).is_some()
        } else {
            !is_cancelled
        };
        let is_refuted = ended.claims.iter().any(|claim| claim.verdict == Verdict::Refuted);
        let status = if has_failed {
            MarkStatus::Failed
        } else if is_refuted {
            MarkStatus::Refuted
        } else if is_cancelled {
            MarkStatus::Cancelled
        } else {
            MarkStatus::Done
        };
        StepEnd { status, is_refuted }
    }
}

impl StateProgressBuilder {
    /// Adds an event.
    pub(crate) fn on_event(&mut self, event: &Event) {
        match event {
            Event::FrameOpened { frame, parent, machine, state, item, .. } => {
                let key = (machine.clone(), state.clone());
                // The item of a fan-out that runs an agent is in the state of the fan-out.
                let above = parent.as_ref().and_then(|parent| self.frames.get(parent));
                if item.is_none() || above.map(|above| &above.state) != Some(&key) {
                    self.states.entry(key.clone()).or_default().visits += 1;
                }
                let open = OpenFrame { parent: parent.clone(), state: key.clone() };
                self.frames.insert(frame.clone(), open);
                // A frame that was parked goes on where it was.
                if !self.parked.remove(frame) {
                    self.leave_behind(frame, self.caller(frame));
                    self.begin(frame, key);
                }
            }
            Event::FrameEnded { frame, outcome, .. } => {
                let parent = self.frames.remove(frame).and_then(|ended| ended.parent);
                if *outcome == End::Done {
                    self.item_done(parent.as_deref());
                }
                // An item or a sub-workflow that is not done fails the state that runs it.
                if let Some(parent) = parent.filter(|_| *outcome != End::Done) {
                    self.conclude(&parent, MarkStatus::Failed);
                }
            }
            Event::FannedOut { frame, items, problem, .. } => {
                if let Some(state) = self.frames.get(frame).map(|open| open.state.clone()) {
                    let caller = self.current_visit(frame);
                    let items_of = below(frame, &state.1);
                    self.leave_behind(&items_of, caller);
                    if problem.is_none() {
                        self.fanned_out(items_of, state, items.len());
                    }
                }
                if problem.is_some() {
                    self.conclude(frame, MarkStatus::Failed);
                }
            }
            Event::StepFailed { frame, .. } => self.conclude(frame, MarkStatus::Failed),
            Event::ContextChecked { frame, missing, .. } if !missing.is_empty() => {
                self.conclude(frame, MarkStatus::Failed);
            }
            Event::TransitionTaken(taken) => self.taken(taken),
            Event::AttemptStarted { attempt, frame, path, agent, builtin, .. } => {
                self.attempt_started(attempt, frame, path, agent.as_deref(), builtin.as_ref());
            }
            Event::AttemptEnded(ended) => {
                let Some(open) = self.attempts.remove(&ended.attempt) else { return };
                let end = open.end(ended);
                self.visit(&open.frame, open.state).steps.insert(open.path, end);
            }
            Event::AttemptLost { attempt, .. } => drop(self.attempts.remove(attempt)),
            Event::RunReopened(reopened) => self.reopened(reopened),
            _ => {}
        }
    }

    fn fanned_out(&mut self, items_of: String, state: StateKey, all: usize) {
        let around = self.outermost.as_ref().is_some_and(|around| is_inside(&items_of, around));
        if !around {
            self.outermost = Some(items_of.clone());
        }
        self.fan_outs.insert(items_of, FanOutProgress { state, done: 0, all });
    }

    /// An item is done, if this frame runs items.
    fn item_done(&mut self, parent: Option<&str>) {
        let Some((parent, open)) = parent.and_then(|id| self.frames.get(id).map(|at| (id, at)))
        else {
            return;
        };
        if let Some(fan_out) = self.fan_outs.get_mut(&below(parent, &open.state.1)) {
            fan_out.done = (fan_out.done + 1).min(fan_out.all);
        }
    }

    /// The states of the main workflow that the run entered.
    pub(crate) fn entered(&self) -> impl Iterator<Item = &str> {
        let main = self.states.iter().filter(|((machine, _), _)| machine.is_empty());
        main.filter(|(_, progress)| progress.visits > 0).map(|((_, state), _)| state.as_str())
    }

    /// The items that are done and all of them, of the last fan-out that is not inside of another one.
    pub(crate) fn items(&self) -> Option<(usize, usize)> {
        let fan_out = self.fan_outs.get(self.outermost.as_ref()?)?;
        Some((fan_out.done, fan_out.all))
    }

    fn taken(&mut self, taken: &TransitionTaken) {
        let status = if taken.failure.is_some() { MarkStatus::Failed } else { MarkStatus::Done };
        self.conclude(&taken.frame, status);
        let Some(open) = self.frames.get_mut(&taken.frame) else { return };
        open.state.1.clone_from(&taken.to);
        let key = open.state.clone();
        self.leave_behind(&below(&taken.frame, &taken.to), None);
        self.begin(&taken.frame, key.clone());
        self.states.entry(key).or_default().visits += 1;
    }

    fn attempt_started(
        &mut self,
        attempt: &str,
        frame: &str,
        path: &[String],
        agent: Option<&str>,
        builtin: Option<&BuiltinStep>,
    ) {
        // The checks before the first step are no part of a state.
        if matches!(builtin, Some(BuiltinStep::BaseChecks(_))) {
            return;
        }
        let Some(state) = self.frames.get(frame).map(|open| open.state.clone()) else { return };
        let visit = self.visit(frame, state.clone());
        visit.conclusion = None;
        // What the checks said of an earlier attempt says nothing of this one.
        if !matches!(builtin, Some(BuiltinStep::Checks(_))) {
            visit.steps.retain(|other, _| other.as_slice() == path);
        }
        self.states.entry(state.clone()).or_default().last_attempt = Some(attempt.to_owned());
        let open = OpenAttempt {
            frame: frame.to_owned(),
            state,
            path: path.to_vec(),
            agent: agent.map(str::to_owned),
            builtin: builtin.cloned(),
        };
        self.attempts.insert(attempt.to_owned(), open);
    }

    /// The frames go on in the states in which the event has them.
    fn reopened(&mut self, reopened: &Reopened) {
        let text = |frame: &Value, name: &str| frame[name].as_str().map(str::to_owned);
        self.frames.clear();
        for (id, frame) in reopened.frames.iter().chain(&reopened.parked) {
            let (Some(machine), Some(state)) = (text(frame, "machine"), text(frame, "state"))
            else {
                continue;
            };
            let open = OpenFrame { parent: text(frame, "parent"), state: (machine, state) };
            self.frames.insert(id.clone(), open.clone());
            self.visit(id, open.state).conclusion = None;
        }
        self.parked = reopened.parked.keys().cloned().collect();
        self.attempts.clear();
    }

    /// Says how the visit of the state in which a frame is went.
    fn conclude(&mut self, frame: &str, status: MarkStatus) {
        if let Some(state) = self.frames.get(frame).map(|open| open.state.clone()) {
            self.visit(frame, state).conclude(status);
        }
    }

    /// The last visit of a state in a frame.
    fn visit(&mut self, frame: &str, state: StateKey) -> &mut LastVisit {
        let key = (frame.to_owned(), state);
        if !self.visits.contains_key(&key) {
            self.begin(frame, key.1.clone());
        }
        self.visits.entry(key).or_default()
    }

    /// Begins a visit of a state in an open frame.
    fn begin(&mut self, frame: &str, state: StateKey) {
        self.begun += 1;
        let visit =
            LastVisit { id: self.begun, caller: self.caller(frame), ..LastVisit::default() };
        self.visits.insert((frame.to_owned(), state), visit);
    }

    /// The visit of the state that runs an open frame.
    fn caller(&self, frame: &str) -> Option<usize> {
        self.current_visit(self.frames.get(frame)?.parent.as_deref()?)
    }

    /// The visit of the state in which a frame is.
    fn current_visit(&self, frame: &str) -> Option<usize> {
        let state = self.frames.get(frame)?.state.clone();
        self.visits.get(&(frame.to_owned(), state)).map(|visit| visit.id)
    }

    /// Leaves what a frame and those inside of it did to an earlier visit. If `caller` runs the frame
    /// again, it takes nothing over from what the frame did before.
    fn leave_behind(&mut self, frame: &str, caller: Option<usize>) {
        self.fan_outs.retain(|items_of, _| !is_inside(items_of, frame));
        let inside = format!("{frame}/");
        // The main frame is opened once, before all others.
        let from = (frame.to_owned(), StateKey::default());
        let visits = self.visits.range_mut(from..).take_while(|((id, _), _)| id.starts_with(frame));
        for ((id, _), visit) in visits {
            if id == frame || id.starts_with(&inside) {
                visit.is_past = true;
                visit.caller = visit.caller.filter(|other| Some(*other) != caller);
            }
        }
    }

    /// What visits take over from the frames that they run, at any depth.
    fn taken_over(&self) -> BTreeMap<usize, MarkStatus> {
        let callers: BTreeMap<usize, Option<usize>> =
            self.visits.values().map(|visit| (visit.id, visit.caller)).collect();
        let mut found: BTreeMap<usize, MarkStatus> = BTreeMap::new();
        for visit in self.visits.values() {
            let Some(status) = visit.passed_on() else { continue };
            let mut caller = visit.caller;
            while let Some(id) = caller {
                let before = found.get(&id).copied();
                let after = worse(before, Some(status));
                if after == before {
                    break;
                }
                found.extend(after.map(|status| (id, status)));
                caller = callers.get(&id).copied().flatten();
            }
        }
        found
    }

    /// What the run did in each state. Of several items that were in a state, the worst counts.
    fn marked(&self) -> BTreeMap<StateKey, StateProgress> {
        let mut states = self.states.clone();
        let fresh: BTreeSet<&StateKey> = self
            .visits
            .iter()
            .filter(|(_, visit)| !visit.is_past)
            .map(|((_, key), _)| key)
            .collect();
        let taken_over = self.taken_over();
        for ((_, key), visit) in &self.visits {
            // What was not visited again since is as it was.
            if visit.is_past && fresh.contains(key) {
                continue;
            }
            let state = states.entry(key.clone()).or_default();
            let own = worse(visit.status(), taken_over.get(&visit.id).copied());
            state.status = worse(state.status, own);
        }
        states
    }

    /// What the run did in each state, and where it is now.
    pub(crate) fn states(&self, run_state: &RunState) -> BTreeMap<StateKey, StateProgress> {
        let mut states = self.marked();
        // Several items of an outer fan-out may run the same one.
        for fan_out in self.fan_outs.values() {
            let state = states.entry(fan_out.state.clone()).or_default();
            let (done, all) = state.items.unwrap_or_default();
            state.items = Some((done + fan_out.done, all + fan_out.all));
        }
        if run_state.ended.is_some() {
            // No event tells of every failure without an attempt, such as a list without an order.
            if let Some(main) = run_state.frames.get("")
                && matches!(main.phase, Phase::Failed(_) | Phase::Broken(_))
                && let Some(state) = states.get_mut(&(main.machine.clone(), main.state.clone()))
            {
                state.status = Some(MarkStatus::Failed);
            }
            return states;
        }
        for frame in run_state.frames.values() {
            let key = (frame.machine.clone(), frame.state.clone());
            let Some(state) = states.get_mut(&key) else { continue };
            let waits = match &frame.phase {
                Phase::Asking => true,
                Phase::Entered { not_before, .. } => {
                    not_before.is_some_and(|at| at > run_state.last_at)
                }
                _ => false,
            };
            // Several frames may be in a state: one at work says more than one that waits.
            if state.status != Some(MarkStatus::Current) || !waits {
                let status = if waits { MarkStatus::Waiting } else { MarkStatus::Current };
                state.status = Some(status);
            }
        }
        states
    }
}

#[cfg(test)]
mod tests;
