//! Workspaces of their own: planned, open, folded back or dropped. What to do with them is decided
//! elsewhere.

use super::{Frame, Phase, RunState};
use crate::event::{AFRESH, Event, WorkspaceLifetime};
use crate::problem::Problem;
use crate::workflow::FailureKind;
use serde::{Deserialize, Serialize};

/// A workspace of a frame's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workspace {
    /// Its id, which is its fence.
    pub id: String,
    /// How long it is kept.
    #[serde(rename = "tenure")]
    pub lifetime: WorkspaceLifetime,
    /// What became of it.
    pub stage: WorkspaceStage,
    /// The patch that keeps work which is not in the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

/// What became of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspaceStage {
    /// It is not there yet.
    Planned,
    /// It is there.
    Open,
    /// It is there, and folding or dropping it failed once.
    Stuck,
    /// It was folded back, or was not for its conflicts.
    #[serde(rename = "folded")]
    Merged,
    /// It was dropped.
    Dropped,
    /// It could not be opened, or not be got rid of.
    Failed,
}

impl Workspace {
    /// Whether somebody still has to fold it back or drop it.
    pub fn is_held(&self) -> bool {
        matches!(self.stage, WorkspaceStage::Planned | WorkspaceStage::Open | WorkspaceStage::Stuck)
    }

    /// Whether its frame can only end: it was to work there to the end, and no longer can.
    pub(crate) fn ends_its_frame(&self) -> bool {
        self.lifetime == WorkspaceLifetime::Frame
            && !matches!(self.stage, WorkspaceStage::Planned | WorkspaceStage::Open)
    }
}

/// More conflicts are counted and not named.
const MAX_NAMED: usize = 10;

/// The name under which the workspaces of a place are counted.
pub(crate) fn counted(place: &str) -> String {
    format!("@{place}")
}

impl RunState {
    /// Whether a frame works in a worktree, its own or that of one around it.
    pub fn has_own_workspace(&self, frame: &str) -> bool {
        let frame = self.frames.get(frame);
        frame.is_some_and(|frame| self.workspace_of(frame).is_some())
    }

    /// The workspace that a frame works in: its own, or that of the nearest frame around it.
    pub fn workspace_of<'a>(&'a self, frame: &'a Frame) -> Option<&'a str> {
        let mut at = frame;
        loop {
            if let Some(own) = &at.workspace {
                return Some(&own.id);
            }
            at = self.frames.get(at.parent.as_ref()?)?;
        }
    }

    /// The workspaces that are not folded back or dropped, with their frames.
    pub fn workspaces(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = self.frames.iter().filter_map(|(frame, at)| {
            let own = at.workspace.as_ref().filter(|own| own.is_held())?;
            Some((own.id.as_str(), frame.as_str()))
        });
        own.chain(self.left.iter().map(|(id, frame)| (id.as_str(), frame.as_str())))
    }

    /// Whether a fact about a workspace concerns the run: it is the one that its frame has, and it
    /// is where the fact says.
    pub(crate) fn awaits(&self, fact: &Event) -> bool {
        let own = |frame: &str, id: &str| {
            let own = self.frames.get(frame).and_then(|frame| frame.workspace.as_ref());
            own.filter(|own| own.id == id)
        };
        let is_left = |frame: &str, id: &str| self.left.get(id).is_some_and(|of| of == frame);
        match fact {
            Event::WorkspaceOpened { frame, workspace, .. } => {
                own(frame, workspace).is_some_and(|own| own.stage == WorkspaceStage::Planned)
            }
            Event::WorkspaceMerged { frame, workspace, .. } => own(frame, workspace)
                .is_some_and(|own| own.stage == WorkspaceStage::Open && !self.is_working_in(frame)),
            Event::WorkspaceFailed { frame, workspace, .. }
            | Event::WorkspaceDropped { frame, workspace, .. } => {
                is_left(frame, workspace)
                    || own(frame, workspace)
                        .is_some_and(|own| own.is_held() && !self.is_working_in(frame))
            }
            _ => false,
        }
    }

    fn is_working_in(&self, frame: &str) -> bool {
        self.frames.get(frame).is_some_and(|frame| matches!(frame.phase, Phase::Running { .. }))
    }

