//! Paths as git stores them: bytes, relative to the top of the repository, separated by `/`.

use crate::path::is_inside;
use std::borrow::Borrow;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A path below the top. Cheap to clone, because snapshots share it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RepoPath(Arc<[u8]>);

impl RepoPath {
    /// The top itself.
    pub(super) fn top() -> Self {
        Self::from(&b""[..])
    }

    /// Whether the last part of the path is this name.
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.path().file_name() == Some(OsStr::new(name))
    }

    /// The bytes of the path.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path as a [`Path`].
    pub(super) fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// The path of something inside this folder. The empty path is the top.
    pub(super) fn join(&self, inner: &[u8]) -> Self {
        if self.0.is_empty() {
            return Self::from(inner);
        }
        let mut bytes = Vec::with_capacity(self.0.len() + 1 + inner.len());
        bytes.extend_from_slice(&self.0);
        bytes.push(b'/');
        bytes.extend_from_slice(inner);
        Self(bytes.into())
    }

    /// The path relative to a folder. `None` if it is not inside it.
    pub(super) fn inside(&self, folder: &Self) -> Option<Self> {
        if folder.0.is_empty() {
            return Some(self.clone());
        }
        let rest = self.0.strip_prefix(&*folder.0)?.strip_prefix(b"/")?;
        Some(Self::from(rest))
    }

    /// The parent folders, innermost first, without the top.
    pub(super) fn folders(&self) -> impl Iterator<Item = Self> + '_ {
        let slashes = self.0.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
        slashes.map(|(at, _)| Self::from(&self.0[..at]))
    }

    /// Converts a relative path. `None` if it leads out of the top or is the top itself.
    pub(super) fn from_path(path: &Path) -> Option<Self> {
        if !is_inside(path) {
            return None;
        }
        let mut bytes = Vec::new();
        for part in path.components().filter(|part| *part != Component::CurDir) {
            if !bytes.is_empty() {
                bytes.push(b'/');
            }
            bytes.extend_from_slice(part.as_os_str().as_bytes());
        }
        (!bytes.is_empty()).then(|| Self(bytes.into()))
    }
}

/// So that a map can be asked for bytes.
impl Borrow<[u8]> for RepoPath {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

/// Escapes control characters, for messages.
impl fmt::Display for RepoPath {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}", String::from_utf8_lossy(&self.0).escape_debug())
    }
}

impl From<&[u8]> for RepoPath {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

/// Resolves `.` and `..` lexically, without accessing the disk.
pub(super) fn normalize(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    out.push("..");
                }
            }
            other => out.push(other),
        }
    }
    out
}

/// Resolves the links in a path as far as it exists. The rest is only normalized.
pub(super) fn canonicalize_existing(path: &Path) -> PathBuf {
    let path = normalize(path);
    for ancestor in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (ancestor.canonicalize(), path.strip_prefix(ancestor)) {
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path
}

/// A path relative to a folder, both below the top.
pub(super) fn relative_to(folder: &RepoPath, name: &RepoPath) -> PathBuf {
    if let Some(inner) = name.inside(folder) {
        return inner.path().to_owned();
    }
    let mut here = folder.path().components().peekable();
    let mut there = name.path().components().peekable();
    while here.peek().is_some() && here.peek() == there.peek() {
        here.next();
        there.next();
    }
    here.map(|_| Component::ParentDir).chain(there).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_seen_from_a_folder() {
        for (folder, name, seen) in [
            ("", "a/b", "a/b"),
            ("a", "a/b", "b"),
            ("a", "ab/c", "../ab/c"),
            ("a/b", "a/c/d", "../c/d"),
            ("a/b", "x", "../../x"),
        ] {
            let (folder, name) =
                (RepoPath::from(folder.as_bytes()), RepoPath::from(name.as_bytes()));
            assert_eq!(relative_to(&folder, &name), Path::new(seen), "{folder:?} {name:?}");
        }
    }

    #[test]
    fn a_name_stays_below_the_top() {
        assert_eq!(RepoPath::from_path(Path::new("./a//b")), Some(RepoPath::from(&b"a/b"[..])));
        for bad in ["..", "../a", "/a", "", "."] {
            assert_eq!(RepoPath::from_path(Path::new(bad)), None, "{bad}");
        }
        assert_eq!(normalize(Path::new("/a/./b/../c")), Path::new("/a/c"));
    }
}
