//! The check that a relative path stays inside a root folder.

use std::path::{Component, Path, PathBuf};

/// A path that is absolute or leads out of its root with `..`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{}' is not a path inside {}", .path.display(), .root.display())]
pub struct PathOutsideRoot {
    /// The folder that the path must stay in.
    pub root: PathBuf,
    /// The rejected path.
    pub path: PathBuf,
}

/// Joins a relative path to a root folder.
///
/// The check is lexical: symbolic links are not resolved. The empty path and `.` name the root
/// itself.
///
/// # Errors
///
/// The path is absolute or contains `..`.
pub fn resolve_inside(root: &Path, relative: &Path) -> Result<PathBuf, PathOutsideRoot> {
    if is_inside(relative) {
        Ok(root.join(relative))
    } else {
        Err(PathOutsideRoot { root: root.to_owned(), path: relative.to_owned() })
    }
}

/// Whether a path is relative and contains no `..`.
pub fn is_inside(relative: &Path) -> bool {
    relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// Whether a path stays inside its root and names something other than the root itself.
pub fn is_strictly_inside(relative: &Path) -> bool {
    is_inside(relative) && relative.file_name().is_some()
}

/// The absolute paths of a folder that are text: as it was given, and canonical if that differs.
pub fn folder_names(folder: &Path) -> Vec<String> {
    let named = std::path::absolute(folder).ok();
    let real = folder.canonicalize().ok().filter(|real| Some(real) != named.as_ref());
    let folders = [named, real].into_iter().flatten();
    folders.filter_map(|folder| folder.into_os_string().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_inside_its_root() {
        let root = Path::new("/repo");
        for (path, resolved) in [
            ("a", "/repo/a"),
            ("a/b", "/repo/a/b"),
            ("./a", "/repo/./a"),
            ("", "/repo/"),
            (".", "/repo/."),
        ] {
            assert_eq!(
                resolve_inside(root, Path::new(path)),
                Ok(PathBuf::from(resolved)),
                "{path}"
            );
        }
        for path in ["..", "../a", "a/../..", "a/../b", "/a", "/"] {
            let error = resolve_inside(root, Path::new(path)).unwrap_err();
            assert_eq!(error.to_string(), format!("'{path}' is not a path inside /repo"));
        }
    }

    #[test]
    fn the_root_is_not_strictly_inside_itself() {
        for (path, inside) in [
            ("a/b", true),
            ("./a", true),
            ("", false),
            (".", false),
            ("/a", false),
            ("../a", false),
        ] {
            assert_eq!(is_strictly_inside(Path::new(path)), inside, "{path}");
        }
    }
}
