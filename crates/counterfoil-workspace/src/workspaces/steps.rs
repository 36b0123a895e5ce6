//! Records what a step changed in the repository itself, so that it can be shown and undone like a
//! merge.

use super::disk::Root;
use super::merge::draft::{Draft, Target};
use super::metadata::EncodedPath;
use super::plan::{self, Direction, Image, Plan};
use super::{Error, MergeRecordState, Workspaces, at, lock, run_name};
use crate::snapshot::FileAt;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The most files whose contents are recorded for a step.
const MAX_FILES: usize = 10_000;
/// The most bytes that are recorded for a step.
const MAX_BYTES: u64 = 256 << 20;
/// The number of files whose contents are in memory at a time.
const AT_A_TIME: usize = 64;

/// What a merge or a step changed. The contents of the files are read one by one.
#[derive(Debug)]
pub struct RecordedChanges {
    plan: Plan,
    folder: PathBuf,
}

/// A file that a merge or a step changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedFile {
    /// The path, relative to the repository folder.
    pub path: String,
    /// Its size before, in bytes; `None` if it did not exist.
    pub before: Option<u64>,
    /// Its size afterwards; `None` if it does not exist any more.
    pub after: Option<u64>,
}

impl RecordedChanges {
    /// The files that were changed.
    pub fn files(&self) -> impl Iterator<Item = RecordedFile> {
        let size = |image: &Option<Image>| image.as_ref().map(|image| image.content.size);
        self.plan.changes.iter().map(move |change| RecordedFile {
            path: self.plan.display_path(&change.path.0),
            before: size(&change.before),
            after: size(&change.after),
        })
    }

    /// The attempt or the workspace that made the changes.
    pub fn id(&self) -> &str {
        &self.plan.id
    }

    /// Whether the changes were put back, or are being put back.
    pub fn is_undone(&self) -> bool {
        matches!(self.plan.state, MergeRecordState::Undoing | MergeRecordState::Undone)
    }

    /// The bytes of a file before, by its place in [`Self::files`].
    pub fn read_before(&self, place: usize) -> Result<Option<Vec<u8>>, Error> {
        let change = self.plan.changes.get(place);
        self.read_image("before", change.and_then(|change| change.before.as_ref()))
    }

    /// The bytes of a file afterwards, by its place in [`Self::files`].
    pub fn read_after(&self, place: usize) -> Result<Option<Vec<u8>>, Error> {
        let change = self.plan.changes.get(place);
        self.read_image("after", change.and_then(|change| change.after.as_ref()))
    }

    /// Whether a file was before these changes what it was after earlier ones.
    pub fn continues(&self, place: usize, earlier: &Self, earlier_place: usize) -> bool {
        let before = self.plan.changes.get(place).and_then(|change| change.before.as_ref());
        let change = earlier.plan.changes.get(earlier_place);
        match (change.and_then(|change| change.after.as_ref()), before) {
            (Some(after), Some(before)) => after.content.is(&before.content),
            (after, before) => after.is_none() && before.is_none(),
        }
    }

    /// Whether a file is now what it was after these changes, or before them if they were undone.
    /// `None` if it cannot be read, such as on another machine.
    pub fn is_still(&self, place: usize) -> Option<bool> {
        let change = self.plan.changes.get(place)?;
        let root = Root::open(&self.plan.top.0).ok()?;
        let now = root.state(&change.path.0).ok()?;
        let direction = if self.is_undone() { Direction::Undo } else { Direction::Merge };
        Some(plan::has_content(&now, change.ends(direction).1))
    }

    /// The bytes of an image in a file of saved contents.
    fn read_image(&self, name: &str, image: Option<&Image>) -> Result<Option<Vec<u8>>, Error> {
        let Some(image) = image else { return Ok(None) };
        let path = self.folder.join(name);
        let mut file = File::open(&path).map_err(at("open", &path))?;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(image.offset))
            .and_then(|_| file.take(image.content.size).read_to_end(&mut bytes))
            .map_err(at("read", &path))?;
        Ok(Some(bytes))
    }
}

/// Reads files as they were before a step: `None` for one that did not exist, an error if that is
/// not known.
pub type ReadBefore<'a> = &'a dyn Fn(&[&Path]) -> Vec<std::io::Result<Option<FileAt>>>;

/// What a step changed, and where. All paths are relative to the top.
pub struct StepChanges<'a> {
    /// The top of the repository, or the folder itself outside of one.
    pub top: &'a Path,
    /// The files that it changed.
    pub files: Vec<PathBuf>,
    /// Reads them as they were before.
    pub before: ReadBefore<'a>,
    /// The folders around them that were there before.
    pub existed: BTreeSet<PathBuf>,
}

pub(super) fn record(
    workspaces: &Workspaces,
    run: &str,
    id: &str,
    step: &StepChanges<'_>,
) -> Result<(), Error> {
    if step.files.len() > MAX_FILES {
        return Err(Error::TooMuch { limit: format!("more than {MAX_FILES} files changed") });
    }
    let _lock = lock::exclusive(&workspaces.state)?;
    let root = Root::open(step.top).map_err(at("open", step.top))?;
    let paths = workspaces.paths(run, id);
    let mut draft = Draft::begin(&paths)?;
    let mut left_out = Vec::new();
    for files in step.files.chunks(AT_A_TIME) {
        let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        for (path, before) in files.iter().zip((step.before)(&files)) {
            match before {
                Ok(before) => draft.add_done(&root, step.top, path, before.as_ref())?,
                Err(_) => left_out.push(EncodedPath((*path).to_owned())),
            }
        }
        if draft.bytes() > MAX_BYTES {
            draft.abandon()?;
            let limit = format!("more than {} MiB changed", MAX_BYTES >> 20);
            return Err(Error::TooMuch { limit });
        }
    }
    if draft.changes.is_empty() && left_out.is_empty() {
        return draft.abandon();
    }
    draft.changes.sort_by(|one, other| one.path.cmp(&other.path));
    let prefix = workspaces.repo.strip_prefix(step.top).unwrap_or(Path::new(""));
    let is_new = |folder: &Path| !step.existed.contains(folder);
    draft.finish_done(workspaces, &paths, Target { top: step.top, prefix }, is_new, left_out)
}

pub(super) fn recorded(workspaces: &Workspaces, run: &str, id: &str) -> Option<RecordedChanges> {
    let plans = plan::all(&folder_of(workspaces, run));
    let (folder, plan) = plans.into_iter().rev().find(|(_, plan)| plan.id == id)?;
    Some(RecordedChanges { plan, folder })
}

/// All that merges and steps of a run changed, oldest first. A merge that was begun and not completed
/// has changed nothing for certain.
pub(super) fn all_recorded(workspaces: &Workspaces, run: &str) -> Vec<RecordedChanges> {
    let mut plans = plan::all(&folder_of(workspaces, run));
    plans.retain(|(_, plan)| plan.state != MergeRecordState::Begun);
    plans.into_iter().map(|(folder, plan)| RecordedChanges { plan, folder }).collect()
}

/// When a record of a run was added or removed last; `None` if it has none.
pub(super) fn recorded_at(workspaces: &Workspaces, run: &str) -> Option<SystemTime> {
    folder_of(workspaces, run).metadata().and_then(|folder| folder.modified()).ok()
}

/// The folder with the records of a run.
fn folder_of(workspaces: &Workspaces, run: &str) -> PathBuf {
    workspaces.state.join("undo").join(run_name(run))
}
