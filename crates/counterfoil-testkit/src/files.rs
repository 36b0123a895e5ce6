//! Files of a directory, to compare them before and after.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Mode and bytes of files by their path. The bytes of a symbolic link are its target.
pub type FileTree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// Reads all files below a directory except those in `.git` directories. A directory that does not
/// exist has no files.
pub fn read_tree(dir: &Path) -> FileTree {
    let mut files = FileTree::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(current) = pending.pop() {
        for entry in std::fs::read_dir(&current).into_iter().flatten().flatten() {
            let path = entry.path();
            let metadata = path.symlink_metadata().unwrap();
            if metadata.is_dir() {
                if entry.file_name() != ".git" {
                    pending.push(path);
                }
                continue;
            }
            let bytes = match std::fs::read_link(&path) {
                Ok(target) => target.into_os_string().into_encoded_bytes(),
                Err(_) if metadata.is_file() => std::fs::read(&path).unwrap(),
                Err(_) => Vec::new(),
            };
            files.insert(path.strip_prefix(dir).unwrap().to_owned(), (metadata.mode(), bytes));
        }
    }
    files
}

/// The paths that were added, removed or changed between two states of a directory.
pub fn changed_paths(before: &FileTree, after: &FileTree) -> BTreeSet<PathBuf> {
    let paths = before.keys().chain(after.keys());
    paths.filter(|path| before.get(*path) != after.get(*path)).cloned().collect()
}

/// Writes a file and makes it executable.
pub fn write_executable(path: &Path, text: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
