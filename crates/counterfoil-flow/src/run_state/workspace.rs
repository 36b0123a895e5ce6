//! The workspaces of frames: planned, open, merged or discarded. `decide` says what to do with
//! them.

use super::{Frame, Phase, RunState};
use crate::event::{Event, FRESH_WORKSPACE, WorkspaceLifetime};
use crate::problem::Problem;
use crate::workflow::FailureKind;
use serde::{Deserialize, Serialize};

/// The workspace of a frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workspace {
    /// The id. Facts about other workspaces are ignored.
    pub id: String,
    /// How long the workspace is kept.
    #[serde(rename = "tenure")]
    pub lifetime: WorkspaceLifetime,
    /// The stage of its life cycle.
    pub stage: WorkspaceStage,
    /// The patch with work that was not merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    /// The patch with earlier work of its frame, which is applied when it is opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<String>,
}

/// The stage of a workspace in its life cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspaceStage {
    /// It is not open yet.
    Planned,
    /// It is open.
    Open,
    /// It is open, and merging or discarding it failed once.
    Stuck,
    /// It was merged, or had conflicts.
    #[serde(rename = "folded")]
    Merged,
    /// It was discarded.
    Dropped,
    /// It could not be opened or removed.
    Failed,
}

impl Workspace {
    /// Whether it must still be merged or discarded.
    pub fn is_pending(&self) -> bool {
        matches!(self.stage, WorkspaceStage::Planned | WorkspaceStage::Open | WorkspaceStage::Stuck)
    }

    /// Whether its frame must end: it can only work in this workspace, which is not usable.
    pub(crate) fn ends_its_frame(&self) -> bool {
        self.lifetime == WorkspaceLifetime::Frame
            && !matches!(self.stage, WorkspaceStage::Planned | WorkspaceStage::Open)
    }
}

/// Further conflicts are counted, not named.
const MAX_NAMED: usize = 10;

/// The key under which the workspaces of a path are counted.
pub(crate) fn workspace_visits(place: &str) -> String {
    format!("@{place}")
}

impl RunState {
    /// Whether a frame works in a worktree, its own or that of a parent frame.
    pub fn has_own_workspace(&self, frame: &str) -> bool {
        let frame = self.frames.get(frame);
        frame.is_some_and(|frame| self.workspace_of(frame).is_some())
    }

    /// The workspace that a frame works in: its own, or that of the nearest parent frame.
    pub fn workspace_of<'a>(&'a self, frame: &'a Frame) -> Option<&'a str> {
        let mut at = frame;
        loop {
            if let Some(own) = &at.workspace {
                return Some(&own.id);
            }
            at = self.frames.get(at.parent.as_ref()?)?;
        }
    }

    /// Whether a frame waits for the workspace of a parent frame, to which earlier work is applied.
    pub(crate) fn waits_for_workspace(&self, frame: &Frame) -> bool {
        let mut at = frame;
        loop {
            if let Some(own) = &at.workspace {
                return own.stage == WorkspaceStage::Planned;
            }
            match at.parent.as_ref().and_then(|parent| self.frames.get(parent)) {
                Some(parent) => at = parent,
                None => return false,
            }
        }
    }

    /// The workspaces that must still be merged or discarded, with their frames.
    pub fn workspaces(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = self.frames.iter().filter_map(|(frame, at)| {
            let own = at.workspace.as_ref().filter(|own| own.is_pending())?;
            Some((own.id.as_str(), frame.as_str()))
        });
        own.chain(self.left.iter().map(|(id, frame)| (id.as_str(), frame.as_str())))
    }