    pub(super) fn workspace(&mut self, event: &Event) {
        match event {
            Event::WorkspacePlanned { frame, workspace, lifetime } => {
                let place =
                    workspace.rsplit_once('#').map_or(workspace.as_str(), |(place, _)| place);
                *self.visits.entry(counted(place)).or_default() += 1;
                if let Some(at) = self.frames.get_mut(frame) {
                    at.workspace = Some(Workspace {
                        id: workspace.clone(),
                        lifetime: *lifetime,
                        stage: WorkspaceStage::Planned,
                        kept: None,
                    });
                }
            }
            Event::WorkspaceOpened { frame, .. } => self.staged(frame, WorkspaceStage::Open, None),
            Event::WorkspaceFailed { frame, workspace, reason } => {
                match self.left.remove(workspace) {
                    Some(_) => {}
                    None => self.workspace_failed(frame, reason),
                }
            }
            Event::WorkspaceMerged { frame, conflicts, kept, .. } => {
                self.staged(frame, WorkspaceStage::Merged, kept.as_ref());
                if !conflicts.is_empty() {
                    let reason = in_conflict(conflicts, kept.as_deref());
                    self.phase(frame, Phase::Failed(Problem::new(FailureKind::Conflict, &reason)));
                }
            }
            Event::WorkspaceDropped { frame, workspace, kept } => {
                if self.left.remove(workspace).is_some() {
                    return;
                }
                self.staged(frame, WorkspaceStage::Dropped, kept.as_ref());
                if let (Some(at), Some(kept)) = (self.frames.get_mut(frame), kept)
                    && let Phase::Failed(problem) = &mut at.phase
                {
                    problem.reason = with_kept(&problem.reason, kept);
                }
            }
            _ => {}
        }
    }

    fn staged(&mut self, frame: &str, stage: WorkspaceStage, kept: Option<&String>) {
        if let Some(own) = self.frames.get_mut(frame).and_then(|at| at.workspace.as_mut()) {
            (own.stage, own.kept) = (stage, kept.cloned());
        }
    }

    /// One that cannot be opened is a trouble of the step. One that cannot be folded back is
    /// dropped; one that cannot be dropped either is left to whoever sweeps.
    fn workspace_failed(&mut self, frame: &str, reason: &str) {
        let Some(at) = self.frames.get_mut(frame) else { return };
        let Some(own) = at.workspace.as_mut() else { return };
        let opening = own.stage == WorkspaceStage::Planned;
        own.stage = if own.stage == WorkspaceStage::Open {
            WorkspaceStage::Stuck
        } else {
            WorkspaceStage::Failed
        };
        // What went wrong before says more than that the room could not be cleared.
        if matches!(at.phase, Phase::Entered { .. } | Phase::Resulted(_)) {
            let reason = if opening {
                format!("no workspace could be opened: {reason}")
            } else {
                format!("the work could not be folded back: {reason}")
            };
            self.phase(frame, Phase::Failed(Problem::new(FailureKind::Blocked, &reason)));
        }
    }

    /// An attempt was lost: what it left in a workspace is nothing to build on, unless steps before
    /// it were done there.
    pub(super) fn leave_workspace(&mut self, frame: &str) {
        let afresh = self.decide >= AFRESH;
        let Some(at) = self.frames.get_mut(frame) else { return };
        let alone = |own: &Workspace| {
            own.lifetime == WorkspaceLifetime::State || (afresh && at.from.is_empty())
        };
        if let Some(own) = at.workspace.take_if(|own| own.is_held() && alone(own)) {
            self.left.insert(own.id, frame.to_owned());
        }
    }

    /// An item is done before others that began earlier: it is looked at again when it is its turn.
    pub(super) fn queue_merge(&mut self, frame: &str) {
        let parent = self.frames.get(frame).and_then(|at| at.parent.clone());
        if let Some(at) = parent.and_then(|parent| self.frames.get_mut(&parent))
            && let Phase::Fanned(fan) = &mut at.phase
            && fan.queue(frame)
        {
            self.ready.remove(frame);
        }
    }
}

/// A reason that also says where the work is.
pub(crate) fn with_kept(reason: &str, kept: &str) -> String {
    match reason {
        "" => format!("the work is kept in {kept}"),
        reason if reason.contains(kept) => reason.to_owned(),
        reason => format!("{reason}; the work is kept in {kept}"),
    }
}

fn in_conflict(conflicts: &[String], kept: Option<&str>) -> String {
    let named = conflicts.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = match conflicts.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let reason = format!("changes conflict with the repository: {named}{more}");
    match kept {
        Some(kept) => with_kept(&reason, kept),
        None => reason,
    }
}
