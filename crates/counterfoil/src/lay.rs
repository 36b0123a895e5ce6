//! Laying files out in a folder: everything inside of it, nothing through a link.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// A file to be written: its path inside of the folder, and its bytes.
pub(crate) type Laid<'a> = (&'a str, &'a [u8]);

/// Makes a folder that must be empty, if it is there already; `otherwise` says what to do if it is
/// not.
pub(crate) fn empty_folder(folder: &Path, otherwise: &str) -> Result<()> {
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
            return Err(error)
                .with_context(|| format!("cannot open the folder {}", folder.display()));
        }
    };
    if entries.next().is_some() {
        bail!("the folder {} is not empty; {otherwise}", folder.display());
    }
    Ok(())
}

/// Writes files into a folder that is there. Nothing is written if one of them cannot stand where
/// it should.
pub(crate) fn out(folder: &Path, files: &[Laid<'_>]) -> Result<()> {
    let places: Vec<(PathBuf, &[u8])> = files
        .iter()
        .map(|(path, bytes)| Ok((place(folder, path)?, *bytes)))
        .collect::<Result<_>>()?;
    for (path, bytes) in places {
        write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The files below a folder with their bytes, by their paths under the name `as_folder`. Links are
/// left out, and there is an end to how much is read.
pub(crate) fn read(
    folder: &Path,
    as_folder: &str,
    most: usize,
) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    let mut left = most;
    let mut open = vec![(folder.to_owned(), as_folder.to_owned())];
    while let Some((at, name)) = open.pop() {
        let entries = match std::fs::read_dir(&at) {
            Ok(entries) => entries,
            // What is not there has no files; whoever needs one says so.
            Err(error) if at == folder && error.kind() == ErrorKind::NotFound => continue,
            Err(error) => {
                return Err(error).with_context(|| format!("cannot open {}", at.display()));
            }
        };
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot read {}", at.display()))?;
            let (path, kind) = (entry.path(), entry.file_type());
            let kind = kind.with_context(|| format!("cannot look at {}", path.display()))?;
            let inner = entry.file_name();
            let inner =
                inner.to_str().with_context(|| format!("{} is not UTF-8", path.display()))?;
            let name = format!("{name}/{inner}");
            if kind.is_dir() {
                open.push((path, name));
            } else if kind.is_file() {
                // One byte more than there may be is enough to see that it is too much. An empty
                // file counts too.
                let mut bytes = Vec::new();
                let file = File::open(&path)
                    .and_then(|file| file.take(left as u64 + 1).read_to_end(&mut bytes));
                file.with_context(|| format!("cannot read {}", path.display()))?;
                let Some(rest) = left.checked_sub(bytes.len().max(1)) else {
                    bail!("{} holds more than {most} bytes", folder.display());
                };
                left = rest;
                files.insert(name, bytes);
            }
        }
    }
    Ok(files)
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
            Err(error) => {
                return Err(error).with_context(|| format!("cannot look at {}", at.display()));
            }
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
    let can_run = bytes.starts_with(b"#!");
    let mode = if can_run { 0o777 } else { 0o666 };
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    // A file that was there keeps its mode: whoever may read it may run it then.
    let mode = file.metadata()?.permissions().mode();
    if can_run && mode & 0o111 == 0 {
        file.set_permissions(PermissionsExt::from_mode(mode | (mode & 0o444) >> 2))?;
    }
    Ok(())
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
        let mode =
            |name: &str| folder.path().join(name).metadata().unwrap().permissions().mode() & 0o100;
        assert_eq!((mode("bin/run"), mode("a.md")), (0o100, 0));
    }

    #[test]
    fn a_text_that_becomes_a_script_can_be_run() {
        let folder = folder();
        out(folder.path(), &[("run", b"echo\n")]).unwrap();
        out(folder.path(), &[("run", b"#!/bin/sh\n")]).unwrap();
        let mode = folder.path().join("run").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o111, (mode & 0o444) >> 2, "{mode:o}");
    }

    #[test]
    fn what_is_read_is_bounded_and_links_are_left_out() {
        let folder = folder();
        out(folder.path(), &[("a", b"12345"), ("b/c", b"1234"), ("b/empty", b"")]).unwrap();
        std::os::unix::fs::symlink("/etc", folder.path().join("etc")).unwrap();
        let files = read(folder.path(), "demo", 10).unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["demo/a", "demo/b/c", "demo/b/empty"]);
        assert!(
            read(folder.path(), "demo", 9).unwrap_err().to_string().contains("more than 9 bytes")
        );
        assert!(read(&folder.path().join("none"), "demo", 9).unwrap().is_empty());
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
        std::os::unix::fs::symlink(outside.path().join("mine"), folder.path().join("a.md"))
            .unwrap();
        for path in ["prompts/new.md", "a.md"] {
            let error = out(folder.path(), &[(path, b"theirs")]).unwrap_err().to_string();
            assert!(error.contains("is a link"), "{path}: {error}");
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
        assert_eq!(std::fs::read(outside.path().join("mine")).unwrap(), b"mine");
    }
}
