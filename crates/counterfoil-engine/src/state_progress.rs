//! What a run did in each state of its workflow, for diagrams of a run.

use crate::event_text::step_failure;
use counterfoil_contract::claim::Verdict;
use counterfoil_flow::graph::MarkStatus;
use counterfoil_flow::{
    AttemptOutcome, BuiltinStep, End, Ended, Event, ItemStatus, Phase, Reopened, RunState,
    TransitionTaken,
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
    /// How the last attempt of each step of the state went: of its agent, command or built-in step,
    /// and of its checks.
    steps: BTreeMap<Vec<String>, MarkStatus>,
    /// How the state was left, or that it failed without an attempt.
    conclusion: Option<MarkStatus>,
    /// Whether the frame belongs to an earlier visit of a fan-out or of a state that runs a
    /// sub-workflow.
    is_past: bool,
}

impl LastVisit {
    /// The worst that is known of it.
    fn status(&self) -> Option<MarkStatus> {
        self.steps.values().copied().chain(self.conclusion).reduce(MarkStatus::worse)
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
    /// what follows; they are no success.
    fn status(&self, ended: &Ended) -> MarkStatus {
        let (agent, builtin) = (self.agent.as_deref(), self.builtin.as_ref());
        let has_failed = ended.outcome != AttemptOutcome::Accepted
            || step_failure(agent, builtin, ended.value.as_ref(), &ended.checks).is_some();
        let is_refuted = ended.claims.iter().any(|claim| claim.verdict == Verdict::Refuted);
        if has_failed {
            MarkStatus::Failed
        } else if is_refuted {
            MarkStatus::Refuted
        } else {
            MarkStatus::Done
        }
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
                // A frame that was parked goes on where it was.
                if !self.parked.remove(frame) {
                    self.leave_behind(frame);
                    self.visits.insert((frame.clone(), key.clone()), LastVisit::default());
                }
                self.frames.insert(frame.clone(), OpenFrame { parent: parent.clone(), state: key });
            }
            Event::FrameEnded { frame, outcome, .. } => {
                let parent = self.frames.remove(frame).and_then(|ended| ended.parent);
                // An item or a sub-workflow that is not done fails the state that runs it.
                if let Some(parent) = parent.filter(|_| *outcome != End::Done) {
                    self.conclude(&parent, MarkStatus::Failed);
                }
            }
            Event::FannedOut { frame, problem, .. } => {
                if let Some(state) = self.frames.get(frame).map(|open| open.state.1.clone()) {
                    self.leave_behind(&below(frame, &state));
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
                let status = open.status(ended);
                let visit = self.visits.entry((open.frame, open.state)).or_default();
                visit.steps.insert(open.path, status);
            }
            Event::AttemptLost { attempt, .. } => drop(self.attempts.remove(attempt)),
            Event::RunReopened(reopened) => self.reopened(reopened),
            _ => {}
        }
    }

    fn taken(&mut self, taken: &TransitionTaken) {
        let status = if taken.failure.is_some() { MarkStatus::Failed } else { MarkStatus::Done };
        self.conclude(&taken.frame, status);
        let Some(open) = self.frames.get_mut(&taken.frame) else { return };
        open.state.1.clone_from(&taken.to);
        let key = open.state.clone();
        self.leave_behind(&below(&taken.frame, &taken.to));
        self.visits.insert((taken.frame.clone(), key.clone()), LastVisit::default());
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
        let visit = self.visits.entry((frame.to_owned(), state.clone())).or_default();
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
        let mut frames = BTreeMap::new();
        for (id, frame) in reopened.frames.iter().chain(&reopened.parked) {
            let (Some(machine), Some(state)) = (text(frame, "machine"), text(frame, "state"))
            else {
                continue;
            };
            let open = OpenFrame { parent: text(frame, "parent"), state: (machine, state) };
            let visit = self.visits.entry((id.clone(), open.state.clone())).or_default();
            visit.conclusion = None;
            frames.insert(id.clone(), open);
        }
        self.frames = frames;
        self.parked = reopened.parked.keys().cloned().collect();
        self.attempts.clear();
    }

    /// Says how the visit of the state in which a frame is went.
    fn conclude(&mut self, frame: &str, status: MarkStatus) {
        if let Some(state) = self.frames.get(frame).map(|open| open.state.clone()) {
            self.visits.entry((frame.to_owned(), state)).or_default().conclude(status);
        }
    }

