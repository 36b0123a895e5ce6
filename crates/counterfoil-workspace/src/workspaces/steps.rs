//! Records what a step changed in the repository itself, so that it can be shown and undone like a
//! merge.

use super::disk::Root;
use super::merge::draft::{Draft, Target};
use super::metadata::EncodedPath;
use super::plan::{self, Image, Plan};
use super::{Error, Workspaces, at, lock, run_name};
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
    before: (File, PathBuf),
    after: (File, PathBuf),
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

    /// The bytes of a file before, by its place in [`Self::files`].
    pub fn read_before(&mut self, place: usize) -> Result<Option<Vec<u8>>, Error> {
        let change = self.plan.changes.get(place);
        read_image(&mut self.before, change.and_then(|change| change.before.as_ref()))
    }

    /// The bytes of a file afterwards, by its place in [`Self::files`].
    pub fn read_after(&mut self, place: usize) -> Result<Option<Vec<u8>>, Error> {
        let change = self.plan.changes.get(place);
        read_image(&mut self.after, change.and_then(|change| change.after.as_ref()))
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

pub(super) fn recorded(
    workspaces: &Workspaces,
    run: &str,
    id: &str,
) -> Result<Option<RecordedChanges>, Error> {
    let plans = plan::all(&folder_of(workspaces, run));
    let Some((folder, plan)) = plans.into_iter().rev().find(|(_, plan)| plan.id == id) else {
        return Ok(None);
    };
    let open = |name: &str| {
        let path = folder.join(name);
        File::open(&path).map(|file| (file, path.clone())).map_err(at("open", &path))
    };
    Ok(Some(RecordedChanges { before: open("before")?, after: open("after")?, plan }))
}

/// When a record of a run was added or removed last; `None` if it has none.
pub(super) fn recorded_at(workspaces: &Workspaces, run: &str) -> Option<SystemTime> {
    folder_of(workspaces, run).metadata().and_then(|folder| folder.modified()).ok()
}

/// The folder with the records of a run.
fn folder_of(workspaces: &Workspaces, run: &str) -> PathBuf {
    workspaces.state.join("undo").join(run_name(run))
}

/// The bytes of an image in a file of saved contents.
fn read_image(
    (file, path): &mut (File, PathBuf),
    image: Option<&Image>,
) -> Result<Option<Vec<u8>>, Error> {
    let Some(image) = image else { return Ok(None) };
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(image.offset))
        .and_then(|_| file.take(image.content.size).read_to_end(&mut bytes))
        .map_err(at("read", path))?;
    Ok(Some(bytes))
}
