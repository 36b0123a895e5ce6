//! Merges the work of a workspace into the repository.

pub(super) mod draft;

use super::disk::{FileState, Root};
use super::metadata::{EncodedPath, Record, Stage};
use super::plan::{self, Direction, Plan};
use super::save_patch::{find_differences, remove, write_patch};
use super::scratch_repo::Difference;
use super::three_way::{ConflictReason, MergeDecision, decide};
use super::{
    Error, MergeOutcome, MergeRecordState, Step, WorkspacePaths, Workspaces, at, lock, relative_to,
    worktrees_folder,
};
use crate::git::GitCommand;
use draft::Draft;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub(super) fn merge_back(
    workspaces: &Workspaces,
    run: &str,
    id: &str,
    is_by_product: &dyn Fn(&Path) -> bool,
) -> Result<MergeOutcome, Error> {
    let exclusive = lock::exclusive(&workspaces.state)?;
    let outcome = merge_locked(workspaces, run, id, is_by_product)?;
    worktrees_folder::remove_if_unused(workspaces, &exclusive);
    Ok(outcome)
}

fn merge_locked(
    workspaces: &Workspaces,
    run: &str,
    id: &str,
    is_by_product: &dyn Fn(&Path) -> bool,
) -> Result<MergeOutcome, Error> {
    let paths = workspaces.paths(run, id);
    let Some(mut record) = paths.record()? else { return Err(paths.not_open()) };
    let name = match &record.stage {
        Stage::Opening | Stage::Discarded(_) => return Err(paths.not_open()),
        Stage::Merged(outcome) => {
            let outcome = outcome.clone();
            remove(workspaces, &paths, &record)?;
            return Ok(outcome);
        }
        Stage::Merging(name) => name.clone(),
        Stage::Open => {
            if !paths.worktree.is_dir() {
                return Err(Error::Lost { folder: paths.worktree });
            }
            match prepare(workspaces, &paths, &record, is_by_product)? {
                Prepared::Over(outcome) => return conclude(workspaces, &paths, record, outcome),
                Prepared::Plan(name) => {
                    record.stage = Stage::Merging(name.clone());
                    paths.write(&record)?;
                    workspaces.step(Step::Decided);
                    name
                }
            }
        }
    };
    let outcome = finish(workspaces, &paths, &record, &name)?;
    let outcome = conclude(workspaces, &paths, record, outcome)?;
    if !outcome.conflicts.is_empty() {
        plan::remove_unwritten(&paths.undo.join(&name))?;
    }
    Ok(outcome)
}

/// Records the outcome and removes the workspace.
fn conclude(
    workspaces: &Workspaces,
    paths: &WorkspacePaths,
    mut record: Record,
    outcome: MergeOutcome,
) -> Result<MergeOutcome, Error> {
    record.stage = Stage::Merged(outcome.clone());
    paths.write(&record)?;
    workspaces.step(Step::Concluded);
    remove(workspaces, paths, &record)?;
    Ok(outcome)
}

enum Prepared {
    /// There is nothing to write, or there are conflicts.
    Over(MergeOutcome),
    /// The plan of this name is on disk.
    Plan(String),
}

/// A path to write, and how to write it.
struct Item<'a> {
    difference: &'a Difference,
    repository_state: FileState,
    decision: MergeDecision,
}

