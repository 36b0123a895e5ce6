//! Lists the files that a workspace is made of.

use super::Error;
use super::disk::is_draft;
use crate::git::{GitCommand, GitError};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Nested repositories deeper than this are skipped.
const MAX_NESTING: usize = 8;
/// The largest number of files of a plain copy.
pub(super) const MAX_COPY_FILES: usize = 200_000;

/// The listed files.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// Relative to the listed folder. Some may not exist: git also lists deleted files.
    pub(super) files: BTreeSet<PathBuf>,
    /// Tracked files that a sparse checkout omits.
    pub(super) sparse: Vec<PathBuf>,
    /// What was skipped, and why.
    pub(super) notes: Vec<String>,
}

/// The tracked and untracked files of a repository and of those nested in it, without ignored ones.
pub(super) fn repository(top: &Path) -> Result<Listed, Error> {
    let mut listed = Listed::default();
    let mut open = vec![(PathBuf::new(), 0)];
    while let Some((inside, depth)) = open.pop() {
        let folder = top.join(&inside);
        let call = |arguments: &[&str]| {
            let call = GitCommand::new(&folder, arguments);
            // A broken nested repository must not list the files of the outer one.
            match folder.parent().filter(|_| depth > 0) {
                Some(parent) => call.env("GIT_CEILING_DIRECTORIES", parent),
                None => call,
            }
        };
        let found = call(&["ls-files", "-z", "-t", "--stage"]).run().and_then(|tracked| {
            Ok((tracked, call(&["ls-files", "-z", "--others", "--exclude-standard"]).run()?))
        });
        let (tracked, others) = match found {
            Ok(found) => found,
            Err(GitError::Failed { message, .. }) if depth > 0 => {
                listed.notes.push(format!("{} was skipped: {message}", inside.display()));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let mut nested = Vec::new();
        for entry in split(&tracked.stdout) {
            let Some((head, path)) = split_once(entry, b'\t') else { continue };
            let path = inside.join(OsStr::from_bytes(path));
            if head.get(2..8) == Some(b"160000") {
                if top.join(&path).join(".git").exists() {
                    nested.push(path);
                }
            } else {
                if head.first() == Some(&b'S') && depth == 0 {
                    listed.sparse.push(path.clone());
                }
                listed.files.insert(path);
            }
        }
        for entry in split(&others.stdout) {
            match entry.strip_suffix(b"/") {
                Some(folder) => {
                    let path = inside.join(OsStr::from_bytes(folder));
                    listed.notes.push(format!(
                        "{} is a separate repository: its files are included, its history is not",
                        path.display()
                    ));
                    nested.push(path);
                }
                None => {
                    listed.files.insert(inside.join(OsStr::from_bytes(entry)));
                }
            }
        }
        for path in nested {
            if depth < MAX_NESTING {
                open.push((path, depth + 1));
            } else {
                listed
                    .notes
                    .push(format!("{} was skipped: it is nested too deeply", path.display()));
            }
        }
    }
    if !listed.sparse.is_empty() {
        listed.notes.push(format!(
            "the checkout is sparse, as in the repository; omitted tracked files: {}",
            listed.sparse.len()
        ));
    }
    listed.files.retain(|path| !path.file_name().is_some_and(is_draft));
    Ok(listed)
}

/// The files of a folder that are not ignored by a `.gitignore` in it, found without git.
///
/// `skip` returns whether a path, relative to the folder, is skipped.
pub(super) fn walk(
    top: &Path,
    skip: impl Fn(&Path) -> bool + Send + Sync + 'static,
) -> Result<Listed, Error> {
    let root = top.to_owned();
    let walker = ignore::WalkBuilder::new(top)
        .standard_filters(false)
        .git_ignore(true)
        .require_git(false)
        .filter_entry(move |entry| {
            let Ok(path) = entry.path().strip_prefix(&root) else { return true };
            entry.file_name().as_bytes() != b".git" && !skip(path)
        })
        .build();
    let mut listed = Listed::default();
    for entry in walker {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                if listed.notes.len() < 20 {
                    listed.notes.push(format!("skipped: {error}"));
                }
                continue;
            }
        };
        if entry.file_type().is_some_and(|kind| kind.is_file() || kind.is_symlink())
            && let Ok(path) = entry.path().strip_prefix(top)
            && !path.as_os_str().is_empty()
            && !is_draft(entry.file_name())
        {
            listed.files.insert(path.to_owned());
        }
        if listed.files.len() > MAX_COPY_FILES {
            return Err(Error::TooLarge {
                folder: top.to_owned(),
                limit: format!("more than {MAX_COPY_FILES} files"),
            });
        }
    }
    Ok(listed)
}

/// Caches which folders below a root are real folders rather than links, so that their content
/// belongs to the root.
#[derive(Debug)]
pub(super) struct Parents {
    root: PathBuf,
    known: HashMap<PathBuf, bool>,
}

impl Parents {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), known: HashMap::from([(PathBuf::new(), true)]) }
    }

    /// Whether all parents of a path are real folders.
    pub(super) fn are_real(&mut self, path: &Path) -> bool {
        let Some(parent) = path.parent() else { return false };
        if let Some(known) = self.known.get(parent) {
            return *known;
        }
        // Iteratively from the top: a deep path could overflow the stack.
        let mut come = PathBuf::new();
        let mut real = true;
        for part in parent.components() {
            come.push(part);
            real = match self.known.get(&come) {
                Some(known) => *known,
                None => {
                    let real = real
                        && std::fs::symlink_metadata(self.root.join(&come))
                            .is_ok_and(|meta| meta.is_dir());
                    self.known.insert(come.clone(), real);
                    real
                }
            };
        }
        real
    }
}

/// The entries of a list that git wrote with `-z`.
pub(super) fn split(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0).filter(|entry| !entry.is_empty())
}

fn split_once(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let location = bytes.iter().position(|byte| *byte == at)?;
    Some((&bytes[..location], &bytes[location + 1..]))
}
