//! Writing a set of files into a folder. No file is written outside the folder or through a
//! symbolic link.

use anyhow::{Context, Result, bail};
use counterfoil_contract::text::display_path;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// A file to write: its path relative to the folder, and its bytes.
pub(crate) type FileToWrite<'a> = (&'a str, &'a [u8]);

/// Creates a folder and those that it is in, unless it exists.
pub(crate) fn create_folder(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the folder {}", display_path(folder)))
}

/// Creates a folder. An existing folder must be empty; `hint` tells the user what to do if it is
/// not.
pub(crate) fn create_empty_folder(folder: &Path, hint: &str) -> Result<()> {
    let mut entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return create_folder(folder),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            bail!("{} is not a folder", display_path(folder));
        }
        Err(error) => {
            return Err(error)
                .with_context(|| format!("cannot open the folder {}", display_path(folder)));
        }
    };
    if entries.next().is_some() {
        bail!("the folder {} is not empty; {hint}", display_path(folder));
    }
    Ok(())
}

/// Writes files into an existing folder. Nothing is written if one of the paths is not usable.
pub(crate) fn write_files(folder: &Path, files: &[FileToWrite<'_>]) -> Result<()> {
    let targets: Vec<(PathBuf, &[u8])> = files
        .iter()
        .map(|(path, bytes)| Ok((target_path(folder, path)?, *bytes)))
        .collect::<Result<_>>()?;
    for (path, bytes) in targets {
        write_file(&path, bytes)
            .with_context(|| format!("cannot write {}", display_path(&path)))?;
    }
    Ok(())
}

/// Writes new files into an existing folder. Nothing is written if one of the paths is not usable, and
/// nothing that exists is overwritten, also if it came to be in the meantime.
pub(crate) fn create_files(folder: &Path, files: &[FileToWrite<'_>]) -> Result<()> {
    let targets: Vec<(PathBuf, &[u8])> = files
        .iter()
        .map(|(path, bytes)| Ok((target_path(folder, path)?, *bytes)))
        .collect::<Result<_>>()?;
    let mut created = Created::default();
    for (path, bytes) in targets {
        let written = created.file(&path).and_then(|mut file| file.write_all(bytes));
        if let Err(error) = written {
            created.remove();
            let shown = display_path(&path);
            return Err(error)
                .with_context(|| format!("nothing was written, because {shown} cannot be"));
        }
    }
    Ok(())
}

/// What was created so far, in order.
#[derive(Default)]
struct Created {
    folders: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Created {
    /// Creates a file, and the folders that it needs.
    fn file(&mut self, path: &Path) -> std::io::Result<File> {
        let missing: Vec<&Path> = path
            .ancestors()
            .skip(1)
            .take_while(|at| !at.as_os_str().is_empty() && !at.exists())
            .collect();
        for folder in missing.into_iter().rev() {
            std::fs::create_dir(folder)?;
            self.folders.push(folder.to_owned());
        }
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        self.files.push(path.to_owned());
        Ok(file)
    }

    /// Removes all of it, as far as that is possible.
    fn remove(self) {
        for file in self.files {
            let _ = std::fs::remove_file(file);
        }
        // Those that others have written to in the meantime stay.
        for folder in self.folders.into_iter().rev() {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Reads all files below a folder. Their paths begin with `prefix` instead of the folder's own
/// path. Symbolic links are skipped. More than `max_bytes` bytes in total are an error.
pub(crate) fn read_files(
    folder: &Path,
    prefix: &str,
    max_bytes: usize,
) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    let mut remaining = max_bytes;
    let mut pending = vec![(folder.to_owned(), prefix.to_owned())];
    while let Some((at, name)) = pending.pop() {
        let entries = match std::fs::read_dir(&at) {
            Ok(entries) => entries,
            // A missing folder has no files. Callers report a required file that is missing.
            Err(error) if at == folder && error.kind() == ErrorKind::NotFound => continue,
            Err(error) => {
                return Err(error).with_context(|| format!("cannot open {}", display_path(&at)));
            }
        };
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot read {}", display_path(&at)))?;
            let (path, kind) = (entry.path(), entry.file_type());
            let kind = kind.with_context(|| format!("cannot inspect {}", display_path(&path)))?;
            let inner = entry.file_name();
            let inner =
                inner.to_str().with_context(|| format!("{} is not UTF-8", display_path(&path)))?;
            let name = format!("{name}/{inner}");
            if kind.is_dir() {
                pending.push((path, name));
            } else if kind.is_file() {
                // One byte more than allowed is enough to detect the excess. An empty file counts
                // as one byte, so that the number of files is bounded as well.
                let mut bytes = Vec::new();
                let file = File::open(&path)
                    .and_then(|file| file.take(remaining as u64 + 1).read_to_end(&mut bytes));
                file.with_context(|| format!("cannot read {}", display_path(&path)))?;
                let Some(rest) = remaining.checked_sub(bytes.len().max(1)) else {
                    bail!("{} contains more than {max_bytes} bytes", display_path(folder));
                };
                remaining = rest;
                files.insert(name, bytes);
            }
        }
    }
    Ok(files)
}

/// The path of a file below the folder. A symbolic link on the way, or anything but a regular file
/// at the path itself, is an error.
fn target_path(folder: &Path, path: &str) -> Result<PathBuf> {
    let mut at = folder.to_owned();
    let mut parts = Path::new(path).components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(part) = part else {
            bail!("'{path}' is not a relative path inside the folder");
        };
        at.push(part);
        let last = parts.peek().is_none();
        match at.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot inspect {}", display_path(&at)));
            }
            Ok(meta) if last && meta.is_file() => {}
            Ok(meta) if !last && meta.is_dir() => {}
            Ok(meta) => {
                let kind = if meta.is_symlink() {
                    "a symbolic link"
                } else if last {
                    "not a regular file"
                } else {
                    "not a folder"
                };
                bail!("{} is {kind}; remove it or choose another folder", display_path(&at));
            }
        }
    }
    Ok(at)
}

/// Writes one file. Embedded files have no mode, so a file that starts with `#!` is made
/// executable.
fn write_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let is_script = bytes.starts_with(b"#!");
    let mode = if is_script { 0o777 } else { 0o666 };
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    // An existing file keeps its mode; execute permission is added wherever read permission is set.
    let mode = file.metadata()?.permissions().mode();
    if is_script && mode & 0o111 == 0 {
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
    fn only_scripts_are_executable() {
        let folder = folder();
        write_files(folder.path(), &[("bin/run", b"#!/bin/sh\n"), ("a.md", b"# A\n")]).unwrap();
        let mode =
            |name: &str| folder.path().join(name).metadata().unwrap().permissions().mode() & 0o100;
        assert_eq!((mode("bin/run"), mode("a.md")), (0o100, 0));
    }

    #[test]
    fn a_text_that_becomes_a_script_is_executable() {
        let folder = folder();
        write_files(folder.path(), &[("run", b"echo\n")]).unwrap();
        write_files(folder.path(), &[("run", b"#!/bin/sh\n")]).unwrap();
        let mode = folder.path().join("run").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o111, (mode & 0o444) >> 2, "{mode:o}");
    }

    #[test]
    fn what_cannot_be_created_whole_leaves_nothing() {
        let folder = folder();
        // The folder of the second file is a file by then.
        let files: [FileToWrite<'_>; 3] = [("a/one", b"1"), ("b", b"2"), ("b/two", b"3")];
        let error = create_files(folder.path(), &files).unwrap_err().to_string();
        assert!(error.contains("nothing was written"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn reading_is_bounded_and_skips_links() {
        let folder = folder();
        write_files(folder.path(), &[("a", b"12345"), ("b/c", b"1234"), ("b/empty", b"")]).unwrap();
        std::os::unix::fs::symlink("/etc", folder.path().join("etc")).unwrap();
        let files = read_files(folder.path(), "demo", 10).unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["demo/a", "demo/b/c", "demo/b/empty"]);
        assert!(
            read_files(folder.path(), "demo", 9)
                .unwrap_err()
                .to_string()
                .contains("more than 9 bytes")
        );
        assert!(read_files(&folder.path().join("none"), "demo", 9).unwrap().is_empty());
    }

    #[test]
    fn nothing_is_written_outside_the_folder() {
        for path in ["../x", "/x", "a/../../x"] {
            let folder = folder();
            let error =
                write_files(folder.path(), &[("good", b""), (path, b"")]).unwrap_err().to_string();
            assert!(error.contains("not a relative path inside"), "{path}: {error}");
            assert!(!folder.path().join("good").exists(), "{path}: part of it was written");
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
            let error = write_files(folder.path(), &[(path, b"theirs")]).unwrap_err().to_string();
            assert!(error.contains("is a symbolic link"), "{path}: {error}");
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
        assert_eq!(std::fs::read(outside.path().join("mine")).unwrap(), b"mine");
    }
}