    /// Leaves what a frame and those inside of it did to an earlier visit.
    fn leave_behind(&mut self, frame: &str) {
        let inside = format!("{frame}/");
        // The main frame is opened once, before all others.
        let from = (frame.to_owned(), StateKey::default());
        let visits = self.visits.range_mut(from..).take_while(|((id, _), _)| id.starts_with(frame));
        for ((id, _), visit) in visits {
            if id == frame || id.starts_with(&inside) {
                visit.is_past = true;
            }
        }
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
        for ((_, key), visit) in &self.visits {
            // What was not visited again since is as it was.
            if visit.is_past && fresh.contains(key) {
                continue;
            }
            let state = states.entry(key.clone()).or_default();
            state.status = worse(state.status, visit.status());
        }
        states
    }

    /// What the run did in each state, and where it is now.
    pub(crate) fn states(&self, run_state: &RunState) -> BTreeMap<StateKey, StateProgress> {
        let mut states = self.marked();
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
            if let Phase::Fanned(fan_out) = &frame.phase {
                let is_done = |status: &ItemStatus| {
                    matches!(status, ItemStatus::Ended { outcome: End::Done, .. })
                };
                let done = fan_out.items.iter().filter(|item| is_done(&item.status)).count();
                state.items = Some((done, fan_out.items.len()));
            }
        }
        states
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_flow::{CheckReport, CheckStatus};
    use serde_json::{Map, json};

    /// What is said of the state `work` after its only attempt.
    fn status(agent: Option<&str>, builtin: Option<BuiltinStep>, ended: Ended) -> MarkStatus {
        let mut builder = StateProgressBuilder::default();
        builder.on_event(&Event::FrameOpened {
            frame: String::new(),
            parent: None,
            machine: String::new(),
            item: None,
            state: "work".to_owned(),
            inputs: Map::new(),
            variables: Map::new(),
            counts: BTreeMap::new(),
            iteration: None,
        });
        builder.on_event(&Event::AttemptStarted {
            attempt: "work#1".to_owned(),
            frame: String::new(),
            path: vec!["work".to_owned()],
            agent: agent.map(str::to_owned),
            n: 1,
            contract: None,
            builtin,
        });
        builder.on_event(&Event::AttemptEnded(Box::new(ended)));
        let states = builder.marked();
        states[&(String::new(), "work".to_owned())].status.unwrap()
    }

    fn ended(value: serde_json::Value) -> Ended {
        let mut ended = Ended::new("work#1", AttemptOutcome::Accepted);
        ended.value = Some(value);
        ended
    }

    fn checked(status: CheckStatus) -> Ended {
        let mut ended = Ended::new("work#1", AttemptOutcome::Accepted);
        ended.checks.insert("test".to_owned(), CheckReport { status, ..CheckReport::default() });
        ended
    }

    #[test]
    fn a_step_that_failed_is_not_done_although_it_is_accepted() {
        use MarkStatus::{Done, Failed};
        let command = |code: i64| ended(json!({"ok": code == 0, "exit_code": code, "output": ""}));
        assert_eq!(status(None, None, command(0)), Done);
        assert_eq!(status(None, None, command(1)), Failed);
        assert_eq!(status(Some("coder"), None, command(1)), Done, "the words of an agent");
        let commit = || Some(BuiltinStep::Commit("Fix it".to_owned()));
        assert_eq!(status(None, commit(), ended(json!({"ok": true}))), Done);
        assert_eq!(status(None, commit(), ended(json!({"ok": false}))), Failed);
        let checks = || Some(BuiltinStep::Checks(vec!["test".to_owned()]));
        assert_eq!(status(None, checks(), checked(CheckStatus::Passed)), Done);
        assert_eq!(status(None, checks(), checked(CheckStatus::Failed)), Failed);
        let late = Ended::new("work#1", AttemptOutcome::Timeout);
        assert_eq!(status(Some("coder"), None, late), Failed);
    }

    fn builder(events: serde_json::Value) -> StateProgressBuilder {
        let events: Vec<Event> = serde_json::from_value(events).unwrap();
        let mut builder = StateProgressBuilder::default();
        for event in &events {
            builder.on_event(event);
        }
        builder
    }

    fn opened(frame: &str, item: Option<&str>, machine: &str, state: &str) -> serde_json::Value {
        let parent = if frame.is_empty() { None } else { Some("") };
        json!({"frame-opened": {"frame": frame, "parent": parent, "machine": machine, "item": item,
            "state": state, "inputs": {}, "variables": {}}})
    }

    fn started(frame: &str, path: &[&str], n: u32) -> serde_json::Value {
        let is_check = path.last() == Some(&"checks");
        let builtin = is_check.then(|| BuiltinStep::Checks(vec!["test".to_owned()]));
        let event = Event::AttemptStarted {
            attempt: format!("{}#{n}", path.join("/")),
            frame: frame.to_owned(),
            path: path.iter().map(|part| (*part).to_owned()).collect(),
            agent: (!is_check).then(|| "coder".to_owned()),
            n,
            contract: None,
            builtin,
        };
        serde_json::to_value(event).unwrap()
    }

