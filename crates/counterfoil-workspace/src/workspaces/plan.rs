//! The plan of a merge: recorded on disk before it is applied, so that it can be completed or
//! undone.

use super::disk::{FileState, Root};
use super::metadata::{self, Content, EncodedPath};
use super::written::{self, WrittenList};
use super::{Error, MergeRecordState, Step, WorkspacePaths, Workspaces, at};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The changes that a merge makes, or made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) version: u32,
    pub(super) run: String,
    pub(super) id: String,
    /// The sequence number within the run: the newest merge is undone first.
    pub(super) order: u64,
    pub(super) at: i64,
    pub(super) state: MergeRecordState,
    /// The folder that the paths are relative to.
    pub(super) top: EncodedPath,
    pub(super) prefix: EncodedPath,
    pub(super) changes: Vec<Change>,
    /// Folders that did not exist before.
    pub(super) made: BTreeSet<EncodedPath>,
    /// The parent folders of deleted files, with their modes.
    pub(super) around: BTreeMap<EncodedPath, u32>,
    /// Files that were changed as well, and whose content before is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) left_out: Vec<EncodedPath>,
    /// The paths that stopped the merge. The changes are only those that were written until then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) stopped_by: Vec<EncodedPath>,
    pub(super) notes: Vec<String>,
}

/// The change of one path.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Change {
    pub(super) path: EncodedPath,
    pub(super) before: Option<Image>,
    pub(super) after: Option<Image>,
}

/// A file or link whose bytes are saved.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Image {
    pub(super) content: Content,
    /// The offset of its bytes in the file of saved contents.
    pub(super) offset: u64,
}

/// The direction in which a plan is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Merge,
    Undo,
}

/// The result of applying a plan.
#[derive(Debug)]
pub(super) struct Applied {
    /// Paths that have the planned content.
    pub(super) done: Vec<PathBuf>,
    /// Paths with neither the expected nor the planned content. If there are any, the plan was not
    /// applied completely.
    pub(super) changed_since: Vec<PathBuf>,
}

impl Plan {
    pub(super) fn read(folder: &Path) -> Result<Option<Self>, Error> {
        metadata::read(&folder.join("manifest.json"))
    }

    pub(super) fn write(&self, folder: &Path) -> Result<(), Error> {
        metadata::write(&folder.join("manifest.json"), self)
    }

    /// A path relative to the folder that the user works in.
    pub(super) fn display_path(&self, path: &Path) -> String {
        super::relative_to(&self.prefix.0, path)
    }

