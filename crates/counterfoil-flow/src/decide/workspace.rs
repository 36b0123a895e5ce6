//! Workspaces of their own: who gets one, and what must become of it before its frame may go on or
//! end.
//!
//! A state that has one opens it before its agent starts, and folds it back when the result was
//! accepted. A frame that has one opens it before its first state, and folds it back when it ends
//! as done. In every other case it is dropped, and the engine keeps what was done in it as a patch.
//! Only then the transition or the end is recorded. Items are folded back in the order they began,
//! so the first of those at work never waits for another.

use super::{Command, path_of};
use crate::event::{CLAIMS_VERIFIED, Event, WorkspaceLifetime};
use crate::run_state::{
    Frame, Phase, RunState, Workspace, WorkspaceStage, counted, join, with_kept,
};
use crate::workflow::{Body, End, State, Step, Workflow, WorkspaceMode};
use serde::{Deserialize, Serialize};

/// Something to do with a workspace. It is handed out each turn until what came of it was told, so
/// whoever does it must bear to be asked again, also by another process after a crash: the id says
/// whether it is the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WorkspaceOp {
    /// The frame it is for.
    pub frame: String,
    /// The workspace.
    pub workspace: String,
    /// What to do.
    pub kind: WorkspaceOpKind,
}

/// What to do with a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspaceOpKind {
    /// Make it: the repository as it stands now. Answered by `WorkspaceOpened` or
    /// `WorkspaceFailed`.
    Open,
    /// Bring what was done in it into the repository, whole or not at all, and remove it. Answered
    /// by `WorkspaceMerged` or `WorkspaceFailed`; one that failed is to be dropped next.
    Merge,
    /// Keep what was done in it as a patch, and remove it; it may not be there yet, or no longer.
    /// Answered by `WorkspaceDropped`, or `WorkspaceFailed`.
    Drop,
}

/// What must happen before a frame can do anything in its state, if it is to have a workspace of
/// its own.
pub(super) fn before(
    workflow: &Workflow,
    run: &RunState,
    id: &str,
    frame: &Frame,
    state: &State,
) -> Option<Command> {
    match &frame.workspace {
        Some(own) => (own.stage == WorkspaceStage::Planned)
            .then(|| workspace_op(id, own, WorkspaceOpKind::Open)),
        None => {
            let lifetime = wanted(workflow, run, frame, state)?;
            let place = match lifetime {
                WorkspaceLifetime::State => join(&path_of(workflow, run, id, frame)),
                WorkspaceLifetime::Frame => id.to_owned(),
            };
            let n = run.visits.get(&counted(&place)).copied().unwrap_or(0) + 1;
            Some(Command::Record(Event::WorkspacePlanned {
                frame: id.to_owned(),
                workspace: format!("{place}#{n}"),
                lifetime,
            }))
        }
    }
}

/// Whether a frame that has no workspace is to have one, or the state that it came into.
fn wanted(
    workflow: &Workflow,
    run: &RunState,
    frame: &Frame,
    state: &State,
) -> Option<WorkspaceLifetime> {
    // There is none inside of another: what works there shares it.
    if run.decide < CLAIMS_VERIFIED || run.workspace_of(frame).is_some() {
        return None;
    }
    let around = frame
        .parent
        .as_ref()
        .and_then(|parent| run.frames.get(parent))
        .and_then(|parent| workflow.machine(&parent.machine)?.states.get(&parent.state));
    let of_frame = match around.map(|around| &around.kind) {
        Some(Step::Each(each)) if each.workspace == WorkspaceMode::Worktree => match each.body {
            Body::Agent(_) => Some(WorkspaceLifetime::State),
            Body::Machine { .. } => Some(WorkspaceLifetime::Frame),
        },
        Some(Step::Call { workspace: WorkspaceMode::Worktree, .. }) => {
            Some(WorkspaceLifetime::Frame)
        }
        _ => None,
    };
    match &state.kind {
        // One that ends where it begins has nothing to do in it.
        Step::End { .. } => None,
        Step::Agent(dispatch)
            if of_frame.is_none() && dispatch.workspace == WorkspaceMode::Worktree =>
        {
            Some(WorkspaceLifetime::State)
        }
        _ => of_frame,
    }
}

