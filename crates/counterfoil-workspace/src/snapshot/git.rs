//! Calling git so that it only looks, and looks at the repository that is meant.

use crate::git::{GitCommand, GitError, GitOutput};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Settings that let git look and nothing else. Times and inodes are trusted as they are: a
/// repository that says otherwise would hide an edit whose modification time was put back.
const READ_ONLY_CONFIG: [&str; 5] = [
    "core.untrackedCache=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.preloadIndex=true",
    "core.quotePath=false",
];
/// Which git is called, and how long one call of it may take.
#[derive(Clone, Debug)]
pub struct Git {
    /// The program, by name or path.
    pub program: OsString,
    /// A call that takes longer is ended with everything it started.
    pub limit: Duration,
}

impl Default for Git {
    fn default() -> Self {
        Self { program: "git".into(), limit: Duration::from_mins(2) }
    }
}

/// A repository that calls are pinned to, so that one whose `.git` vanished is not taken for the
/// one around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RepositoryLocation {
    /// The folder with its objects and its index.
    pub(super) git_dir: PathBuf,
    /// Where its files are.
    pub(super) top: PathBuf,
    /// What its file system can do.
    pub(super) capabilities: FsCapabilities,
}

/// What git found that a file system can do, as it was set when the folder was opened: what an
/// agent sets later to hide an edit does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FsCapabilities {
    /// The executable bit means something.
    pub(super) file_mode: bool,
    /// Names that differ only in case are one.
    pub(super) ignore_case: bool,
    /// There are symbolic links.
    pub(super) symlinks: bool,
}

impl Default for FsCapabilities {
    fn default() -> Self {
        Self { file_mode: true, ignore_case: false, symlinks: true }
    }
}

impl Git {
    /// Calls git in a folder, to find out what is there.
    pub(super) fn discover(
        &self,
        folder: &Path,
        arguments: &[&str],
    ) -> Result<GitOutput, GitError> {
        self.call(folder, arguments).run()
    }

    /// Calls git for a repository.
    pub(super) fn run(
        &self,
        place: &RepositoryLocation,
        arguments: &[&str],
    ) -> Result<GitOutput, GitError> {
        self.call_for(place, arguments).run()
    }

    /// Calls git for what its objects tell, without the index: it may be large, or broken. Paths
    /// are taken as they are.
    pub(super) fn run_without_index(
        &self,
        place: &RepositoryLocation,
        arguments: &[&OsStr],
    ) -> Result<GitOutput, GitError> {
        self.call_for(place, arguments)
            .env("GIT_INDEX_FILE", place.git_dir.join("no-index"))
            .env("GIT_LITERAL_PATHSPECS", "1")
            .run()
    }

    /// Calls git for what files and blobs are in its eyes. If it cannot because of the index, which
    /// only adds attributes of what is not checked out, it is asked again without.
    pub(super) fn run_with_filters(
        &self,
        place: &RepositoryLocation,
        arguments: &[&OsStr],
        input: Option<Vec<u8>>,
    ) -> Result<GitOutput, GitError> {
        match self.run_with_input(place, arguments, input.clone()) {
            Err(GitError::Failed { message, .. }) if message.contains("index") => {
                let call = with_input(self.call_for(place, arguments), input);
                call.env("GIT_INDEX_FILE", place.git_dir.join("no-index")).run()
            }
            output => output,
        }
    }

    /// Calls git for a repository, with arguments that need not be text and something to read.
    pub(super) fn run_with_input(
        &self,
        place: &RepositoryLocation,
        arguments: &[&OsStr],
        input: Option<Vec<u8>>,
    ) -> Result<GitOutput, GitError> {
        with_input(self.call_for(place, arguments), input).run()
    }

    fn call_for<A: AsRef<OsStr>>(&self, place: &RepositoryLocation, arguments: &[A]) -> GitCommand {
        // The folder of a submodule may be gone while its objects are still there.
        let folder = if place.top.is_dir() { &place.top } else { &place.git_dir };
        let FsCapabilities { file_mode, ignore_case, symlinks } = place.capabilities;
        let capabilities =
            [("fileMode", file_mode), ("ignoreCase", ignore_case), ("symlinks", symlinks)];
        let call =
            capabilities.into_iter().fold(self.call(folder, arguments), |call, (key, value)| {
                call.config(format!("core.{key}={value}"))
            });
        call.env("GIT_DIR", &place.git_dir).env("GIT_WORK_TREE", folder)
    }

    fn call<A: AsRef<OsStr>>(&self, folder: &Path, arguments: &[A]) -> GitCommand {
        let call = GitCommand::new(folder, arguments).program(&self.program).timeout(self.limit);
        READ_ONLY_CONFIG.into_iter().fold(call, GitCommand::config)
    }
}

fn with_input(call: GitCommand, input: Option<Vec<u8>>) -> GitCommand {
    match input {
        Some(input) => call.stdin(input),
        None => call,
    }
}
