//! Restores files to their state in a snapshot, and reads that state.

use super::base::{BaseFile, BaseRepo, Side, SnapshotData};
use super::blob::{Conversion, with_crlf};
use super::entry::{Bytes, PathState};
use super::read_files::{is_gone, open};
use super::repo_path::{RepoPath, normalize};
use super::store::{MAX_STORED_FILE, copy_and_hash};
use super::{Snapshot, Snapshotter};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, mkdirat, openat, readlinkat, renameat, statat, symlinkat,
    unlinkat,
};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the content of a path in a snapshot comes from.
enum Source<'a> {
    Nowhere,
    /// Its state, and the repository that may have its content.
    Snapshot(&'a PathState, Option<&'a BaseRepo>),
    Base(&'a BaseFile, &'a BaseRepo),
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

/// A file or a symbolic link in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileAt {
    /// The bytes of the file, or the target of the link.
    pub bytes: Vec<u8>,
    /// Whether it is a link.
    pub is_link: bool,
    /// The permissions.
    pub mode: u32,
    /// Whether these are its own permissions, and not those of a new file.
    pub is_own_mode: bool,
}

impl Wanted {
    fn into_file(self) -> Option<FileAt> {
        match self {
            Self::Absent => None,
            Self::Link(bytes) => {
                Some(FileAt { bytes, is_link: true, mode: 0o777, is_own_mode: false })
            }
            Self::File { bytes, mode, exactly } => {
                #[allow(clippy::useless_conversion, reason = "it has 16 bits on macOS")]
                let mode = u32::from(mode.as_raw_mode());
                Some(FileAt { bytes, is_link: false, mode, is_own_mode: exactly })
            }
        }
    }

    fn into_bytes(self) -> Option<Vec<u8>> {
        match self {
            Self::Absent => None,
            Self::File { bytes, .. } | Self::Link(bytes) => Some(bytes),
        }
    }
}

impl Snapshotter {
    /// The bytes of a file in a snapshot, or the target of a symbolic link. `None` if it did not
    /// exist.
    pub fn content(&self, at: &Snapshot, path: &Path) -> io::Result<Option<Vec<u8>>> {
        let Some(name) = self.name_of(path) else { return Err(self.not_inside(path)) };
        Ok(self.wanted(&name, &source(at, &name)?)?.into_bytes())
    }

    /// The bytes of a file in a state, or the target of a symbolic link.
    pub(super) fn bytes_of(
        &self,
        name: &RepoPath,
        state: &PathState,
        repo: Option<&BaseRepo>,
    ) -> io::Result<Vec<u8>> {
        Ok(self.stored(name, state, repo)?.into_bytes().unwrap_or_default())
    }

    /// The files in a folder in a snapshot, as paths from that folder. The folder itself may have been a
    /// file: then it is the empty path.
    pub fn files_in(&self, at: &Snapshot, folder: &Path) -> Vec<PathBuf> {
        // The top itself has no name.
        let is_top = normalize(&self.folder.join(folder)) == self.top;
        let name = if is_top { Some(RepoPath::top()) } else { self.name_of(folder) };
        let Some(folder) = name else { return Vec::new() };
        let SnapshotData { base, entries, .. } = &*at.data;
        let known = base.files().iter().map(|file| &file.name);
        let names: BTreeSet<&RepoPath> = known.chain(entries.keys()).collect();
        let there = names.into_iter().filter(|name| !matches!(at.data.side(name), Side::Absent));
        let inside = |name: &RepoPath| match name.inside(&folder) {
            Some(inner) => Some(inner.path().to_owned()),
            None if *name == folder => Some(PathBuf::new()),
            None if folder == RepoPath::top() => Some(name.path().to_owned()),
            None => None,
        };
        there.filter_map(inside).collect()
    }

    /// The contents of files in a snapshot, as [`Snapshotter::content`] reads them, with one call of git
    /// for all of them.
    pub fn contents(&self, at: &Snapshot, paths: &[&Path]) -> Vec<io::Result<Option<Vec<u8>>>> {
        let files = self.files_at(at, paths).into_iter();
        files.map(|file| Ok(file?.map(|file| file.bytes))).collect()
    }

