//! Compares a work tree with a revision. Used to verify claims where no run took a snapshot before
//! the agent began.

use crate::claims::{ConfigError, VerifyConfig};
use crate::config::FILE;
use crate::read_file::read_file;
use crate::workspace_diff::{WorkspaceDiff, put_forward};
use counterfoil_contract::text::display_path;
use counterfoil_workspace::make_private_folder;
use counterfoil_workspace::snapshot::{Change, Revision, RevisionError, Settings};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The file that keeps which files are put back to the revision while a check runs.
const PUT_BACK: &str = "put-back";
/// The folder with the contents of these files.
const CONTENTS: &str = "contents";

/// A work tree and the revision that it is compared with.
#[derive(Debug)]
pub struct RevisionBaseline {
    diff: WorkspaceDiff,
    commit: String,
    notes: Vec<String>,
    _kept: Option<KeptFiles>,
}

/// What is kept of the work tree while a check runs with files of the revision.
#[derive(Debug)]
struct KeptFiles {
    folder: PathBuf,
    _lock: File,
}

impl Drop for KeptFiles {
    fn drop(&mut self) {
        // What could not be written again stays, for the next process.
        if !self.folder.join(PUT_BACK).exists() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// Files as they were at a revision, until this is dropped.
#[derive(Debug)]
pub struct EarlierFiles {
    /// The copy of the file or folder; none if there was no such file then.
    pub path: Option<PathBuf>,
    /// The files that are different now or do not exist any more, from the top of the repository.
    pub changed: Vec<PathBuf>,
    /// The files that did not exist then, from the top of the repository. The copy does not have them.
    pub added: Vec<PathBuf>,
    _copy: Option<tempfile::TempDir>,
}

/// The revision cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct BaselineError {
    /// The revision as it was given.
    pub revision: String,
    /// The reason. It names the revision and contains git's message.
    pub reason: String,
    /// Whether the repository is a shallow clone that does not have the revision.
    pub is_shallow: bool,
}

/// How the configuration in the work tree differs from that of the revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigNotice {
    /// The file changed since the revision. The checks of the revision are used.
    Changed,
    /// The file does not exist in the revision. Its checks are ignored.
    Added,
}

impl fmt::Display for ConfigNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed => {
                write!(f, "{FILE} changed since the base; the checks of the base are used")
            }
            Self::Added => {
                write!(f, "{FILE} does not exist at the base; its checks are ignored")
            }
        }
    }
}

impl RevisionBaseline {
    /// Opens a repository and reads a revision of it. `own_files` are absolute paths of files and
    /// folders that are not part of the agent's work: its output, the state folder. `keep` is the
    /// folder that keeps files while a check is run as it was at the revision; without it, checks are
    /// run as they are. One process at a time uses it; the others wait.
    ///
    /// # Errors
    ///
    /// git cannot read the revision, or the folder cannot be used.
    pub fn open(
        folder: &Path,
        revision: &str,
        own_files: &BTreeSet<PathBuf>,
        keep: Option<&Path>,
    ) -> Result<Self, BaselineError> {
        let error = |reason: String| BaselineError {
            revision: revision.to_owned(),
            reason,
            is_shallow: false,
        };
        let not_found = |why: RevisionError| BaselineError {
            is_shallow: why.is_shallow,
            ..error(why.to_string())
        };
        let settings = |keep: Option<&Path>| Settings {
            excluded: own_files.clone(),
            content_store: keep.map(|keep| keep.join(CONTENTS)),
            ..Settings::default()
        };
        let commit = |keep: Option<&Path>, revision: &str| -> Result<Revision, RevisionError> {
            Revision::open(folder, settings(keep), revision)
        };
        let mut opened = commit(None, revision).map_err(not_found)?;
        let (mut kept, mut notes) = (None, Vec::new());
        if let Some(keep) = keep {
            let lock = lock(keep)
                .map_err(|why| error(format!("{} cannot be used: {why}", display_path(keep))))?;
            for earlier in std::fs::read_dir(keep).into_iter().flatten().flatten() {
                let (keep, name) = (earlier.path(), earlier.file_name());
                let put_back = keep.join(PUT_BACK);
                let Some(name) = name.to_str().filter(|_| put_back.exists()) else { continue };
                let Ok(mut left) = commit(Some(&keep), name) else { continue };
                notes.extend(put_forward(&mut left.snapshotter, &put_back).iter().map(
                    |(path, why)| {
                        let path = display_path(path);
                        format!("{path} was put back for a check by a process that was killed, and its change cannot be written again: {why}")
                    },
                ));
            }
            let keep = keep.join(&opened.commit);
            opened = commit(Some(&keep), revision).map_err(not_found)?;
            kept = Some(KeptFiles { folder: keep, _lock: lock });
        }
        // Work that is based on a revision is never older than the revision.
        let Revision { snapshotter, snapshot, commit, committed_at } = opened;
        notes.splice(0..0, snapshot.notes.iter().cloned());
        let start = kept.as_ref().map(|kept| (snapshot.clone(), kept.folder.join(PUT_BACK)));
        let mut diff = WorkspaceDiff::new(snapshotter, snapshot, committed_at);
        if let Some((start, put_back)) = start {
            diff = diff.with_run_start(Some(start), put_back);
        }
        Ok(Self { diff, commit, notes, _kept: kept })
    }

