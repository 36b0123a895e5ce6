//! Files that readers see either complete or not at all.

use serde::Serialize;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

const TEMPORARY_PREFIX: &str = ".counterfoil-";
const TEMPORARY_SUFFIX: &str = ".tmp";

/// Whether the bytes must be on disk before the file gets its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The file survives a power failure once it has its name.
    Synced,
    /// The operating system decides when to write.
    Unsynced,
}

/// Writes a value as JSON for a later process of the same user, and makes the folder. Nobody else
/// can read it.
///
/// # Errors
///
/// The folder or the file cannot be written.
pub fn save_json(path: &Path, durability: Durability, value: &impl Serialize) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        make_private_folder(folder)?;
    }
    let bytes = serde_json::to_vec(value)?;
    write_and_rename(path, durability, 0o600, |file| file.write_all(&bytes))
}

/// Creates a folder that only the user can enter, and those above it that are missing.
///
/// # Errors
///
/// It cannot be created.
pub fn make_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Writes a file through a temporary one in the same folder, which is synced and then renamed. The
/// folder must exist. An existing file keeps its permissions; a new one gets the default ones.
///
/// # Errors
///
/// The temporary file cannot be written or renamed. It is removed then.
pub fn atomic_write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    atomic_write_with(path, Durability::Synced, |file| file.write_all(bytes))
}

/// As [`atomic_write`], with the bytes written by a function.
///
/// # Errors
///
/// The function fails, or the temporary file cannot be created, synced or renamed. It is removed
/// then.
pub fn atomic_write_with(
    path: &Path,
    durability: Durability,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    // As for any new file: the user's umask applies.
    write_and_rename(path, durability, 0o666, write)
}

fn write_and_rename(
    path: &Path,
    durability: Durability,
    mode: u32,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::Builder::new()
        .prefix(TEMPORARY_PREFIX)
        .suffix(TEMPORARY_SUFFIX)
        // Opened here, so that an error does not name the temporary file.
        .make_in(folder.unwrap_or(Path::new(".")), |path| {
            OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path)
        })?;
    if let Ok(existing) = std::fs::metadata(path) {
        file.as_file().set_permissions(existing.permissions())?;
    }
    write(file.as_file_mut())?;
    if durability == Durability::Synced {
        file.as_file().sync_all()?;
    }
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Whether a file has the name of a temporary one, which stays if the process is killed.
pub(crate) fn is_temporary(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(TEMPORARY_PREFIX.as_bytes()) && name.ends_with(TEMPORARY_SUFFIX.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        atomic_write(&path, b"old").unwrap();
        let failed = atomic_write_with(&path, Durability::Unsynced, |file| {
            file.write_all(b"half")?;
            Err(io::Error::other("no"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "no");
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        atomic_write(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_existing_file_keeps_its_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        atomic_write(&path, b"old").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        atomic_write(&path, b"new").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        let missing = atomic_write(&folder.path().join("missing/file"), b"new").unwrap_err();
        assert_eq!(missing.to_string(), "No such file or directory (os error 2)");
    }
}
