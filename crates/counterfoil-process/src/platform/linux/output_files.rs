//! The files behind an output of this process.

use rustix::fs::{FileType, fstat};
use std::collections::BTreeSet;
use std::fs::{read_dir, read_link, read_to_string};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// How many programs are followed from one to the next.
const MAX_PIPES: usize = 8;
/// The access mode in the flags of an open file: `O_ACCMODE`, `O_WRONLY`.
const ACCESS: u32 = 0o3;
const READ_ONLY: u32 = 0o0;

/// An open file of a process.
struct OpenFile {
    /// The path, or a name such as `pipe:[4711]`.
    target: PathBuf,
    is_written: bool,
}

/// The regular files that output goes to, directly or through pipes.
pub(crate) fn files_of(output: BorrowedFd<'_>) -> Vec<PathBuf> {
    let link = PathBuf::from(format!("/proc/self/fd/{}", output.as_raw_fd()));
    let Ok(target) = read_link(&link) else { return Vec::new() };
    match fstat(output).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        Ok(FileType::RegularFile) => vec![target],
        Ok(FileType::Fifo) => behind_pipe(target),
        _ => Vec::new(),
    }
}

/// The files that the programs behind a pipe write.
fn behind_pipe(pipe: PathBuf) -> Vec<PathBuf> {
    let own = std::process::id().to_string();
    let processes: Vec<Vec<OpenFile>> = read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name != own))
        .filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok())
        .map(|entry| open_files(&entry.path()))
        .filter(|files| !files.is_empty())
        .collect();
    let (mut found, mut pipes) = (BTreeSet::new(), BTreeSet::from([pipe]));
    for _ in 0..MAX_PIPES {
        let before = pipes.len();
        let reads = |files: &&Vec<OpenFile>| {
            files.iter().any(|file| !file.is_written && pipes.contains(&file.target))
        };
        let readers: Vec<&Vec<OpenFile>> = processes.iter().filter(reads).collect();
        for file in readers.into_iter().flatten().filter(|file| file.is_written) {
            if file.target.is_file() {
                found.insert(file.target.clone());
            } else if file.target.to_string_lossy().starts_with("pipe:[") {
                pipes.insert(file.target.clone());
            }
        }
        if pipes.len() == before {
            break;
        }
    }
    found.into_iter().collect()
}

/// The open files of a process. None if it belongs to somebody else.
fn open_files(process: &Path) -> Vec<OpenFile> {
    let handles = read_dir(process.join("fd")).into_iter().flatten().flatten();
    let file = |handle: std::fs::DirEntry| {
        let target = read_link(handle.path()).ok()?;
        let info = process.join("fdinfo").join(handle.file_name());
        let info = read_to_string(info).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
        let flags = u32::from_str_radix(flags.trim(), 8).ok()?;
        Some(OpenFile { target, is_written: flags & ACCESS != READ_ONLY })
    };
    handles.filter_map(file).collect()
}
