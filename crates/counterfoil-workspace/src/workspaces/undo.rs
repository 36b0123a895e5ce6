//! Undoes merges.

use super::disk::{FileState, Root};
use super::metadata::Stage;
use super::plan::{self, Direction, Plan};
use super::{
    Error, MergeRecord, MergeRecordState, MergedFile, Step, Undone, Workspaces, at, lock, run_name,
};
use crate::snapshot::Change;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

pub(super) fn undo<E: From<Error>>(
    workspaces: &Workspaces,
    run: &str,
    ids: Option<&[&str]>,
    record: impl FnOnce(&[MergeRecord]) -> Result<(), E>,
) -> Result<Undone, E> {
    let _lock = lock::exclusive(&workspaces.state)?;
    let mut plans = plan::all(&workspaces.state.join("undo").join(run_name(run)));
    plans.retain(|(_, plan)| ids.is_none_or(|ids| ids.contains(&plan.id.as_str())));
    plans.reverse();
    for (_, plan) in plans.iter().filter(|(_, plan)| plan.state == MergeRecordState::Begun) {
        let paths = workspaces.paths(&plan.run, &plan.id);
        if matches!(paths.record()?.map(|record| record.stage), Some(Stage::Merging(_))) {
            let (run, id) = (plan.run.clone(), plan.id.clone());
            return Err(Error::Unfinished { run, id }.into());
        }
    }
    plans.retain(|(_, plan)| {
        !matches!(plan.state, MergeRecordState::Begun | MergeRecordState::Undone)
    });
    if let Some(refused) = refuse_blocked(&plans)? {
        return Ok(refused);
    }
    if !plans.is_empty() {
        let records: Vec<MergeRecord> =
            plans.iter().rev().map(|(_, plan)| record_of(plan)).collect();
        record(&records)?;
    }
    apply_plans(workspaces, plans).map_err(E::from)
}

/// Undoes plans, newest first: all of them, or none.
pub(super) fn undo_plans(
    workspaces: &Workspaces,
    plans: Vec<(PathBuf, Plan)>,
) -> Result<Undone, Error> {
    match refuse_blocked(&plans)? {
        Some(refused) => Ok(refused),
        None => apply_plans(workspaces, plans),
    }
}

/// The outcome if files that were changed since stand in the way.
fn refuse_blocked(plans: &[(PathBuf, Plan)]) -> Result<Option<Undone>, Error> {
    let changed_since: Vec<String> = find_blocked(plans)?.into_iter().collect();
    let is_blocked = !changed_since.is_empty();
    Ok(is_blocked.then(|| Undone { changed_since, ..Undone::default() }))
}

fn apply_plans(workspaces: &Workspaces, plans: Vec<(PathBuf, Plan)>) -> Result<Undone, Error> {
    let mut undone = Undone::default();
    let mut restored = BTreeSet::new();
    for (folder, mut plan) in plans {
        plan.state = MergeRecordState::Undoing;
        plan.write(&folder)?;
        workspaces.step(Step::Undoing);
        let applied = plan.apply(workspaces, &folder, Direction::Undo)?;
        restored.extend(applied.done.iter().map(|path| plan.top.0.join(path)));
        if !applied.changed_since.is_empty() {
            // The file was changed between the check and the write.
            undone.restored = restored.len() as u64;
            undone.changed_since =
                applied.changed_since.iter().map(|path| plan.display_path(path)).collect();
            let files = match restored.len() {
                1 => "1 file was".to_owned(),
                count => format!("{count} files were"),
            };
            undone.notes.push(format!(
                "{files} restored before another one was changed; resolve that and undo again"
            ));
            return Ok(undone);
        }
        if !plan.left_out.is_empty() {
            let paths: Vec<String> =
                plan.left_out.iter().map(|path| plan.display_path(&path.0)).collect();
            undone.notes.push(format!(
                "not restored, since their content before was not kept: {}",
                paths.join(", ")
            ));
        }
        workspaces.step(Step::Settled);
        plan.state = MergeRecordState::Undone;
        plan.write(&folder)?;
        workspaces.step(Step::Done);
    }
    undone.restored = restored.len() as u64;
    Ok(undone)
}

/// The files with unexpected content that prevent undoing these plans in order.
fn find_blocked(plans: &[(PathBuf, Plan)]) -> Result<BTreeSet<String>, Error> {
    let mut states: BTreeMap<PathBuf, FileState> = BTreeMap::new();
    let mut changed_since = BTreeSet::new();
    for (_, plan) in plans {
        let root = Root::open(&plan.top.0).map_err(at("open", &plan.top.0))?;
        for change in &plan.changes {
            let path = plan.top.0.join(&change.path.0);
            let repository_state = match states.remove(&path) {
                Some(repository_state) => repository_state,
                None => root.state(&change.path.0).map_err(at("read", &path))?,
            };
            let (from, to) = change.ends(Direction::Undo);
            if plan::has_content(&repository_state, from)
                || plan::has_content(&repository_state, to)
            {
                let repository_state = to
                    .map_or(FileState::Nothing, |image| FileState::Content(image.content.clone()));
                states.insert(path, repository_state);
            } else {
                changed_since.insert(plan.display_path(&change.path.0));
                states.insert(path, repository_state);
            }
        }
    }
    Ok(changed_since)
}

pub(super) fn merge_records(workspaces: &Workspaces, run: &str) -> Vec<MergeRecord> {
    let plans = plan::all(&workspaces.state.join("undo").join(run_name(run)));
    plans.iter().map(|(_, plan)| record_of(plan)).collect()
}

fn record_of(plan: &Plan) -> MergeRecord {
    let files = plan.changes.iter().map(|change| MergedFile {
        path: plan.display_path(&change.path.0),
        change: match (&change.before, &change.after) {
            (None, _) => Change::Added,
            (Some(_), None) => Change::Deleted,
            (Some(_), Some(_)) => Change::Modified,
        },
    });
    MergeRecord { id: plan.id.clone(), at: plan.at, state: plan.state, files: files.collect() }
}
