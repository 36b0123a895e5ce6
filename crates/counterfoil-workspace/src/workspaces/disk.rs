//! Access to files below a folder without following a symbolic link on the way.

use super::metadata::{Content, Kind, is_missing};
use crate::path::is_inside;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// What exists at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileState {
    /// Nothing exists there.
    Nothing,
    /// A file or a symbolic link.
    Content(Content),
    /// A folder.
    Folder,
    /// Neither a file nor a folder: a device, a socket.
    Special,
    /// Nothing can exist there: this file on the way to it is not a folder.
    BelowFile(PathBuf),
    /// Not accessed: this part of the way to it is a symbolic link.
    BehindLink(PathBuf),
}

impl FileState {
    /// The content, if it is a file or link.
    pub(super) fn content(&self) -> Option<&Content> {
        match self {
            Self::Content(content) => Some(content),
            _ => None,
        }
    }
}

/// A folder whose files are opened relative to a handle, one path component at a time.
#[derive(Debug)]
pub(super) struct Root {
    handle: OwnedFd,
}

enum Lookup<'a> {
    Found(OwnedFd, &'a OsStr),
    Absent,
    File(PathBuf),
    Link(PathBuf),
}

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Root {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { handle: rustix::fs::open(path, flags, Mode::empty())? })
    }

    fn look_up<'a>(
        &self,
        path: &'a Path,
        create_mode: Option<&dyn Fn(&Path) -> u32>,
    ) -> io::Result<Lookup<'a>> {
        let name = path.file_name().filter(|_| is_plain(path)).ok_or(Errno::INVAL)?;
        let mut folder = rustix::fs::openat(&self.handle, c".", FOLDER, Mode::empty())?;
        let mut so_far = PathBuf::new();
        for part in path.parent().into_iter().flat_map(Path::components) {
            so_far.push(part);
            let open = || rustix::fs::openat(&folder, part.as_os_str(), FOLDER, Mode::empty());
            folder = match (open(), create_mode) {
                (Ok(next), _) => next,
                (Err(Errno::NOENT), None) => return Ok(Lookup::Absent),
                (Err(Errno::NOENT), Some(mode)) => {
                    match rustix::fs::mkdirat(
                        &folder,
                        part.as_os_str(),
                        Mode::from_raw_mode(mode(&so_far) as rustix::fs::RawMode),
                    ) {
                        Ok(()) | Err(Errno::EXIST) => open()?,
                        Err(error) => return Err(error.into()),
                    }
                }
                (Err(Errno::NOTDIR | Errno::LOOP | Errno::MLINK), _) => {
                    let found =
                        rustix::fs::statat(&folder, part.as_os_str(), AtFlags::SYMLINK_NOFOLLOW)?;
                    let is_link = rustix::fs::FileType::from_raw_mode(found.st_mode).is_symlink();
                    return Ok(if is_link { Lookup::Link(so_far) } else { Lookup::File(so_far) });
                }
                (Err(error), _) => return Err(error.into()),
            };
        }
        Ok(Lookup::Found(folder, name))
    }

    /// What exists at a path.
    pub(super) fn state(&self, path: &Path) -> io::Result<FileState> {
        self.copy(path, &mut io::sink())
    }

    /// Returns what exists at a path and writes its bytes to `to`.
    pub(super) fn copy(&self, path: &Path, to: &mut dyn Write) -> io::Result<FileState> {
        let (folder, name) = match self.look_up(path, None)? {
            Lookup::Found(folder, name) => (folder, name),
            Lookup::Absent => return Ok(FileState::Nothing),
            Lookup::File(file) => return Ok(FileState::BelowFile(file)),
            Lookup::Link(link) => return Ok(FileState::BehindLink(link)),
        };
        // Without NONBLOCK, opening a pipe would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::openat(&folder, name, flags, Mode::empty()) {
            Ok(handle) => {
                let mut file = File::from(handle);
                let meta = file.metadata()?;
                if meta.is_dir() {
                    return Ok(FileState::Folder);
                }
                if !meta.is_file() {
                    return Ok(FileState::Special);
                }
                let (hash, size) = copy_and_hash(&mut file, to)?;
                Ok(FileState::Content(Content {
                    kind: kind(&meta),
                    hash,
                    size,
                    mode: meta.mode() & 0o7777,
                }))
            }
            Err(Errno::NOENT) => Ok(FileState::Nothing),
            // A symbolic link.
            Err(Errno::LOOP | Errno::MLINK) => {
                let target = rustix::fs::readlinkat(&folder, name, Vec::new())?;
                Ok(FileState::Content(link(target.as_bytes(), to)?))
            }
            // A socket.
            Err(Errno::NXIO | Errno::OPNOTSUPP) => Ok(FileState::Special),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a file or link atomically if the path still has the expected content. Missing folders
    /// are created with the given modes.
    ///
    /// Returns whether it was written: a concurrent change by another program is preserved.
    pub(super) fn put(
        &self,
        path: &Path,
        expected: Option<&Content>,
        content: &Content,
        bytes: &mut dyn Read,
        modes: &dyn Fn(&Path) -> u32,
    ) -> io::Result<bool> {
        let Lookup::Found(folder, name) = self.look_up(path, Some(modes))? else {
            return Ok(false);
        };
        let draft = draft(path);
        unlink(&folder, OsStr::from_bytes(draft.as_bytes()))?;
        if content.kind == Kind::Link {
            let mut target = Vec::new();
            bytes.read_to_end(&mut target)?;
            rustix::fs::symlinkat(OsStr::from_bytes(&target), &folder, draft.as_str())?;
        } else {
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(rustix::fs::openat(
                &folder,
                draft.as_str(),
                flags,
                Mode::from_raw_mode(0o600),
            )?);
            io::copy(bytes, &mut file)?;
            file.set_permissions(std::fs::Permissions::from_mode(content.mode & 0o7777))?;
            file.sync_all()?;
        }
        let swapped = if self.has_content(path, expected)? {
            if expected.is_none() {
                move_new(&folder, &draft, name)?
            } else {
                move_over(&folder, &draft, name)?
            }
        } else {
            false
        };
        if !swapped {
            unlink(&folder, OsStr::from_bytes(draft.as_bytes()))?;
        }
        Ok(swapped)
    }

    /// Removes a file or link if it still has the expected content. Returns whether it was removed.
    pub(super) fn remove(&self, path: &Path, expected: &Content) -> io::Result<bool> {
        let Lookup::Found(folder, name) = self.look_up(path, None)? else { return Ok(false) };
        if !self.has_content(path, Some(expected))? {
            return Ok(false);
        }
        unlink(&folder, name)?;
        Ok(true)
    }

    /// Removes a folder if it is empty. Returns whether it was removed.
    pub(super) fn remove_folder(&self, path: &Path) -> io::Result<bool> {
        let Lookup::Found(folder, name) = self.look_up(path, None)? else { return Ok(false) };
        match rustix::fs::unlinkat(&folder, name, AtFlags::REMOVEDIR) {
            Ok(()) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT | Errno::NOTDIR | Errno::BUSY) => {
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the temporary file that a crash left of [`Root::put`].
    pub(super) fn remove_draft(&self, path: &Path) -> io::Result<()> {
        match self.look_up(path, None)? {
            Lookup::Found(folder, _) => unlink(&folder, OsStr::from_bytes(draft(path).as_bytes())),
            _ => Ok(()),
        }
    }

    /// Syncs the entries of a folder to disk.
    pub(super) fn sync(&self, folder: &Path) -> io::Result<()> {
        match self.look_up(&folder.join("x"), None)? {
            Lookup::Found(folder, _) => Ok(rustix::fs::fsync(folder)?),
            _ => Ok(()),
        }
    }

    fn has_content(&self, path: &Path, expected: Option<&Content>) -> io::Result<bool> {
        Ok(match (self.state(path)?, expected) {
            (FileState::Nothing, None) => true,
            (FileState::Content(found), Some(expected)) => found.is(expected),
            _ => false,
        })
    }
}

/// Renames the draft unless the target exists.
fn move_new(folder: &OwnedFd, draft: &str, name: &OsStr) -> io::Result<bool> {
    match rustix::fs::renameat_with(folder, draft, folder, name, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        // Not every file system supports NOREPLACE.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => move_over(folder, draft, name),
        Err(error) => Err(error.into()),
    }
}

fn move_over(folder: &OwnedFd, draft: &str, name: &OsStr) -> io::Result<bool> {
    match rustix::fs::renameat(folder, draft, folder, name) {
        Ok(()) => Ok(true),
        Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn unlink(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The name of the temporary file for a path.
fn draft(path: &Path) -> String {
    format!(".counterfoil-{}.part", &hex::encode(Sha256::digest(path.as_os_str().as_bytes()))[..16])
}

/// Whether a name is that of a temporary file written by [`Root::put`].
pub(super) fn is_draft(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.len() == ".counterfoil-.part".len() + 16
        && name.starts_with(b".counterfoil-")
        && name.ends_with(b".part")
}

/// Whether a path stays below the root and outside of any repository's `.git`.
pub(super) fn is_plain(path: &Path) -> bool {
    let is_plain = |part: Component<'_>| {
        part != Component::CurDir && !part.as_os_str().as_bytes().eq_ignore_ascii_case(b".git")
    };
    path.components().next().is_some() && is_inside(path) && path.components().all(is_plain)
}

/// The kind of a file.
pub(super) fn kind(meta: &Metadata) -> Kind {
    if meta.is_symlink() {
        Kind::Link
    } else if meta.mode() & 0o100 != 0 {
        Kind::Program
    } else {
        Kind::File
    }
}

/// The content of a symbolic link with this target.
pub(super) fn link(target: &[u8], to: &mut dyn Write) -> io::Result<Content> {
    to.write_all(target)?;
    let hash = hex::encode(Sha256::digest(target));
    Ok(Content { kind: Kind::Link, hash, size: target.len() as u64, mode: 0o777 })
}

/// Copies all bytes and returns their hash and number.
pub(super) fn copy_and_hash(from: &mut dyn Read, to: &mut dyn Write) -> io::Result<(String, u64)> {
    let mut hash = Sha256::new();
    let mut size = 0;
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.update(&buffer[..read]);
        to.write_all(&buffer[..read])?;
        size += read as u64;
    }
    Ok((hex::encode(hash.finalize()), size))
}

/// Removes a folder and everything in it, or a file, even if write permission was removed.
pub(super) fn clear(path: &Path) -> io::Result<()> {
    let gone = |done: io::Result<()>| match done {
        Err(error) if !is_missing(&error) => Err(error),
        _ => Ok(()),
    };
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => return gone(std::fs::remove_file(path)),
        Err(error) => return gone(Err(error)),
    }
    if gone(std::fs::remove_dir_all(path)).is_ok() {
        return Ok(());
    }
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop() {
        let _ = std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700));
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            }
        }
    }
    gone(std::fs::remove_dir_all(path))
}

/// A path without links. One that does not exist has an ancestor that does.
pub(super) fn real_path(path: &Path) -> PathBuf {
    for there in path.ancestors() {
        if let Ok(found) = std::fs::canonicalize(there) {
            return match path.strip_prefix(there) {
                Ok(rest) if !rest.as_os_str().is_empty() => found.join(rest),
                _ => found,
            };
        }
    }
    path.to_owned()
}
