//! The content of files, and how it is compared and merged.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// The content at a path.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Content {
    File { bytes: Vec<u8>, mode: u32 },
    Link(PathBuf),
}

/// Files by their path.
pub(crate) type Contents = BTreeMap<PathBuf, Content>;

impl std::fmt::Debug for Content {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Link(aim) => write!(out, "a link to {}", aim.display()),
            Self::File { bytes, mode } => {
                write!(
                    out,
                    "{mode:o} {:?}",
                    String::from_utf8_lossy(&bytes[..bytes.len().min(200)])
                )
            }
        }
    }
}

impl Content {
    /// Reads the content at a path, if it is a file or a link.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        let meta = path.symlink_metadata().ok()?;
        if meta.is_symlink() {
            return Some(Self::Link(std::fs::read_link(path).ok()?));
        }
        meta.is_file()
            .then(|| Self::File { bytes: std::fs::read(path).unwrap(), mode: meta.mode() & 0o7777 })
    }

    /// Whether both are the same, ignoring the bits of the mode that git does not store.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { bytes, mode }, Self::File { bytes: others, mode: other }) => {
                bytes == others && (mode & 0o100 == 0) == (other & 0o100 == 0)
            }
            (one, other) => one == other,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::File { bytes, .. } => bytes,
            Self::Link(aim) => aim.as_os_str().as_bytes(),
        }
    }
}

/// Whether two contents are the same, as far as git stores them.
pub(crate) fn alike(one: Option<&Content>, other: Option<&Content>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.is_like(other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// All files below a folder, except those whose path starts with one of these.
pub(crate) fn contents(folder: &Path, without: &[&str]) -> Contents {
    let names = walk(folder, without).into_iter();
    names.filter_map(|path| Some((path.clone(), Content::at(&folder.join(&path))?))).collect()
}

/// The files below a folder, by name.
pub(crate) fn names(folder: &Path) -> BTreeSet<PathBuf> {
    walk(folder, &[]).into_iter().collect()
}

fn walk(folder: &Path, without: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(inside) = open.pop() {
        for entry in std::fs::read_dir(folder.join(&inside)).into_iter().flatten().flatten() {
            let path = inside.join(entry.file_name());
            if without.iter().any(|without| path.starts_with(without)) {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                open.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found
}

/// The paths at which two folders differ, with their contents.
pub(crate) fn differences(one: &Contents, other: &Contents) -> Vec<String> {
    let paths: BTreeSet<&PathBuf> = one.keys().chain(other.keys()).collect();
    let differ = paths.into_iter().filter(|path| one.get(*path) != other.get(*path));
    differ
        .map(|path| format!("{}: {:?} -> {:?}", path.display(), one.get(path), other.get(path)))
        .collect()
}

/// A path without `..`.
pub(crate) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Merges three texts line by line, if they have the same number of lines and no line differs on
/// both sides; `None` otherwise.
pub(crate) fn merged(base: &[u8], one: &[u8], other: &[u8]) -> Option<Vec<u8>> {
    let lines = |text: &[u8]| -> Vec<Vec<u8>> {
        text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
    };
    let (base, one, other) = (lines(base), lines(one), lines(other));
    if base.len() != one.len() || base.len() != other.len() {
        return None;
    }
    let mut text = Vec::new();
    for ((base, one), other) in base.into_iter().zip(one).zip(other) {
        match (one == base, other == base) {
            (true, _) => text.extend(other),
            (false, true) => text.extend(one),
            (false, false) if one == other => text.extend(one),
            (false, false) => return None,
        }
    }
    Some(text)
}
