//! Restores files to their state in a snapshot, and reads that state.

use super::entry::{Bytes, Entry, PathState};
use super::git::RepositoryLocation;
use super::parse::Blob;
use super::read_files::{is_gone, open};
use super::repo_path::{RepoPath, normalize};
use super::store::{MAX_STORED_FILE, copy_and_hash};
use super::{Snapshot, Snapshotter};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, mkdirat, openat, readlinkat, renameat, statat, symlinkat,
    unlinkat,
};
use rustix::io::Errno;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where the content of a path in a snapshot comes from.
enum Source<'a> {
    Nowhere,
    Snapshot(&'a Entry),
    Commit { place: RepositoryLocation, inner: RepoPath, blob: Blob },
}

/// The content to restore.
enum Wanted {
    Absent,
    /// The bytes and the mode: exact, or as a new file gets it.
    File {
        bytes: Vec<u8>,
        mode: Mode,
        exactly: bool,
    },
    Link(Vec<u8>),
}

impl Snapshotter {
    /// The bytes of a file in a snapshot, or the target of a symbolic link. `None` if it did not
    /// exist.
    pub fn content(&self, at: &Snapshot, path: &Path) -> io::Result<Option<Vec<u8>>> {
        let Some(name) = self.name_of(path) else {
            return Err(io::Error::other(format!(
                "{} is not inside {}",
                path.display(),
                self.top.display()
            )));
        };
        let source = self.sources(at, std::slice::from_ref(&name)).pop();
        match self
            .wanted(&name, source.unwrap_or(Ok(Source::Nowhere)).map_err(io::Error::other)?)?
        {
            Wanted::Absent => Ok(None),
            Wanted::File { bytes, .. } | Wanted::Link(bytes) => Ok(Some(bytes)),
        }
    }

    /// Restores files to their state in a snapshot: bytes, mode, link or absence. Each is replaced
    /// atomically, and no link is followed. Folders are created as needed, and empty ones are
    /// removed. Returns the files that could not be restored, with the reason.
    pub fn restore(&mut self, to: &Snapshot, paths: &[PathBuf]) -> Vec<(PathBuf, String)> {
        let mut failed = Vec::new();
        let mut inside = Vec::new();
        for path in paths {
            match self.name_of(path) {
                None => {
                    failed.push((path.clone(), format!("it is not inside {}", self.top.display())));
                }
                Some(name) => inside.push((path, name)),
            }
        }
        let names: Vec<RepoPath> = inside.iter().map(|(_, name)| name.clone()).collect();
        let mut wanted = Vec::new();
        for ((path, name), source) in std::iter::zip(inside, self.sources(to, &names)) {
            match source {
                Ok(source) => wanted.push((path, name, source)),
                Err(why) => failed.push((path.clone(), why)),
            }
        }
        // Removals come first, since a file may be where a folder is needed; deeper paths come
        // before their parents.
        let is_there = |source: &Source| match source {
            Source::Nowhere => false,
            Source::Snapshot(entry) => !entry.state.is_gone(),
            Source::Commit { .. } => true,
        };
        wanted.sort_by(|(_, a, from_a), (_, b, from_b)| {
            is_there(from_a).cmp(&is_there(from_b)).then_with(|| b.cmp(a))
        });
        for (path, name, source) in wanted {
            let put = self.wanted(&name, source).and_then(|want| self.write_back(&name, &want));
            if let Err(error) = put {
                failed.push((path.clone(), error.to_string()));
            }
        }
        failed
    }

