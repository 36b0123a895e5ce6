//! Finding workspaces that belong to nobody.

use super::disk::clear;
use super::plan::Plan;
use super::record::{self, Record, Stage};
use super::{Desk, Error, FoldingState, Swept, Workspaces, at, keep, lock, place, undo};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub(super) fn sweep(spaces: &Workspaces, is_open: &dyn Fn(&str, &str) -> bool) -> Vec<Swept> {
    let places = ["bases", "worktrees"].map(|name| spaces.state.join(name));
    // Every run begins with this, and most have never seen a worktree.
    if !places.iter().any(|place| place.exists()) {
        return Vec::new();
    }
    let _lock = match lock::alone(&spaces.state) {
        Ok(lock) => lock,
        Err(error) => return vec![failed("", "", &error)],
    };
    let mut swept = Vec::new();
    let mut known = BTreeSet::new();
    for base in grandchildren(&spaces.state.join("bases")) {
        match record::read::<Record>(&base.join("workspace.json")) {
            Ok(Some(record)) => {
                let desk = spaces.desk(&record.run, &record.id);
                known.insert(desk.worktree.clone());
                if !is_open(&record.run, &record.id) {
                    swept.extend(take_down(spaces, &desk, record));
                }
            }
            // Killed before anything was written down: then nothing was made.
            Ok(None) => drop(clear(&base)),
            Err(error) => {
                // What was worked there cannot be told from what was there before. It is left to be
                // looked at.
                known.insert(spaces.state.join("worktrees").join(tail(&base)));
                swept.push(failed(&name(base.parent()), &name(Some(&base)), &error));
            }
        }
        remove_if_empty(base.parent());
    }
    let mut aside = BTreeSet::new();
    for folder in grandchildren(&spaces.state.join("worktrees")) {
        if !known.contains(&folder) {
            swept.push(put_aside(spaces, &folder));
            aside.insert(folder.clone());
        }
        remove_if_empty(folder.parent());
    }
    swept.extend(stale_entries(spaces, &known, &aside));
    swept
}

/// Removes a workspace in whatever state it is; none if nothing of it was left but the record.
fn take_down(spaces: &Workspaces, desk: &Desk, record: Record) -> Option<Swept> {
    let is_over = matches!(record.stage, Stage::Folded(_) | Stage::Discarded(_));
    let was_there = desk.worktree.exists();
    let mut swept =
        Swept { run: record.run.clone(), id: record.id.clone(), kept: None, notes: Vec::new() };
    let take = || -> Result<Option<String>, Error> {
        if let Stage::Folding(name) = &record.stage {
            swept.notes.extend(roll_back(spaces, desk, name)?);
        }
        let kept = keep::give_up(spaces, desk, record)?;
        clear(&desk.base).map_err(at("remove", &desk.base))?;
        Ok(kept)
    };
    match take() {
        Ok(kept) => swept.kept = kept.filter(|_| !is_over || was_there),
        Err(error) => swept.notes.push(error.to_string()),
    }
    (!is_over || was_there || !swept.notes.is_empty()).then_some(swept)
}

/// A folding that was cut short and that nobody will finish is put back, so that it is not half
/// there.
fn roll_back(spaces: &Workspaces, desk: &Desk, name: &str) -> Result<Vec<String>, Error> {
    let folder = desk.undo.join(name);
    let Some(plan) = Plan::read(&folder)? else { return Ok(Vec::new()) };
    if plan.state != FoldingState::Begun {
        return Ok(Vec::new());
    }
    let undone = undo::put_back(spaces, vec![(folder, plan)])?;
    if undone.changed_since.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![format!(
        "it was half folded, and that was not put back because of files changed since: {}",
        undone.changed_since.join(", ")
    )])
}

/// A folder that nothing is known about: what is in it is somebody's, and is moved where it is not
/// in the way.
fn put_aside(spaces: &Workspaces, folder: &Path) -> Swept {
    let (run, id) = (name(folder.parent()), name(Some(folder)));
    let mut swept = Swept { run, id, kept: None, notes: Vec::new() };
    let is_empty = std::fs::read_dir(folder)
        .is_ok_and(|entries| entries.flatten().all(|entry| entry.file_name() == ".git"));
    let moved = || -> Result<Option<String>, Error> {
        if is_empty {
            return clear(folder).map(|()| None).map_err(at("remove", folder));
        }
        let kept = spaces.state.join("kept").join(&swept.run);
        std::fs::create_dir_all(&kept).map_err(at("create", &kept))?;
        let to = keep::free(&kept, &swept.id, "files", Path::new(""));
        std::fs::rename(folder, &to).map_err(at("move", folder))?;
        Ok(Some(spaces.shown(&to)))
    };
    match moved() {
        Ok(kept) => swept.kept = kept,
        Err(error) => swept.notes.push(error.to_string()),
    }
    swept
}

/// Entries of the repository for worktrees in our state folder that are not there.
fn stale_entries(
    spaces: &Workspaces,
    known: &BTreeSet<PathBuf>,
    aside: &BTreeSet<PathBuf>,
) -> Vec<Swept> {
    let Ok(place) = place::find(&spaces.repo) else { return Vec::new() };
    let Some(repository) = place.repository else { return Vec::new() };
    let ours = spaces.state.join("worktrees");
    let ours = [
        std::fs::canonicalize(&spaces.state).map(|state| state.join("worktrees")).ok(),
        Some(ours),
    ];
    let mut swept = Vec::new();
    for entry in
        std::fs::read_dir(repository.common.join("worktrees")).into_iter().flatten().flatten()
    {
        let Some(aim) = keep::aim(&entry.path()) else { continue };
        let is_ours = ours.iter().flatten().any(|ours| aim.starts_with(ours));
        let folder = spaces.state.join("worktrees").join(tail(&aim));
        if is_ours && !known.contains(&folder) && !aim.exists() {
            keep::forget(&repository.common, &aim);
            let (run, id) = (name(aim.parent()), name(Some(&aim)));
            // What was put aside is told already.
            if !aside.contains(&folder) {
                swept.push(Swept { run, id, kept: None, notes: Vec::new() });
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

/// The last two parts of a path: run and workspace.
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

fn failed(run: &str, id: &str, error: &Error) -> Swept {
    Swept { run: run.to_owned(), id: id.to_owned(), kept: None, notes: vec![error.to_string()] }
}
