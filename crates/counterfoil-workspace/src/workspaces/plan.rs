//! What folding will do, written down before it is done, and the doing of it.

use super::disk::{FileState, Root};
use super::metadata::{self, Content, EncodedPath};
use super::{Error, MergeRecordState, Step, WorkspacePaths, Workspaces, at};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// What a folding does, or did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) version: u32,
    pub(super) run: String,
    pub(super) id: String,
    /// Foldings of one run are counted: the newest is undone first.
    pub(super) order: u64,
    pub(super) at: i64,
    pub(super) state: MergeRecordState,
    /// The folder that the paths are below.
    pub(super) top: EncodedPath,
    pub(super) prefix: EncodedPath,
    pub(super) changes: Vec<Change>,
    /// Folders that were not there before.
    pub(super) made: BTreeSet<EncodedPath>,
    /// Folders around what is deleted, and their modes.
    pub(super) around: BTreeMap<EncodedPath, u32>,
    pub(super) notes: Vec<String>,
}

/// What becomes of one path.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Change {
    pub(super) path: EncodedPath,
    pub(super) before: Option<Image>,
    pub(super) after: Option<Image>,
}

/// A file or link whose bytes are kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Image {
    pub(super) content: Content,
    /// Where its bytes begin, among those kept.
    pub(super) offset: u64,
}

/// Which way a plan is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Merge,
    Undo,
}

/// What following a plan came to.
#[derive(Debug)]
pub(super) struct Applied {
    /// Paths that stand as the plan wants.
    pub(super) done: Vec<PathBuf>,
    /// Paths that stand neither as the plan found nor as it wants them. If there are any, it was
    /// not followed to its end.
    pub(super) changed_since: Vec<PathBuf>,
}

impl Plan {
    pub(super) fn read(folder: &Path) -> Result<Option<Self>, Error> {
        metadata::read(&folder.join("manifest.json"))
    }

    pub(super) fn write(&self, folder: &Path) -> Result<(), Error> {
        metadata::write(&folder.join("manifest.json"), self)
    }

    /// A path of it as people name it.
    pub(super) fn display_path(&self, path: &Path) -> String {
        super::relative_to(&self.prefix.0, path)
    }

    /// Makes every path stand as it should. What already does is left alone; if anything stands
    /// there that the plan does not know, nothing more is written.
    pub(super) fn apply(
        &self,
        workspaces: &Workspaces,
        folder: &Path,
        direction: Direction,
    ) -> Result<Applied, Error> {
        let root = Root::open(&self.top.0).map_err(at("open", &self.top.0))?;
        let full = |path: &Path| self.top.0.join(path);
        let mut applied = Applied { done: Vec::new(), changed_since: Vec::new() };
        let mut open = Vec::new();
        for change in &self.changes {
            let path = &change.path.0;
            root.remove_draft(path).map_err(at("look at", &full(path)))?;
            let repository_state = root.state(path).map_err(at("read", &full(path)))?;
            let (from, to) = change.ends(direction);
            if is(&repository_state, to) {
                applied.done.push(path.clone());
            } else if is(&repository_state, from) {
                open.push(change);
            } else {
                applied.changed_since.push(path.clone());
            }
        }
        if !applied.changed_since.is_empty() {
            return Ok(applied);
        }
        let open: BTreeSet<&Path> = open.iter().map(|change| change.path.0.as_path()).collect();
        let puts: BTreeSet<&Path> = self
            .changes
            .iter()
            .filter(|change| change.ends(direction).1.is_some())
            .map(|change| change.path.0.as_path())
            .collect();
        let mut count = 0;
        // Deepest first: a folder goes when its last file has gone.
        for change in self.changes.iter().rev() {
            let path = change.path.0.as_path();
            let (Some(from), None) = change.ends(direction) else { continue };
            if open.contains(path) {
                let removed =
                    root.remove(path, &from.content).map_err(at("remove", &full(path)))?;
                if !removed {
                    applied.changed_since.push(path.to_owned());
                    return Ok(applied);
                }
                applied.done.push(path.to_owned());
                count += 1;
                workspaces.step(Step::Written(count));
            }
            self.remove_empty(&root, path, direction, &puts)?;
        }
        let images = folder.join(if direction == Direction::Merge { "after" } else { "before" });
        let mut images_file = None;
        for change in &self.changes {
            let path = change.path.0.as_path();
            let (from, Some(to)) = change.ends(direction) else { continue };
            if !open.contains(path) {
                continue;
            }
            let file = match &mut images_file {
                Some(file) => file,
                None => images_file.insert(File::open(&images).map_err(at("open", &images))?),
            };
            file.seek(SeekFrom::Start(to.offset)).map_err(at("read", &images))?;
            let mut bytes = file.take(to.content.size);
            let modes = |path: &Path| self.mode(path, direction);
            let put = root
                .put(path, from.map(|from| &from.content), &to.content, &mut bytes, &modes)
                .map_err(at("write", &full(path)))?;
            if !put {
                applied.changed_since.push(path.to_owned());
                return Ok(applied);
            }
            applied.done.push(path.to_owned());
            count += 1;
            workspaces.step(Step::Written(count));
        }
        let folders: BTreeSet<_> =
            self.changes.iter().filter_map(|change| change.path.0.parent()).collect();
        for folder in folders {
            root.sync(folder).map_err(at("write", &full(folder)))?;
        }
        Ok(applied)
    }

