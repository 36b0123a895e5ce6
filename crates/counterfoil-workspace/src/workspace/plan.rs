//! What folding will do, written down before it is done, and the doing of it.

use super::disk::{Root, Standing};
use super::record::{self, Bytes, Content};
use super::{Desk, Error, FoldingState, Step, Workspaces, at};
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
    pub(super) state: FoldingState,
    /// The folder that the paths are below.
    pub(super) top: Bytes,
    pub(super) prefix: Bytes,
    pub(super) changes: Vec<Change>,
    /// Folders that were not there before.
    pub(super) made: BTreeSet<Bytes>,
    /// Folders around what is deleted, and their modes.
    pub(super) around: BTreeMap<Bytes, u32>,
    pub(super) notes: Vec<String>,
}

/// What becomes of one path.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Change {
    pub(super) path: Bytes,
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
pub(super) enum Way {
    Fold,
    Undo,
}

/// What following a plan came to.
#[derive(Debug)]
pub(super) struct Followed {
    /// Paths that stand as the plan wants.
    pub(super) done: Vec<PathBuf>,
    /// Paths that stand neither as the plan found nor as it wants them. If there are any, it was
    /// not followed to its end.
    pub(super) touched: Vec<PathBuf>,
}

impl Plan {
    pub(super) fn read(folder: &Path) -> Result<Option<Self>, Error> {
        record::read(&folder.join("manifest.json"))
    }

    pub(super) fn write(&self, folder: &Path) -> Result<(), Error> {
        record::write(&folder.join("manifest.json"), self)
    }

    /// A path of it as people name it.
    pub(super) fn seen(&self, path: &Path) -> String {
        super::seen_from(&self.prefix.0, path)
    }

    /// Makes every path stand as it should. What already does is left alone; if anything stands
    /// there that the plan does not know, nothing more is written.
    pub(super) fn follow(
        &self,
        spaces: &Workspaces,
        folder: &Path,
        way: Way,
    ) -> Result<Followed, Error> {
        let root = Root::open(&self.top.0).map_err(at("open", &self.top.0))?;
        let full = |path: &Path| self.top.0.join(path);
        let mut followed = Followed { done: Vec::new(), touched: Vec::new() };
        let mut open = Vec::new();
        for change in &self.changes {
            let path = &change.path.0;
            root.remove_draft(path).map_err(at("look at", &full(path)))?;
            let stands = root.look(path).map_err(at("read", &full(path)))?;
            let (from, to) = change.ends(way);
            if is(&stands, to) {
                followed.done.push(path.clone());
            } else if is(&stands, from) {
                open.push(change);
            } else {
                followed.touched.push(path.clone());
            }
        }
        if !followed.touched.is_empty() {
            return Ok(followed);
        }
        let open: BTreeSet<&Path> = open.iter().map(|change| change.path.0.as_path()).collect();
        let puts: BTreeSet<&Path> = self
            .changes
            .iter()
            .filter(|change| change.ends(way).1.is_some())
            .map(|change| change.path.0.as_path())
            .collect();
        let mut count = 0;
        // Deepest first: a folder goes when its last file has gone.
        for change in self.changes.iter().rev() {
            let path = change.path.0.as_path();
            let (Some(from), None) = change.ends(way) else { continue };
            if open.contains(path) {
                let removed =
                    root.remove(path, &from.content).map_err(at("remove", &full(path)))?;
                if !removed {
                    followed.touched.push(path.to_owned());
                    return Ok(followed);
                }
                followed.done.push(path.to_owned());
                count += 1;
                spaces.step(Step::Written(count));
            }
            self.remove_empty(&root, path, way, &puts)?;
        }
        let images = folder.join(if way == Way::Fold { "after" } else { "before" });
        let mut images_file = None;
        for change in &self.changes {
            let path = change.path.0.as_path();
            let (from, Some(to)) = change.ends(way) else { continue };
            if !open.contains(path) {
                continue;
            }
            let file = match &mut images_file {
                Some(file) => file,
                None => images_file.insert(File::open(&images).map_err(at("open", &images))?),
            };
            file.seek(SeekFrom::Start(to.offset)).map_err(at("read", &images))?;
            let mut bytes = file.take(to.content.size);
            let modes = |path: &Path| self.mode(path, way);
            let put = root
                .put(path, from.map(|from| &from.content), &to.content, &mut bytes, &modes)
                .map_err(at("write", &full(path)))?;
            if !put {
                followed.touched.push(path.to_owned());
                return Ok(followed);
            }
            followed.done.push(path.to_owned());
            count += 1;
            spaces.step(Step::Written(count));
        }
        let folders: BTreeSet<_> =
            self.changes.iter().filter_map(|change| change.path.0.parent()).collect();
        for folder in folders {
            root.sync(folder).map_err(at("write", &full(folder)))?;
        }
        Ok(followed)
    }

    /// Removes the folders around a path that are empty now: all of them on the way there, those we
    /// made on the way back.
    fn remove_empty(
        &self,
        root: &Root,
        path: &Path,
        way: Way,
        puts: &BTreeSet<&Path>,
    ) -> Result<(), Error> {
        for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
            let is_ours = way == Way::Fold || self.made.contains(&Bytes(folder.to_owned()));
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
    fn mode(&self, folder: &Path, way: Way) -> u32 {
        let known =
            (way == Way::Undo).then(|| self.around.get(&Bytes(folder.to_owned()))).flatten();
        known.copied().unwrap_or(0o777)
    }
}

impl Change {
    /// What it leads from and to.
    pub(super) fn ends(&self, way: Way) -> (Option<&Image>, Option<&Image>) {
        match way {
            Way::Fold => (self.before.as_ref(), self.after.as_ref()),
            Way::Undo => (self.after.as_ref(), self.before.as_ref()),
        }
    }
}

/// Whether what stands at a path is what a plan speaks of. A folder is no file, so for a plan
/// nothing stands there.
pub(super) fn is(stands: &Standing, image: Option<&Image>) -> bool {
    match (stands, image) {
        (Standing::Content(content), Some(image)) => content.is(&image.content),
        (Standing::Content(_) | Standing::Special, None) => false,
        (_, image) => image.is_none(),
    }
}

/// The folders of plans, with the plans. One that cannot be read is left out, and said to be.
pub(super) fn all(folder: &Path) -> Vec<(PathBuf, Plan)> {
    let mut plans = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match Plan::read(&entry.path()) {
            Ok(Some(plan)) if plan.version == record::VERSION => plans.push((entry.path(), plan)),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "a folding is not known any more"),
        }
    }
    plans.sort_by_key(|(_, plan)| plan.order);
    plans
}

/// Removes plans of a workspace that were written down and never decided on.
pub(super) fn drop_unbegun(desk: &Desk) -> Result<(), Error> {
    for (folder, plan) in all(&desk.undo) {
        if plan.id == desk.id && plan.state == FoldingState::Begun {
            super::disk::clear(&folder).map_err(at("remove", &folder))?;
        }
    }
    Ok(())
}

/// Writes down that a folding will not be finished.
pub(super) fn stop(desk: &Desk, name: &str) -> Result<(), Error> {
    let folder = desk.undo.join(name);
    match Plan::read(&folder)? {
        Some(plan) if plan.state == FoldingState::Begun => {
            Plan { state: FoldingState::Stopped, ..plan }.write(&folder)
        }
        _ => Ok(()),
    }
}
