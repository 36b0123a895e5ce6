//! Reads the files of a workflow from a folder.

use counterfoil_flow::{FileError, Files};
use std::path::{Path, PathBuf};

/// The maximum size of a file.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// The maximum depth of folders to search.
const MAX_DEPTH: usize = 8;

/// The files of a folder, by paths relative to it.
#[derive(Clone, Debug)]
pub struct FsFiles {
    root: PathBuf,
}

impl FsFiles {
    /// Reads files below this folder.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }
}

impl Files for FsFiles {
    fn read(&self, path: &str) -> Result<String, FileError> {
        let path = self.root.join(path);
        let meta = std::fs::metadata(&path).map_err(|error| error.to_string())?;
        if meta.is_dir() {
            return Err("it is a folder".into());
        }
        // Opening a pipe would block.
        if !meta.is_file() {
            return Err("it is not a regular file".into());
        }
        if meta.len() > MAX_FILE_BYTES {
            return Err(format!("it has {} bytes, more than {MAX_FILE_BYTES}", meta.len()).into());
        }
        std::fs::read_to_string(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidData => "it is not UTF-8".into(),
            _ => error.to_string().into(),
        })
    }

    fn list(&self, path: &str) -> Result<Vec<String>, FileError> {
        let full = self.root.join(path);
        let meta = std::fs::metadata(&full).map_err(|error| error.to_string())?;
        if meta.is_file() {
            return Ok(vec![path.to_owned()]);
        }
        let mut files = Vec::new();
        let mut open = vec![(PathBuf::from(path), 0)];
        while let Some((folder, depth)) = open.pop() {
            let entries =
                std::fs::read_dir(self.root.join(&folder)).map_err(|error| error.to_string())?;
            for entry in entries.flatten() {
                let relative = folder.join(entry.file_name());
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => {
                        open.push((relative, depth + 1));
                    }
                    Ok(_) if is_contract(&relative) => {
                        files.extend(relative.to_str().map(str::to_owned));
                    }
                    _ => {}
                }
            }
        }
        files.sort();
        Ok(files)
    }
}

fn is_contract(path: &Path) -> bool {
    path.extension()
        .and_then(|extension| extension.to_str())
        .is_some_and(|e| matches!(e, "yaml" | "yml" | "json"))
}
