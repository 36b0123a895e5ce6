//! Removes workspaces that no run uses any more.

use super::disk::{clear, real_path};
use super::metadata::{self, Record, Stage};
use super::plan::Plan;
use super::{
    Error, MergeRecordState, SweptWorkspace, WorkspacePaths, Workspaces, at, locate, lock,
    save_patch, undo, worktrees_folder,
};
use crate::make_private_folder;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub(super) fn sweep(
    workspaces: &Workspaces,
    is_open: &dyn Fn(&str, &str) -> bool,
) -> Vec<SweptWorkspace> {
    let places = [workspaces.state.join("bases"), workspaces.worktrees.clone()];
    // Every run starts with this call, and most never had a worktree.
    if !places.iter().any(|location| location.exists()) {
        return Vec::new();
    }
    let exclusive = match lock::exclusive(&workspaces.state) {
        Ok(lock) => lock,
        Err(error) => return vec![failed("", "", &error)],
    };
    let mut swept = Vec::new();
    let mut known = BTreeSet::new();
    for base in grandchildren(&workspaces.state.join("bases")) {
        match metadata::read::<Record>(&base.join("workspace.json")) {
            Ok(Some(record)) => {
                let paths = workspaces.paths(&record.run, &record.id);
                known.insert(paths.worktree.clone());
                if !is_open(&record.run, &record.id) {
                    swept.extend(remove_orphaned(workspaces, &paths, record));
                }
            }
            // The process was killed before it wrote the metadata, so nothing was created.
            Ok(None) => drop(clear(&base)),
            Err(error) => {
                // Its work cannot be distinguished from its base. It stays for inspection.
                known.insert(workspaces.worktrees.join(tail(&base)));
                swept.push(failed(&name(base.parent()), &name(Some(&base)), &error));
            }
        }
        remove_if_empty(base.parent());
    }
    let mut aside = BTreeSet::new();
    for folder in grandchildren(&workspaces.worktrees) {
        if !known.contains(&folder) {
            swept.push(move_aside(workspaces, &folder));
            aside.insert(folder.clone());
        }
        remove_if_empty(folder.parent());
    }
    swept.extend(stale_entries(workspaces, &known, &aside));
    worktrees_folder::remove_if_unused(workspaces, &exclusive);
    swept
}

/// Removes a workspace in any state. `None` if only its metadata was left.
fn remove_orphaned(
    workspaces: &Workspaces,
    paths: &WorkspacePaths,
    record: Record,
) -> Option<SweptWorkspace> {
    let is_over = matches!(record.stage, Stage::Merged(_) | Stage::Discarded(_));
    let was_there = paths.worktree.exists();
    let mut swept = SweptWorkspace {
        run: record.run.clone(),
        id: record.id.clone(),
        kept: None,
        notes: Vec::new(),
    };
    let take = || -> Result<Option<String>, Error> {
        if let Stage::Merging(name) = &record.stage {
            swept.notes.extend(roll_back(workspaces, paths, name)?);
        }
        let kept = save_patch::save_and_remove(workspaces, paths, record)?;
        clear(&paths.base).map_err(at("remove", &paths.base))?;
        Ok(kept)
    };
    match take() {
        Ok(kept) => swept.kept = kept.filter(|_| !is_over || was_there),
        Err(error) => swept.notes.push(error.to_string()),
    }
    (!is_over || was_there || !swept.notes.is_empty()).then_some(swept)
}

/// Undoes a merge that was interrupted and will not be completed, so that it is not half applied.
fn roll_back(
    workspaces: &Workspaces,
    paths: &WorkspacePaths,
    name: &str,
) -> Result<Vec<String>, Error> {
    let folder = paths.undo.join(name);
    let Some(mut plan) = Plan::read(&folder)? else { return Ok(Vec::new()) };
    if plan.state != MergeRecordState::Begun {
        return Ok(Vec::new());
    }
    // What it has not written is not its to restore.
    plan.keep_written(&folder)?;
    if plan.changes.is_empty() {
        return Ok(Vec::new());
    }
    let undone = undo::undo_plans(workspaces, vec![(folder, plan)])?;
    if undone.changed_since.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![format!(
        "it was half merged, and the merge was not undone because these files were changed since: {}",
        undone.changed_since.join(", ")
    )])
}

/// Moves a folder without metadata out of the way. Its content may be work.
fn move_aside(workspaces: &Workspaces, folder: &Path) -> SweptWorkspace {
    let (run, id) = (name(folder.parent()), name(Some(folder)));
    let mut swept = SweptWorkspace { run, id, kept: None, notes: Vec::new() };
    let is_empty = std::fs::read_dir(folder)
        .is_ok_and(|entries| entries.flatten().all(|entry| entry.file_name() == ".git"));
    let moved = || -> Result<Option<String>, Error> {
        if is_empty {
            return clear(folder).map(|()| None).map_err(at("remove", folder));
        }
        let kept = workspaces.state.join("kept").join(&swept.run);
        make_private_folder(&kept).map_err(at("create", &kept))?;
        let to = save_patch::unused_path(&kept, &swept.id, "files", Path::new(""));
        std::fs::rename(folder, &to).map_err(at("move", folder))?;
        Ok(Some(workspaces.display_path(&to)))
    };
    match moved() {
        Ok(kept) => swept.kept = kept,
        Err(error) => swept.notes.push(error.to_string()),
    }
    swept
}

/// Removes the entries of the repository for worktrees in our state folder that do not exist.
fn stale_entries(
    workspaces: &Workspaces,
    known: &BTreeSet<PathBuf>,
    aside: &BTreeSet<PathBuf>,
) -> Vec<SweptWorkspace> {
    let Ok(location) = locate::find(&workspaces.repo) else { return Vec::new() };
    let Some(repository) = location.repository else { return Vec::new() };
    let ours = [real_path(&workspaces.worktrees), workspaces.worktrees.clone()];
    let mut swept = Vec::new();
    for entry in
        std::fs::read_dir(repository.common.join("worktrees")).into_iter().flatten().flatten()
    {
        let Some(target) = save_patch::target(&entry.path()) else { continue };
        let is_ours = ours.iter().any(|ours| target.starts_with(ours));
        let folder = workspaces.worktrees.join(tail(&target));
        if is_ours && !known.contains(&folder) && !target.exists() {
            save_patch::remove_worktree_entry(&repository.common, &target);
            let (run, id) = (name(target.parent()), name(Some(&target)));
            // A folder that was moved aside is reported already.
            if !aside.contains(&folder) {
                swept.push(SweptWorkspace { run, id, kept: None, notes: Vec::new() });
            }
        }
    }
    swept
}

fn grandchildren(folder: &Path) -> Vec<PathBuf> {
    let children = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .collect::<Vec<_>>()
    };
    let mut found: Vec<_> = children(folder).iter().flat_map(|child| children(child)).collect();
    found.sort();
    found
}

/// The last two components of a path: run and workspace.
fn tail(path: &Path) -> PathBuf {
    [path.parent().and_then(Path::file_name), path.file_name()].into_iter().flatten().collect()
}

fn name(path: Option<&Path>) -> String {
    path.and_then(Path::file_name)
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn remove_if_empty(folder: Option<&Path>) {
    if let Some(folder) = folder {
        let _ = std::fs::remove_dir(folder);
    }
}

fn failed(run: &str, id: &str, error: &Error) -> SweptWorkspace {
    SweptWorkspace {
        run: run.to_owned(),
        id: id.to_owned(),
        kept: None,
        notes: vec![error.to_string()],
    }
}
