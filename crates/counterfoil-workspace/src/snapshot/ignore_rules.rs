//! The ignore rules of a work tree as they were when it was first looked at. Rules that are written
//! later hide nothing.

use super::read_files::open;
use super::repo_path::RepoPath;
use crate::{Durability, save_json};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

/// A larger ignore file is not read.
const MAX_IGNORE_FILE: u64 = 4 << 20;

/// The texts of the rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IgnoreTexts {
    /// The rules of the user for all repositories.
    pub(super) global: String,
    /// The rules of each folder that has some.
    pub(super) folders: Vec<(RepoPath, FolderTexts)>,
}

/// The rules that begin to apply in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FolderTexts {
    /// A repository begins here: the rules of the folders around it do not apply in it.
    pub(super) is_repository: bool,
    /// The `.gitignore` of the folder.
    pub(super) rules: String,
    /// The `info/exclude` of the repository.
    pub(super) exclude: String,
}

impl FolderTexts {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Debug)]
struct FolderRules {
    is_repository: bool,
    rules: Gitignore,
    exclude: Gitignore,
}

/// The compiled rules.
#[derive(Debug)]
pub(super) struct IgnoreRules {
    ignore_case: bool,
    texts: RwLock<IgnoreTexts>,
    global: Gitignore,
    /// The rules of each folder. `None` if a folder was looked at and has none.
    folders: RwLock<HashMap<RepoPath, Option<Arc<FolderRules>>>>,
    /// The top, while the rules of folders are still read as they are reached.
    learning: Option<std::path::PathBuf>,
    /// Only the files `.gitignore` are read, as if there were one repository.
    files_only: bool,
}

impl IgnoreRules {
    /// Rules that are read from the folders below the top as they are reached, until they are
    /// frozen.
    pub(super) fn learn(top: &Path, ignore_case: bool, global: String, exclude: String) -> Self {
        let texts = IgnoreTexts { global, folders: Vec::new() };
        let rules = Self { learning: Some(top.to_owned()), ..Self::frozen(texts, ignore_case) };
        let own = read_text(&top.join(".gitignore"));
        rules.add(RepoPath::top(), FolderTexts { is_repository: true, rules: own, exclude });
        rules
    }

    /// Like [`Self::learn`], but nothing in a git folder is read, and the rules of folders around a
    /// nested repository apply in it.
    pub(super) fn learn_files_only(
        top: &Path,
        ignore_case: bool,
        global: String,
        exclude: String,
    ) -> Self {
        Self { files_only: true, ..Self::learn(top, ignore_case, global, exclude) }
    }

    /// The rules of the user for all repositories, and those that only this repository has, outside
    /// of the work tree.
    pub(super) fn texts_outside(&self) -> (String, String) {
        let texts = self.texts.read().unwrap_or_else(PoisonError::into_inner);
        let top = texts.folders.iter().find(|(folder, _)| *folder == RepoPath::top());
        (texts.global.clone(), top.map(|(_, top)| top.exclude.clone()).unwrap_or_default())
    }

    /// The folders with a repository of their own.
    pub(super) fn repositories(&self) -> Vec<RepoPath> {
        let texts = self.texts.read().unwrap_or_else(PoisonError::into_inner);
        let found = texts.folders.iter().filter(|(_, texts)| texts.is_repository);
        found.map(|(folder, _)| folder.clone()).collect()
    }

    /// The rules with these texts.
    pub(super) fn frozen(texts: IgnoreTexts, ignore_case: bool) -> Self {
        let global = compile(&RepoPath::top(), &texts.global, ignore_case);
        let rules = Self {
            ignore_case,
            global,
            folders: RwLock::default(),
            texts: RwLock::new(IgnoreTexts { global: texts.global, folders: Vec::new() }),
            learning: None,
            files_only: false,
        };
        for (folder, texts) in texts.folders {
            rules.add(folder, texts);
        }
        rules
    }

    /// The rules that were saved. `None` if there are none.
    pub(super) fn load(path: &Path, ignore_case: bool) -> Option<Self> {
        let texts = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        Some(Self::frozen(texts, ignore_case))
    }

