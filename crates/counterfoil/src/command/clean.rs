//! The command `counterfoil clean`.

use crate::cli::CleanArgs;
use crate::exit::Exit;
use crate::report::clean::{CleanLimits, Remains, select};
use crate::{output, person, render, state_folder};
use anyhow::{Context, Result};
use counterfoil_contract::text::display_path;
use counterfoil_workspace::workspaces::run_name;
use std::collections::BTreeSet;
use std::path::Path;

/// The folders of the state folder that have a folder for each run.
const FOLDERS: [&str; 4] = ["transcripts", "kept", "undo", "baselines"];
/// The outcomes of runs that ended.
const ENDED: [&str; 6] = ["done", "blocked", "failed", "cancelled", "exhausted", "budget"];

pub(crate) fn run(args: &CleanArgs) -> Result<Exit> {
    person::require_outside_of_attempts("clean")?;
    let state = state_folder::of(&args.location)?;
    if !state_folder::has_runs(&state)? {
        output::write_stderr("there are no runs, so there is nothing to clean\n");
        return Ok(Exit::Success);
    }
    let engine = state_folder::open(&state)?;
    let mut all = Vec::new();
    let mut open = BTreeSet::new();
    for run in engine.journal().runs(None)? {
        let is_driven = run.driver.as_ref().is_some_and(|driver| driver.live);
        let outcome = run.summary.outcome.as_deref().unwrap_or_default();
        let ended = ENDED.contains(&outcome) && !is_driven && !run.altered;
        if !ended {
            open.insert(run.id.clone());
        }
        let name = run_name(&run.id);
        let bytes = FOLDERS.iter().map(|folder| size(&state.join(folder).join(&name))).sum();
        all.push(Remains { run: run.id, ended, updated_at: run.updated_at, bytes });
    }
    let limits = CleanLimits {
        now: jiff::Timestamp::now().as_millisecond(),
        older_than: args.older_than,
        max_size: args.max_size,
    };
    let selected = select(&all, limits);
    let mut worktrees = 0;
    if !args.dry_run {
        for one in &selected {
            remove(&state, &run_name(&one.run))?;
        }
        // Worktrees of runs that ended are left only after a crash. What is in them is saved first.
        let repo = crate::input::repository(args.location.repo.as_deref())?;
        let workspaces = engine.workspaces(&repo);
        worktrees = workspaces.sweep(&|run, _| open.contains(run)).len();
    }
    output::write_stderr(&render::cleaned(&selected, &all, worktrees, args));
    Ok(Exit::Success)
}

/// Removes what a run left. A folder that is a link is removed as a link.
fn remove(state: &Path, run: &str) -> Result<()> {
    for folder in FOLDERS {
        let path = state.join(folder).join(run);
        let Ok(metadata) = path.symlink_metadata() else { continue };
        let removed = if metadata.is_dir() {
            std::fs::remove_dir_all(&path)
        } else {
            std::fs::remove_file(&path)
        };
        removed.with_context(|| format!("cannot remove {}", display_path(&path)))?;
    }
    Ok(())
}

/// The size of the files in a folder. Links are not followed; what cannot be read counts nothing.
fn size(folder: &Path) -> u64 {
    let mut total = 0;
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let Ok(metadata) = folder.symlink_metadata() else { continue };
        if !metadata.is_dir() {
            total += metadata.len();
            continue;
        }
        let entries = std::fs::read_dir(&folder).into_iter().flatten();
        open.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
    }
    total
}