    /// Copies the current file or link at a path to a new path. `to` returns that path and is
    /// called only if there is something to copy. No link on the way is followed, so the copied
    /// file is part of the work tree. Returns whether anything was copied.
    pub fn copy_out(
        &self,
        path: &Path,
        to: impl FnOnce() -> io::Result<PathBuf>,
    ) -> io::Result<bool> {
        let Some(name) = self.name_of(path) else { return Ok(false) };
        let file_name = name.path().file_name().unwrap_or_default();
        let Some(folders) = self.folders(&name, false)? else { return Ok(false) };
        let Some(parent) = folders.last() else { return Ok(false) };
        // Without NONBLOCK, opening a pipe would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut from = match openat(parent, file_name, flags, Mode::empty()) {
            Ok(handle) => File::from(handle),
            // Nothing exists there, or a socket.
            Err(Errno::NOENT | Errno::NXIO | Errno::OPNOTSUPP) => return Ok(false),
            Err(Errno::LOOP | Errno::MLINK) => {
                let target = readlinkat(parent, file_name, Vec::new())?;
                std::os::unix::fs::symlink(OsStr::from_bytes(target.as_bytes()), to()?)?;
                return Ok(true);
            }
            Err(error) => return Err(error.into()),
        };
        let meta = from.metadata()?;
        if !meta.is_file() {
            return Ok(false);
        }
        let mut copy =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to()?)?;
        io::copy(&mut from, &mut copy)?;
        copy.set_permissions(meta.permissions())?;
        Ok(true)
    }

    /// Whether a path is a link now.
    pub fn is_link(&self, path: &Path) -> bool {
        std::fs::symlink_metadata(self.folder.join(path)).is_ok_and(|meta| meta.is_symlink())
    }

    fn name_of(&self, path: &Path) -> Option<RepoPath> {
        let path = normalize(&self.folder.join(path));
        RepoPath::from_path(path.strip_prefix(&self.top).ok()?)
    }

    /// The sources of some paths, in order. Git runs once for each repository.
    fn sources<'a>(&self, at: &'a Snapshot, names: &[RepoPath]) -> Vec<Result<Source<'a>, String>> {
        if at.data.too_large {
            let too_large = || Err("the snapshot is empty: there was too much to read".to_owned());
            return names.iter().map(|_| too_large()).collect();
        }
        let mut in_commits: BTreeMap<RepoPath, Vec<RepoPath>> = BTreeMap::new();
        for name in names.iter().filter(|name| !at.data.entries.contains_key(name)) {
            if let Some((folder, _)) = at.data.repo_of(name) {
                in_commits.entry(folder).or_default().push(name.clone());
            }
        }
        let mut committed: HashMap<RepoPath, Result<Blob, String>> = HashMap::new();
        for (folder, members) in in_commits {
            let Some(repo) = at.data.repos.get(&folder) else { continue };
            match self.committed(&folder, repo, &members) {
                Ok(found) => {
                    committed.extend(found.into_iter().map(|(name, blob)| (name, Ok(blob))));
                }
                Err(error) => {
                    committed
                        .extend(members.into_iter().map(|name| (name, Err(error.to_string()))));
                }
            }
        }
        let source = |name: &RepoPath| {
            if let Some(entry) = at.data.entries.get(name) {
                return Ok(Source::Snapshot(entry));
            }
            let (Some(blob), Some((folder, repo))) = (committed.get(name), at.data.repo_of(name))
            else {
                return Ok(Source::Nowhere);
            };
            let inner = name.inside(&folder).unwrap_or_else(|| name.clone());
            Ok(Source::Commit {
                place: self.location_of(&folder, repo),
                inner,
                blob: blob.clone()?,
            })
        };
        names.iter().map(source).collect()
    }

    /// Reads the content to restore from its source.
    fn wanted(&self, name: &RepoPath, source: Source) -> io::Result<Wanted> {
        match source {
            Source::Nowhere => Ok(Wanted::Absent),
            Source::Snapshot(entry) => self.stored(name, entry),
            Source::Commit { place, inner, blob } => {
                let bytes = self.checked_out(&place, &inner, &blob).map_err(io::Error::other)?;
                if blob.is_link() {
                    return Ok(Wanted::Link(bytes));
                }
                // As in a checkout: the umask of the user applies.
                let mode = Mode::from_raw_mode(if blob.executable() { 0o777 } else { 0o666 });
                Ok(Wanted::File { bytes, mode, exactly: false })
            }
        }
    }

    fn stored(&self, name: &RepoPath, entry: &Entry) -> io::Result<Wanted> {
        let (hash, at) = match &entry.state {
            PathState::Gone => return Ok(Wanted::Absent),
            PathState::Link { target, .. } => return Ok(Wanted::Link(target.to_vec())),
            PathState::Other(_) => {
                return Err(io::Error::other("it was a pipe, socket or device"));
            }
            PathState::File { bytes: Bytes::Unread, .. } => {
                return Err(io::Error::other("not stored: its bytes were not read"));
            }
            PathState::File { bytes: Bytes::Hash(hash), at } => (hash, at),
        };
        let mode = Mode::from_raw_mode(at.mode & 0o7777);
        if let Some(bytes) = self.store.get(hash)? {
            return Ok(Wanted::File { bytes, mode, exactly: true });
        }
        // The file may be unchanged.
        if let Ok(mut file) = open(&self.top.join(name.path()))
            && file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() == at.size)
        {
            let mut bytes = Vec::new();
            if copy_and_hash(&mut file, &mut bytes).is_ok_and(|now| now == *hash) {
                return Ok(Wanted::File { bytes, mode, exactly: true });
            }
        }
        let why = if at.size > MAX_STORED_FILE {
            format!("not stored: it had {} bytes, more than {} MiB", at.size, MAX_STORED_FILE >> 20)
        } else {
            "not stored: git does not have it, and it has changed since".to_owned()
        };
        Err(io::Error::other(why))
    }

    fn write_back(&self, name: &RepoPath, want: &Wanted) -> io::Result<()> {
        let file_name = name.path().file_name().unwrap_or_default();
        let make = !matches!(want, Wanted::Absent);
        let Some(folders) = self.folders(name, make)? else { return Ok(()) };
        let Some(parent) = folders.last() else { return Ok(()) };
        let mode_now = match statat(parent, file_name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Some(stat.st_mode),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(error.into()),
        };
        let is_folder = mode_now.is_some_and(|mode| FileType::from_raw_mode(mode).is_dir());
        let private = mode_now.filter(|mode| FileType::from_raw_mode(*mode).is_file());
        if !make {
            // A folder is not a file: its files are restored by their own paths.
            if mode_now.is_some() && !is_folder {
                unlinkat(parent, file_name, AtFlags::empty())?;
                remove_empty(&folders, name, &self.here);
            }
            return Ok(());
        }
        if is_folder && let Err(error) = unlinkat(parent, file_name, AtFlags::REMOVEDIR) {
            let what = format!("it is a folder now that cannot be removed: {error}");
            return Err(io::Error::other(what));
        }
        let temporary = super::temporary_name();
        let put = match want {
            Wanted::Absent => Ok(()),
            Wanted::Link(target) => {
                symlinkat(OsStr::from_bytes(target), parent, temporary.as_str())
                    .map_err(io::Error::from)
            }
            Wanted::File { bytes, mode, exactly: true } => write(parent, &temporary, bytes, *mode),
            Wanted::File { bytes, mode, exactly: false } => {
                write_new(parent, &temporary, bytes, *mode, private.map(Mode::from_raw_mode))
            }
        };
        let put = put.and_then(|()| Ok(renameat(parent, temporary.as_str(), parent, file_name)?));
        if put.is_err() {
            let _ = unlinkat(parent, temporary.as_str(), AtFlags::empty());
        }
        put
    }

    /// Opens the parent folders of a file, without following links. `None` if one does not exist
    /// and is not to be created.
    fn folders(&self, name: &RepoPath, make: bool) -> io::Result<Option<Vec<OwnedFd>>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut open = vec![rustix::fs::open(&self.top, flags, Mode::empty())?];
        let parts: Vec<&OsStr> =
            name.path().parent().map(|parent| parent.iter().collect()).unwrap_or_default();
        for part in parts {
            let Some(last) = open.last() else { break };
            let mut next = openat(last, part, flags, Mode::empty());
            if make && matches!(next, Err(Errno::NOENT)) {
                match mkdirat(last, part, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                next = openat(last, part, flags, Mode::empty());
            }
            match next {
                Ok(next) => open.push(next),
                // Nothing exists below a path that is not a folder.
                Err(error) if !make && (is_gone(&error.into()) || error == Errno::LOOP) => {
                    return Ok(None);
                }
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    let what =
                        format!("{} is not a folder, and links are not followed", part.display());
                    return Err(io::Error::other(what));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(open))
    }
}