    fn over(attempt: &str, outcome: AttemptOutcome, is_refuted: bool) -> serde_json::Value {
        let mut ended = Ended::new(attempt, outcome);
        if is_refuted {
            let claim = json!({"claim": "tests", "kind": "tests-kept", "policy": "record",
                "stated": true, "verdict": "refuted", "reason": "one was deleted"});
            ended.claims = vec![serde_json::from_value(claim).unwrap()];
        }
        serde_json::to_value(Event::AttemptEnded(Box::new(ended))).unwrap()
    }

    fn moved(frame: &str, from: &str, to: &str) -> serde_json::Value {
        json!({"moved": {"frame": frame, "from": from, "to": to}})
    }

    fn ended_frame(frame: &str, outcome: &str) -> serde_json::Value {
        json!({"frame-ended": {"frame": frame, "outcome": outcome, "reason": ""}})
    }

    fn marked(events: serde_json::Value, machine: &str, state: &str) -> Option<MarkStatus> {
        let states = builder(events).marked();
        states[&(machine.to_owned(), state.to_owned())].status
    }

    #[test]
    fn the_worst_step_of_the_last_visit_counts_and_a_retry_replaces_what_it_repeats() {
        use AttemptOutcome::{Accepted, Timeout};
        let mut events = vec![
            opened("", None, "", "work"),
            started("", &["work"], 1),
            over("work#1", Timeout, false),
            started("", &["work"], 2),
            over("work#2", Accepted, true),
            started("", &["work", "checks"], 1),
            over("work/checks#1", Accepted, false),
            moved("", "work", "work"),
        ];
        let until = |count: usize, events: &[serde_json::Value]| {
            marked(serde_json::Value::Array(events[..count].to_vec()), "", "work")
        };
        assert_eq!(until(3, &events), Some(MarkStatus::Failed));
        assert_eq!(until(5, &events), Some(MarkStatus::Refuted));
        assert_eq!(until(7, &events), Some(MarkStatus::Refuted), "checks that passed hide nothing");
        events.extend([started("", &["work"], 3), over("work#3", Accepted, false)]);
        assert_eq!(until(10, &events), Some(MarkStatus::Done), "another visit");
    }

    #[test]
    fn an_item_that_failed_fails_the_fan_out_and_is_not_hidden_by_another() {
        use AttemptOutcome::{Accepted, Timeout};
        let items =
            json!([{"key": "1", "value": 1, "after": []}, {"key": "2", "value": 2, "after": []}]);
        let fanned =
            json!({"fanned-out": {"frame": "", "items": items, "parallel": 1, "strict": false}});
        let item = |key: &str, outcome: AttemptOutcome, end: &str| {
            let frame = format!("all/{key}");
            let attempt = format!("{frame}/make#1");
            vec![
                opened(&frame, Some(key), "one", "make"),
                started(&frame, &["all", key, "make"], 1),
                over(&attempt, outcome, false),
                ended_frame(&frame, end),
            ]
        };
        let mut events = vec![opened("", None, "", "all"), fanned.clone()];
        events.extend(item("1", Timeout, "failed"));
        events.extend(item("2", Accepted, "done"));
        events.push(json!({"fanned-in": {"frame": ""}}));
        let all = |events: &[serde_json::Value]| serde_json::Value::Array(events.to_vec());
        assert_eq!(marked(all(&events), "", "all"), Some(MarkStatus::Failed));
        assert_eq!(marked(all(&events), "one", "make"), Some(MarkStatus::Failed));
        // Another visit of the fan-out, with fewer items.
        events.extend([moved("", "all", "all"), fanned]);
        assert_eq!(marked(all(&events), "", "all"), None);
        assert_eq!(marked(all(&events), "one", "make"), Some(MarkStatus::Failed));
        events.extend(item("2", Accepted, "done"));
        assert_eq!(marked(all(&events), "one", "make"), Some(MarkStatus::Done));
        events.push(moved("", "all", "end"));
        assert_eq!(marked(all(&events), "", "all"), Some(MarkStatus::Done));
    }

    #[test]
    fn checks_before_the_first_step_are_no_part_of_a_state() {
        let base = json!({"attempt-started": {"attempt": "base/checks#1", "frame": "",
            "path": ["base", "checks"], "n": 1,
            "deed": serde_json::to_value(BuiltinStep::BaseChecks(vec!["test".to_owned()])).unwrap()}});
        let late = over("base/checks#1", AttemptOutcome::Timeout, false);
        let events = json!([opened("", None, "", "work"), base, late]);
        assert_eq!(marked(events, "", "work"), None);
    }
}
