//! Claimed paths: as they are written, and as they are meant. Pure: nothing here looks at the disk.

use counterfoil_workspace::tree::{Change, Changes};
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use unicode_normalization::UnicodeNormalization;

/// Where claimed paths count from.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// The workspace's folder, as it is named and as it really is.
    folders: Vec<PathBuf>,
    /// The same of the repository's top.
    tops: Vec<PathBuf>,
    /// From the top to the folder.
    prefix: PathBuf,
}

/// A claimed path, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meant {
    /// A path of the workspace, relative to its folder, and how it was understood if that is worth
    /// saying.
    Inside(PathBuf, Option<String>),
    /// It cannot be one of the workspace, and why.
    Outside(String),
}

impl Frame {
    /// From the folder and the top, each under all its names; the real one last.
    pub(super) fn new(folders: Vec<PathBuf>, tops: Vec<PathBuf>) -> Self {
        let prefix = folders
            .iter()
            .flat_map(|folder| tops.iter().filter_map(|top| folder.strip_prefix(top).ok()))
            .next()
            .map(Path::to_owned)
            .unwrap_or_default();
        Self { folders, tops, prefix }
    }

    /// The workspace's folder.
    pub(super) fn folder(&self) -> &Path {
        self.folders.last().map_or(Path::new("."), PathBuf::as_path)
    }

    /// The top of the repository.
    pub(super) fn top(&self) -> &Path {
        self.tops.last().map_or(Path::new("."), PathBuf::as_path)
    }

    /// Whether the folder is one below the repository's top.
    pub(super) fn is_below_top(&self) -> bool {
        !self.prefix.as_os_str().is_empty()
    }

    /// What a claimed path means, without a look at what there is.
    pub(super) fn meant(&self, text: &str) -> Meant {
        if text.trim().is_empty() {
            return Meant::Outside("the path is empty".to_owned());
        }
        if text.contains('\0') {
            return Meant::Outside("the path holds a NUL".to_owned());
        }
        let path = Path::new(text);
        if path.is_absolute() {
            let Some(path) = lexical(path) else {
                return Meant::Outside("it is outside of the workspace".to_owned());
            };
            if let Some(rest) =
                self.folders.iter().find_map(|folder| path.strip_prefix(folder).ok())
            {
                return Meant::Inside(
                    rest.to_owned(),
                    Some("is written as an absolute path".to_owned()),
                );
            }
            return match self.tops.iter().find_map(|top| path.strip_prefix(top).ok()) {
                Some(rest) => Meant::Inside(
                    self.seen_from_folder(rest),
                    Some("is written as an absolute path".to_owned()),
                ),
                None => Meant::Outside("it is outside of the workspace".to_owned()),
            };
        }
        match lexical(&self.prefix.join(path)) {
            Some(from_top) => Meant::Inside(self.seen_from_folder(&from_top), None),
            None => Meant::Outside("it leads out of the repository".to_owned()),
        }
    }

    /// What a path means that counts from the repository's top, where that is not the folder.
    pub(super) fn meant_from_top(&self, text: &str) -> Option<PathBuf> {
        if !self.is_below_top() || Path::new(text).is_absolute() {
            return None;
        }
        lexical(Path::new(text)).map(|path| self.seen_from_folder(&path))
    }

    /// A path from the top, as it is from the folder.
    pub(super) fn seen_from_folder(&self, from_top: &Path) -> PathBuf {
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

    /// A path from the folder, as it is from the top; none if it leads out.
    pub(super) fn seen_from_top(&self, from_folder: &Path) -> Option<PathBuf> {
        lexical(&self.prefix.join(from_folder))
    }

    /// A real path, as it is from the folder; none outside of the repository.
    pub(super) fn of_real(&self, real: &Path) -> Option<PathBuf> {
        if let Ok(rest) = real.strip_prefix(self.folder()) {
            return Some(rest.to_owned());
        }
        real.strip_prefix(self.top()).ok().map(|rest| self.seen_from_folder(rest))
    }
}

/// A path without `.` and `..`; none if it climbs above where it begins.
fn lexical(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !plain.pop() {
                    return None;
                }
            }
            other => plain.push(other),
        }
    }
    Some(plain)
}

/// What changed, found by the way a path is written.
pub(super) struct Index<'a> {
    changes: &'a Changes,
    folded: HashMap<String, Option<&'a Path>>,
    came_from: HashMap<&'a Path, &'a Path>,
    went_to: HashMap<&'a Path, &'a Path>,
}