    /// Files in a snapshot, with one call of git for all of them. `None` for one that did not exist.
    pub fn files_at(&self, at: &Snapshot, paths: &[&Path]) -> Vec<io::Result<Option<FileAt>>> {
        let mut oids: BTreeMap<&Path, (&BaseRepo, Vec<&str>)> = BTreeMap::new();
        for name in paths.iter().filter_map(|path| self.name_of(path)) {
            if let Ok(Source::Base(file, repo)) = source(at, &name) {
                let (_, oids) = oids.entry(&repo.objects).or_insert((repo, Vec::new()));
                oids.push(&file.blob.oid);
            }
        }
        let mut known = HashMap::new();
        for (repo, oids) in oids.values() {
            known.extend(self.objects.read_blobs(&self.git, repo, oids));
        }
        let read = |path: &&Path| {
            let Some(name) = self.name_of(path) else { return Err(self.not_inside(path)) };
            let wanted = match source(at, &name)? {
                Source::Base(file, repo) => {
                    let blob = known.get(&file.blob.oid).cloned();
                    self.checked_out(&name, file, repo, blob)?
                }
                other => self.wanted(&name, &other)?,
            };
            Ok(wanted.into_file())
        };
        paths.iter().map(read).collect()
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
        let mut wanted = Vec::new();
        for (path, name) in inside {
            match source(to, &name) {
                Ok(source) => wanted.push((path, name, source)),
                Err(error) => failed.push((path.clone(), error.to_string())),
            }
        }
        // Removals come first, since a file may be where a folder is needed; deeper paths come
        // before their parents.
        let is_there = |source: &Source| match source {
            Source::Nowhere => false,
            Source::Snapshot(state, _) => !state.is_gone(),
            Source::Base(..) => true,
        };
        wanted.sort_by(|(_, a, from_a), (_, b, from_b)| {
            is_there(from_a).cmp(&is_there(from_b)).then_with(|| b.cmp(a))
        });
        for (path, name, source) in wanted {
            let put = self.wanted(&name, &source).and_then(|want| self.write_back(&name, &want));
            if let Err(error) = put {
                failed.push((path.clone(), error.to_string()));
            }
        }
        failed
    }

    /// Replaces a file atomically. No link is followed.
    ///
    /// # Errors
    ///
    /// The path is outside of the work tree, or the file cannot be written.
    pub fn write_file(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let outside = || io::Error::other(format!("it is not inside {}", self.top.display()));
        let name = self.name_of(path).ok_or_else(outside)?;
        let mode = Mode::from_raw_mode(0o666);
        self.write_back(&name, &Wanted::File { bytes: bytes.to_vec(), mode, exactly: false })
    }

    /// A path as one relative to the top of the work tree; none if it leads out of it.
    pub fn from_top(&self, path: &Path) -> Option<PathBuf> {
        self.name_of(path).map(|name| name.path().to_owned())
    }

