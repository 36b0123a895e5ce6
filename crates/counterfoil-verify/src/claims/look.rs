//! Looks at what stands where a claim points. Follows no link out of the repository, opens nothing
//! but plain files, and decides nothing.

use super::path::{Frame, Index, Meant};
use super::{Observer, Since};
use counterfoil_workspace::tree::Change;
use sha2::{Digest, Sha256};
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Ignored files that are asked about for one claim; each may cost a look at git.
const MOST_ASKED: usize = 2000;
/// A longer file is not read.
const LARGEST: u64 = 256 << 20;

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// Nothing.
    Absent,
    /// A file, or a link to one in the repository.
    File,
    /// A folder.
    Folder,
    /// Neither: a pipe, a socket, a device, a link that leads nowhere.
    Other,
    /// It was not looked at, and why: it is not in the workspace.
    Away(String),
}

/// A claimed path, and what was found of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sighting {
    /// As it is written.
    pub(super) text: String,
    /// The file that is meant, from the folder.
    pub(super) path: PathBuf,
    /// What became of it.
    pub(super) change: Option<Change>,
    /// What stands there. Only looked at if nothing became of it.
    pub(super) presence: Presence,
    /// Whether git ignores it, and nothing is there: whether something was before cannot be told.
    pub(super) is_hidden: bool,
    /// How the path was understood, where that is worth saying.
    pub(super) notes: Vec<String>,
}

/// What stands at a path of the workspace, and its real path from the folder.
pub(super) fn presence(frame: &Frame, path: &Path) -> (Presence, Option<PathBuf>) {
    let full = frame.folder().join(path);
    let Ok(meta) = std::fs::symlink_metadata(&full) else { return (Presence::Absent, None) };
    let Ok(real) = full.canonicalize() else { return (Presence::Other, None) };
    let Some(seen) = frame.of_real(&real) else {
        return (Presence::Away("it is a symbolic link out of the repository".to_owned()), None);
    };
    let meta = if meta.is_symlink() { std::fs::metadata(&real) } else { Ok(meta) };
    let presence = match meta {
        Ok(meta) if meta.is_file() => Presence::File,
        Ok(meta) if meta.is_dir() => Presence::Folder,
        _ => Presence::Other,
    };
    (presence, Some(seen))
}

/// Finds what is meant by each of many claimed paths.
pub(super) fn sight(
    texts: &[String],
    frame: &Frame,
    index: &Index<'_>,
    observer: &mut dyn Observer,
) -> Vec<Sighting> {
    let mut sightings: Vec<Sighting> =
        texts.iter().map(|text| sight_one(text, frame, index)).collect();
    // Snapshots do not see what git ignores.
    let unseen: Vec<usize> = sightings
        .iter()
        .enumerate()
        .filter(|(_, sighting)| sighting.change.is_none() && sighting.presence == Presence::File)
        .map(|(at, _)| at)
        .collect();
    let asked = &unseen[..unseen.len().min(MOST_ASKED)];
    let paths: Vec<PathBuf> = asked.iter().map(|at| sightings[*at].path.clone()).collect();
    let answers = if paths.is_empty() { Vec::new() } else { observer.since_all(&paths) };
    for (at, since) in asked.iter().zip(answers) {
        let change = match since {
            Since::Modified => Change::Modified,
            Since::Added => Change::Added,
            Since::Absent | Since::Untouched => continue,
        };
        let sighting = &mut sightings[*at];
        sighting.change = Some(change);
        sighting.notes.push("is ignored by git, and judged by its times".to_owned());
    }
    if unseen.len() > MOST_ASKED {
        let note = "and those after it were not looked up among the files that git ignores: there are too many";
        sightings[unseen[MOST_ASKED]].notes.push(note.to_owned());
    }
    hide(&mut sightings, observer);
    sightings
}

/// Says of what is not there whether it could have been seen before.
fn hide(sightings: &mut [Sighting], observer: &mut dyn Observer) {
    let is_gone =
        |sighting: &Sighting| sighting.change.is_none() && sighting.presence == Presence::Absent;
    let gone = sightings.iter().filter(|sighting| is_gone(sighting)).take(MOST_ASKED);
    let paths: Vec<PathBuf> = gone.map(|sighting| sighting.path.clone()).collect();
    if paths.is_empty() {
        return;
    }
    let ignored = observer.ignored(&paths);
    for sighting in sightings.iter_mut().filter(|sighting| is_gone(sighting)).take(MOST_ASKED) {
        sighting.is_hidden = ignored.contains(&sighting.path);
    }
}

