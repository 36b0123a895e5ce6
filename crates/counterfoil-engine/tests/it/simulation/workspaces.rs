//! Checks workspaces: none is merged twice or after it was discarded, items are merged in the order
//! they started, and none is left open.

use counterfoil_flow::{End, Event, Frame, WorkspaceLifetime};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Planned,
    Open,
    /// How often merging or discarding it failed.
    Failed(u32),
    Merged,
    Conflict,
    Dropped,
}

struct WorkspaceRecord {
    frame: String,
    lifetime: WorkspaceLifetime,
    state: State,
}

impl WorkspaceRecord {
    fn is_closed(&self) -> bool {
        match self.state {
            State::Planned | State::Open => false,
            State::Failed(times) => times > 1,
            State::Merged | State::Conflict | State::Dropped => true,
        }
    }
}

/// All workspaces of a run, and the running items in the order they started.
#[derive(Default)]
pub(crate) struct WorkspaceAudit {
    planned: BTreeMap<String, WorkspaceRecord>,
    /// The frames of running items, by the frame of their fan-out.
    begun: BTreeMap<String, Vec<String>>,
    /// The frames whose attempt was lost. Their workspaces are not reused.
    lost: BTreeSet<String>,
    /// The frames that have left their first state, so that their workspaces contain work.
    moved: BTreeSet<String>,
    /// The frames that continue when they are opened.
    parked: BTreeSet<String>,
}

impl WorkspaceAudit {
    /// A run that ended continues with these frames.
    pub(crate) fn reopened(
        &mut self,
        frames: &BTreeMap<String, Frame>,
        parked: &BTreeMap<String, Frame>,
    ) -> Result<(), String> {
        self.planned.retain(|_, space| !space.is_closed());
        for items in self.begun.values_mut() {
            items.retain(|item| frames.contains_key(item));
        }
        for (id, at) in frames.iter().chain(parked) {
            if at.from.is_empty() {
                self.moved.remove(id);
            } else {
                self.moved.insert(id.clone());
            }
            let Some(own) = at.workspace.as_ref().filter(|own| own.is_pending()) else { continue };
            if own.restore.is_none() {
                return Err(format!("{} of a run that ended is still open", own.id));
            }
            let space = WorkspaceRecord {
                frame: id.clone(),
                lifetime: own.lifetime,
                state: State::Planned,
            };
            if self.planned.insert(own.id.clone(), space).is_some() {
                return Err(format!("two workspaces have the id {}", own.id));
            }
        }
        self.parked = parked.keys().cloned().collect();
        Ok(())
    }

    /// Whether an attempt may use the workspace.
    pub(crate) fn may_work_in(&self, workspace: &str) -> Result<(), String> {
        match self.planned.get(workspace) {
            Some(space) if space.state == State::Open && !self.lost.contains(workspace) => Ok(()),
            Some(space) => Err(format!("work began in {workspace}, which is {:?}", space.state)),
            None => Err(format!("work began in {workspace}, which nobody planned")),
        }
    }

