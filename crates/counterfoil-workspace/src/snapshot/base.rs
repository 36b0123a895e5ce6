//! What a work tree is compared with: the files of the index when the folder was first looked at,
//! or those of a commit. It never changes, whatever becomes of the repository.

use super::blob::{Blob, Conversion, ObjectFormat};
use super::entry::{BlobRules, PathState};
use super::git::FsCapabilities;
use super::repo_path::RepoPath;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

/// A file that is known by its blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BaseFile {
    pub(super) name: RepoPath,
    pub(super) blob: Blob,
    pub(super) conversion: Conversion,
}

/// A repository whose files are part of a base.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BaseRepo {
    /// The folder with its objects.
    pub(super) objects: PathBuf,
    pub(super) format: ObjectFormat,
}

/// The files that are known by their blobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Base {
    /// The repository and its submodules, by their folder below the top. Empty without git.
    pub(super) repos: BTreeMap<RepoPath, BaseRepo>,
    /// Sorted by name.
    files: Vec<BaseFile>,
    /// The index of each file. Every look asks for all of them.
    positions: HashMap<RepoPath, usize>,
}

impl Base {
    /// A base of some files, in any order.
    pub(super) fn new(repos: BTreeMap<RepoPath, BaseRepo>, mut files: Vec<BaseFile>) -> Self {
        files.sort_by(|a, b| a.name.cmp(&b.name));
        // The repository and a submodule can both list a path. The submodule comes last.
        files.reverse();
        files.dedup_by(|a, b| a.name == b.name);
        files.reverse();
        let positions =
            files.iter().enumerate().map(|(at, file)| (file.name.clone(), at)).collect();
        Self { repos, files, positions }
    }

    pub(super) fn files(&self) -> &[BaseFile] {
        &self.files
    }

    /// The index of a file.
    pub(super) fn position(&self, name: &[u8]) -> Option<usize> {
        self.positions.get(name).copied()
    }

    pub(super) fn get(&self, name: &RepoPath) -> Option<&BaseFile> {
        self.files.get(self.position(name.bytes())?)
    }

    /// Whether only a filter can compare the file with its blob.
    pub(super) fn has_filter(&self, name: &RepoPath) -> bool {
        self.get(name).is_some_and(|file| file.conversion == Conversion::Filter)
    }

    /// The repository that contains a path.
    pub(super) fn repo_of(&self, name: &RepoPath) -> Option<&BaseRepo> {
        let mut folders = name.folders().chain(std::iter::once(RepoPath::top()));
        folders.find_map(|folder| self.repos.get(&folder))
    }

    /// What has to be known to compare files at a path with blobs.
    pub(super) fn rules(&self, name: &RepoPath, capabilities: FsCapabilities) -> BlobRules {
        BlobRules {
            format: self.repo_of(name).map(|repo| repo.format).unwrap_or_default(),
            conversion: self.get(name).map(|file| file.conversion).unwrap_or_default(),
            file_mode: capabilities.file_mode,
            symlinks: capabilities.symlinks,
        }
    }
}

/// A base and what was seen to differ from it.
#[derive(Debug, Default)]
pub(super) struct SnapshotData {
    /// The top of the work tree.
    pub(super) top: PathBuf,
    pub(super) base: Arc<Base>,
    /// The paths that differ from the base. A path in neither did not exist.
    pub(super) entries: BTreeMap<RepoPath, PathState>,
    /// There was too much to read: the snapshot is empty.
    pub(super) too_large: bool,
}

/// The state of a path in a snapshot.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side<'a> {
    Absent,
    /// It was equal to the base.
    Clean(&'a Blob),
    /// It was read.
    Observed(&'a PathState),
}

impl SnapshotData {
    /// The state of a path.
    pub(super) fn side(&self, name: &RepoPath) -> Side<'_> {
        match self.entries.get(name) {
            Some(state) if state.is_gone() => Side::Absent,
            Some(state) => Side::Observed(state),
            None => self.base.get(name).map_or(Side::Absent, |file| Side::Clean(&file.blob)),
        }
    }
}
