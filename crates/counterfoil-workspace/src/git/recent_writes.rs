//! Files that an attempt wrote before its process was lost. Nothing observed the end of such an
//! attempt, and the attempt that replaces it starts from these files; without this list, no event
//! would say that the run changed them.

use super::{GitCommand, GitOutput};
use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// At most this many paths are listed.
const MAX_PATHS: usize = 10_000;
/// File times are coarser than our clock: a file may carry a time that is this much too early.
const MTIME_SLACK: Duration = Duration::from_millis(20);

/// The files below a folder that differ from HEAD and were written since a time, in milliseconds
/// since 1970. Empty outside of git. `files_before` returns the files that were there at that time,
/// relative to the folder, if that is known: nothing else tells when a file was deleted.
pub fn written_since(
    folder: &Path,
    since: i64,
    files_before: impl FnOnce() -> Option<BTreeSet<PathBuf>>,
) -> Vec<String> {
    let Some(since) =
        u64::try_from(since).ok().map(|ms| SystemTime::UNIX_EPOCH + Duration::from_millis(ms))
    else {
        return Vec::new();
    };
    let since = since.checked_sub(MTIME_SLACK).unwrap_or(since);
    let successful = |command: GitCommand| command.output().ok().filter(GitOutput::ok);
    let prefix = successful(GitCommand::new(folder, ["rev-parse", "--show-prefix"]));
    let Some(prefix) = prefix else { return Vec::new() };
    let status = [
        "status",
        "--porcelain=v1",
        "-z",
        "--untracked-files=all",
        "--no-renames",
        "--ignore-submodules=all",
        "--",
        ".",
    ];
    let Some(status) = successful(GitCommand::new(folder, status)) else { return Vec::new() };
    let prefix = prefix.line().as_bytes().to_vec();
    let entries = status.stdout.split(|byte| *byte == 0).filter_map(|entry| entry.get(3..));
    let paths = entries
        .filter_map(|path| path.strip_prefix(prefix.as_slice()))
        .filter(|path| !path.is_empty());
    let paths = paths.map(|path| Path::new(OsStr::from_bytes(path)));
    // Only asked for deleted files.
    let files_before = LazyCell::new(files_before);
    let was_there = |path: &Path| files_before.as_ref().is_none_or(|files| files.contains(path));
    let recent = paths.filter(|path| {
        let full = folder.join(path);
        modified_at(&full).is_some_and(|time| time >= since)
            && (std::fs::symlink_metadata(&full).is_ok() || was_there(path))
    });
    recent.take(MAX_PATHS).map(|path| path.to_string_lossy().into_owned()).collect()
}

/// When a file was last written. For a deleted file: when the folder that contained it was.
fn modified_at(path: &Path) -> Option<SystemTime> {
    path.ancestors().find_map(|path| std::fs::symlink_metadata(path).ok()?.modified().ok())
}
