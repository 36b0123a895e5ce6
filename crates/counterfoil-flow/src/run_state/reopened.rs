//! Taking up a run again that had ended.

use super::{Frame, OpenQuestion, Phase, RunState, join, split};
use crate::event::{Changes, Reopened};
use crate::fan_out::Next;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

impl RunState {
    /// Applies what a person changed.
    pub(super) fn change(&mut self, changes: &Changes) {
        self.budget = self.budget.with(&changes.budget);
        self.limits.extend(changes.limits.clone());
        self.inputs.extend(changes.inputs.clone());
        if let Some(main) = self.frames.get_mut("") {
            main.inputs.extend(changes.inputs.clone());
        }
    }

    /// Continues with the recorded frames. If this version cannot read them, the run stays ended.
    pub(super) fn reopen(&mut self, reopened: &Reopened) {
        let (Some(frames), Some(parked), Some(questions)) = (
            read::<Frame>(&reopened.frames),
            read::<Frame>(&reopened.parked),
            read::<OpenQuestion>(&reopened.questions),
        ) else {
            return;
        };
        (self.frames, self.parked, self.questions) = (frames, parked, questions);
        // The files may have changed since the checks were run. A result that is only decided again
        // keeps its own evidence: its workspace may be gone.
        for frame in self.frames.values_mut().chain(self.parked.values_mut()) {
            if !matches!(frame.phase, Phase::Resulted(_)) {
                frame.checks = None;
            }
        }
        (self.ended, self.stopping, self.stopped) = (None, None, None);
        self.attempts.clear();
        self.agents.extend(reopened.agents.clone());
        self.change(&reopened.changes);
        let planned: Vec<String> = self
            .frames
            .values()
            .chain(self.parked.values())
            .filter_map(|frame| frame.workspace.as_ref())
            .filter(|own| own.restore.is_some())
            .map(|own| own.id.clone())
            .collect();
        for id in planned {
            self.count_workspace(&id);
        }
        self.ready = self.frames.keys().filter(|id| self.needs_decision(id)).cloned().collect();
    }

    /// Continues with a frame that was parked, and with the sub-workflow that it runs. The items of
    /// a fan-out inside it wait for their turn.
    pub(super) fn unpark(&mut self, id: &str) -> bool {
        let Some(frame) = self.parked.remove(id) else { return false };
        let called = (frame.phase == Phase::Called).then(|| below(id, &frame.state));
        self.frames.insert(id.to_owned(), frame);
        if self.needs_decision(id) {
            self.ready.insert(id.to_owned());
        }
        if let Some(called) = called {
            self.unpark(&called);
        }
        true
    }

    /// Forgets the items of a fan-out that is over and did not start all of them again.
    pub(super) fn forget_parked(&mut self, id: &str) {
        if self.parked.is_empty() {
            return;
        }
        let Some(frame) = self.frames.get(id) else { return };
        let inside = format!("{}/", below(id, &frame.state));
        self.parked.retain(|id, _| !id.starts_with(&inside));
    }

    /// The earlier work of a frame is in its new workspace.
    pub(super) fn restored(&mut self, id: &str) {
        let own = self.frames.get_mut(id).and_then(|at| at.workspace.as_mut());
        let was_needed = own.and_then(|own| own.restore.take()).is_some();
        if was_needed && !self.needs_decision(id) {
            self.ready.remove(id);
        }
    }

    /// Closes the frames inside a frame, which have not gone on since the run was reopened.
    pub(super) fn close_inside(&mut self, id: &str) {
        let inside = format!("{id}/");
        self.frames.retain(|other, _| !other.starts_with(&inside));
        self.parked.retain(|other, _| !other.starts_with(&inside));
        self.ready.retain(|other| !other.starts_with(&inside));
        self.questions.retain(|_, one| one.frame != id && !one.frame.starts_with(&inside));
    }

    /// Whether a frame of a reopened run needs a decision.
    fn needs_decision(&self, id: &str) -> bool {
        let own = self.frames.get(id).and_then(|frame| frame.workspace.as_ref());
        if own.is_some_and(|own| own.restore.is_some()) {
            return true;
        }
        match self.frames.get(id).map(|frame| &frame.phase) {
            Some(
                Phase::Entered { .. } | Phase::Resulted(_) | Phase::Failed(_) | Phase::Broken(_),
            ) => true,
            Some(Phase::Fanned(fan)) => fan.next() != Next::Wait,
            Some(Phase::Asking) => {
                let mut open = self.questions.values().filter(|one| one.frame == id);
                !open.any(|one| one.answer.is_none() && !one.optional)
            }
            Some(Phase::Running { .. } | Phase::Checking { .. } | Phase::Called) | None => false,
        }
    }
}

fn read<T: DeserializeOwned>(recorded: &Map<String, Value>) -> Option<BTreeMap<String, T>> {
    serde_json::from_value(Value::Object(recorded.clone())).ok()
}

/// The path of a state in a frame: the id of the sub-workflow that it runs, and the beginning of
/// the ids of its items.
pub(crate) fn below(frame: &str, state: &str) -> String {
    let mut path = split(frame);
    path.push(state.to_owned());
    join(&path)
}