impl<'a> Index<'a> {
    pub(super) fn new(changes: &'a Changes) -> Self {
        let mut folded: HashMap<String, Option<&Path>> =
            HashMap::with_capacity(changes.files.len());
        for path in changes.files.keys() {
            // Two that fold to the same cannot be told apart.
            folded.entry(fold(path)).and_modify(|seen| *seen = None).or_insert(Some(path));
        }
        let renamed = || changes.renamed.iter().map(|(from, to)| (from.as_path(), to.as_path()));
        Self {
            changes,
            folded,
            came_from: renamed().map(|(from, to)| (to, from)).collect(),
            went_to: renamed().collect(),
        }
    }

    /// What became of a file.
    pub(super) fn get(&self, path: &Path) -> Option<(&'a Path, Change)> {
        self.changes.files.get_key_value(path).map(|(path, change)| (path.as_path(), *change))
    }

    /// The one changed file whose path differs from this one only in case or Unicode form.
    pub(super) fn like(&self, path: &Path) -> Option<(&'a Path, Change)> {
        let path = (*self.folded.get(&fold(path))?)?;
        self.get(path)
    }

    /// Where a file was that has the same bytes under a new name.
    pub(super) fn came_from(&self, path: &Path) -> Option<&'a Path> {
        self.came_from.get(path).copied()
    }

    /// Where a file went.
    pub(super) fn went_to(&self, path: &Path) -> Option<&'a Path> {
        self.went_to.get(path).copied()
    }

    /// How many changed files are below a folder.
    pub(super) fn below(&self, folder: &Path) -> usize {
        // Paths are in the order of their components, so what is below a folder stands together.
        let from = (std::ops::Bound::Included(folder), std::ops::Bound::Unbounded);
        self.changes
            .files
            .range::<Path, _>(from)
            .take_while(|(path, _)| path.starts_with(folder))
            .count()
    }
}

/// A path with the differences of case and Unicode form taken out.
fn fold(path: &Path) -> String {
    path.to_string_lossy().nfc().flat_map(char::to_lowercase).nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(prefix: &str) -> Frame {
        let top = PathBuf::from("/real/repo");
        Frame::new(
            vec![PathBuf::from("/named/repo").join(prefix), top.join(prefix)],
            vec![PathBuf::from("/named/repo"), top],
        )
    }

    #[test]
    fn a_path_is_understood_as_it_is_meant() {
        let note = |path: &str| {
            Meant::Inside(path.into(), Some("is written as an absolute path".to_owned()))
        };
        let plain = |path: &str| Meant::Inside(path.into(), None);
        let outside = |why: &str| Meant::Outside(why.to_owned());
        let away = outside("it is outside of the workspace");
        for (prefix, text, meant) in [
            ("", "a.rs", plain("a.rs")),
            ("", "./a.rs", plain("a.rs")),
            ("", "src//./b/../a.rs", plain("src/a.rs")),
            ("", "src/", plain("src")),
            ("", " a b\n\"c\".rs", plain(" a b\n\"c\".rs")),
            ("", "", outside("the path is empty")),
            ("", " \t", outside("the path is empty")),
            ("", "a\0b", outside("the path holds a NUL")),
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
            assert_eq!(frame(prefix).meant(text), meant, "{text:?} in {prefix:?}");
        }
        assert_eq!(frame("web/app").meant_from_top("web/app/a.rs"), Some("a.rs".into()));
        assert_eq!(frame("web/app").meant_from_top("lib/a.rs"), Some("../../lib/a.rs".into()));
        assert_eq!(frame("web/app").meant_from_top("../a.rs"), None);
        assert_eq!(frame("").meant_from_top("a.rs"), None);
    }

    #[test]
    fn what_differs_in_case_or_form_is_found_if_it_is_the_only_one() {
        let files =
            ["src/Ärger.rs", "a.rs", "A.RS"].map(|path| (PathBuf::from(path), Change::Modified));
        let changes = Changes { files: files.into(), ..Changes::default() };
        let index = Index::new(&changes);
        let nfd: String = "src/ärger.rs".nfd().collect();
        assert_eq!(
            index.like(Path::new(&nfd)).map(|(path, _)| path),
            Some(Path::new("src/Ärger.rs"))
        );
        assert_eq!(index.like(Path::new("a.Rs")), None, "two are meant as well as one");
        assert_eq!(index.get(Path::new("A.RS")), Some((Path::new("A.RS"), Change::Modified)));
    }

    #[test]
    fn what_is_below_a_folder_is_counted() {
        let files =
            ["src/a", "src/b/c", "src.rs", "srd"].map(|path| (PathBuf::from(path), Change::Added));
        let changes = Changes { files: files.into(), ..Changes::default() };
        assert_eq!(Index::new(&changes).below(Path::new("src")), 2);
    }
}
