//! What a run did in each state of its workflow, for diagrams of a run.

use counterfoil_contract::claim::Verdict;
use counterfoil_flow::graph::MarkStatus;
use counterfoil_flow::{AttemptOutcome, End, Event, ItemStatus, Phase, RunState};
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
    attempts: BTreeMap<String, StateKey>,
    states: BTreeMap<StateKey, StateProgress>,
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
            Event::AttemptStarted { attempt, frame, .. } => {
                if let Some(key) = self.frames.get(frame) {
                    self.attempts.insert(attempt.clone(), key.clone());
                    let state = self.states.entry(key.clone()).or_default();
                    state.last_attempt = Some(attempt.clone());
                }
            }
            Event::AttemptEnded(ended) => {
                let Some(key) = self.attempts.remove(&ended.attempt) else { return };
                let is_refuted = ended.claims.iter().any(|claim| claim.verdict == Verdict::Refuted);
                let status = match ended.outcome {
                    AttemptOutcome::Accepted if is_refuted => MarkStatus::Refuted,
                    AttemptOutcome::Accepted => MarkStatus::Done,
                    _ => MarkStatus::Failed,
                };
                self.states.entry(key).or_default().status = Some(status);
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
