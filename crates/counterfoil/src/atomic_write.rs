//! Atomic replacement of a file: readers see the old or the new content, never a part of it.

use std::io::{Result, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes a file through a temporary file in the same folder, which must exist. An existing file
/// keeps its mode; a new one gets the default mode.
pub(crate) fn atomic_write(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mode = std::fs::metadata(path).map(|meta| meta.permissions());
    let mut file = tempfile::Builder::new()
        .prefix(".counterfoil-")
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(folder)?;
    if let Ok(mode) = mode {
        file.as_file().set_permissions(mode)?;
    }
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        atomic_write(&path, b"old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        atomic_write(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays");
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(atomic_write(&folder.path().join("missing/file"), b"new").is_err());
    }
}
