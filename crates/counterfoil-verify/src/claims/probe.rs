//! Reads the file system for claims. Follows no symbolic link out of the repository, opens only
//! regular files, and decides nothing.

use super::path::{ChangeIndex, PathResolver, ResolvedPath};
use super::{Since, WorkspaceView};
use counterfoil_workspace::snapshot::Change;
use sha2::{Digest, Sha256};
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The maximum number of paths for which git is asked whether it ignores them, for each claim.
const MAX_IGNORED_LOOKUPS: usize = 2000;
/// Larger files are not read.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// What exists at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// Nothing exists there.
    Absent,
    /// A regular file, or a symbolic link to one inside the repository.
    File,
    /// A folder, or a symbolic link to one inside the repository.
    Folder,
    /// Neither a file nor a folder: a pipe, a socket, a device, a broken symbolic link.
    Other,
    /// The path is outside of the workspace and was not read, for this reason.
    Outside(String),
}

/// A claimed path and what was observed at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathProbe {
    /// The path as the result writes it.
    pub(super) text: String,
    /// The resolved path, relative to the workspace's folder.
    pub(super) path: PathBuf,
    /// How the file changed, if it did.
    pub(super) change: Option<Change>,
    /// What exists at the path. Only read if no change of the file is known.
    pub(super) presence: Presence,
    /// Whether the path does not exist and git ignores it, so that it is unknown whether it existed
    /// before.
    pub(super) is_ignored: bool,
    /// How the path was interpreted, where that is not obvious.
    pub(super) notes: Vec<String>,
}

/// What exists at a path of the workspace, and its canonical path relative to the folder.
pub(super) fn presence(resolver: &PathResolver, path: &Path) -> (Presence, Option<PathBuf>) {
    let full = resolver.folder().join(path);
    let Ok(meta) = std::fs::symlink_metadata(&full) else { return (Presence::Absent, None) };
    let (real, relative) = match canonicalize_inside(resolver, path) {
        Ok(inside) => inside,
        Err(error @ PathError::Escapes) => return (Presence::Outside(error.to_string()), None),
        Err(PathError::Io(_)) => return (Presence::Other, None),
    };
    let meta = if meta.is_symlink() { std::fs::metadata(&real) } else { Ok(meta) };
    let presence = match meta {
        Ok(meta) if meta.is_file() => Presence::File,
        Ok(meta) if meta.is_dir() => Presence::Folder,
        _ => Presence::Other,
    };
    (presence, Some(relative))
}

/// Why a path cannot be canonicalized inside of the repository.
#[derive(Debug, thiserror::Error)]
enum PathError {
    #[error("it is a symbolic link out of the repository")]
    Escapes,
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// The canonical path of a file, absolute and relative to the workspace's folder. Every access to a
/// claimed path goes through this function, which ensures that the path stays inside of the
/// repository.
fn canonicalize_inside(
    resolver: &PathResolver,
    path: &Path,
) -> Result<(PathBuf, PathBuf), PathError> {
    let real = resolver.folder().join(path).canonicalize()?;
    let relative = resolver.relative_if_inside(&real).ok_or(PathError::Escapes)?;
    Ok((real, relative))
}

/// Probes claimed paths, in order.
pub(super) fn probe_paths(
    texts: &[String],
    resolver: &PathResolver,
    index: &ChangeIndex<'_>,
    view: &mut dyn WorkspaceView,
) -> Vec<PathProbe> {
    let mut probes: Vec<PathProbe> =
        texts.iter().map(|text| probe_path(text, resolver, index)).collect();
    // Snapshots do not contain files that git ignores.
    let unseen: Vec<usize> = probes
        .iter()
        .enumerate()
        .filter(|(_, probe)| probe.change.is_none() && probe.presence == Presence::File)
        .map(|(at, _)| at)
        .collect();
    let asked = &unseen[..unseen.len().min(MAX_IGNORED_LOOKUPS)];
    let paths: Vec<PathBuf> = asked.iter().map(|at| probes[*at].path.clone()).collect();
    let answers = if paths.is_empty() { Vec::new() } else { view.ignored_changes(&paths) };
    for (at, since) in asked.iter().zip(answers) {
        let change = match since {
            Since::Modified => Change::Modified,
            Since::Added => Change::Added,
            Since::Absent | Since::Untouched => continue,
        };
        let probe = &mut probes[*at];
        probe.change = Some(change);
        probe.notes.push("is ignored by git; file times show how it changed".to_owned());
    }
    if unseen.len() > MAX_IGNORED_LOOKUPS {
        let note = "and the paths after it were not looked up among the files that git ignores: there are too many";
        probes[unseen[MAX_IGNORED_LOOKUPS]].notes.push(note.to_owned());
    }
    mark_ignored(&mut probes, view);
    probes
}

/// Marks absent paths that git ignores: a snapshot would not have contained them.
fn mark_ignored(probes: &mut [PathProbe], view: &mut dyn WorkspaceView) {
    let is_absent =
        |probe: &PathProbe| probe.change.is_none() && probe.presence == Presence::Absent;
    let absent = probes.iter().filter(|probe| is_absent(probe)).take(MAX_IGNORED_LOOKUPS);
    let paths: Vec<PathBuf> = absent.map(|probe| probe.path.clone()).collect();
    if paths.is_empty() {
        return;
    }
    let ignored = view.ignored(&paths);
    for probe in probes.iter_mut().filter(|probe| is_absent(probe)).take(MAX_IGNORED_LOOKUPS) {
        probe.is_ignored = ignored.contains(&probe.path);
    }
}

/// Probes one claimed path: first as it is written, then in other interpretations.
fn probe_path(text: &str, resolver: &PathResolver, index: &ChangeIndex<'_>) -> PathProbe {
    let mut probe = PathProbe {
        text: text.to_owned(),
        path: PathBuf::from(text),
        change: None,
        presence: Presence::Absent,
        is_ignored: false,
        notes: Vec::new(),
    };
    let path = match resolver.resolve(text) {
        ResolvedPath::Inside(path, note) => {
            probe.notes.extend(note);
            path
        }
        ResolvedPath::Outside(why) => {
            probe.presence = Presence::Outside(why);
            return probe;
        }
    };
    probe.path.clone_from(&path);
    if let Some((_, change)) = index.get(&path) {
        probe.change = Some(change);
        return probe;
    }
    let (there, real) = presence(resolver, &path);
    if there != Presence::Absent {
        probe.presence = there;
        // A folder on the way is a symbolic link. The change is recorded under the canonical path.
        if let Some(real) = real.filter(|real| *real != path)
            && let Some((found, change)) = index.get(&real)
        {
            probe
                .notes
                .push(format!("is {} through a symbolic link", super::format::display_path(found)));
            probe.change = Some(change);
            probe.path = real;
        }
        return probe;
    }
    let mut alternatives: Vec<(PathBuf, &str)> = Vec::new();
    alternatives.extend(
        resolver
            .resolve_from_top(text)
            .map(|path| (path, "is relative to the top of the repository")),
    );
    if text.contains('\\')
        && let ResolvedPath::Inside(path, _) = resolver.resolve(&text.replace('\\', "/"))
    {
        alternatives.push((path, "is written with backslashes"));
    }
    for (path, note) in &alternatives {
        let change = index.get(path).map(|(_, change)| change);
        let there = if change.is_some() { Presence::File } else { presence(resolver, path).0 };
        if there != Presence::Absent {
            probe.notes.push((*note).to_owned());
            return PathProbe { path: path.clone(), change, presence: there, ..probe };
        }
    }
    let written = std::iter::once(&path).chain(alternatives.iter().map(|(path, _)| path));
    if let Some((found, change)) = written.into_iter().find_map(|path| index.get_similar(path)) {
        let found = found.to_owned();
        probe.notes.push(format!(
            "is {}: the case or the Unicode form differs",
            super::format::display_path(&found)
        ));
        probe.change = Some(change);
        probe.path = found;
    }
    probe
}

/// The content of a regular file.
pub(super) struct FileRead {
    pub(super) bytes: Vec<u8>,
    pub(super) sha256: String,
}

/// Reads a regular file in the workspace.
pub(super) fn read(resolver: &PathResolver, path: &Path) -> Result<FileRead, String> {
    let (mut file, meta) = open(resolver, path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0));
    file.by_ref()
        .take(MAX_FILE_BYTES)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    let sha256 = hex::encode(Sha256::digest(&bytes));
    Ok(FileRead { bytes, sha256 })
}

