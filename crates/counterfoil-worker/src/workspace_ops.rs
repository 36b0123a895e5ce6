//! Performs workspace operations. The result of each is a fact for the run.

use counterfoil_flow::{Event, WorkspaceOp, WorkspaceOpKind};
use counterfoil_verify::claims::VerifyConfig;
use counterfoil_workspace::git::repository_top;
use counterfoil_workspace::workspaces::Workspaces;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

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
            // What checks write on the way, in two workspaces at once, is no conflict of the work.
            let noise = OnceCell::new();
            let is_noise = |path: &Path| {
                noise.get_or_init(|| config_of(workspaces.repo()).noise()).is_match(path)
            };
            workspaces.merge_back_around(run, &workspace, &is_noise).map(|merged| {
                Event::WorkspaceMerged {
                    frame,
                    workspace,
                    changed: merged.changed,
                    conflicts: merged.conflicts,
                    kept: merged.kept,
                    notes: merged.notes,
                }
            })
        }
        WorkspaceOpKind::Drop => workspaces
            .discard(run, &workspace)
            .map(|kept| Event::WorkspaceDropped { frame, workspace, kept }),
    };
    done.unwrap_or_else(|error| workspace_op_failed(op, &error.to_string()))
}

/// The configuration of a project; the usual one if it cannot be read.
fn config_of(repo: &Path) -> VerifyConfig {
    let top = repository_top(repo).unwrap_or(repo);
    VerifyConfig::load(repo, top).unwrap_or_default()
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