/// Writes a file with exactly this mode.
fn write(parent: &OwnedFd, name: &str, bytes: &[u8], mode: Mode) -> io::Result<()> {
    // A private file must not be readable by others while it is written.
    let mut file = create(parent, name, Mode::from_raw_mode(0o600))?;
    file.write_all(bytes)?;
    Ok(rustix::fs::fchmod(&file, mode)?)
}

/// Writes a file with the mode of a new file, but not more permissive than the existing one: git
/// does not record read permissions.
fn write_new(
    parent: &OwnedFd,
    name: &str,
    bytes: &[u8],
    mode: Mode,
    existing: Option<Mode>,
) -> io::Result<()> {
    let mut file = create(parent, name, mode)?;
    if let Some(existing) = existing {
        let made = Mode::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
        rustix::fs::fchmod(&file, made & (existing | Mode::RWXU))?;
    }
    file.write_all(bytes)
}

fn create(parent: &OwnedFd, name: &str, mode: Mode) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(parent, name, flags, mode)?))
}

/// Removes the parent folders that are empty now, innermost first. Never the top, nor the folder of
/// the snapshotter.
fn remove_empty(folders: &[OwnedFd], name: &RepoPath, here: &RepoPath) {
    let parts: Vec<&OsStr> = name.path().iter().collect();
    for at in (1..folders.len()).rev() {
        let folder: PathBuf = parts[..at].iter().collect();
        if here.path().starts_with(&folder) {
            return;
        }
        if unlinkat(&folders[at - 1], parts[at - 1], AtFlags::REMOVEDIR).is_err() {
            return;
        }
    }
}
