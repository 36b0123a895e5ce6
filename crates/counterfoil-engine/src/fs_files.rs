//! Reads the files of a workflow from a folder.

use counterfoil_contract::load::{Folder, FolderError, not_utf8};
use counterfoil_flow::{FileError, Files};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The maximum size of a file.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// The files of a folder, by paths relative to it. Symbolic links are followed if they stay in the
/// folder.
#[derive(Clone, Debug)]
pub struct FsFiles {
    root: PathBuf,
    named: Option<String>,
}

impl FsFiles {
    /// Reads files below this folder.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), named: None }
    }

    /// Reads the file with this name wherever a link leads: a person named it.
    #[must_use]
    pub fn with_named(self, name: &str) -> Self {
        Self { named: Some(name.to_owned()), ..self }
    }

    /// The place of a file, with all links resolved.
    fn resolve(&self, path: &str) -> Result<PathBuf, FileError> {
        if self.named.as_deref() == Some(path) {
            return self.root.join(path).canonicalize().map_err(|error| error.to_string().into());
        }
        Folder::new(&self.root).resolve(Path::new(path)).map_err(|error| reason(&error))
    }
}

impl Files for FsFiles {
    fn read(&self, path: &str) -> Result<String, FileError> {
        // NONBLOCK: opening a pipe would block. NOFOLLOW: the file may have become a link since.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(self.resolve(path)?, flags, Mode::empty());
        let file = File::from(opened.map_err(|error| std::io::Error::from(error).to_string())?);
        let meta = file.metadata().map_err(|error| error.to_string())?;
        if meta.is_dir() {
            return Err("it is a folder".into());
        }
        if !meta.is_file() {
            return Err("it is not a regular file".into());
        }
        let mut bytes = Vec::new();
        let read = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
        let too_large = meta.len().max(bytes.len() as u64) > MAX_FILE_BYTES;
        if too_large {
            return Err(format!("it has {} bytes, more than {MAX_FILE_BYTES}", meta.len()).into());
        }
        read.map_err(|error| FileError::from(error.to_string()))?;
        String::from_utf8(bytes).map_err(|error| not_utf8(error.as_bytes()).into())
    }

    fn list(&self, path: &str) -> Result<Vec<String>, FileError> {
        let files = Folder::new(&self.root).contract_files(Path::new(path));
        let files = files.map_err(|error| reason(&error))?;
        Ok(files.iter().filter_map(|file| file.to_str()).map(str::to_owned).collect())
    }
}

fn reason(error: &FolderError) -> FileError {
    match error {
        FolderError::Unreadable(why) => why.as_str().into(),
        FolderError::LeadsOut { .. } => error.to_string().into(),
    }
}