    /// Gives every path its planned content. Paths that have it already are skipped. If a path has
    /// unexpected content, nothing more is written.
    pub(super) fn apply(
        &self,
        workspaces: &Workspaces,
        folder: &Path,
        direction: Direction,
    ) -> Result<Applied, Error> {
        let root = Root::open(&self.top.0).map_err(at("open", &self.top.0))?;
        let full = |path: &Path| self.top.0.join(path);
        let mut applied = Applied { done: Vec::new(), changed_since: Vec::new() };
        let mut open = BTreeSet::new();
        for change in &self.changes {
            let path = &change.path.0;
            root.remove_draft(path).map_err(at("access", &full(path)))?;
            let repository_state = root.state(path).map_err(at("read", &full(path)))?;
            let (from, to) = change.ends(direction);
            if has_content(&repository_state, to) {
                applied.done.push(path.clone());
            } else if has_content(&repository_state, from) {
                open.insert(path.as_path());
            } else {
                applied.changed_since.push(path.clone());
            }
        }
        if !applied.changed_since.is_empty() {
            return Ok(applied);
        }
        let written: BTreeSet<&Path> = self
            .changes
            .iter()
            .filter(|change| change.ends(direction).1.is_some())
            .map(|change| change.path.0.as_path())
            .collect();
        let mut count = 0;
        let mut list = WrittenList::open(folder, direction)?;
        // Deepest first: a folder is removed after its last file.
        for (position, change) in self.changes.iter().enumerate().rev() {
            let path = change.path.0.as_path();
            let (Some(from), None) = change.ends(direction) else { continue };
            if open.contains(path) {
                let removed = list.note(position, || {
                    root.remove(path, &from.content).map_err(at("remove", &full(path)))
                })?;
                if !removed {
                    applied.changed_since.push(path.to_owned());
                    return Ok(applied);
                }
                applied.done.push(path.to_owned());
                count += 1;
                workspaces.step(Step::Written(count));
            }
            self.remove_empty(&root, path, direction, &written)?;
        }
        let images = folder.join(if direction == Direction::Merge { "after" } else { "before" });
        let mut images_file = None;
        for (position, change) in self.changes.iter().enumerate() {
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
            let put = list.note(position, || {
                root.put(path, from.map(|from| &from.content), &to.content, &mut bytes, &modes)
                    .map_err(at("write", &full(path)))
            })?;
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

    /// Leaves out the changes that were not written, of a merge that will not be completed. The plan
    /// must be complete: the list of written paths refers to positions in it.
    pub(super) fn keep_written(&mut self, folder: &Path) -> Result<(), Error> {
        let root = match Root::open(&self.top.0) {
            // The repository is gone, and its files cannot be compared.
            Err(error) if metadata::is_missing(&error) => return Ok(()),
            opened => opened.map_err(at("open", &self.top.0))?,
        };
        let written = written::read(folder)?;
        let mut kept = Vec::new();
        for (position, change) in self.changes.iter().enumerate() {
            let path = &change.path.0;
            root.remove_draft(path).map_err(at("access", &self.top.0.join(path)))?;
            let now = root.state(path).map_err(at("read", &self.top.0.join(path)))?;
            let is_written = match &written {
                // The process may have been killed right before the path was written.
                Some(written) => {
                    written.contains(&position) && !has_content(&now, change.before.as_ref())
                }
                None => has_content(&now, change.after.as_ref()),
            };
            if is_written {
                kept.push(change.clone());
            }
        }
        self.changes = kept;
        Ok(())
    }

    /// Removes the parents of a path that are empty now: any of them when merging, only those that
    /// the merge created when undoing.
    fn remove_empty(
        &self,
        root: &Root,
        path: &Path,
        direction: Direction,
        written: &BTreeSet<&Path>,
    ) -> Result<(), Error> {
        for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
            let is_ours = direction == Direction::Merge
                || self.made.contains(&EncodedPath(folder.to_owned()));
            // The next path in sort order lies in the folder, if any does.
            let after = (std::ops::Bound::Excluded(folder), std::ops::Bound::Unbounded);
            let is_needed =
                written.range::<Path, _>(after).next().is_some_and(|path| path.starts_with(folder));
            if !is_ours
                || is_needed
                || !root.remove_folder(folder).map_err(at("remove", &self.top.0.join(folder)))?
            {
                break;
            }
        }
        Ok(())
    }

    /// The mode of a folder that has to be created.
    fn mode(&self, folder: &Path, direction: Direction) -> u32 {
        let known = (direction == Direction::Undo)
            .then(|| self.around.get(&EncodedPath(folder.to_owned())))
            .flatten();
        known.copied().unwrap_or(0o777)
    }
}

impl Change {
    /// The content before and after the change in a direction.
    pub(super) fn ends(&self, direction: Direction) -> (Option<&Image>, Option<&Image>) {
        match direction {
            Direction::Merge => (self.before.as_ref(), self.after.as_ref()),
            Direction::Undo => (self.after.as_ref(), self.before.as_ref()),
        }
    }
}

/// Whether a path has the content of an image. A folder counts as no content.
pub(super) fn has_content(repository_state: &FileState, image: Option<&Image>) -> bool {
    match (repository_state, image) {
        (FileState::Content(content), Some(image)) => content.is(&image.content),
        (FileState::Content(_) | FileState::Special, None) => false,
        (_, image) => image.is_none(),
    }
}

/// All plans of a run with their folders. Unreadable ones are skipped with a warning, and so are
/// those of merges that stopped before anything was written.
pub(super) fn all(folder: &Path) -> Vec<(PathBuf, Plan)> {
    let mut plans = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match Plan::read(&entry.path()) {
            Ok(Some(plan)) if plan.changes.is_empty() && plan.left_out.is_empty() => {}
            Ok(Some(plan)) if plan.version == metadata::VERSION => plans.push((entry.path(), plan)),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "skipping an unreadable merge record"),
        }
    }
    plans.sort_by_key(|(_, plan)| plan.order);
    plans
}

/// Removes the plans of a workspace that were written but never committed to.
pub(super) fn remove_uncommitted(paths: &WorkspacePaths) -> Result<(), Error> {
    for (folder, plan) in all(&paths.undo) {
        if plan.id == paths.id && plan.state == MergeRecordState::Begun {
            super::disk::clear(&folder).map_err(at("remove", &folder))?;
        }
    }
    Ok(())
}

/// Records that a merge will not be completed. A plan of which nothing was written is removed.
pub(super) fn stop(paths: &WorkspacePaths, name: &str) -> Result<(), Error> {
    let folder = paths.undo.join(name);
    match Plan::read(&folder)? {
        Some(mut plan) if plan.state == MergeRecordState::Begun => {
            plan.keep_written(&folder)?;
            plan.state = MergeRecordState::Stopped;
            plan.write(&folder)?;
            remove_unwritten(&folder)
        }
        _ => Ok(()),
    }
}

/// Removes the plan of a merge that stopped before anything was written.
pub(super) fn remove_unwritten(folder: &Path) -> Result<(), Error> {
    match Plan::read(folder)? {
        Some(plan) if plan.state == MergeRecordState::Stopped && plan.changes.is_empty() => {
            super::disk::clear(folder).map_err(at("remove", folder))
        }
        _ => Ok(()),
    }
}
