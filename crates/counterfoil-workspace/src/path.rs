//! The check that a relative path stays inside a root folder.

use std::io;
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

/// The place of a file to write at a relative path, with all links on the way and at the path itself
/// resolved. The file and folders on the way need not exist.
///
/// # Errors
///
/// The path is not strictly inside the root, a link leads out of the root or to nothing, or a folder
/// cannot be read.
pub fn resolve_for_writing(root: &Path, relative: &Path) -> io::Result<PathBuf> {
    if !is_strictly_inside(relative) {
        return Err(io::Error::other(PathOutsideRoot {
            root: root.to_owned(),
            path: relative.to_owned(),
        }));
    }
    let root = root.canonicalize()?;
    let mut real = root.clone();
    let mut parts = relative.components();
    for part in parts.by_ref() {
        real.push(part);
        match real.symlink_metadata() {
            Ok(meta) if meta.is_symlink() => {
                real = real.canonicalize().map_err(|error| match error.kind() {
                    io::ErrorKind::NotFound => io::Error::other(format!(
                        "{} is a symbolic link to nothing",
                        relative.display()
                    )),
                    _ => error,
                })?;
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(error),
        }
        if !real.starts_with(&root) {
            return Err(io::Error::other(format!(
                "{} leads out of {} by a symbolic link",
                relative.display(),
                root.display()
            )));
        }
    }
    real.extend(parts);
    Ok(real)
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
    fn a_file_is_written_only_inside() {
        use std::os::unix::fs::symlink;
        let top = tempfile::tempdir().unwrap();
        let (root, outside) = (top.path().join("repo"), top.path().join("outside"));
        for folder in [root.join("docs"), outside.clone()] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(root.join("docs/real.md"), "").unwrap();
        std::fs::write(outside.join("theirs.md"), "").unwrap();
        for (target, link) in [
            ("docs", "near"),
            ("../outside", "away"),
            ("docs/real.md", "inside.md"),
            ("../outside/theirs.md", "out.md"),
            ("docs/none.md", "dangling.md"),
            ("away", "docs/up"),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        symlink(&outside, root.join("docs/far")).unwrap();
        for (path, expected) in [
            ("a.md", Ok("a.md")),
            ("./new/folder/a.md", Ok("new/folder/a.md")),
            ("near/a.md", Ok("docs/a.md")),
            ("near/new/a.md", Ok("docs/new/a.md")),
            ("inside.md", Ok("docs/real.md")),
            ("near/real.md", Ok("docs/real.md")),
            ("away/a.md", Err("leads out of")),
            ("away/new/a.md", Err("leads out of")),
            ("docs/far/a.md", Err("leads out of")),
            ("out.md", Err("leads out of")),
            ("dangling.md", Err("a symbolic link to nothing")),
            ("docs/up/a.md", Err("a symbolic link to nothing")),
            ("docs/real.md/a.md", Err("")),
            ("../a.md", Err("is not a path inside")),
            ("/a.md", Err("is not a path inside")),
            ("", Err("is not a path inside")),
        ] {
            let found = resolve_for_writing(&root, Path::new(path));
            match (found, expected) {
                (Ok(real), Ok(expected)) => {
                    assert_eq!(real, root.canonicalize().unwrap().join(expected), "{path}");
                }
                (Err(error), Err(why)) => {
                    assert!(error.to_string().contains(why), "{path}: {error}");
                }
                (found, expected) => panic!("{path}: {found:?}, not {expected:?}"),
            }
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
