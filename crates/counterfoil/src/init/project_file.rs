//! Reading and writing the files of a project. Nothing outside the project is touched, and no file
//! is written in part.

use anyhow::{Context, Result, bail};
use counterfoil_workspace::atomic_write;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The size limit of a settings file.
const MAX_BYTES: u64 = 4 << 20;

/// The state of a project file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileState {
    /// The file does not exist.
    Missing,
    /// The file is readable; this is its text.
    Text(String),
    /// The file exists and cannot be edited, for this reason.
    Unusable(String),
}

/// Reads a project file by its path relative to the project.
pub(crate) fn file_state(root: &Path, file: &str) -> FileState {
    match read_text(root, file) {
        Ok(Some(text)) => FileState::Text(text),
        Ok(None) => FileState::Missing,
        Err(error) => FileState::Unusable(format!("{error:#}")),
    }
}

fn read_text(root: &Path, file: &str) -> Result<Option<String>> {
    let Some(path) = resolve(root, file)? else { return Ok(None) };
    let meta = match std::fs::metadata(&path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if meta.is_dir() {
        bail!("it is a folder; it was not changed");
    }
    if !meta.is_file() {
        bail!("it is not a regular file; it was not changed");
    }
    if meta.permissions().mode() & 0o222 == 0 {
        bail!("it is read-only; make it writable with `chmod u+w {file}`");
    }
    let mut bytes = Vec::new();
    std::fs::File::open(&path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        bail!("it is larger than {MAX_BYTES} bytes; it was not changed");
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        anyhow::anyhow!(
            "it is not UTF-8 (at byte {}); it was not changed",
            error.utf8_error().valid_up_to()
        )
    })?;
    Ok(Some(text))
}

/// The canonical path of a project file, or none if its folder does not exist. A symbolic link
/// inside the project is followed and stays a link.
fn resolve(root: &Path, file: &str) -> Result<Option<PathBuf>> {
    let root = root.canonicalize()?;
    let path = root.join(file);
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if path.symlink_metadata().is_ok() {
                bail!("it is a dangling symbolic link; remove it");
            }
            let parent = path.parent().unwrap_or(&root);
            match parent.canonicalize() {
                Ok(parent) => parent.join(path.file_name().unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            bail!("its parent is a file, not a folder; it was not changed")
        }
        Err(error) => return Err(error.into()),
    };
    if !real.starts_with(&root) {
        bail!("it is a symbolic link out of the project; edit its target by hand");
    }
    Ok(Some(real))
}

/// Writes a file atomically. It keeps its mode, and a symbolic link to it stays. The file must
/// still contain `before`.
pub(crate) fn write(root: &Path, file: &str, before: Option<&str>, text: &str) -> Result<()> {
    let write = || -> Result<()> {
        let path = check_unchanged(root, file, before)?;
        let folder = path.parent().context("it has no parent folder")?;
        std::fs::create_dir_all(folder)?;
        Ok(atomic_write(&path, text.as_bytes())?)
    };
    write().with_context(|| format!("cannot write {file}"))
}

/// Removes a file that must still contain `before`.
pub(crate) fn remove(root: &Path, file: &str, before: &str) -> Result<()> {
    let remove =
        || -> Result<()> { Ok(std::fs::remove_file(check_unchanged(root, file, Some(before))?)?) };
    remove().with_context(|| format!("cannot remove {file}"))
}

/// The path of a file that has not changed since it was read.
fn check_unchanged(root: &Path, file: &str, before: Option<&str>) -> Result<PathBuf> {
    if read_text(root, file)?.as_deref() != before {
        bail!("it changed in the meantime; run the command again");
    }
    Ok(resolve(root, file)?.unwrap_or_else(|| root.join(file)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn unusable_files_are_reported_and_not_changed() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |name: &str| root.path().join(name);
        std::fs::create_dir(at("folder")).unwrap();
        std::fs::write(at("latin"), b"a\xe9").unwrap();
        std::fs::write(at("fixed"), "{}").unwrap();
        std::fs::set_permissions(at("fixed"), std::fs::Permissions::from_mode(0o444)).unwrap();
        std::fs::write(outside.path().join("theirs"), "{}").unwrap();
        symlink(outside.path().join("theirs"), at("out")).unwrap();
        symlink(outside.path(), at("away")).unwrap();
        symlink(at("none"), at("nowhere")).unwrap();
        std::fs::File::create(at("long")).unwrap().set_len(MAX_BYTES + 1).unwrap();
        for (file, expected) in [
            ("folder", "it is a folder"),
            ("latin", "not UTF-8 (at byte 1)"),
            ("fixed", "`chmod u+w fixed`"),
            ("out", "link out of the project"),
            ("away/new.json", "link out of the project"),
            ("nowhere", "dangling"),
            ("latin/x.json", "its parent is a file"),
            ("long", "larger than"),
        ] {
            match file_state(root.path(), file) {
                FileState::Unusable(why) => assert!(why.contains(expected), "{file}: {why}"),
                other => panic!("{file}: {other:?}"),
            }
            assert!(write(root.path(), file, None, "ours").is_err(), "{file}");
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
        assert_eq!(std::fs::read_to_string(outside.path().join("theirs")).unwrap(), "{}");
    }

    #[test]
    fn a_link_inside_the_project_stays_and_modes_are_kept() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().join("real.json");
        std::fs::write(&real, "old").unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
        symlink("real.json", root.path().join("link.json")).unwrap();
        write(root.path(), "link.json", Some("old"), "new").unwrap();
        assert_eq!(std::fs::read_to_string(&real).unwrap(), "new");
        assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(root.path().join("link.json").symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 2, "no temporary file stays");
    }

    #[test]
    fn a_concurrent_change_is_not_overwritten() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "deep/new.json", None, "ours").unwrap();
        let error =
            format!("{:#}", write(root.path(), "deep/new.json", None, "again").unwrap_err());
        assert!(error.contains("in the meantime"), "{error}");
        assert!(remove(root.path(), "deep/new.json", "theirs").is_err());
        remove(root.path(), "deep/new.json", "ours").unwrap();
        assert_eq!(file_state(root.path(), "deep/new.json"), FileState::Missing);
    }
}
