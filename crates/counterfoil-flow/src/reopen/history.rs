//! The history of a run, as far as reopening it needs it.

use super::Rebuilt;
use crate::event::{Changes, Event, Outcome, WorkspaceLifetime};
use crate::fan_out::FanOut;
use crate::run_state::{
    Frame, Phase, RunState, Stopping, Workspace, WorkspaceStage, below, join, split,
    workspace_visits,
};
use crate::workflow::{Body, End, Step, Workflow};
use std::collections::BTreeMap;

/// Collects the events of a run, in order.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub(super) run: RunState,
    /// What is known of each frame that is open.
    frames: BTreeMap<String, FrameHistory>,
    /// The frames that did not end as done, as they were then.
    closed: BTreeMap<String, (Frame, FrameHistory)>,
    /// The run right before it ended.
    before_end: Option<Box<RunState>>,
}

/// What is known of a frame beside its state.
#[derive(Clone, Debug, Default)]
struct FrameHistory {
    /// How it left the last state with a step.
    left: Option<Box<Left>>,
    /// The fan-out of the current state, before its items were joined.
    fan: Option<FanOut>,
    /// The frame before an expression or a template failed.
    before_failure: Option<Box<Frame>>,
    /// The last limit that was used up, and how the frame left the last step before that.
    redirected: Option<(String, Box<Left>)>,
}

/// A frame right before it left a state with a step.
#[derive(Clone, Debug)]
struct Left {
    frame: Frame,
    fan: Option<FanOut>,
    /// Whether a limit was used up on the way to the next step.
    exhausted: bool,
}

/// What to do with the result of the step that ended a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Decide again what follows from it.
    Keep,
    /// Do the step again, unless the end did not depend on its result.
    Again,
}

impl History {
    /// Adds the next event.
    pub fn on_event(&mut self, workflow: &Workflow, event: &Event, at: i64) {
        self.before(workflow, event);
        self.run.apply(event, at);
    }

    /// The state of the run after these events.
    pub fn run_state(&self) -> &RunState {
        &self.run
    }

    fn before(&mut self, workflow: &Workflow, event: &Event) {
        match event {
            Event::TransitionTaken(taken) => {
                let Some(frame) = self.run.frames.get(&taken.frame) else { return };
                let history = self.frames.entry(taken.frame.clone()).or_default();
                if has_step(workflow, frame) {
                    let (frame, fan) = (frame.clone(), history.fan.take());
                    history.left = Some(Box::new(Left { frame, fan, exhausted: false }));
                }
                if let (Some(limit), Some(left)) = (&taken.exhausted, &mut history.left) {
                    left.exhausted = true;
                    history.redirected = Some((limit.clone(), left.clone()));
                }
                (history.fan, history.before_failure) = (None, None);
            }
            Event::FannedOut { frame, .. } => {
                if let Some(at) = self.run.frames.get(frame) {
                    let items = format!("{}/", below(frame, &at.state));
                    self.closed.retain(|id, _| !id.starts_with(&items));
                }
                self.frames.entry(frame.clone()).or_default().fan = None;
            }
            Event::FannedIn { frame } => {
                if let Some(Phase::Fanned(fan)) = self.run.frames.get(frame).map(|at| &at.phase) {
                    self.frames.entry(frame.clone()).or_default().fan = Some(fan.clone());
                }
            }
            Event::StepFailed { frame, .. } => {
                let before = self.run.frames.get(frame).cloned().map(Box::new);
                self.frames.entry(frame.clone()).or_default().before_failure = before;
            }
            // A parked frame continues with its history.
            Event::FrameOpened { frame, .. } if self.run.parked.contains_key(frame) => {}
            Event::FrameOpened { frame, .. } => {
                self.frames.insert(frame.clone(), FrameHistory::default());
                self.forget(frame);
            }
            Event::RunReopened(reopened) => {
                for id in reopened.frames.keys().chain(reopened.parked.keys()) {
                    if let Some((_, history)) = self.closed.get(id) {
                        self.frames.insert(id.clone(), history.clone());
                    }
                }
                // They are before the joining of their items again.
                for history in self.frames.values_mut() {
                    if let Some(left) = &history.left {
                        history.fan = history.fan.take().or(left.fan.clone());
                    }
                }
            }
            Event::FrameEnded { frame, outcome, .. } => {
                let history = self.frames.remove(frame).unwrap_or_default();
                match self.run.frames.get(frame).filter(|_| *outcome != End::Done) {
                    Some(at) => drop(self.closed.insert(frame.clone(), (at.clone(), history))),
                    None => self.forget(frame),
                }
            }
            Event::RunEnded { .. } => self.before_end = Some(Box::new(self.run.clone())),
            _ => {}
        }
    }