/// Lets a decision pass, or asks first for what must become of the workspace that it leaves behind.
pub(super) fn gate(run: &RunState, id: &str, frame: &Frame, command: Command) -> Option<Command> {
    let Command::Record(event) = command else { return Some(command) };
    let ends_as = match &event {
        Event::FrameEnded { outcome, .. } => Some(*outcome == End::Done),
        Event::RunEnded { .. } => Some(false),
        Event::TransitionTaken(_) => None,
        _ => return Some(Command::Record(event)),
    };
    match frame.workspace.as_ref().filter(|own| own.is_held()) {
        Some(own) => {
            let accepted = match own.lifetime {
                WorkspaceLifetime::State => matches!(frame.phase, Phase::Resulted(_)),
                WorkspaceLifetime::Frame => match ends_as {
                    Some(done) => done,
                    // It stays where it is as long as its frame goes on.
                    None => return Some(Command::Record(event)),
                },
            };
            Some(match own.stage {
                WorkspaceStage::Open if accepted && may_merge(run, id, frame) => {
                    workspace_op(id, own, WorkspaceOpKind::Merge)
                }
                WorkspaceStage::Open if accepted => {
                    Command::Record(Event::MergeQueued { frame: id.to_owned() })
                }
                _ => workspace_op(id, own, WorkspaceOpKind::Drop),
            })
        }
        // The run is over when nothing of it is left.
        None if matches!(event, Event::RunEnded { .. }) && !run.left.is_empty() => None,
        None => Some(Command::Record(saying_what_is_kept(frame, event))),
    }
}

fn may_merge(run: &RunState, id: &str, frame: &Frame) -> bool {
    match frame
        .parent
        .as_ref()
        .and_then(|parent| run.frames.get(parent))
        .map(|parent| &parent.phase)
    {
        Some(Phase::Fanned(fan)) => fan.may_merge(id),
        _ => true,
    }
}

/// The end of a frame names the patch that keeps its work.
fn saying_what_is_kept(frame: &Frame, mut event: Event) -> Event {
    let kept = frame.workspace.as_ref().and_then(|own| own.kept.as_ref());
    if let (Event::FrameEnded { reason, .. } | Event::RunEnded { reason, .. }, Some(kept)) =
        (&mut event, kept)
    {
        *reason = with_kept(reason, kept);
    }
    event
}

/// What nobody works in any more is dropped, whatever else happens.
pub(super) fn left(run: &RunState) -> impl Iterator<Item = Command> {
    run.left.iter().map(|(workspace, frame)| {
        Command::Workspace(WorkspaceOp {
            frame: frame.clone(),
            workspace: workspace.clone(),
            kind: WorkspaceOpKind::Drop,
        })
    })
}

/// A run that ends from outside drops all that is there.
pub(super) fn all(run: &RunState) -> Vec<Command> {
    let drop = |(workspace, frame): (&str, &str)| {
        Command::Workspace(WorkspaceOp {
            frame: frame.to_owned(),
            workspace: workspace.to_owned(),
            kind: WorkspaceOpKind::Drop,
        })
    };
    run.workspaces().map(drop).collect()
}

/// Where the work is that a run which ends from outside leaves behind, in words.
pub(super) fn kept(run: &RunState, reason: &str) -> String {
    const MAX_NAMED: usize = 5;
    let kept = run.frames.values().filter_map(|frame| frame.workspace.as_ref()?.kept.as_deref());
    let kept: Vec<&str> = kept.collect();
    let named = kept.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
    match kept.len() {
        0 => reason.to_owned(),
        all if all > MAX_NAMED => {
            with_kept(reason, &format!("{named} and {} more", all - MAX_NAMED))
        }
        _ => with_kept(reason, &named),
    }
}

fn workspace_op(frame: &str, own: &Workspace, kind: WorkspaceOpKind) -> Command {
    Command::Workspace(WorkspaceOp { frame: frame.to_owned(), workspace: own.id.clone(), kind })
}
