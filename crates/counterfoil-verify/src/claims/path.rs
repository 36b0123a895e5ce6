//! Resolves claimed paths. Pure: nothing here reads the file system.

use crate::relative_path::normalize;
use counterfoil_workspace::snapshot::{Change, Changes};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use unicode_normalization::UnicodeNormalization;

/// Resolves claimed paths relative to the workspace's folder.
#[derive(Clone, Debug)]
pub(super) struct PathResolver {
    /// The workspace's folder: as it was given, and canonical.
    folders: Vec<PathBuf>,
    /// The top folder of the repository: as it was given, and canonical.
    tops: Vec<PathBuf>,
    /// The path from the top folder to the workspace's folder.
    prefix: PathBuf,
}

/// A claimed path after resolution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ResolvedPath {
    /// A path inside the repository, relative to the workspace's folder, and a note on how it was
    /// interpreted where that is not obvious.
    Inside(PathBuf, Option<String>),
    /// The path is outside of the repository, for this reason.
    Outside(String),
}

impl PathResolver {
    /// Creates a resolver from all names of the folder and of the top folder, each with the
    /// canonical one last.
    pub(super) fn new(folders: Vec<PathBuf>, tops: Vec<PathBuf>) -> Self {
        let prefix = folders
            .iter()
            .flat_map(|folder| tops.iter().filter_map(|top| folder.strip_prefix(top).ok()))
            .next()
            .map(Path::to_owned)
            .unwrap_or_default();
        Self { folders, tops, prefix }
    }

    /// The canonical path of the workspace's folder.
    pub(super) fn folder(&self) -> &Path {
        self.folders.last().map_or(Path::new("."), PathBuf::as_path)
    }

    /// The canonical path of the repository's top folder.
    pub(super) fn top(&self) -> &Path {
        self.tops.last().map_or(Path::new("."), PathBuf::as_path)
    }

    /// Whether the workspace's folder is below the top folder.
    pub(super) fn is_below_top(&self) -> bool {
        !self.prefix.as_os_str().is_empty()
    }

    /// Resolves a claimed path without reading the file system.
    pub(super) fn resolve(&self, text: &str) -> ResolvedPath {
        if text.trim().is_empty() {
            return ResolvedPath::Outside("the path is empty".to_owned());
        }
        if text.contains('\0') {
            return ResolvedPath::Outside("the path contains a NUL".to_owned());
        }
        let path = Path::new(text);
        if path.is_absolute() {
            let Some(path) = normalize(path) else {
                return ResolvedPath::Outside("it is outside of the workspace".to_owned());
            };
            if let Some(rest) =
                self.folders.iter().find_map(|folder| path.strip_prefix(folder).ok())
            {
                return ResolvedPath::Inside(
                    rest.to_owned(),
                    Some("is written as an absolute path".to_owned()),
                );
            }
            return match self.tops.iter().find_map(|top| path.strip_prefix(top).ok()) {
                Some(rest) => ResolvedPath::Inside(
                    self.relative_to_folder(rest),
                    Some("is written as an absolute path".to_owned()),
                ),
                None => ResolvedPath::Outside("it is outside of the workspace".to_owned()),
            };
        }
        match normalize(&self.prefix.join(path)) {
            Some(from_top) => ResolvedPath::Inside(self.relative_to_folder(&from_top), None),
            None => ResolvedPath::Outside("it leads out of the repository".to_owned()),
        }
    }

    /// Resolves a path as relative to the top folder, where that is not the workspace's folder.
    pub(super) fn resolve_from_top(&self, text: &str) -> Option<PathBuf> {
        if !self.is_below_top() || Path::new(text).is_absolute() {
            return None;
        }
        normalize(Path::new(text)).map(|path| self.relative_to_folder(&path))
    }

    /// Converts a path relative to the top folder to one relative to the workspace's folder.
    pub(super) fn relative_to_folder(&self, from_top: &Path) -> PathBuf {
        if let Ok(rest) = from_top.strip_prefix(&self.prefix) {
            return rest.to_owned();
        }
        let shared =
            self.prefix.components().zip(from_top.components()).take_while(|(a, b)| a == b).count();
        let up = self.prefix.components().count() - shared;
        let mut path: PathBuf = std::iter::repeat_n("..", up).collect();
        path.extend(from_top.components().skip(shared));
        path
    }

    /// Converts a path relative to the workspace's folder to one relative to the top folder; none
    /// if it leads out of the repository.
    pub(super) fn relative_to_top(&self, from_folder: &Path) -> Option<PathBuf> {
        normalize(&self.prefix.join(from_folder))
    }

    /// Converts a canonical path to one relative to the workspace's folder; none outside of the
    /// repository. This is the check that a path stays inside the repository.
    pub(super) fn relative_if_inside(&self, real: &Path) -> Option<PathBuf> {
        if let Ok(rest) = real.strip_prefix(self.folder()) {
            return Some(rest.to_owned());
        }
        real.strip_prefix(self.top()).ok().map(|rest| self.relative_to_folder(rest))
    }
}

/// The changes, indexed for lookup by path.
pub(super) struct ChangeIndex<'a> {
    changes: &'a Changes,
    by_folded_name: HashMap<String, Option<&'a Path>>,
    renamed_from: HashMap<&'a Path, &'a Path>,
    renamed_to: HashMap<&'a Path, &'a Path>,
}

