//! What an attempt that was lost with its process left in the repository. Nobody looked at its end,
//! and the attempt that takes its place finds these files as they are: without this, nothing would
//! say that the run changed them.

use crate::git::Call;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// More paths are not listed.
const MOST: usize = 10_000;
/// Times of files are coarser than ours.
const COARSE: Duration = Duration::from_millis(20);

/// The files below a folder that differ from HEAD and were written since a time, in milliseconds
/// since 1970. Outside of git there is nothing to say.
pub fn written_since(folder: &Path, since: i64) -> Vec<String> {
    let Some(since) =
        u64::try_from(since).ok().map(|ms| SystemTime::UNIX_EPOCH + Duration::from_millis(ms))
    else {
        return Vec::new();
    };
    let since = since.checked_sub(COARSE).unwrap_or(since);
    let prefix =
        Call::new(folder, ["rev-parse", "--show-prefix"]).ask().ok().filter(crate::git::Answer::ok);
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
    let Some(status) = Call::new(folder, status).ask().ok().filter(crate::git::Answer::ok) else {
        return Vec::new();
    };
    let prefix = prefix.line().as_bytes().to_vec();
    let entries = status.stdout.split(|byte| *byte == 0).filter_map(|entry| entry.get(3..));
    let paths = entries
        .filter_map(|path| path.strip_prefix(prefix.as_slice()))
        .filter(|path| !path.is_empty());
    let paths = paths.map(|path| Path::new(OsStr::from_bytes(path)));
    let recent = paths.filter(|path| time_of(&folder.join(path)).is_some_and(|time| time >= since));
    recent.take(MOST).map(|path| path.to_string_lossy().into_owned()).collect()
}

/// When a file was written; of one that is gone, when the folder it stood in was.
fn time_of(path: &Path) -> Option<SystemTime> {
    path.ancestors().find_map(|path| std::fs::symlink_metadata(path).ok()?.modified().ok())
}
