//! Copies files from one folder to another, byte for byte, and records their content.

use super::disk::{copy_and_hash, kind, link};
use super::file_list::{Listed, Parents};
use super::metadata::{BaseFile, Content, EncodedPath, Stamp, is_missing};
use super::{Error, at};
use rustix::fs::OFlags;
use std::collections::HashSet;
use std::fs::{File, FileTimes, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// How often a file that changes while it is read is read again.
const MAX_ATTEMPTS: usize = 4;

/// Copies the listed files. Files that do not exist any more are skipped; unreadable ones are
/// skipped with a note.
///
/// Filters are not applied: the copy has the bytes of the work tree.
pub(super) fn copy(
    from: &Path,
    to: &Path,
    listed: &mut Listed,
    max_bytes: Option<u64>,
) -> Result<Vec<BaseFile>, Error> {
    let mut parents = Parents::new(from);
    let mut made = HashSet::from([PathBuf::new()]);
    let mut base_files = Vec::with_capacity(listed.files.len());
    let mut total = 0_u64;
    for path in &listed.files {
        if !parents.are_real(path) {
            continue;
        }
        let source = from.join(path);
        let Ok(meta) = std::fs::symlink_metadata(&source) else { continue };
        if !(meta.is_file() || meta.is_symlink()) {
            continue;
        }
        total = total.saturating_add(meta.len());
        if let Some(max_bytes) = max_bytes.filter(|max_bytes| total > *max_bytes) {
            let limit = format!("more than {} MiB", max_bytes >> 20);
            return Err(Error::TooLarge { folder: from.to_owned(), limit });
        }
        let target = to.join(path);
        if let Some(parent) = path.parent()
            && made.insert(parent.to_owned())
        {
            let folder = to.join(parent);
            std::fs::create_dir_all(&folder).map_err(at("create", &folder))?;
        }
        let copied = if meta.is_symlink() {
            copy_link(&source, &target)
        } else {
            copy_file(&source, &target)
        };
        match copied {
            Ok(Some((content, stamp))) => {
                base_files.push(BaseFile {
                    path: EncodedPath(path.clone()),
                    content,
                    blob: None,
                    stamp,
                });
            }
            Ok(None) => {}
            Err(Side::From(error)) => {
                listed.notes.push(format!("{} was skipped: {error}", path.display()));
            }
            Err(Side::To(error)) => return Err(at("write", &target)(error)),
        }
    }
    Ok(base_files)
}

/// The side on which copying failed.
enum Side {
    From(io::Error),
    To(io::Error),
}

type Copied = Result<Option<(Content, Stamp)>, Side>;

fn copy_link(source: &Path, target: &Path) -> Copied {
    let points_to = match std::fs::read_link(source) {
        Ok(points_to) => points_to,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(Side::From(error)),
    };
    std::os::unix::fs::symlink(&points_to, target).map_err(Side::To)?;
    let content = link(points_to.as_os_str().as_bytes(), &mut io::sink()).map_err(Side::To)?;
    let stamp = Stamp::from_metadata(&std::fs::symlink_metadata(target).map_err(Side::To)?);
    Ok(Some((content, stamp)))
}

fn copy_file(source: &Path, target: &Path) -> Copied {
    let mut attempts = 0;
    loop {
        let mut from = match open(source) {
            Ok(file) => file,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(Side::From(error)),
        };
        let before = from.metadata().map_err(Side::From)?;
        if !before.is_file() {
            return Ok(None);
        }
        let mode = before.mode() & 0o777;
        let mut to = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(target)
            .map_err(Side::To)?;
        let (hash, size) = copy_and_hash(&mut from, &mut to).map_err(Side::To)?;
        let after = from.metadata().map_err(Side::From)?;
        attempts += 1;
        // A half-saved file is of no use, so it is read again. After the last attempt the copy is
        // the base as it is.
        if Stamp::from_metadata(&before) != Stamp::from_metadata(&after) && attempts < MAX_ATTEMPTS
        {
            continue;
        }
        to.set_permissions(std::fs::Permissions::from_mode(mode)).map_err(Side::To)?;
        if let Ok(modified) = after.modified() {
            // Build tools compare modification times. Failing to set one is harmless otherwise.
            let _ = to.set_times(FileTimes::new().set_modified(modified));
        }
        let stamp = Stamp::from_metadata(&to.metadata().map_err(Side::To)?);
        return Ok(Some((Content { kind: kind(&after), hash, size, mode }, stamp)));
    }
}

/// Opens a file for reading without following a link or blocking on a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// The content of a path whose parents are real folders. `None` if it is not a file or link.
pub(super) fn observe(path: &Path, known: Option<(&BaseFile, i64)>) -> io::Result<Option<Content>> {
    let meta = match std::fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let stamp = Stamp::from_metadata(&meta);
    // Clock ticks are coarse: a file touched just before the base was complete may have been
    // touched again in the same tick.
    if let Some((base, sealed)) = known
        && base.stamp == stamp
        && stamp.changed_at() < sealed.saturating_sub(1_000_000_000)
    {
        return Ok(Some(base.content.clone()));
    }
    if meta.is_symlink() {
        let target = std::fs::read_link(path)?;
        return Ok(Some(link(target.as_os_str().as_bytes(), &mut io::sink())?));
    }
    if !meta.is_file() {
        return Ok(None);
    }
    let mut file = open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Ok(None);
    }
    let (hash, size) = copy_and_hash(&mut file, &mut io::sink())?;
    Ok(Some(Content { kind: kind(&meta), hash, size, mode: meta.mode() & 0o777 }))
}
