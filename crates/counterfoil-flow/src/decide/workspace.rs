//! The workspaces of states and frames: when they are opened, merged and discarded.
//!
//! The workspace of a state is opened before its agent starts, and merged when the result is
//! accepted. The workspace of a frame is opened before its first state, and merged when the frame
//! ends as done. Otherwise it is discarded, and its work is kept as a patch. The transition or the
//! end is recorded after that. Items are merged in the order in which they started, so the first
//! running item never waits for another.

use super::{Command, path_of};
use crate::event::{CLAIMS_VERIFIED, Event, WorkspaceLifetime};
use crate::run_state::{
    Frame, Phase, RunState, Workspace, WorkspaceStage, join, with_kept, workspace_visits,
};
use crate::workflow::{Body, End, State, Step, Workflow, WorkspaceMode};
use serde::{Deserialize, Serialize};

/// An operation on a workspace. Every turn returns it again until its result is known, so it must
/// be idempotent, also across processes: the id identifies the workspace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WorkspaceOp {
    /// The frame that has the workspace.
    pub frame: String,
    /// The id of the workspace.
    pub workspace: String,
    /// The kind of operation.
    pub kind: WorkspaceOpKind,
    /// The patch with earlier work to apply when it is opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<String>,
}

/// The kind of a workspace operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspaceOpKind {
    /// Open it as a copy of the current repository. The result is `WorkspaceOpened` or
    /// `WorkspaceFailed`.
    Open,
    /// Merge its work into the repository, completely or not at all, and remove it. The result is
    /// `WorkspaceMerged` or `WorkspaceFailed`; after a failure it is discarded.
    Merge,
    /// Save its work as a patch and remove it. The workspace may not exist. The result is
    /// `WorkspaceDropped` or `WorkspaceFailed`.
    Drop,
}

/// The command that opens the workspace of a frame, if it is planned.
pub(super) fn open_planned(id: &str, frame: &Frame) -> Option<Command> {
    let own = frame.workspace.as_ref()?;
    (own.stage == WorkspaceStage::Planned).then(|| workspace_op(id, own, WorkspaceOpKind::Open))
}

/// The command that provides the workspace of a frame or its state, if it needs one.
pub(super) fn open_if_needed(
    workflow: &Workflow,
    run: &RunState,
    id: &str,
    frame: &Frame,
    state: &State,
) -> Option<Command> {
    match &frame.workspace {
        Some(_) => open_planned(id, frame),
        None => {
            let lifetime = needed_lifetime(workflow, run, frame, state)?;
            let place = match lifetime {
                WorkspaceLifetime::State => join(&path_of(workflow, run, id, frame)),
                WorkspaceLifetime::Frame => id.to_owned(),
            };
            let n = run.visits.get(&workspace_visits(&place)).copied().unwrap_or(0) + 1;
            Some(Command::Record(Event::WorkspacePlanned {
                frame: id.to_owned(),
                workspace: format!("{place}#{n}"),
                lifetime,
            }))
        }
    }
}

/// The lifetime of the workspace that a frame or its state needs, if it needs one.
fn needed_lifetime(
    workflow: &Workflow,
    run: &RunState,
    frame: &Frame,
    state: &State,
) -> Option<WorkspaceLifetime> {
    // Workspaces are not nested: child frames share the workspace of their parent.
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
        // A frame that starts in an end state does no work.
        Step::End { .. } => None,
        Step::Agent(dispatch)
            if of_frame.is_none() && dispatch.workspace == WorkspaceMode::Worktree =>
        {
            Some(WorkspaceLifetime::State)
        }
        _ => of_frame,
    }
}

/// Returns the decision, or first the operation on the workspace that the decision leaves behind.
pub(super) fn settle_workspace(
    run: &RunState,
    id: &str,
    frame: &Frame,
    command: Command,
) -> Option<Command> {
    let Command::Record(event) = command else { return Some(command) };
    let ends_as = match &event {
        Event::FrameEnded { outcome, .. } => Some(*outcome == End::Done),
        Event::RunEnded { .. } => Some(false),
        Event::TransitionTaken(_) => None,
        _ => return Some(Command::Record(event)),
    };
    match frame.workspace.as_ref().filter(|own| own.is_pending()) {
        Some(own) => {
            let accepted = match own.lifetime {
                WorkspaceLifetime::State => matches!(frame.phase, Phase::Resulted(_)),
                WorkspaceLifetime::Frame => match ends_as {
                    Some(done) => done,
                    // The workspace is kept until its frame ends.
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
        // The run ends after its abandoned workspaces are discarded.
        None if matches!(event, Event::RunEnded { .. }) && !run.left.is_empty() => None,
        None => Some(Command::Record(with_patch_in_reason(frame, event))),
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

/// Adds the patch with the work of a frame to the reason of its end.
fn with_patch_in_reason(frame: &Frame, mut event: Event) -> Event {
    let kept = frame.workspace.as_ref().and_then(|own| own.kept.as_ref());
    if let (Event::FrameEnded { reason, .. } | Event::RunEnded { reason, .. }, Some(kept)) =
        (&mut event, kept)
    {
        *reason = with_kept(reason, kept);
    }
    event
}

/// Discards abandoned workspaces.
pub(super) fn discard_abandoned(run: &RunState) -> impl Iterator<Item = Command> {
    run.left.iter().map(|(workspace, frame)| {
        Command::Workspace(WorkspaceOp {
            frame: frame.clone(),
            workspace: workspace.clone(),
            kind: WorkspaceOpKind::Drop,
            restore: None,
        })
    })
}

/// Discards all workspaces of a run that ends for a reason outside of the workflow.
pub(super) fn discard_all(run: &RunState) -> Vec<Command> {
    let drop = |(workspace, frame): (&str, &str)| {
        Command::Workspace(WorkspaceOp {
            frame: frame.to_owned(),
            workspace: workspace.to_owned(),
            kind: WorkspaceOpKind::Drop,
            restore: None,
        })
    };
    run.workspaces().map(drop).collect()
}

/// Adds the patches with the unmerged work to the reason for which a run ends.
pub(super) fn with_patches(run: &RunState, reason: &str) -> String {
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
    let restore = own.restore.clone().filter(|_| kind == WorkspaceOpKind::Open);
    Command::Workspace(WorkspaceOp {
        frame: frame.to_owned(),
        workspace: own.id.clone(),
        kind,
        restore,
    })
}