    /// Checks an event before it is applied.
    pub(crate) fn before(
        &mut self,
        event: &Event,
        in_flight: &BTreeMap<String, String>,
    ) -> Result<(), String> {
        match event {
            Event::FrameOpened { frame, .. } if !self.parked.contains(frame) => {
                self.moved.remove(frame);
            }
            Event::TransitionTaken(moved) => drop(self.moved.insert(moved.frame.clone())),
            _ => {}
        }
        match event {
            Event::WorkspacePlanned { frame, workspace, lifetime } => {
                if self.workspaces_of(frame).any(|(id, _)| !self.lost.contains(id)) {
                    return Err(format!("frame '{frame}' has a workspace and gets {workspace}"));
                }
                let space = WorkspaceRecord {
                    frame: frame.clone(),
                    lifetime: *lifetime,
                    state: State::Planned,
                };
                if self.planned.insert(workspace.clone(), space).is_some() {
                    return Err(format!("two workspaces have the id {workspace}"));
                }
            }
            Event::WorkspaceOpened { workspace, .. } => {
                self.goes(workspace, State::Open, |state| state == State::Planned)?;
            }
            Event::WorkspaceFailed { workspace, .. } => {
                let times = match self.planned.get(workspace).map(|space| space.state) {
                    Some(State::Open) => 1,
                    _ => 2,
                };
                let times = if self.lost.contains(workspace) { 2 } else { times };
                self.goes(workspace, State::Failed(times), |state| {
                    matches!(state, State::Planned | State::Open | State::Failed(1))
                })?;
            }
            Event::WorkspaceMerged { frame, workspace, conflicts, .. } => {
                let state = if conflicts.is_empty() { State::Merged } else { State::Conflict };
                self.goes(workspace, state, |state| state == State::Open)?;
                if in_flight.values().any(|at| at == frame || at.starts_with(&format!("{frame}/")))
                {
                    return Err(format!("{workspace} was merged with an attempt in flight"));
                }
                let fan = self.begun.values().find(|items| items.contains(frame));
                if let Some(first) =
                    fan.and_then(|items| items.first()).filter(|first| *first != frame)
                {
                    return Err(format!(
                        "'{frame}' was merged before '{first}', which began before"
                    ));
                }
            }
            Event::WorkspaceDropped { workspace, .. } => {
                self.goes(workspace, State::Dropped, |state| {
                    matches!(state, State::Planned | State::Open | State::Failed(1))
                })?;
            }
            Event::FrameOpened { frame, parent: Some(parent), item: Some(_), .. } => {
                self.begun.entry(parent.clone()).or_default().push(frame.clone());
            }
            _ => self.leaves(event)?,
        }
        Ok(())
    }

    /// Checks the workspaces of a frame that ends.
    fn leaves(&mut self, event: &Event) -> Result<(), String> {
        match event {
            Event::TransitionTaken(moved) => {
                let held = self.workspaces_of(&moved.frame).find(|(id, space)| {
                    space.lifetime == WorkspaceLifetime::State && !self.lost.contains(*id)
                });
                if let Some((id, _)) = held {
                    return Err(format!("frame '{}' moved on and left {id}", moved.frame));
                }
            }
            Event::FrameEnded { frame, outcome, conflict, .. } => {
                if let Some((id, _)) =
                    self.workspaces_of(frame).find(|(id, _)| !self.lost.contains(*id))
                {
                    return Err(format!("frame '{frame}' ended and left {id}"));
                }
                let own = self.planned.iter().filter(|(id, space)| {
                    space.frame == *frame
                        && space.lifetime == WorkspaceLifetime::Frame
                        && !self.lost.contains(*id)
                });
                for (id, space) in own {
                    let is_done = *outcome == End::Done;
                    let fits = match space.state {
                        State::Merged => is_done,
                        State::Conflict => !is_done && *conflict,
                        _ => !is_done,
                    };
                    if !fits {
                        return Err(format!(
                            "frame '{frame}' ended as {outcome:?}, and {id} is {:?}",
                            space.state
                        ));
                    }
                }
                for items in self.begun.values_mut() {
                    items.retain(|item| item != frame);
                }
                // The frame may be opened again.
                self.planned.retain(|_, space| space.frame != *frame || !space.is_closed());
            }
            Event::RunEnded { .. } => {
                if let Some((id, space)) = self.planned.iter().find(|(_, space)| !space.is_closed())
                {
                    return Err(format!("the run ended, and {id} is {:?}", space.state));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// An attempt of a frame was lost.
    pub(crate) fn lost(&mut self, frame: &str) {
        let begins_anew = !self.moved.contains(frame);
        let alone =
            |space: &WorkspaceRecord| space.lifetime == WorkspaceLifetime::State || begins_anew;
        let ids: Vec<String> = self
            .workspaces_of(frame)
            .filter(|(_, space)| alone(space))
            .map(|(id, _)| id.clone())
            .collect();
        self.lost.extend(ids);
    }

    fn workspaces_of<'s>(
        &'s self,
        frame: &'s str,
    ) -> impl Iterator<Item = (&'s String, &'s WorkspaceRecord)> {
        self.planned.iter().filter(move |(_, space)| space.frame == frame && !space.is_closed())
    }

    fn goes(&mut self, id: &str, to: State, from: impl Fn(State) -> bool) -> Result<(), String> {
        let space = self.planned.get_mut(id).ok_or_else(|| format!("nobody planned {id}"))?;
        if !from(space.state) {
            return Err(format!("{id} is {:?} and became {to:?}", space.state));
        }
        space.state = to;
        Ok(())
    }
}
