//! Runs git read-only, on exactly the repository that is meant.

use crate::git::{GitCommand, GitError, GitOutput};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Settings for read-only use. Times and inodes are trusted: a repository that says otherwise would
/// hide an edit whose modification time was reset.
const READ_ONLY_CONFIG: [&str; 5] = [
    "core.untrackedCache=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.preloadIndex=true",
    "core.quotePath=false",
];
/// The git program to run, and its timeout.
#[derive(Clone, Debug)]
pub struct Git {
    /// The program, by name or path.
    pub program: OsString,
    /// A command that takes longer is killed with everything it started.
    pub limit: Duration,
}

impl Default for Git {
    fn default() -> Self {
        Self { program: "git".into(), limit: Duration::from_mins(2) }
    }
}

/// The repository that commands run on. It is fixed, so that a repository whose `.git` vanished is
/// not confused with the one around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RepositoryLocation {
    /// The git folder with its objects and index.
    pub(super) git_dir: PathBuf,
    /// The top of its work tree.
    pub(super) top: PathBuf,
    /// The capabilities of its file system.
    pub(super) capabilities: FsCapabilities,
}

/// The capabilities of a file system as configured when the folder was opened. Later changes, by
/// which an agent could hide an edit, have no effect. A comparison with a revision may come after
/// an agent: it [tries them out](super::capabilities).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FsCapabilities {
    /// The executable bit is meaningful.
    pub(super) file_mode: bool,
    /// Names that differ only in case are the same.
    pub(super) ignore_case: bool,
    /// Symbolic links are supported.
    pub(super) symlinks: bool,
}

impl Default for FsCapabilities {
    fn default() -> Self {
        Self { file_mode: true, ignore_case: false, symlinks: true }
    }
}

impl Git {
    /// Runs git in a folder to find its repository.
    pub(super) fn discover(
        &self,
        folder: &Path,
        arguments: &[&str],
    ) -> Result<GitOutput, GitError> {
        self.command(folder, arguments).run()
    }

    /// Runs git for a repository.
    pub(super) fn run(
        &self,
        location: &RepositoryLocation,
        arguments: &[&str],
    ) -> Result<GitOutput, GitError> {
        self.command_for(location, arguments).run()
    }

    /// Runs git for a repository and accepts any exit code.
    pub(super) fn output(
        &self,
        location: &RepositoryLocation,
        arguments: &[&str],
    ) -> Result<GitOutput, GitError> {
        self.command_for(location, arguments).output()
    }

    /// Runs git for a repository with additional settings, `key=value`.
    pub(super) fn run_with_config(
        &self,
        location: &RepositoryLocation,
        config: &[String],
        arguments: &[&str],
    ) -> Result<GitOutput, GitError> {
        let call = self.command_for(location, arguments);
        config.iter().cloned().fold(call, GitCommand::config).run()
    }

    /// Runs git for a repository, with arguments that need not be UTF-8 and with input.
    pub(super) fn run_with_input(
        &self,
        location: &RepositoryLocation,
        arguments: &[&OsStr],
        input: Option<Vec<u8>>,
    ) -> Result<GitOutput, GitError> {
        let call = self.command_for(location, arguments);
        match input {
            Some(input) => call.stdin(input).run(),
            None => call.run(),
        }
    }

    fn command_for<A: AsRef<OsStr>>(
        &self,
        location: &RepositoryLocation,
        arguments: &[A],
    ) -> GitCommand {
        // The folder of a submodule may be gone while its objects still exist.
        let folder = if location.top.is_dir() { &location.top } else { &location.git_dir };
        let FsCapabilities { file_mode, ignore_case, symlinks } = location.capabilities;
        let capabilities =
            [("fileMode", file_mode), ("ignoreCase", ignore_case), ("symlinks", symlinks)];
        let call =
            capabilities.into_iter().fold(self.command(folder, arguments), |call, (key, value)| {
                call.config(format!("core.{key}={value}"))
            });
        call.env("GIT_DIR", &location.git_dir).env("GIT_WORK_TREE", folder)
    }

    fn command<A: AsRef<OsStr>>(&self, folder: &Path, arguments: &[A]) -> GitCommand {
        let call = GitCommand::new(folder, arguments).program(&self.program).timeout(self.limit);
        READ_ONLY_CONFIG.into_iter().fold(call, GitCommand::config)
    }
}
