//! Putting back what folding changed.

use super::disk::{Root, Standing};
use super::plan::{self, Plan, Way};
use super::record::Stage;
use super::{
    Error, FoldedFile, Folding, FoldingState, Step, Undone, Workspaces, at, lock, run_name,
};
use crate::tree::Change;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

pub(super) fn undo(spaces: &Workspaces, run: &str, id: Option<&str>) -> Result<Undone, Error> {
    let _lock = lock::alone(&spaces.state)?;
    let mut plans = plan::all(&spaces.state.join("undo").join(run_name(run)));
    plans.retain(|(_, plan)| id.is_none_or(|id| plan.id == id));
    plans.reverse();
    for (_, plan) in plans.iter().filter(|(_, plan)| plan.state == FoldingState::Begun) {
        let desk = spaces.desk(&plan.run, &plan.id);
        if matches!(desk.record()?.map(|record| record.stage), Some(Stage::Folding(_))) {
            return Err(Error::Unfinished { run: plan.run.clone(), id: plan.id.clone() });
        }
    }
    plans.retain(|(_, plan)| !matches!(plan.state, FoldingState::Begun | FoldingState::Undone));
    put_back(spaces, plans)
}

/// Puts plans back, the newest first; all of them, or none.
pub(super) fn put_back(spaces: &Workspaces, plans: Vec<(PathBuf, Plan)>) -> Result<Undone, Error> {
    let mut undone = Undone::default();
    let touched = foresee(&plans)?;
    if !touched.is_empty() {
        undone.changed_since = touched.into_iter().collect();
        return Ok(undone);
    }
    let mut restored = BTreeSet::new();
    for (folder, mut plan) in plans {
        plan.state = FoldingState::Undoing;
        plan.write(&folder)?;
        spaces.step(Step::Undoing);
        let followed = plan.follow(spaces, &folder, Way::Undo)?;
        restored.extend(followed.done.iter().map(|path| plan.top.0.join(path)));
        if !followed.touched.is_empty() {
            // Somebody wrote it in the moment between looking and writing.
            undone.restored = restored.len() as u64;
            undone.changed_since = followed.touched.iter().map(|path| plan.seen(path)).collect();
            undone.notes.push(format!(
                "{} files were put back before somebody changed another; undo again when that is settled",
                restored.len()
            ));
            return Ok(undone);
        }
        spaces.step(Step::Settled);
        plan.state = FoldingState::Undone;
        plan.write(&folder)?;
        spaces.step(Step::Done);
    }
    undone.restored = restored.len() as u64;
    Ok(undone)
}

/// Which files stand in the way of putting these plans back, one after the other.
fn foresee(plans: &[(PathBuf, Plan)]) -> Result<BTreeSet<String>, Error> {
    let mut standing: BTreeMap<PathBuf, Standing> = BTreeMap::new();
    let mut touched = BTreeSet::new();
    for (_, plan) in plans {
        let root = Root::open(&plan.top.0).map_err(at("open", &plan.top.0))?;
        for change in &plan.changes {
            let path = plan.top.0.join(&change.path.0);
            let stands = match standing.remove(&path) {
                Some(stands) => stands,
                None => root.look(&change.path.0).map_err(at("read", &path))?,
            };
            let (from, to) = change.ends(Way::Undo);
            if plan::is(&stands, from) || plan::is(&stands, to) {
                let stands =
                    to.map_or(Standing::Nothing, |image| Standing::Content(image.content.clone()));
                standing.insert(path, stands);
            } else {
                touched.insert(plan.seen(&change.path.0));
                standing.insert(path, stands);
            }
        }
    }
    Ok(touched)
}

pub(super) fn foldings(spaces: &Workspaces, run: &str) -> Vec<Folding> {
    let plans = plan::all(&spaces.state.join("undo").join(run_name(run)));
    let shown = plans.into_iter().map(|(_, plan)| {
        let files = plan.changes.iter().map(|change| FoldedFile {
            path: plan.seen(&change.path.0),
            change: match (&change.before, &change.after) {
                (None, _) => Change::Added,
                (Some(_), None) => Change::Deleted,
                (Some(_), Some(_)) => Change::Modified,
            },
        });
        Folding { id: plan.id.clone(), at: plan.at, state: plan.state, files: files.collect() }
    });
    shown.collect()
}
