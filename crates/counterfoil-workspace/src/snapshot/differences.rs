//! The files that differ between a commit and the work tree. Neither the index nor a setting,
//! attribute or ignore rule that was written since the first look has a part in it.

use super::base::{Base, Side};
use super::blob::{Blob, Conversion};
use super::conversions::{LineEnds, check_attributes, conversions};
use super::entry::PathState;
use super::ignore_rules::IgnoreRules;
use super::patch::{Import, PatchError};
use super::read_files::read_files;
use super::repo_path::{RepoPath, relative_to};
use super::revision::CommitBase;
use super::{Snapshot, Snapshotter};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A file that differs between a commit and the work tree.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The file, relative to the folder.
    pub path: PathBuf,
    /// The commit has it.
    pub was_committed: bool,
    /// Ignore rules of the work tree that were written since the first look hide it from git.
    pub is_hidden: bool,
    /// Git cannot tell whether it differs without running a filter.
    pub needs_filter: bool,
    /// The folder of the repository in the work tree that it is in, if it is in another one.
    pub repository: Option<PathBuf>,
    pub(super) name: RepoPath,
    pub(super) old: Option<Blob>,
    pub(super) new: Option<NewSide>,
    pub(super) conversion: Conversion,
}

/// A file in the work tree.
#[derive(Clone, Debug)]
pub(super) enum NewSide {
    /// It is as git knew it at the first look.
    Clean(Blob),
    Observed(PathState),
}

/// A submodule of which another commit is checked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedSubmodule {
    /// Its folder, relative to the folder.
    pub path: PathBuf,
    pub(super) name: RepoPath,
    /// The commit before.
    pub(super) old: String,
    /// The commit now. `None` if it is gone.
    pub(super) new: Option<String>,
}

/// What differs between a commit and the work tree.
#[derive(Debug, Default)]
pub struct Differences {
    /// The files, sorted by path. Those of submodules are among them.
    pub files: Vec<Difference>,
    /// The submodules that moved.
    pub submodules: Vec<MovedSubmodule>,
    /// The folders of repositories that were there at the first look, and that the repository does not
    /// know. Their files are not compared.
    pub left_alone: Vec<PathBuf>,
    /// The files of the commit.
    pub(super) base: Base,
}

impl Snapshotter {
    /// What differs below the folder between a commit and a snapshot. With `None`, all files of the
    /// snapshot do.
    ///
    /// # Errors
    ///
    /// There is no repository, the snapshot is not complete, or the commit cannot be read.
    pub fn differences(
        &mut self,
        commit: Option<&str>,
        now: &Snapshot,
    ) -> Result<Differences, PatchError> {
        // What could not be read before is nothing that an agent wrote.
        if let Some(path) = now.unreadable.difference(&self.start().unreadable).next() {
            return Err(PatchError::Incomplete(format!("{} cannot be read", path.display())));
        }
        if now.data.too_large {
            return Err(PatchError::Incomplete(now.notes.last().cloned().unwrap_or_default()));
        }
        let repo = self.start().base.repos.get(&RepoPath::top()).cloned();
        let repo = repo.ok_or_else(|| {
            let why = now.notes.first().map_or("there was no repository", String::as_str);
            PatchError::NoRepository { folder: self.folder.clone(), why: why.to_owned() }
        })?;
        let CommitBase { base, submodules } = match commit {
            None => CommitBase::default(),
            Some(commit) => self
                .base_of(repo, commit, LineEnds::default(), &mut Vec::new())
                .map_err(|reason| PatchError::Commit { commit: commit.to_owned(), reason })?,
        };
        let left_alone = self.left_alone();
        let mut names: BTreeSet<&RepoPath> = now.data.entries.keys().collect();
        names.extend(base.files().iter().map(|file| &file.name));
        names.extend(now.data.base.files().iter().map(|file| &file.name));
        names.retain(|name| {
            let is_below = self.here == RepoPath::top() || name.inside(&self.here).is_some();
            let is_alone = left_alone.iter().any(|folder| name.inside(folder).is_some());
            is_below && !is_alone && !self.is_excluded(name)
        });
        let names: Vec<&RepoPath> = names.into_iter().collect();
        let mut finder = Finder {
            base: &base,
            now,
            unlisted: self.unlisted(&base, now, &names),
            conversions: self.conversions_of_new(now, &names)?,
            rules: self.current_rules(),
            repositories: BTreeMap::new(),
        };
        let found = names.into_iter().filter_map(|name| finder.difference(self, name));
        let files: Vec<Difference> = found.collect();
        let submodules = self.moved(&submodules);
        let left_alone = left_alone.iter().map(|name| relative_to(&self.here, name)).collect();
        Ok(Differences { files, submodules, left_alone, base })
    }

    /// The files of a commit that are in no snapshot because they are ignored and were not in the index
    /// at the first look.
    fn unlisted(
        &mut self,
        base: &Base,
        now: &Snapshot,
        names: &[&RepoPath],
    ) -> BTreeMap<RepoPath, PathState> {
        let is_unlisted = |name: &RepoPath| {
            base.get(name).is_some()
                && now.data.base.get(name).is_none()
                && !now.data.entries.contains_key(name)
        };
        let names = names.iter().filter(|name| is_unlisted(name));
        let names: Vec<RepoPath> = names.map(|name| (*name).clone()).collect();
        let (states, _) = read_files(&self.top, base, &names, &mut self.cache, &self.store);
        std::iter::zip(names, states).collect()
    }