/// Finds what is meant by a claimed path: as it is written, then as it may be meant.
fn sight_one(text: &str, frame: &Frame, index: &Index<'_>) -> Sighting {
    let mut sighting = Sighting {
        text: text.to_owned(),
        path: PathBuf::from(text),
        change: None,
        presence: Presence::Absent,
        is_hidden: false,
        notes: Vec::new(),
    };
    let path = match frame.meant(text) {
        Meant::Inside(path, note) => {
            sighting.notes.extend(note);
            path
        }
        Meant::Outside(why) => {
            sighting.presence = Presence::Away(why);
            return sighting;
        }
    };
    sighting.path.clone_from(&path);
    if let Some((_, change)) = index.get(&path) {
        sighting.change = Some(change);
        return sighting;
    }
    let (there, real) = presence(frame, &path);
    if there != Presence::Absent {
        sighting.presence = there;
        // A link on the way: what changed is known by its real path.
        if let Some(real) = real.filter(|real| *real != path)
            && let Some((found, change)) = index.get(&real)
        {
            sighting
                .notes
                .push(format!("is {} through a symbolic link", super::shown::path(found)));
            sighting.change = Some(change);
            sighting.path = real;
        }
        return sighting;
    }
    let mut others: Vec<(PathBuf, &str)> = Vec::new();
    others
        .extend(frame.meant_from_top(text).map(|path| (path, "counts from the repository's top")));
    if text.contains('\\')
        && let Meant::Inside(path, _) = frame.meant(&text.replace('\\', "/"))
    {
        others.push((path, "is written with backslashes"));
    }
    for (path, note) in &others {
        let change = index.get(path).map(|(_, change)| change);
        let there = if change.is_some() { Presence::File } else { presence(frame, path).0 };
        if there != Presence::Absent {
            sighting.notes.push((*note).to_owned());
            return Sighting { path: path.clone(), change, presence: there, ..sighting };
        }
    }
    let written = std::iter::once(&path).chain(others.iter().map(|(path, _)| path));
    if let Some((found, change)) = written.into_iter().find_map(|path| index.like(path)) {
        let found = found.to_owned();
        sighting.notes.push(format!(
            "is {}: the case or the Unicode form differs",
            super::shown::path(&found)
        ));
        sighting.change = Some(change);
        sighting.path = found;
    }
    sighting
}

/// Why a file cannot be read.
pub(super) type Unread = String;

/// What is known of a plain file: its length in lines or bytes, its hash.
pub(super) struct Seen {
    pub(super) bytes: Vec<u8>,
    pub(super) sha256: String,
}

/// The bytes of a plain file in the workspace, and their hash.
pub(super) fn read(frame: &Frame, path: &Path) -> Result<Seen, Unread> {
    let (mut file, meta) = open(frame, path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0));
    file.by_ref().take(LARGEST).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let sha256 = hex::encode(Sha256::digest(&bytes));
    Ok(Seen { bytes, sha256 })
}

/// How many lines a plain file has.
pub(super) fn lines(frame: &Frame, path: &Path) -> Result<u64, Unread> {
    let (file, _) = open(frame, path)?;
    let mut file = file.take(LARGEST);
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
    // The last line need not be ended.
    Ok(lines + u64::from(last != b'\n'))
}

fn open(frame: &Frame, path: &Path) -> Result<(File, Metadata), Unread> {
    let full = frame.folder().join(path);
    let words = |error: std::io::Error| error.to_string();
    let real = full.canonicalize().map_err(words)?;
    if frame.of_real(&real).is_none() {
        return Err("it is a symbolic link out of the repository".to_owned());
    }
    // Opening a pipe would wait for whoever writes to it.
    if !std::fs::metadata(&real).map_err(words)?.is_file() {
        return Err("it is not a file".to_owned());
    }
    let file = File::open(&real).map_err(words)?;
    let meta = file.metadata().map_err(words)?;
    if meta.len() > LARGEST {
        return Err(format!("it has {} bytes, and no more than {LARGEST} are read", meta.len()));
    }
    Ok((file, meta))
}

/// When a file was last written.
pub(super) fn written(frame: &Frame, path: &Path) -> Option<SystemTime> {
    std::fs::symlink_metadata(frame.folder().join(path)).ok()?.modified().ok()
}

/// When a file was last changed, in its bytes or otherwise: a time of writing can be set back, this
/// cannot.
pub(super) fn touched(frame: &Frame, path: &Path) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::symlink_metadata(frame.folder().join(path)).ok()?;
    let seconds = u64::try_from(meta.ctime()).ok()?;
    let nanos = u32::try_from(meta.ctime_nsec()).ok()?;
    SystemTime::UNIX_EPOCH
        .checked_add(std::time::Duration::new(seconds, nanos))
        .max(meta.modified().ok())
}