    /// The changes since the revision.
    pub fn diff(&mut self) -> &mut WorkspaceDiff {
        &mut self.diff
    }

    /// The id of the commit.
    pub fn commit(&self) -> &str {
        &self.commit
    }

    /// What could not be read of the revision or written again, with the reasons.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Copies files as they were at the revision, if the work tree has different ones: a file, or those
    /// in a folder that are wanted. None if it has the same, or if they are outside of the repository.
    ///
    /// # Errors
    ///
    /// A file cannot be read at the revision, or not copied.
    pub fn earlier_files(
        &mut self,
        path: &Path,
        is_wanted: impl Fn(&Path) -> bool,
    ) -> io::Result<Option<EarlierFiles>> {
        let path = std::path::absolute(path)?;
        if !self.diff.is_fresh() {
            self.diff.refresh();
        }
        let (tree, before) = (self.diff.snapshotter(), self.diff.before());
        // The folder may be reached by a link.
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let mut then = tree.files_in(before, &real);
        then.retain(|inner| is_wanted(&path.join(inner)));
        // The empty path is the file itself.
        let in_place = |inner: &Path| real.components().chain(inner.components()).collect();
        let files: Vec<PathBuf> = then.iter().map(|inner| in_place(inner)).collect();
        let paths: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        let (mut changed, mut contents) = (Vec::new(), Vec::new());
        for (file, content) in std::iter::zip(&files, tree.contents(before, &paths)) {
            let content = content?.unwrap_or_default();
            if read_file(file).ok().flatten().as_ref() != Some(&content) {
                changed.push(tree.from_top(file).unwrap_or_else(|| file.clone()));
            }
            contents.push(content);
        }
        let mut added = Vec::new();
        for (file, change) in &self.diff.last_changes().files {
            let file = tree.folder().join(file);
            if *change == Change::Added && file.starts_with(&real) && is_wanted(&file) {
                added.extend(tree.from_top(&file));
            }
        }
        if changed.is_empty() && added.is_empty() {
            return Ok(None);
        }
        if contents.is_empty() {
            return Ok(Some(EarlierFiles { path: None, changed, added, _copy: None }));
        }
        let copy = tempfile::Builder::new().prefix("counterfoil-base-").tempdir()?;
        let name = path.file_name().unwrap_or(OsStr::new("files"));
        let to = copy.path().join(name);
        for (inner, content) in std::iter::zip(then, contents) {
            let to = if inner.as_os_str().is_empty() { to.clone() } else { to.join(inner) };
            std::fs::create_dir_all(to.parent().unwrap_or(copy.path()))?;
            std::fs::write(to, content)?;
        }
        Ok(Some(EarlierFiles { path: Some(to), changed, added, _copy: Some(copy) }))
    }

    /// The configuration at the revision, and a notice if the work tree has a different one. An
    /// agent that changes the work tree cannot change the checks of its own work.
    ///
    /// # Errors
    ///
    /// The configuration at the revision cannot be read or is not valid.
    pub fn config(&self) -> Result<(VerifyConfig, Option<ConfigNotice>), ConfigError> {
        let candidates = [self.diff.folder().join(FILE), self.diff.top().join(FILE)];
        let invalid =
            |path: &Path, message: String| ConfigError { path: Some(path.to_owned()), message };
        for path in &candidates {
            let now = read_file(path).ok().flatten();
            let then =
                self.diff.snapshotter().content(self.diff.before(), path).map_err(|error| {
                    invalid(path, format!("cannot be read at the base: {error}"))
                })?;
            let Some(bytes) = then else { continue };
            let notice = (now.as_ref() != Some(&bytes)).then_some(ConfigNotice::Changed);
            let text = String::from_utf8(bytes).map_err(|error| {
                invalid(path, format!("is not UTF-8 at the base: {}", error.utf8_error()))
            })?;
            let config = VerifyConfig::parse(&text)
                .map_err(|error| invalid(path, format!("at the base: {}", error.message)))?;
            return Ok((VerifyConfig { source: Some(path.clone()), ..config }, notice));
        }
        let is_new = candidates.iter().any(|path| path.exists());
        Ok((VerifyConfig::default(), is_new.then_some(ConfigNotice::Added)))
    }
}

/// Locks a folder, which is created if it does not exist. The lock ends with the file or the process.
fn lock(folder: &Path) -> io::Result<File> {
    make_private_folder(folder)?;
    let file = File::options().create(true).append(true).open(folder.join("lock"))?;
    file.lock()?;
    Ok(file)
}