    /// Saves the rules, unless some are saved already.
    pub(super) fn save(&self, path: &Path) -> io::Result<()> {
        if path.exists() {
            return Ok(());
        }
        save_json(path, Durability::Unsynced, &self.texts())
    }

    /// Reads no further rules.
    pub(super) fn freeze(&mut self) {
        self.learning = None;
    }

    /// The texts, to be saved.
    pub(super) fn texts(&self) -> IgnoreTexts {
        let mut texts = self.texts.read().unwrap_or_else(PoisonError::into_inner).clone();
        texts.folders.sort_by(|(a, _), (b, _)| a.cmp(b));
        texts
    }

    fn add(&self, folder: RepoPath, texts: FolderTexts) {
        let compiled = (!texts.is_empty()).then(|| {
            Arc::new(FolderRules {
                is_repository: texts.is_repository,
                rules: compile(&folder, &texts.rules, self.ignore_case),
                exclude: compile(&folder, &texts.exclude, self.ignore_case),
            })
        });
        let mut folders = self.folders.write().unwrap_or_else(PoisonError::into_inner);
        if folders.insert(folder.clone(), compiled).is_none() && !texts.is_empty() {
            drop(folders);
            let mut known = self.texts.write().unwrap_or_else(PoisonError::into_inner);
            known.folders.push((folder, texts));
        }
    }

    fn folder(&self, folder: &RepoPath) -> Option<Arc<FolderRules>> {
        let known = self.folders.read().unwrap_or_else(PoisonError::into_inner);
        match (known.get(folder), &self.learning) {
            (Some(rules), _) => return rules.clone(),
            (None, None) => return None,
            (None, Some(_)) => drop(known),
        }
        let path = self.learning.as_ref()?.join(folder.path());
        let git = path.join(".git");
        let is_repository = !self.files_only && git.symlink_metadata().is_ok();
        let exclude = if is_repository {
            let git_dir = super::discover::git_dir_of(&path).unwrap_or(git);
            read_text(&git_dir.join("info/exclude"))
        } else {
            String::new()
        };
        let rules = read_text(&path.join(".gitignore"));
        self.add(folder.clone(), FolderTexts { is_repository, rules, exclude });
        let known = self.folders.read().unwrap_or_else(PoisonError::into_inner);
        known.get(folder).cloned().flatten()
    }

    /// Whether a rule matches a path, whatever becomes of the folders around it.
    pub(super) fn matches(&self, name: &RepoPath, is_folder: bool) -> bool {
        let is_decided = |rules: &Gitignore| match rules.matched(name.path(), is_folder) {
            Match::None => None,
            found => Some(found.is_ignore()),
        };
        // The innermost file with a matching rule decides.
        for folder in name.folders().chain(std::iter::once(RepoPath::top())) {
            let Some(rules) = self.folder(&folder) else { continue };
            if let Some(ignored) = is_decided(&rules.rules) {
                return ignored;
            }
            if rules.is_repository {
                if let Some(ignored) = is_decided(&rules.exclude) {
                    return ignored;
                }
                break;
            }
        }
        is_decided(&self.global).unwrap_or(false)
    }

    /// Whether a path or a folder around it is ignored.
    pub(super) fn is_ignored(&self, name: &RepoPath, is_folder: bool) -> bool {
        let mut folders: Vec<RepoPath> = name.folders().collect();
        folders.reverse();
        folders.iter().any(|folder| self.matches(folder, true)) || self.matches(name, is_folder)
    }
}

fn compile(folder: &RepoPath, text: &str, ignore_case: bool) -> Gitignore {
    if text.is_empty() {
        return Gitignore::empty();
    }
    let mut builder = GitignoreBuilder::new(folder.path());
    let _ = builder.case_insensitive(ignore_case);
    for line in text.trim_start_matches('\u{feff}').lines() {
        // Git skips patterns that it cannot parse, too.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// The text of an ignore file. Like git, no link is followed.
pub(super) fn read_text(path: &Path) -> String {
    let read = || {
        let file = open(path).ok()?;
        let meta = file.metadata().ok()?;
        let mut bytes = Vec::new();
        (meta.is_file() && meta.len() <= MAX_IGNORE_FILE).then_some(())?;
        file.take(MAX_IGNORE_FILE).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().unwrap_or_default()
}