    /// Whether a fact about a workspace applies: the frame has this workspace, in a stage that
    /// allows the fact.
    pub(crate) fn expects_workspace_fact(&self, fact: &Event) -> bool {
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
                        .is_some_and(|own| own.is_pending() && !self.is_working_in(frame))
            }
            _ => false,
        }
    }

    fn is_working_in(&self, frame: &str) -> bool {
        self.frames.get(frame).is_some_and(|frame| {
            matches!(frame.phase, Phase::Running { .. } | Phase::Checking { .. })
        })
    }

    pub(super) fn workspace(&mut self, event: &Event) {
        match event {
            Event::WorkspacePlanned { frame, workspace, lifetime } => {
                self.count_workspace(workspace);
                if let Some(at) = self.frames.get_mut(frame) {
                    at.workspace = Some(Workspace {
                        id: workspace.clone(),
                        lifetime: *lifetime,
                        stage: WorkspaceStage::Planned,
                        kept: None,
                        restore: None,
                    });
                }
            }
            Event::WorkspaceOpened { frame, .. } => {
                self.set_stage(frame, WorkspaceStage::Open, None);
                self.restored(frame);
            }
            Event::WorkspaceFailed { frame, workspace, reason } => {
                match self.left.remove(workspace) {
                    Some(_) => {}
                    None => self.workspace_failed(frame, reason),
                }
            }
            Event::WorkspaceMerged { frame, conflicts, kept, .. } => {
                self.set_stage(frame, WorkspaceStage::Merged, kept.as_ref());
                if !conflicts.is_empty() {
                    let reason = in_conflict(conflicts, kept.as_deref());
                    self.phase(frame, Phase::Failed(Problem::new(FailureKind::Conflict, &reason)));
                }
            }
            Event::WorkspaceDropped { frame, workspace, kept } => {
                if self.left.remove(workspace).is_some() {
                    return;
                }
                self.set_stage(frame, WorkspaceStage::Dropped, kept.as_ref());
                if let (Some(at), Some(kept)) = (self.frames.get_mut(frame), kept)
                    && let Phase::Failed(problem) = &mut at.phase
                {
                    problem.reason = with_kept(&problem.reason, kept);
                }
            }
            _ => {}
        }
    }

    /// Counts a workspace that was planned.
    pub(super) fn count_workspace(&mut self, id: &str) {
        let place = id.rsplit_once('#').map_or(id, |(place, _)| place);
        *self.visits.entry(workspace_visits(place)).or_default() += 1;
    }

    fn set_stage(&mut self, frame: &str, stage: WorkspaceStage, kept: Option<&String>) {
        if let Some(own) = self.frames.get_mut(frame).and_then(|at| at.workspace.as_mut()) {
            (own.stage, own.kept) = (stage, kept.cloned());
        }
    }

    /// A workspace that cannot be opened is a failure of the step. A workspace that cannot be
    /// merged is discarded; if that fails too, it is left for the next sweep.
    fn workspace_failed(&mut self, frame: &str, reason: &str) {
        let Some(at) = self.frames.get_mut(frame) else { return };
        let Some(own) = at.workspace.as_mut() else { return };
        let opening = own.stage == WorkspaceStage::Planned;
        own.stage = if own.stage == WorkspaceStage::Open {
            WorkspaceStage::Stuck
        } else {
            WorkspaceStage::Failed
        };
        // What is inside it cannot go on without its work.
        let holds_others = matches!(at.phase, Phase::Called | Phase::Fanned(_) | Phase::Asking);
        let is_lost = opening && own.restore.is_some() && holds_others;
        if is_lost {
            self.close_inside(frame);
        }
        let Some(at) = self.frames.get(frame) else { return };
        // An earlier problem is more useful than the failure to remove the workspace.
        if is_lost || matches!(at.phase, Phase::Entered { .. } | Phase::Resulted(_)) {
            let reason = if opening {
                format!("no workspace could be opened: {reason}")
            } else {
                format!("the work could not be merged: {reason}")
            };
            self.phase(frame, Phase::Failed(Problem::new(FailureKind::Blocked, &reason)));
        }
    }

    /// An attempt was lost: abandons its workspace, unless earlier steps worked in it.
    pub(super) fn leave_workspace(&mut self, frame: &str) {
        let starts_fresh = self.decide >= FRESH_WORKSPACE;
        let Some(at) = self.frames.get_mut(frame) else { return };
        let alone = |own: &Workspace| {
            own.lifetime == WorkspaceLifetime::State || (starts_fresh && at.from.is_empty())
        };
        if let Some(own) = at.workspace.take_if(|own| own.is_pending() && alone(own)) {
            self.left.insert(own.id, frame.to_owned());
        }
    }

    /// Queues the merge of an item until the items that started before it are merged.
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

/// The reason, followed by the patch with the work.
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
