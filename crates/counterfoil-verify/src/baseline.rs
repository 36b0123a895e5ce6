//! Compares a work tree with a revision. Used to verify claims where no run took a snapshot before
//! the agent began.

use crate::claims::{ConfigError, VerifyConfig};
use crate::config::FILE;
use crate::read_file::read_file;
use crate::workspace_diff::WorkspaceDiff;
use counterfoil_workspace::snapshot::{Revision, Settings};
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// A work tree and the revision that it is compared with.
#[derive(Debug)]
pub struct RevisionBaseline {
    diff: WorkspaceDiff,
}

/// The revision cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct BaselineError {
    /// The revision as it was given.
    pub revision: String,
    /// The reason. It names the revision and contains git's message.
    pub reason: String,
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
    /// folders that are not part of the agent's work: its output, the state folder.
    ///
    /// # Errors
    ///
    /// git cannot read the revision.
    pub fn open(
        folder: &Path,
        revision: &str,
        own_files: BTreeSet<PathBuf>,
    ) -> Result<Self, BaselineError> {
        let settings = Settings { excluded: own_files, ..Settings::default() };
        let opened = Revision::open(folder, settings, revision).map_err(|error| BaselineError {
            revision: revision.to_owned(),
            reason: error.to_string(),
        })?;
        // Work that is based on a revision is never older than the revision.
        let Revision { snapshotter, snapshot, committed_at } = opened;
        Ok(Self { diff: WorkspaceDiff::new(snapshotter, snapshot, committed_at) })
    }

    /// The changes since the revision.
    pub fn diff(&mut self) -> &mut WorkspaceDiff {
        &mut self.diff
    }

    /// What could not be read of the revision, with the reasons.
    pub fn notes(&self) -> &[String] {
        &self.diff.before().notes
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
