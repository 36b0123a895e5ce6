//! The files that the output of this process goes to: nobody else is to blame for their changes.

use crate::platform;
use std::path::PathBuf;

/// The regular files that the stdout and stderr of this process are written to: directly, or by a
/// program that reads them from a pipe, such as `tee`. Pipes are followed on Linux only.
pub fn output_files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = [rustix::stdio::stdout(), rustix::stdio::stderr()]
        .into_iter()
        .flat_map(platform::files_of)
        .collect();
    files.sort();
    files.dedup();
    files
}
