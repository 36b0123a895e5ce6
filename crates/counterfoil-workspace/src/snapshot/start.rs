//! What is known of a work tree from its first look, and how a later process learns it.

use super::base::{Base, BaseFile, BaseRepo};
use super::conversions::LineEnds;
use super::entry::PathState;
use super::git::FsCapabilities;
use super::ignore_rules::{IgnoreRules, IgnoreTexts};
use super::repo_path::RepoPath;
use crate::file_identity::Identity;
use crate::{Durability, save_json};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// The version of the format. A file of another version is not read.
const VERSION: u32 = 1;

/// What is known of a work tree from its first look.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) base: Arc<Base>,
    pub(super) rules: IgnoreRules,
    /// The identity of each file of the base while it was equal to it.
    pub(super) clean: Vec<Option<Identity>>,
    /// The files that only a filter could compare with the base, as they were.
    pub(super) filtered: BTreeMap<RepoPath, PathState>,
    /// The capabilities of the file system, as they were configured. `None` without git.
    pub(super) capabilities: Option<FsCapabilities>,
    /// How the settings converted the ends of lines.
    pub(super) line_ends: LineEnds,
    /// The folders that could not be read.
    pub(super) unreadable: BTreeSet<PathBuf>,
    /// The files that a sparse checkout leaves out.
    pub(super) not_checked_out: BTreeSet<RepoPath>,
    /// The base is a revision, so nobody knows what such files were.
    pub(super) is_revision: bool,
    /// The files that git found to be equal to the base, and when it began to look. Only until the
    /// first look is complete.
    pub(super) assumed: Option<(BTreeSet<usize>, SystemTime)>,
    /// What could not be determined, and why.
    pub(super) notes: Vec<String>,
}

/// It as it is written.
#[derive(Serialize, Deserialize)]
struct Saved {
    version: u32,
    top: PathBuf,
    repos: Vec<(RepoPath, BaseRepo)>,
    files: Vec<(BaseFile, Option<Identity>)>,
    filtered: Vec<(RepoPath, PathState)>,
    #[serde(default)]
    capabilities: Option<FsCapabilities>,
    #[serde(default)]
    line_ends: LineEnds,
    #[serde(default)]
    unreadable: BTreeSet<PathBuf>,
    #[serde(default)]
    not_checked_out: BTreeSet<RepoPath>,
    rules: IgnoreTexts,
    notes: Vec<String>,
}

impl Start {
    pub(super) fn new(base: Base, rules: IgnoreRules) -> Self {
        Self {
            clean: vec![None; base.files().len()],
            base: Arc::new(base),
            rules,
            filtered: BTreeMap::new(),
            capabilities: None,
            line_ends: LineEnds::default(),
            unreadable: BTreeSet::new(),
            not_checked_out: BTreeSet::new(),
            is_revision: false,
            assumed: None,
            notes: Vec::new(),
        }
    }

    /// Writes it for later processes.
    pub(super) fn save(&self, top: &Path, path: &Path) -> io::Result<()> {
        let files = std::iter::zip(self.base.files().iter().cloned(), self.clean.iter().copied());
        let saved = Saved {
            version: VERSION,
            top: top.to_owned(),
            repos: self.base.repos.clone().into_iter().collect(),
            files: files.collect(),
            filtered: self.filtered.clone().into_iter().collect(),
            capabilities: self.capabilities,
            line_ends: self.line_ends,
            unreadable: self.unreadable.clone(),
            not_checked_out: self.not_checked_out.clone(),
            rules: self.rules.texts(),
            notes: self.notes.clone(),
        };
        save_json(path, Durability::Unsynced, &saved)
    }

    /// Reads what an earlier process wrote for the same folder. `None` if there is nothing that this
    /// version can read.
    pub(super) fn load(top: &Path, path: &Path, ignore_case: bool) -> Option<Self> {
        let saved: Saved = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        if saved.version != VERSION || saved.top != top {
            return None;
        }
        let (files, clean): (Vec<BaseFile>, Vec<_>) = saved.files.into_iter().unzip();
        let base = Base::new(saved.repos.into_iter().collect(), files);
        let ignore_case = saved.capabilities.map_or(ignore_case, |known| known.ignore_case);
        // The files were written in their order.
        (base.files().len() == clean.len()).then(|| Self {
            base: Arc::new(base),
            rules: IgnoreRules::frozen(saved.rules, ignore_case),
            clean,
            filtered: saved.filtered.into_iter().collect(),
            capabilities: saved.capabilities,
            line_ends: saved.line_ends,
            unreadable: saved.unreadable,
            not_checked_out: saved.not_checked_out,
            is_revision: false,
            assumed: None,
            notes: saved.notes,
        })
    }
}

/// A fingerprint of a base. Two bases with the same one have the same files.
pub(super) fn base_id(base: &Base) -> String {
    let mut hash = Sha256::new();
    for file in base.files() {
        hash.update((file.name.bytes().len() as u64).to_le_bytes());
        hash.update(file.name.bytes());
        hash.update(file.blob.mode.to_le_bytes());
        hash.update(file.blob.oid.as_bytes());
    }
    hex::encode(&hash.finalize()[..16])
}