impl<'a> ChangeIndex<'a> {
    pub(super) fn new(changes: &'a Changes) -> Self {
        let mut by_folded_name: HashMap<String, Option<&Path>> =
            HashMap::with_capacity(changes.files.len());
        for path in changes.files.keys() {
            // Paths with the same folded name are ambiguous.
            by_folded_name
                .entry(folded_name(path))
                .and_modify(|seen| *seen = None)
                .or_insert(Some(path));
        }
        let renamed = || changes.renamed.iter().map(|(from, to)| (from.as_path(), to.as_path()));
        Self {
            changes,
            by_folded_name,
            renamed_from: renamed().map(|(from, to)| (to, from)).collect(),
            renamed_to: renamed().collect(),
        }
    }

    /// The recorded path and change of a file.
    pub(super) fn get(&self, path: &Path) -> Option<(&'a Path, Change)> {
        self.changes.files.get_key_value(path).map(|(path, change)| (path.as_path(), *change))
    }

    /// The only changed file whose path differs from this one just in case or Unicode
    /// normalization.
    pub(super) fn get_similar(&self, path: &Path) -> Option<(&'a Path, Change)> {
        let path = (*self.by_folded_name.get(&folded_name(path))?)?;
        self.get(path)
    }

    /// The old path of a file that was renamed to this path.
    pub(super) fn renamed_from(&self, path: &Path) -> Option<&'a Path> {
        self.renamed_from.get(path).copied()
    }

    /// The new path of a file that was renamed from this path.
    pub(super) fn renamed_to(&self, path: &Path) -> Option<&'a Path> {
        self.renamed_to.get(path).copied()
    }

    /// The number of changed files below a folder.
    pub(super) fn count_below(&self, folder: &Path) -> usize {
        // Paths are ordered by component, so the paths below a folder are adjacent.
        let from = (std::ops::Bound::Included(folder), std::ops::Bound::Unbounded);
        self.changes
            .files
            .range::<Path, _>(from)
            .take_while(|(path, _)| path.starts_with(folder))
            .count()
    }
}

/// A path with differences in case and Unicode normalization removed.
fn folded_name(path: &Path) -> String {
    path.to_string_lossy().nfc().flat_map(char::to_lowercase).nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolver(prefix: &str) -> PathResolver {
        let top = PathBuf::from("/real/repo");
        PathResolver::new(
            vec![PathBuf::from("/named/repo").join(prefix), top.join(prefix)],
            vec![PathBuf::from("/named/repo"), top],
        )
    }

    #[test]
    fn a_path_is_understood_as_it_is_meant() {
        let note = |path: &str| {
            ResolvedPath::Inside(path.into(), Some("is written as an absolute path".to_owned()))
        };
        let plain = |path: &str| ResolvedPath::Inside(path.into(), None);
        let outside = |why: &str| ResolvedPath::Outside(why.to_owned());
        let away = outside("it is outside of the workspace");
        for (prefix, text, meant) in [
            ("", "a.rs", plain("a.rs")),
            ("", "./a.rs", plain("a.rs")),
            ("", "src//./b/../a.rs", plain("src/a.rs")),
            ("", "src/", plain("src")),
            ("", " a b\n\"c\".rs", plain(" a b\n\"c\".rs")),
            ("", "", outside("the path is empty")),
            ("", " \t", outside("the path is empty")),
            ("", "a\0b", outside("the path contains a NUL")),
            ("", "../a.rs", outside("it leads out of the repository")),
            ("", "src/../../a.rs", outside("it leads out of the repository")),
            ("", "/named/repo/src/a.rs", note("src/a.rs")),
            ("", "/real/repo/src/a.rs", note("src/a.rs")),
            ("", "/real/repo/../../etc/passwd", away.clone()),
            ("", "/etc/passwd", away.clone()),
            ("", "/real/repository/a.rs", away),
            ("web/app", "a.rs", plain("a.rs")),
            ("web/app", "../a.rs", plain("../a.rs")),
            ("web/app", "../../a.rs", plain("../../a.rs")),
            ("web/app", "../../web/app/a.rs", plain("a.rs")),
            ("web/app", "../../../a.rs", outside("it leads out of the repository")),
            ("web/app", "/real/repo/web/x", note("../x")),
        ] {
            assert_eq!(resolver(prefix).resolve(text), meant, "{text:?} in {prefix:?}");
        }
        assert_eq!(resolver("web/app").resolve_from_top("web/app/a.rs"), Some("a.rs".into()));
        assert_eq!(resolver("web/app").resolve_from_top("lib/a.rs"), Some("../../lib/a.rs".into()));
        assert_eq!(resolver("web/app").resolve_from_top("../a.rs"), None);
        assert_eq!(resolver("").resolve_from_top("a.rs"), None);
    }

    #[test]
    fn what_differs_in_case_or_form_is_found_if_it_is_the_only_one() {
        let files =
            ["src/Ärger.rs", "a.rs", "A.RS"].map(|path| (PathBuf::from(path), Change::Modified));
        let changes = Changes { files: files.into(), ..Changes::default() };
        let index = ChangeIndex::new(&changes);
        let nfd: String = "src/ärger.rs".nfd().collect();
        assert_eq!(
            index.get_similar(Path::new(&nfd)).map(|(path, _)| path),
            Some(Path::new("src/Ärger.rs"))
        );
        assert_eq!(index.get_similar(Path::new("a.Rs")), None, "two are meant as well as one");
        assert_eq!(index.get(Path::new("A.RS")), Some((Path::new("A.RS"), Change::Modified)));
    }

    #[test]
    fn what_is_below_a_folder_is_counted() {
        let files =
            ["src/a", "src/b/c", "src.rs", "srd"].map(|path| (PathBuf::from(path), Change::Added));
        let changes = Changes { files: files.into(), ..Changes::default() };
        assert_eq!(ChangeIndex::new(&changes).count_below(Path::new("src")), 2);
    }
}