    /// Forgets a frame that begins anew or is done, and the frames inside it.
    fn forget(&mut self, frame: &str) {
        let inside = format!("{frame}/");
        self.closed.retain(|id, _| id != frame && !id.starts_with(&inside));
    }

    /// The possible points to continue from, the latest first. The first one that does not end
    /// again is meant. With a limit, this limit must not be met again at once.
    pub(super) fn candidates(
        &self,
        workflow: &Workflow,
        changes: &Changes,
    ) -> Vec<(Option<String>, Rebuilt)> {
        let Some(before) = &self.before_end else { return Vec::new() };
        if matches!(before.stopping, Some(Stopping::Budget(_) | Stopping::Artifact(_))) {
            return vec![(None, interrupted(before))];
        }
        let Some(main) = before.frames.get("") else {
            return vec![(None, Rebuilt::default())];
        };
        let none = FrameHistory::default();
        let history = self.frames.get("").unwrap_or(&none);
        let rebuilt = |mode| self.rebuild(workflow, "", main, history, mode).unwrap_or_default();
        let mut candidates = Vec::new();
        if !changes.limits.is_empty() || !changes.inputs.is_empty() {
            let exhausted =
                self.run.ended.as_ref().is_some_and(|end| end.outcome == Outcome::Exhausted);
            let redirected = history.redirected.as_ref();
            let meant = |limit: &String| exhausted || changes.limits.contains_key(limit);
            // The step that a used-up limit led to may have ended the run by itself.
            if let Some((limit, left)) = redirected.filter(|(limit, _)| meant(limit)) {
                let at = FrameHistory { fan: left.fan.clone(), ..FrameHistory::default() };
                let back = self.rebuild(workflow, "", &left.frame, &at, Mode::Keep);
                candidates.extend(back.map(|back| (Some(limit.clone()), back)));
            }
            candidates.push((None, rebuilt(Mode::Keep)));
        }
        candidates.push((None, rebuilt(Mode::Again)));
        candidates
    }

    /// A frame that ended, at the step that ended it, with the frames inside it. None if it has to
    /// start from its beginning: no step ran, or its work cannot be used.
    fn rebuild(
        &self,
        workflow: &Workflow,
        id: &str,
        ended: &Frame,
        history: &FrameHistory,
        mode: Mode,
    ) -> Option<Rebuilt> {
        if let (Phase::Failed(_), Some(own)) = (&ended.phase, &ended.workspace)
            && matches!(step(workflow, ended), Some(Step::End { outcome: End::Done, .. }))
        {
            // Everything is done, and only the work could not be merged.
            let phase = Phase::Entered { not_before: None, context: false };
            let frame = Frame { phase, workspace: restored(&self.run, own)?, ..ended.clone() };
            let frames = BTreeMap::from([(id.to_owned(), frame)]);
            return Some(Rebuilt { frames, ..Rebuilt::default() });
        }
        let is_step = has_step(workflow, ended);
        let left = history.left.as_ref().filter(|_| !is_step);
        let (mut frame, fan, keep) = match left {
            Some(left) => (left.frame.clone(), &left.fan, left.exhausted),
            None if is_step => {
                // A result that leads nowhere is lack of progress: the transition is taken now.
                (ended.clone(), &history.fan, matches!(ended.phase, Phase::Resulted(_)))
            }
            None => return None,
        };
        let mut rebuilt = Rebuilt::default();
        frame.requests.clear();
        let merged = frame.workspace.take().filter(|own| own.stage == WorkspaceStage::Merged);
        let own = ended.workspace.as_ref().filter(|own| own.lifetime == WorkspaceLifetime::Frame);
        let keep = keep || mode == Mode::Keep;
        if let (Phase::Broken(_), Some(before)) = (&frame.phase, &history.before_failure) {
            frame.phase = before.phase.clone();
        }
        if keep && !matches!(frame.phase, Phase::Fanned(_) | Phase::Broken(_)) {
            frame.workspace = merged.filter(|_| own.is_none());
        } else {
            if !matches!(frame.phase, Phase::Failed(_)) {
                frame.first = None;
            }
            frame.phase = self.again(workflow, id, &frame, fan.as_ref(), &mut rebuilt);
            frame.tries.clear();
            frame.interrupted = 0;
        }
        if let Some(own) = own {
            frame.workspace = restored(&self.run, own)?;
        }
        rebuilt.frames.insert(id.to_owned(), frame);
        Some(rebuilt)
    }

