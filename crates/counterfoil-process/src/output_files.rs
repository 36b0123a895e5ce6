//! The files that the output of this process goes to, and the one that its input comes from: nobody
//! else is to blame for their changes.

use crate::platform;
use rustix::fs::{FileType, fstat};
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

/// The regular file that the stdin of this process is redirected from. Pipes are not followed: a program
/// that writes to one may be over.
pub fn input_file() -> Option<PathBuf> {
    let input = rustix::stdio::stdin();
    let stat = fstat(input).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    platform::files_of(input).into_iter().next()
}