/// Counts the lines of a regular file in the workspace.
pub(super) fn count_lines(resolver: &PathResolver, path: &Path) -> Result<u64, String> {
    let (file, _) = open(resolver, path)?;
    let mut file = file.take(MAX_FILE_BYTES);
    let mut buffer = vec![0; 64 << 10];
    let (mut lines, mut last) = (0_u64, b'\n');
    loop {
        let read = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.to_string()),
        };
        let piece = &buffer[..read];
        lines += memchr::memchr_iter(b'\n', piece).count() as u64;
        last = piece.last().copied().unwrap_or(last);
    }
    // The last line may have no line break.
    Ok(lines + u64::from(last != b'\n'))
}

fn open(resolver: &PathResolver, path: &Path) -> Result<(File, Metadata), String> {
    let message = |error: std::io::Error| error.to_string();
    let (real, _) = canonicalize_inside(resolver, path).map_err(|error| error.to_string())?;
    // Opening a pipe would block until a process writes to it.
    if !std::fs::metadata(&real).map_err(message)?.is_file() {
        return Err("it is not a file".to_owned());
    }
    let file = File::open(&real).map_err(message)?;
    let meta = file.metadata().map_err(message)?;
    if meta.len() > MAX_FILE_BYTES {
        return Err(format!(
            "it has {} bytes, and no more than {MAX_FILE_BYTES} are read",
            meta.len()
        ));
    }
    Ok((file, meta))
}

/// When the content of a file was last modified.
pub(super) fn modified_at(resolver: &PathResolver, path: &Path) -> Option<SystemTime> {
    std::fs::symlink_metadata(resolver.folder().join(path)).ok()?.modified().ok()
}

/// When a file was last changed, in content or metadata. A modification time can be set back, this
/// one cannot.
pub(super) fn changed_at(resolver: &PathResolver, path: &Path) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::symlink_metadata(resolver.folder().join(path)).ok()?;
    let seconds = u64::try_from(meta.ctime()).ok()?;
    let nanos = u32::try_from(meta.ctime_nsec()).ok()?;
    SystemTime::UNIX_EPOCH
        .checked_add(std::time::Duration::new(seconds, nanos))
        .max(meta.modified().ok())
}

/// What changes whenever a file is written: the file itself, and when its status last changed.
pub(super) fn status_identity(
    resolver: &PathResolver,
    path: &Path,
) -> Option<(u64, u64, i64, i64)> {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::symlink_metadata(resolver.folder().join(path)).ok()?;
    Some((meta.dev(), meta.ino(), meta.ctime(), meta.ctime_nsec()))
}
