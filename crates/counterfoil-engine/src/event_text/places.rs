//! The state that an event is about.

use super::parts::state_of_question;
use super::{OpenAttempt, inside};
use counterfoil_flow::{BuiltinStep, Event};
use std::collections::BTreeMap;

/// Where each frame is, as far as the events that were seen say it.
#[derive(Debug, Default)]
pub(super) struct Places {
    frames: BTreeMap<String, Place>,
}

#[derive(Debug)]
struct Place {
    /// The path of the state in which the frame is.
    path: String,
    /// The machine and the state, if they are known.
    state: Option<(String, String)>,
}

impl Places {
    /// Learns from an event.
    pub(super) fn on_event(&mut self, event: &Event) {
        match event {
            Event::FrameOpened { frame, parent, machine, state, item, .. } => {
                let key = (machine.clone(), state.clone());
                let above = parent.as_ref().and_then(|parent| self.frames.get(parent));
                // The item of a fan-out that runs an agent is in the state of the fan-out.
                let is_agent =
                    item.is_some() && above.is_some_and(|above| above.state.as_ref() == Some(&key));
                let path = if is_agent { frame.clone() } else { inside(frame, state) };
                self.frames.insert(frame.clone(), Place { path, state: Some(key) });
                // The id of a frame begins with the state that runs it.
                if let Some(parent) = parent.as_ref().filter(|id| !self.frames.contains_key(*id)) {
                    let outer = match item {
                        Some(_) => frame.rsplit_once('/').map_or("", |(outer, _)| outer),
                        None => frame.as_str(),
                    };
                    self.frames
                        .insert(parent.clone(), Place { path: outer.to_owned(), state: None });
                }
            }
            // The checks that belong to a step, or to the run, are no state.
            Event::AttemptStarted {
                builtin: Some(BuiltinStep::Checks(_) | BuiltinStep::BaseChecks(_)),
                ..
            } => {}
            Event::AttemptStarted { frame, path, .. } => {
                let path = path.join("/");
                match self.frames.get_mut(frame) {
                    Some(place) => place.path = path,
                    None => {
                        self.frames.insert(frame.clone(), Place { path, state: None });
                    }
                }
            }
            Event::TransitionTaken(taken) => {
                let known = self.frames.get_mut(&taken.frame).and_then(|at| at.state.take());
                // The machine of the main frame has no name.
                let machine = match known {
                    Some((machine, _)) => Some(machine),
                    None => taken.frame.is_empty().then(String::new),
                };
                let place = Place {
                    path: inside(&taken.frame, &taken.to),
                    state: machine.map(|machine| (machine, taken.to.clone())),
                };
                self.frames.insert(taken.frame.clone(), place);
            }
            Event::RunReopened(reopened) => {
                self.frames.clear();
                for (id, frame) in reopened.frames.iter().chain(&reopened.parked) {
                    let (Some(machine), Some(state)) =
                        (frame["machine"].as_str(), frame["state"].as_str())
                    else {
                        continue;
                    };
                    let key = (machine.to_owned(), state.to_owned());
                    // A parent comes before what is inside of it.
                    let above = frame["parent"].as_str().and_then(|id| self.frames.get(id));
                    let is_agent = frame["item"].is_string()
                        && above.is_some_and(|above| above.state.as_ref() == Some(&key));
                    let path = if is_agent { id.clone() } else { inside(id, state) };
                    self.frames.insert(id.clone(), Place { path, state: Some(key) });
                }
            }
            _ => {}
        }
    }

    /// The path of the state that an event is about; empty if it is about the run. What earlier events
    /// say of its frame counts.
    pub(super) fn of(&self, event: &Event) -> String {
        match event {
            Event::AttemptStarted { path, .. } => path.join("/"),
            Event::RepairAsked { attempt, .. }
            | Event::ConversationOpened { attempt, .. }
            | Event::AttemptLost { attempt, .. } => OpenAttempt::from_id(attempt).path,
            Event::AttemptEnded(ended) => OpenAttempt::from_id(&ended.attempt).path,
            Event::TransitionTaken(taken) => inside(&taken.frame, &taken.from),
            Event::FrameOpened { frame, state, .. } => {
                let known = self.frames.get(frame).map(|place| place.path.clone());
                known.unwrap_or_else(|| inside(frame, state))
            }
            Event::RunEnded { state, .. } => state.clone(),
            // The id of a question begins with the path of the state that asks it.
            Event::Asked { questions, .. } => {
                questions.first().map(|asked| state_of_question(&asked.id)).unwrap_or_default()
            }
            Event::Answered { question, .. } => state_of_question(question),
            Event::QuestionsCancelled { questions, .. } => {
                questions.first().map(|id| state_of_question(id)).unwrap_or_default()
            }
            Event::ContextChecked { frame, .. }
            | Event::RetryPlanned { frame, .. }
            | Event::FannedOut { frame, .. }
            | Event::FannedIn { frame }
            | Event::FrameEnded { frame, .. }
            | Event::WorkspacePlanned { frame, .. }
            | Event::WorkspaceOpened { frame, .. }
            | Event::WorkspaceFailed { frame, .. }
            | Event::MergeQueued { frame }
            | Event::WorkspaceMerged { frame, .. }
            | Event::WorkspaceDropped { frame, .. }
            | Event::StepFailed { frame, .. } => {
                let known = self.frames.get(frame).map(|place| place.path.clone());
                known.unwrap_or_else(|| frame.clone())
            }
            Event::RunStarted(_)
            | Event::RunResumed(_)
            | Event::RunReopened(_)
            | Event::RunUndone(_)
            | Event::BudgetReached { .. }
            | Event::CancelRequested { .. }
            | Event::RunStopped { .. }
            | Event::TimeSkipped { .. }
            | Event::ArtifactFailed { .. } => String::new(),
        }
    }
}
