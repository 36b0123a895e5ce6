//! Errands to workspaces, carried out: what came of each is a fact for the run.

use counterfoil_flow::{Event, WorkspaceOp, WorkspaceOpKind};
use counterfoil_workspace::workspaces::Workspaces;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Carries out an errand; it may be one that was carried out before.
pub fn run(
    workspaces: &Workspaces,
    run: &str,
    op: &WorkspaceOp,
    ours: &BTreeSet<PathBuf>,
) -> Event {
    let (frame, workspace) = (op.frame.clone(), op.workspace.clone());
    let done = match op.kind {
        WorkspaceOpKind::Open => workspaces
            .open(run, &workspace, ours)
            .map(|opened| Event::WorkspaceOpened { frame, workspace, notes: opened.notes }),
        WorkspaceOpKind::Merge => {
            workspaces.merge_back(run, &workspace).map(|folded| Event::WorkspaceMerged {
                frame,
                workspace,
                changed: folded.changed,
                conflicts: folded.conflicts,
                kept: folded.kept,
                notes: folded.notes,
            })
        }
        WorkspaceOpKind::Drop => workspaces
            .discard(run, &workspace)
            .map(|kept| Event::WorkspaceDropped { frame, workspace, kept }),
    };
    done.unwrap_or_else(|error| failed(op, &error.to_string()))
}

/// An errand that came to nothing.
pub fn failed(op: &WorkspaceOp, reason: &str) -> Event {
    Event::WorkspaceFailed {
        frame: op.frame.clone(),
        workspace: op.workspace.clone(),
        reason: reason.to_owned(),
    }
}

/// The workspace that a fact is about, if somebody came back from an errand with it.
pub fn of(fact: &Event) -> Option<&str> {
    match fact {
        Event::WorkspaceOpened { workspace, .. }
        | Event::WorkspaceMerged { workspace, .. }
        | Event::WorkspaceDropped { workspace, .. }
        | Event::WorkspaceFailed { workspace, .. } => Some(workspace),
        _ => None,
    }
}