fn prepare(
    workspaces: &Workspaces,
    paths: &WorkspacePaths,
    record: &Record,
    is_by_product: &dyn Fn(&Path) -> bool,
) -> Result<Prepared, Error> {
    let (differences, mut notes) = find_differences(paths, record)?;
    notes.extend(note_moved_head(paths, record));
    let top = &record.top.0;
    let root = Root::open(top).map_err(at("open", top))?;
    let mut items = Vec::new();
    for difference in &differences {
        let path = top.join(&difference.path);
        let repository_state = root.state(&difference.path).map_err(at("read", &path))?;
        let base = difference.base.as_ref().map(|base| &base.content);
        let decision = decide(base, difference.workspace.as_ref(), repository_state.content());
        if decision != MergeDecision::Nothing {
            items.push(Item { difference, repository_state, decision });
        }
    }
    mark_blocked(top, &mut items)?;
    let mut conflicts: BTreeMap<PathBuf, ConflictReason> = BTreeMap::new();
    for item in &items {
        if let MergeDecision::Conflict(why) = item.decision {
            conflicts.insert(item.difference.path.clone(), why);
        }
    }
    workspaces.step(Step::Compared);
    if items.is_empty() {
        return Ok(Prepared::Over(MergeOutcome { notes, ..MergeOutcome::default() }));
    }
    // Text merges are tried even if there are conflicts, so that all conflicts are reported.
    let mut draft = Draft::begin(paths)?;
    for item in items.iter().filter(|item| !matches!(item.decision, MergeDecision::Conflict(_))) {
        if let Err(why) = draft.add(paths, record, &root, item)? {
            conflicts.insert(item.difference.path.clone(), why);
        }
    }
    for path in by_products(record, &conflicts, is_by_product)? {
        conflicts.remove(&path);
        let path = relative_to(&record.prefix.0, &path);
        notes.push(format!(
            "{path} was changed in both places; it is a by-product, so it stays as it is in the \
             repository"
        ));
    }
    if conflicts.is_empty() && draft.changes.is_empty() {
        draft.abandon()?;
        return Ok(Prepared::Over(MergeOutcome { notes, ..MergeOutcome::default() }));
    }
    if !conflicts.is_empty() {
        draft.abandon()?;
        let kept = write_patch(workspaces, paths, record, &differences)?;
        let outcome = MergeOutcome { kept: Some(kept), ..MergeOutcome::default() };
        return Ok(Prepared::Over(with_conflicts(outcome, &record.prefix.0, &conflicts, notes)));
    }
    draft.finish(workspaces, paths, record, notes).map(Prepared::Plan)
}

/// The by-products among the files that both sides changed, except for those that git tracks.
fn by_products(
    record: &Record,
    conflicts: &BTreeMap<PathBuf, ConflictReason>,
    is_by_product: &dyn Fn(&Path) -> bool,
) -> Result<BTreeSet<PathBuf>, Error> {
    let is_one = |path: &Path| is_by_product(path.strip_prefix(&record.prefix.0).unwrap_or(path));
    let mut found: BTreeSet<PathBuf> = conflicts
        .iter()
        .filter(|(path, why)| why.is_of_both_sides() && is_one(path))
        .map(|(path, _)| path.clone())
        .collect();
    if !found.is_empty() && record.repository.is_some() {
        let mut list = GitCommand::new(&record.top.0, ["ls-files", "-z", "--"]);
        for path in &found {
            list = list.arg(path);
        }
        let tracked = list.env("GIT_LITERAL_PATHSPECS", "1").run()?.stdout;
        for path in tracked.split(|byte| *byte == 0) {
            found.remove(Path::new(OsStr::from_bytes(path)));
        }
    }
    Ok(found)
}

/// Adds the conflicts and the reason for each.
fn with_conflicts(
    mut outcome: MergeOutcome,
    prefix: &Path,
    conflicts: &BTreeMap<PathBuf, ConflictReason>,
    notes: Vec<String>,
) -> MergeOutcome {
    let mut named: Vec<_> =
        conflicts.iter().map(|(path, why)| (relative_to(prefix, path), *why)).collect();
    named.sort_by(|one, other| one.0.cmp(&other.0));
    outcome.notes.extend(named.iter().map(|(path, reason)| format!("{path} {}", reason.message())));
    outcome.notes.extend(notes);
    outcome.conflicts = named.into_iter().map(|(path, _)| path).collect();
    outcome
}

/// A note if an agent committed in the workspace: only the files are merged, not the commits.
fn note_moved_head(paths: &WorkspacePaths, record: &Record) -> Option<String> {
    let (common, began) = (record.repository.as_ref()?, record.head.as_ref()?);
    let entries = std::fs::read_dir(common.0.join("worktrees")).ok()?;
    let entry = entries.flatten().find(|entry| {
        super::save_patch::target(&entry.path())
            .is_some_and(|target| target.file_name() == paths.worktree.file_name())
    })?;
    let head = std::fs::read_to_string(entry.path().join("HEAD")).ok()?;
    match head.trim().strip_prefix("ref: ") {
        Some(branch) => Some(format!(
            "{branch} was checked out in the workspace; its files are merged, the branch is not changed"
        )),
        None if head.trim() == began => None,
        None => Some(format!(
            "{} was committed in the workspace; its files are merged, the commit is not",
            head.trim()
        )),
    }
}

