//! Laying files out in a folder: everything inside of it, nothing through a link.

use anyhow::{Context, Result, bail};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

/// A file to be written: its path inside of the folder, and its bytes.
pub(crate) type Laid<'a> = (&'a str, &'a [u8]);

/// Makes a folder that must be empty, if it is there already.
pub(crate) fn empty_folder(folder: &Path) -> Result<()> {
    let mut entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot make the folder {}", folder.display()));
        }
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            bail!("{} is not a folder", folder.display());
        }
        Err(error) => {
            return Err(error).with_context(|| format!("cannot open the folder {}", folder.display()));
        }
    };
    if entries.next().is_some() {
        bail!("the folder {} is not empty", folder.display());
    }
    Ok(())
}

/// Writes files into a folder that is there. Nothing is written if one of them cannot stand where it should.
pub(crate) fn out(folder: &Path, files: &[Laid<'_>]) -> Result<()> {
    let places: Vec<(PathBuf, &[u8])> =
        files.iter().map(|(path, bytes)| Ok((place(folder, path)?, *bytes))).collect::<Result<_>>()?;
    for (path, bytes) in places {
        write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Where a file goes: below the folder, where no link leads away and nothing else stands.
fn place(folder: &Path, path: &str) -> Result<PathBuf> {
    let mut at = folder.to_owned();
    let mut parts = Path::new(path).components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(part) = part else {
            bail!("'{path}' is not a path inside of a folder");
        };
        at.push(part);
        let last = parts.peek().is_none();
        match at.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("cannot look at {}", at.display())),
            Ok(meta) if last && meta.is_file() => {}
            Ok(meta) if !last && meta.is_dir() => {}
            Ok(meta) => {
                let what = if meta.is_symlink() { "a link" } else { "something else" };
                bail!("{} is {what}; take it away, or choose another folder", at.display());
            }
        }
    }
    Ok(at)
}

/// Files that came along with the binary have no modes: one that names its interpreter can be run.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mode = if bytes.starts_with(b"#!") { 0o777 } else { 0o666 };
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path)?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn scripts_can_be_run_and_texts_cannot() {
        let folder = folder();
        out(folder.path(), &[("bin/run", b"#!/bin/sh\n"), ("a.md", b"# A\n")]).unwrap();
        let mode = |name: &str| folder.path().join(name).metadata().unwrap().permissions().mode() & 0o100;
        assert_eq!((mode("bin/run"), mode("a.md")), (0o100, 0));
    }

    #[test]
    fn nothing_is_written_outside_of_the_folder() {
        for path in ["../x", "/x", "a/../../x"] {
            let folder = folder();
            let error = out(folder.path(), &[("good", b""), (path, b"")]).unwrap_err().to_string();
            assert!(error.contains("not a path inside"), "{path}: {error}");
            assert!(!folder.path().join("good").exists(), "{path}: half of it was written");
        }
    }

    #[test]
    fn a_link_is_not_followed() {
        let (folder, outside) = (folder(), folder());
        std::fs::write(outside.path().join("mine"), "mine").unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("prompts")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("mine"), folder.path().join("a.md")).unwrap();
        for path in ["prompts/new.md", "a.md"] {
            let error = out(folder.path(), &[(path, b"theirs")]).unwrap_err().to_string();
            assert!(error.contains("is a link"), "{path}: {error}");
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
        assert_eq!(std::fs::read(outside.path().join("mine")).unwrap(), b"mine");
    }
}
