//! What a run did in each state of its workflow, for diagrams of a run.

use crate::event_text::step_failure;
use counterfoil_contract::claim::Verdict;
use counterfoil_flow::graph::MarkStatus;
use counterfoil_flow::{
    AttemptOutcome, BuiltinStep, End, Ended, Event, ItemStatus, Phase, RunState,
};
use std::collections::BTreeMap;

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
    /// The state in which each frame is.
    frames: BTreeMap<String, StateKey>,
    /// The state of each attempt that runs.
    attempts: BTreeMap<String, OpenAttempt>,
    states: BTreeMap<StateKey, StateProgress>,
}

/// An attempt that runs.
#[derive(Clone, Debug)]
struct OpenAttempt {
    state: StateKey,
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
                if item.is_none() || above != Some(&key) {
                    self.states.entry(key.clone()).or_default().visits += 1;
                }
                self.frames.insert(frame.clone(), key);
            }
            Event::FrameEnded { frame, .. } => drop(self.frames.remove(frame)),
            Event::TransitionTaken(taken) => {
                let Some(key) = self.frames.get_mut(&taken.frame) else { return };
                let left = self.states.entry(key.clone()).or_default();
                let status =
                    if taken.failure.is_some() { MarkStatus::Failed } else { MarkStatus::Done };
                left.status.get_or_insert(status);
                key.1.clone_from(&taken.to);
                let entered = self.states.entry(key.clone()).or_default();
                entered.visits += 1;
                entered.status = None;
                entered.items = None;
            }
            Event::AttemptStarted { attempt, frame, agent, builtin, .. } => {
                if let Some(key) = self.frames.get(frame) {
                    let open = OpenAttempt {
                        state: key.clone(),
                        agent: agent.clone(),
                        builtin: builtin.clone(),
                    };
                    self.attempts.insert(attempt.clone(), open);
                    let state = self.states.entry(key.clone()).or_default();
                    state.last_attempt = Some(attempt.clone());
                }
            }
            Event::AttemptEnded(ended) => {
                let Some(open) = self.attempts.remove(&ended.attempt) else { return };
                let status = open.status(ended);
                self.states.entry(open.state).or_default().status = Some(status);
            }
            Event::AttemptLost { attempt, .. } => drop(self.attempts.remove(attempt)),
            _ => {}
        }
    }

    /// What the run did in each state, and where it is now.
    pub(crate) fn states(&self, run_state: &RunState) -> BTreeMap<StateKey, StateProgress> {
        let mut states = self.states.clone();
        if run_state.ended.is_some() {
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
        let states = builder.states;
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
}
