//! Paths without `.` and `..`. Reads nothing.

use std::path::{Component, Path, PathBuf};

/// A path without `.` and `..`; none if it climbs above its start.
pub(crate) fn normalize(path: &Path) -> Option<PathBuf> {
    let normal = normalize_or_climb(path);
    (!normal.components().any(|part| part == Component::ParentDir)).then_some(normal)
}

/// A path below the top, relative to it, without `.` and `..`. None if it leads out or names no file.
pub(crate) fn below_top(path: &Path) -> Option<PathBuf> {
    normalize(path).filter(|path| path.is_relative() && path.file_name().is_some())
}

/// A path without `.`, and without `..` after a name.
pub(crate) fn normalize_or_climb(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if parts.file_name().is_some() => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts
}
