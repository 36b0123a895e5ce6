//! Performs workspace operations. The result of each is a fact for the run.

use counterfoil_flow::{Event, WorkspaceOp, WorkspaceOpKind};
use counterfoil_workspace::workspaces::Workspaces;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Opens, merges or discards a workspace. Repeating an operation is safe. `published` lists the
/// files that the engine wrote itself.
pub fn perform_workspace_op(
    workspaces: &Workspaces,
    run: &str,
    op: &WorkspaceOp,
    published: &BTreeSet<PathBuf>,
) -> Event {
    let (frame, workspace) = (op.frame.clone(), op.workspace.clone());
    let done = match op.kind {
        WorkspaceOpKind::Open => match &op.restore {
            Some(work) => workspaces.open_with_work(run, &workspace, published, work),
            None => workspaces.open(run, &workspace, published),
        }
        .map(|opened| Event::WorkspaceOpened { frame, workspace, notes: opened.notes }),
        WorkspaceOpKind::Merge => {
            workspaces.merge_back(run, &workspace).map(|merged| Event::WorkspaceMerged {
                frame,
                workspace,
                changed: merged.changed,
                conflicts: merged.conflicts,
                kept: merged.kept,
                notes: merged.notes,
            })
        }
        WorkspaceOpKind::Drop => workspaces
            .discard(run, &workspace)
            .map(|kept| Event::WorkspaceDropped { frame, workspace, kept }),
    };
    done.unwrap_or_else(|error| workspace_op_failed(op, &error.to_string()))
}

/// The fact that a workspace operation failed.
pub fn workspace_op_failed(op: &WorkspaceOp, reason: &str) -> Event {
    Event::WorkspaceFailed {
        frame: op.frame.clone(),
        workspace: op.workspace.clone(),
        reason: reason.to_owned(),
    }
}

/// The workspace of a fact that is the result of a workspace operation; `None` for other facts.
pub fn workspace_of_fact(fact: &Event) -> Option<&str> {
    match fact {
        Event::WorkspaceOpened { workspace, .. }
        | Event::WorkspaceMerged { workspace, .. }
        | Event::WorkspaceDropped { workspace, .. }
        | Event::WorkspaceFailed { workspace, .. } => Some(workspace),
        _ => None,
    }
}