    /// The phase of a frame that does its step again.
    fn again(
        &self,
        workflow: &Workflow,
        id: &str,
        frame: &Frame,
        fan: Option<&FanOut>,
        rebuilt: &mut Rebuilt,
    ) -> Phase {
        let entered = Phase::Entered { not_before: None, context: false };
        let inside = |child: &str| {
            let (ended, history) = self.closed.get(child)?;
            self.rebuild(workflow, child, ended, history, Mode::Again)
        };
        let place = below(id, &frame.state);
        match step(workflow, frame) {
            Some(Step::Call { .. }) => match inside(&place) {
                Some(child) => {
                    rebuilt.frames.extend(child.frames);
                    rebuilt.parked.extend(child.parked);
                    Phase::Called
                }
                None => entered,
            },
            Some(Step::Each(each)) => {
                let unjoined = match &frame.phase {
                    Phase::Fanned(fan) => Some(fan),
                    _ => None,
                };
                let Some(mut fan) = fan.or(unjoined).filter(|fan| !fan.is_complete()).cloned()
                else {
                    return entered;
                };
                fan.start_again();
                let machines = matches!(each.body, Body::Machine { .. });
                for item in fan.items.iter().filter(|item| machines && !item.is_done()) {
                    let mut path = split(&place);
                    path.push(item.key.clone());
                    if let Some(child) = inside(&join(&path)) {
                        rebuilt.parked.extend(child.frames);
                        rebuilt.parked.extend(child.parked);
                    }
                }
                Phase::Fanned(fan)
            }
            _ => entered,
        }
    }
}

fn step<'w>(workflow: &'w Workflow, frame: &Frame) -> Option<&'w Step> {
    Some(&workflow.machine(&frame.machine)?.states.get(&frame.state)?.kind)
}

/// Whether the state of a frame does something. The others are passed at once.
fn has_step(workflow: &Workflow, frame: &Frame) -> bool {
    !matches!(step(workflow, frame), None | Some(Step::End { .. } | Step::Route | Step::Order(_)))
}

/// The workspace of a frame whose last one is gone: its work is applied to the new one. None in
/// the option if there was no work; none at all if the work cannot be used.
#[allow(clippy::option_option)] // Explained above.
fn restored(run: &RunState, last: &Workspace) -> Option<Option<Workspace>> {
    let patch = match last.stage {
        WorkspaceStage::Dropped => last.kept.as_ref().or(last.restore.as_ref()),
        // It was not opened, so the work is still in the patch.
        WorkspaceStage::Failed if last.kept.is_none() => Some(last.restore.as_ref()?),
        WorkspaceStage::Planned | WorkspaceStage::Open | WorkspaceStage::Stuck => None,
        WorkspaceStage::Merged | WorkspaceStage::Failed => return None,
    };
    Some(patch.map(|patch| {
        let place = last.id.rsplit_once('#').map_or(last.id.as_str(), |(place, _)| place);
        let n = run.visits.get(&workspace_visits(place)).copied().unwrap_or(0) + 1;
        Workspace {
            id: format!("{place}#{n}"),
            lifetime: last.lifetime,
            stage: WorkspaceStage::Planned,
            kept: None,
            restore: Some(patch.clone()),
        }
    }))
}

/// The frames of a run that was interrupted by something outside of the workflow. They continue
/// where they were.
fn interrupted(before: &RunState) -> Rebuilt {
    let mut frames = before.frames.clone();
    for (id, ended) in &before.frames {
        let Some(frame) = frames.get_mut(id) else { continue };
        if let Phase::Fanned(fan) = &mut frame.phase {
            fan.unqueue();
        }
        let Some(own) = &ended.workspace else { continue };
        let has_result = matches!(frame.phase, Phase::Resulted(_));
        if own.stage == WorkspaceStage::Merged {
            continue;
        }
        // A step without a result starts in a fresh workspace.
        let is_needed = own.lifetime == WorkspaceLifetime::Frame || has_result;
        match restored(before, own).filter(|_| is_needed) {
            Some(workspace) => frame.workspace = workspace,
            None if own.lifetime == WorkspaceLifetime::State => {
                frame.workspace = None;
                if has_result {
                    frame.phase = Phase::Entered { not_before: None, context: false };
                }
            }
            None => start_over(&mut frames, id, ended),
        }
    }
    Rebuilt { frames, parked: before.parked.clone(), questions: before.questions.clone() }
}

/// Lets a frame start from its beginning, since its work is lost.
fn start_over(frames: &mut BTreeMap<String, Frame>, id: &str, frame: &Frame) {
    let inside = format!("{id}/");
    frames.retain(|other, _| other != id && !other.starts_with(&inside));
    let Some(parent) = frame.parent.as_ref().and_then(|parent| frames.get_mut(parent)) else {
        return;
    };
    match (&mut parent.phase, &frame.item) {
        (Phase::Fanned(fan), Some(key)) => fan.restart(id, key),
        (phase, _) => *phase = Phase::Entered { not_before: None, context: false },
    }
}