    /// An earlier snapshot with these paths as they are in a later one. A path whose state the earlier
    /// one cannot express stays as it was.
    pub fn with_later_paths(
        &self,
        earlier: &Snapshot,
        later: &Snapshot,
        paths: &[PathBuf],
    ) -> Snapshot {
        let SnapshotData { top, base, entries, too_large } = &*earlier.data;
        let mut entries = entries.clone();
        for name in paths.iter().filter_map(|path| self.name_of(path)) {
            match later.data.side(&name) {
                Side::Observed(state) => {
                    entries.insert(name, state.clone());
                }
                Side::Absent if base.get(&name).is_some() => {
                    entries.insert(name, PathState::Gone);
                }
                Side::Clean(blob) if base.get(&name).is_some_and(|file| file.blob != *blob) => {}
                Side::Absent | Side::Clean(_) => {
                    entries.remove(&name);
                }
            }
        }
        let data =
            SnapshotData { top: top.clone(), base: base.clone(), entries, too_large: *too_large };
        let id = earlier.id.as_ref().map(|_| self.fingerprint(&data));
        Snapshot { id, data: Arc::new(data), ..earlier.clone() }
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

    fn not_inside(&self, path: &Path) -> io::Error {
        io::Error::other(format!("{} is not inside {}", path.display(), self.top.display()))
    }

    fn name_of(&self, path: &Path) -> Option<RepoPath> {
        let path = normalize(&self.folder.join(path));
        RepoPath::from_path(path.strip_prefix(&self.top).ok()?)
    }

    /// Reads the content to restore from its source.
    fn wanted(&self, name: &RepoPath, source: &Source) -> io::Result<Wanted> {
        match source {
            Source::Nowhere => Ok(Wanted::Absent),
            Source::Snapshot(state, repo) => self.stored(name, state, *repo),
            Source::Base(file, repo) => self.checked_out(name, file, repo, None),
        }
    }

    /// A file of the base as git would check it out, given its blob if that was read.
    fn checked_out(
        &self,
        name: &RepoPath,
        file: &BaseFile,
        repo: &BaseRepo,
        blob: Option<Vec<u8>>,
    ) -> io::Result<Wanted> {
        // Its bytes were read at the start.
        if let Some(state) = self.start.as_ref().and_then(|start| start.filtered.get(name))
            && self.start.as_ref().is_some_and(|start| start.base.get(name) == Some(file))
        {
            return self.stored(name, state, None);
        }
        let bytes = match blob {
            Some(bytes) => bytes,
            None => self.objects.read(&self.git, repo, "blob", &file.blob.oid)?,
        };
        if file.blob.is_link() {
            return Ok(Wanted::Link(bytes));
        }
        // As in a checkout: the umask of the user applies.
        let mode = Mode::from_raw_mode(if file.blob.executable() { 0o777 } else { 0o666 });
        let bytes = match file.conversion {
            Conversion::Text { crlf: true } => with_crlf(bytes),
            Conversion::Lfs => return large(repo, &bytes, mode),
            Conversion::Filter => {
                let what = "only a filter of the repository can restore it";
                return Err(io::Error::other(what));
            }
            Conversion::None | Conversion::Text { crlf: false } => bytes,
        };
        Ok(Wanted::File { bytes, mode, exactly: false })
    }

    fn stored(
        &self,
        name: &RepoPath,
        state: &PathState,
        repo: Option<&BaseRepo>,
    ) -> io::Result<Wanted> {
        let (hash, blobs, at) = match state {
            PathState::Gone => return Ok(Wanted::Absent),
            PathState::Link { target, .. } => return Ok(Wanted::Link(target.to_vec())),
            PathState::Other(_) => {
                return Err(io::Error::other("it was a pipe, socket or device"));
            }
            PathState::File { bytes: Bytes::Unread, .. } => {
                return Err(io::Error::other("not stored: its bytes were not read"));
            }
            PathState::File { bytes: Bytes::Read { hash, blobs }, at } => (hash, blobs, at),
        };
        let mode = Mode::from_raw_mode((at.mode & 0o7777) as rustix::fs::RawMode);
        if let Some(bytes) = self.store.get(hash)? {
            return Ok(Wanted::File { bytes, mode, exactly: true });
        }
        // A file that only has another mode than in the base is not stored.
        if let (Some(repo), Some(blob)) = (repo, blobs.first())
            && let Ok(bytes) = self.objects.read(&self.git, repo, "blob", blob)
            && Sha256::digest(&bytes)[..] == hash[..]
        {
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

/// Where the state of a path in a snapshot is.
fn source<'a>(at: &'a Snapshot, name: &RepoPath) -> io::Result<Source<'a>> {
    if at.data.too_large {
        return Err(io::Error::other("the snapshot is empty: there was too much to read"));
    }
    let base = &at.data.base;
    if let Some(state) = at.data.entries.get(name) {
        return Ok(Source::Snapshot(state, base.repo_of(name)));
    }
    let found = base.get(name).and_then(|file| Some(Source::Base(file, base.repo_of(name)?)));
    Ok(found.unwrap_or(Source::Nowhere))
}

/// A file that Git LFS stores, by the pointer in the repository.
fn large(repo: &BaseRepo, pointer: &[u8], mode: Mode) -> io::Result<Wanted> {
    let lines = String::from_utf8_lossy(pointer);
    let hash = lines.lines().find_map(|line| line.strip_prefix("oid sha256:"));
    let hash = hash.filter(|hash| hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit()));
    let path = hash.and_then(|hash| {
        let folder = repo.objects.parent()?.join("lfs/objects");
        Some((hash, folder.join(&hash[..2]).join(&hash[2..4]).join(hash)))
    });
    let missing = || io::Error::other("Git LFS does not have its content");
    let (hash, path) = path.ok_or_else(missing)?;
    let mut bytes = Vec::new();
    let found = copy_and_hash(&mut open(&path).map_err(|_| missing())?, &mut bytes)?;
    if hex::encode(found) != hash {
        return Err(missing());
    }
    Ok(Wanted::File { bytes, mode, exactly: false })
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
