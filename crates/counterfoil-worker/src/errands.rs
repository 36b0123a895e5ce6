//! Errands to workspaces, carried out: what came of each is a fact for the run.

use counterfoil_flow::{Chore, Errand, Event};
use counterfoil_workspace::workspace::Workspaces;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Carries out an errand; it may be one that was carried out before.
pub fn run(workspaces: &Workspaces, run: &str, errand: &Errand, ours: &BTreeSet<PathBuf>) -> Event {
    let (frame, workspace) = (errand.frame.clone(), errand.workspace.clone());
    let done =
        match errand.what {
            Chore::Open => workspaces
                .open(run, &workspace, ours)
                .map(|opened| Event::WorkspaceOpened { frame, workspace, notes: opened.notes }),
            Chore::Fold => workspaces.fold(run, &workspace).map(|folded| Event::WorkspaceFolded {
                frame,
                workspace,
                changed: folded.changed,
                conflicts: folded.conflicts,
                kept: folded.kept,
                notes: folded.notes,
            }),
            Chore::Drop => workspaces
                .discard(run, &workspace)
                .map(|kept| Event::WorkspaceDropped { frame, workspace, kept }),
        };
    done.unwrap_or_else(|error| failed(errand, &error.to_string()))
}

/// An errand that came to nothing.
pub fn failed(errand: &Errand, reason: &str) -> Event {
    Event::WorkspaceFailed {
        frame: errand.frame.clone(),
        workspace: errand.workspace.clone(),
        reason: reason.to_owned(),
    }
}

/// The workspace that a fact is about, if somebody came back from an errand with it.
pub fn of(fact: &Event) -> Option<&str> {
    match fact {
        Event::WorkspaceOpened { workspace, .. }
        | Event::WorkspaceFolded { workspace, .. }
        | Event::WorkspaceDropped { workspace, .. }
        | Event::WorkspaceFailed { workspace, .. } => Some(workspace),
        _ => None,
    }
}
