//! What a process that was killed left behind, for the process that resumes or cancels its run.

use crate::verification::{WorkFolder, baseline_file, baselines};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes again what was put back to the start of the run for a check, if the process was killed
/// while the check ran. The check must have ended. It blocks.
pub fn put_files_forward(state: &Path, run: &str, folders: impl IntoIterator<Item = PathBuf>) {
    for folder in folders {
        let place = work_folder(state, run, folder);
        if place.put_back_file().exists() && place.folder.is_dir() {
            // Every view does.
            drop(place.complete_view(true));
        }
    }
}

/// The files of a folder before the first attempt of a step, relative to it. `None` if that is not
/// known. It blocks.
pub fn files_before_step(
    state: &Path,
    run: &str,
    first: &str,
    folder: &Path,
) -> Option<BTreeSet<PathBuf>> {
    let place = work_folder(state, run, folder.to_owned());
    let baseline = baseline_file(state, run, first);
    // Without the first look, what is there now would be taken for it.
    if !baseline.exists() || !place.has_first_look() {
        return None;
    }
    let mut tree = place.complete_view(true);
    let before = tree.load(&baseline)?;
    // There was too much to read.
    before.id.as_ref()?;
    Some(tree.files_in(&before, tree.folder()).into_iter().collect())
}

fn work_folder(state: &Path, run: &str, folder: PathBuf) -> WorkFolder {
    WorkFolder {
        folder,
        state: state.to_owned(),
        baselines: baselines(state, run),
        published: Arc::default(),
    }
}