/// Turns changes that cannot be written at their path into conflicts.
fn mark_blocked(top: &Path, items: &mut [Item<'_>]) -> Result<(), Error> {
    let deleted: BTreeSet<PathBuf> = items
        .iter()
        .filter(|item| item.decision == MergeDecision::Take && item.difference.workspace.is_none())
        .map(|item| item.difference.path.clone())
        .collect();
    for item in items.iter_mut() {
        if item.difference.workspace.is_none() {
            continue;
        }
        let obstacle = match &item.repository_state {
            FileState::Nothing | FileState::Content(_) => None,
            FileState::Special => Some(ConflictReason::Special),
            FileState::BelowFile(file) => {
                (!deleted.contains(file)).then_some(ConflictReason::FolderInTheWay)
            }
            FileState::BehindLink(link) => {
                (!deleted.contains(link)).then_some(ConflictReason::BehindLink)
            }
            FileState::Folder => (!is_emptied(top, &item.difference.path, &deleted)?)
                .then_some(ConflictReason::FolderInTheWay),
        };
        if let Some(why) = obstacle {
            item.decision = MergeDecision::Conflict(why);
        }
    }
    Ok(())
}

/// Whether a folder is empty once these files are deleted.
fn is_emptied(top: &Path, folder: &Path, deleted: &BTreeSet<PathBuf>) -> Result<bool, Error> {
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let full = top.join(&folder);
        let mut is_empty = true;
        for entry in std::fs::read_dir(&full).map_err(at("read", &full))? {
            let entry = entry.map_err(at("read", &full))?;
            is_empty = false;
            let path = folder.join(entry.file_name());
            if entry.file_type().map_err(at("read", &full))?.is_dir() {
                open.push(path);
            } else if !deleted.contains(&path) {
                return Ok(false);
            }
        }
        if is_empty {
            // An empty folder that already existed is not ours to remove.
            return Ok(false);
        }
    }
    Ok(true)
}

/// Applies a plan, including one that was started before a crash.
fn finish(
    workspaces: &Workspaces,
    paths: &WorkspacePaths,
    record: &Record,
    name: &str,
) -> Result<MergeOutcome, Error> {
    let folder = paths.undo.join(name);
    let Some(mut plan) = Plan::read(&folder)? else {
        let why = "the merge plan is missing".to_owned();
        return Err(Error::Damaged { path: folder.join("manifest.json"), why });
    };
    let total = plan.changes.len() as u64;
    if plan.state == MergeRecordState::Done {
        return Ok(MergeOutcome { changed: total, notes: plan.notes, ..MergeOutcome::default() });
    }
    if !plan.stopped_by.is_empty() {
        // The process was killed before the outcome was recorded.
        return stopped(workspaces, paths, record, &plan);
    }
    let applied = plan.apply(workspaces, &folder, Direction::Merge)?;
    workspaces.step(Step::Settled);
    if applied.changed_since.is_empty() {
        plan.state = MergeRecordState::Done;
        plan.write(&folder)?;
        workspaces.step(Step::Done);
        return Ok(MergeOutcome { changed: total, notes: plan.notes, ..MergeOutcome::default() });
    }
    plan.keep_written(&folder)?;
    plan.stopped_by = applied.changed_since.into_iter().map(EncodedPath).collect();
    let outcome = stopped(workspaces, paths, record, &plan)?;
    plan.state = MergeRecordState::Stopped;
    plan.write(&folder)?;
    workspaces.step(Step::Done);
    Ok(outcome)
}

/// The outcome of a merge that was stopped. The work is saved as a patch.
fn stopped(
    workspaces: &Workspaces,
    paths: &WorkspacePaths,
    record: &Record,
    plan: &Plan,
) -> Result<MergeOutcome, Error> {
    let kept = if paths.worktree.is_dir() {
        let (differences, _) = find_differences(paths, record)?;
        Some(write_patch(workspaces, paths, record, &differences)?)
    } else {
        None
    };
    let conflicts = plan
        .stopped_by
        .iter()
        .map(|path| (path.0.clone(), ConflictReason::ChangedDuringMerge))
        .collect();
    // What was changed since it was written does not stay as the merge wrote it.
    let stopped_by: BTreeSet<&EncodedPath> = plan.stopped_by.iter().collect();
    let written = plan.changes.iter().filter(|change| !stopped_by.contains(&change.path));
    let mut names: Vec<_> = written.map(|change| plan.display_path(&change.path.0)).collect();
    names.sort();
    let mut outcome = MergeOutcome { changed: names.len() as u64, kept, ..MergeOutcome::default() };
    if !names.is_empty() {
        outcome.notes.push(format!(
            "these files were already written and stay changed; undo restores them: {}",
            names.join(", ")
        ));
    }
    Ok(with_conflicts(outcome, &record.prefix.0, &conflicts, plan.notes.clone()))
}
