//! A fingerprint of the work tree: whether anything changed between two attempts.

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Files larger than this are told apart by size and time rather than content.
const LARGEST_READ: u64 = 1 << 20;
/// Outside a repository, more files than this are not looked at: the tree is unknown then.
const MOST_FILES: usize = 20_000;

/// The fingerprint of a folder, without the files named; none if it cannot be told.
pub(crate) fn fingerprint(folder: &Path, without: &BTreeSet<PathBuf>) -> Option<String> {
    let mut hash = Sha256::new();
    let changed =
        match git(folder, &["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"]) {
            Some(status) => {
                // A repository without a commit has no head, and that is as good a name as any.
                hash.update(git(folder, &["rev-parse", "HEAD"]).unwrap_or_default());
                let top = git(folder, &["rev-parse", "--show-toplevel"])?;
                let top = PathBuf::from(String::from_utf8_lossy(&top).trim_end());
                let entries = status.split(|byte| *byte == 0).filter(|entry| entry.len() > 3);
                entries
                    .map(|entry| (entry[..2].to_vec(), top.join(&*String::from_utf8_lossy(&entry[3..]))))
                    .collect()
            }
            None => walk(folder)?,
        };
    for (mark, path) in changed {
        if without.contains(&path) {
            continue;
        }
        hash.update(&mark);
        hash.update(path.as_os_str().as_encoded_bytes());
        hash.update([0]);
        let Ok(meta) = std::fs::symlink_metadata(&path) else { continue };
        hash.update(meta.len().to_le_bytes());
        if meta.is_file() && meta.len() <= LARGEST_READ {
            hash.update(std::fs::read(&path).unwrap_or_default());
        } else if let Ok(time) = meta.modified().map(|time| time.duration_since(std::time::UNIX_EPOCH)) {
            hash.update(time.unwrap_or_default().as_nanos().to_le_bytes());
        }
    }
    Some(crate::journal::hex(&hash.finalize()[..16]))
}

fn git(folder: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        // Another git at work in the same repository must not be disturbed.
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then_some(output.stdout)
}

type Marked = Vec<(Vec<u8>, PathBuf)>;

fn walk(folder: &Path) -> Option<Marked> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name
                .to_str()
                .is_some_and(|name| matches!(name, ".countersign" | ".git" | "node_modules" | "target"))
            {
                continue;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(_) => files.push((Vec::new(), entry.path())),
                Err(_) => {}
            }
            if files.len() > MOST_FILES || open.len() > MOST_FILES {
                return None;
            }
        }
    }
    files.sort();
    Some(files)
}