    /// Removes the folders around a path that are empty now: all of them on the way there, those we
    /// made on the way back.
    fn remove_empty(
        &self,
        root: &Root,
        path: &Path,
        direction: Direction,
        puts: &BTreeSet<&Path>,
    ) -> Result<(), Error> {
        for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
            let is_ours = direction == Direction::Merge
                || self.made.contains(&EncodedPath(folder.to_owned()));
            // What comes right after a folder in order lies in it, if anything does.
            let after = (std::ops::Bound::Excluded(folder), std::ops::Bound::Unbounded);
            let is_needed =
                puts.range::<Path, _>(after).next().is_some_and(|path| path.starts_with(folder));
            if !is_ours
                || is_needed
                || !root.remove_folder(folder).map_err(at("remove", &self.top.0.join(folder)))?
            {
                break;
            }
        }
        Ok(())
    }

    /// The mode of a folder that has to be made.
    fn mode(&self, folder: &Path, direction: Direction) -> u32 {
        let known = (direction == Direction::Undo)
            .then(|| self.around.get(&EncodedPath(folder.to_owned())))
            .flatten();
        known.copied().unwrap_or(0o777)
    }
}

impl Change {
    /// What it leads from and to.
    pub(super) fn ends(&self, direction: Direction) -> (Option<&Image>, Option<&Image>) {
        match direction {
            Direction::Merge => (self.before.as_ref(), self.after.as_ref()),
            Direction::Undo => (self.after.as_ref(), self.before.as_ref()),
        }
    }
}

/// Whether what stands at a path is what a plan speaks of. A folder is no file, so for a plan
/// nothing stands there.
pub(super) fn is(repository_state: &FileState, image: Option<&Image>) -> bool {
    match (repository_state, image) {
        (FileState::Content(content), Some(image)) => content.is(&image.content),
        (FileState::Content(_) | FileState::Special, None) => false,
        (_, image) => image.is_none(),
    }
}

/// The folders of plans, with the plans. One that cannot be read is left out, and said to be.
pub(super) fn all(folder: &Path) -> Vec<(PathBuf, Plan)> {
    let mut plans = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match Plan::read(&entry.path()) {
            Ok(Some(plan)) if plan.version == metadata::VERSION => plans.push((entry.path(), plan)),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "a folding is not known any more"),
        }
    }
    plans.sort_by_key(|(_, plan)| plan.order);
    plans
}

/// Removes plans of a workspace that were written down and never decided on.
pub(super) fn drop_unbegun(paths: &WorkspacePaths) -> Result<(), Error> {
    for (folder, plan) in all(&paths.undo) {
        if plan.id == paths.id && plan.state == MergeRecordState::Begun {
            super::disk::clear(&folder).map_err(at("remove", &folder))?;
        }
    }
    Ok(())
}

/// Writes down that a folding will not be finished.
pub(super) fn stop(paths: &WorkspacePaths, name: &str) -> Result<(), Error> {
    let folder = paths.undo.join(name);
    match Plan::read(&folder)? {
        Some(plan) if plan.state == MergeRecordState::Begun => {
            Plan { state: MergeRecordState::Stopped, ..plan }.write(&folder)
        }
        _ => Ok(()),
    }
}