    /// The folders of other repositories that were there at the first look. Submodules are not among
    /// them.
    fn left_alone(&mut self) -> Vec<RepoPath> {
        let start = self.start();
        let known = |folder: &RepoPath| start.base.repos.contains_key(folder);
        let others = start.rules.repositories().into_iter();
        others.filter(|folder| *folder != RepoPath::top() && !known(folder)).collect()
    }

    /// The ignore rules in the work tree as it is now, and those from outside of it as they were at
    /// the first look.
    fn current_rules(&mut self) -> IgnoreRules {
        let ignore_case = self.capabilities().ignore_case;
        let (global, exclude) = self.start().rules.texts_outside();
        IgnoreRules::learn_files_only(&self.top, ignore_case, global, exclude)
    }

    /// How git would have converted files that it did not know, by the attributes of the first look.
    fn conversions_of_new(
        &mut self,
        now: &Snapshot,
        names: &[&RepoPath],
    ) -> Result<BTreeMap<RepoPath, Conversion>, PatchError> {
        let lines = self.start().line_ends;
        let new: Vec<&&RepoPath> =
            names.iter().filter(|name| now.data.base.get(name).is_none()).collect();
        let attributes = self.attributes(now);
        if new.is_empty() || (attributes.is_empty() && !lines.auto) {
            return Ok(BTreeMap::new());
        }
        if attributes.is_empty() {
            let text = Conversion::Text { crlf: lines.crlf };
            return Ok(new.into_iter().map(|name| ((*name).clone(), text)).collect());
        }
        let mut import = Import::default();
        import.attributes(&attributes);
        let repo = self.import(import, now)?;
        let source = format!("--source={}", super::patch::ATTRIBUTES);
        let arguments = check_attributes(&[&source]);
        let input = new.iter().flat_map(|name| [name.bytes(), b"\0"].concat()).collect();
        // An older git does not know the option. Then no file is converted.
        let output = self.git.isolated(repo.path(), &arguments).stdin(input).output()?;
        Ok(if output.ok() { conversions(&output.stdout, lines) } else { BTreeMap::new() })
    }

    /// The submodules that moved.
    fn moved(&self, submodules: &BTreeMap<RepoPath, String>) -> Vec<MovedSubmodule> {
        let mut moved = Vec::new();
        for (name, old) in submodules {
            let folder = self.top.join(name.path());
            let is_below = self.here == RepoPath::top() || name.inside(&self.here).is_some();
            let is_checked_out = folder.join(".git").symlink_metadata().is_ok();
            // A folder without a repository is one of a submodule that is not checked out.
            let is_gone = !is_checked_out && !folder.is_dir();
            if !is_below || (!is_checked_out && !is_gone) {
                continue;
            }
            let new = if is_gone { None } else { crate::git::head(&folder) };
            if new.as_ref() != Some(old) {
                let path = relative_to(&self.here, name);
                moved.push(MovedSubmodule { path, name: name.clone(), old: old.clone(), new });
            }
        }
        moved
    }
}

/// Finds what differs.
struct Finder<'a> {
    base: &'a Base,
    now: &'a Snapshot,
    /// Files that are in no snapshot.
    unlisted: BTreeMap<RepoPath, PathState>,
    /// The conversions of files that git did not know at the first look.
    conversions: BTreeMap<RepoPath, Conversion>,
    /// The ignore rules in the work tree.
    rules: IgnoreRules,
    /// Whether a folder is the top of another repository.
    repositories: BTreeMap<RepoPath, bool>,
}

impl Finder<'_> {
    fn difference(&mut self, tree: &mut Snapshotter, name: &RepoPath) -> Option<Difference> {
        let data = &self.now.data;
        let mut rules = data.base.rules(name, tree.capabilities());
        if let Some(conversion) = self.conversions.get(name) {
            rules.conversion = *conversion;
        }
        let old = self.base.get(name).map(|file| file.blob.clone());
        let side = match self.unlisted.get(name) {
            Some(state) if !state.is_gone() => Side::Observed(state),
            Some(_) => Side::Absent,
            None => data.side(name),
        };
        let is_same = match (&old, side) {
            (None, Side::Absent) => true,
            (Some(_), Side::Absent) => tree.start().not_checked_out.contains(name),
            (Some(old), Side::Clean(blob)) => blob.same(old, rules.file_mode),
            (Some(old), Side::Observed(state)) => state.is_blob(old, rules),
            (None, _) => false,
        };
        let new = match side {
            Side::Absent | Side::Observed(PathState::Other(_)) => None,
            Side::Clean(blob) => Some(NewSide::Clean(blob.clone())),
            Side::Observed(state) => Some(NewSide::Observed(state.clone())),
        };
        if is_same || (old.is_none() && new.is_none()) {
            return None;
        }
        let is_new = old.is_none() && data.base.get(name).is_none();
        let is_hidden =
            is_new && !name.is_named(".gitignore") && self.rules.is_ignored(name, false);
        let repository = self.repository(&tree.top, name);
        Some(Difference {
            path: relative_to(&tree.here, name),
            was_committed: old.is_some(),
            is_hidden,
            needs_filter: rules.conversion == Conversion::Filter
                && matches!(new, Some(NewSide::Observed(_))),
            repository: repository.map(|folder| relative_to(&tree.here, &folder)),
            name: name.clone(),
            old,
            new,
            conversion: rules.conversion,
        })
    }

    /// The innermost folder around a file that has a repository of its own.
    fn repository(&mut self, top: &Path, name: &RepoPath) -> Option<RepoPath> {
        name.folders().filter(|folder| *folder != RepoPath::top()).find(|folder| {
            let has_one = || top.join(folder.path()).join(".git").symlink_metadata().is_ok();
            *self.repositories.entry(folder.clone()).or_insert_with(has_one)
        })
    }
}
