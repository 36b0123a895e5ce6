//! Selects the files to commit from a list of paths. Pure: git's answers are passed in.

use super::{is_in, names};
use std::collections::{BTreeMap, BTreeSet};

/// The differences to the last commit, as git lists them.
pub(super) struct Known<'g> {
    /// Tracked files that differ, as a NUL-terminated list. It includes deleted files.
    pub(super) changed: &'g [u8],
    /// Untracked files that are not ignored. The name of a nested repository ends with `/`.
    pub(super) others: &'g [u8],
    /// The state folders, which are not part of the work.
    pub(super) own: &'g [Vec<u8>],
}

/// The files to commit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Selected {
    /// All files to commit.
    pub(super) files: BTreeSet<Vec<u8>>,
    /// The untracked ones among them.
    pub(super) new: Vec<Vec<u8>>,
    /// Requested paths that match no changed file: unchanged or missing.
    pub(super) rest: Vec<String>,
    /// Why requested paths were left out.
    pub(super) notes: Vec<String>,
}

/// Selects the requested files, and all files in requested folders. A name that is not UTF-8 is
/// matched by its lossy form.
pub(super) fn select(named: &[String], known: &Known<'_>) -> Selected {
    let mut selected = Selected::default();
    let mut wanted: BTreeMap<String, bool> = BTreeMap::new();
    for name in named {
        match normalized(name) {
            Some(path) if known.own.iter().any(|own| is_in(path.as_bytes(), own)) => {
                selected.notes.push(format!("'{name}' is left out: runs are kept there"));
            }
            Some(path) => {
                wanted.insert(path, false);
            }
            None => selected
                .notes
                .push(format!("'{name}' is left out: it is not a path in the repository")),
        }
    }
    let mut is_wanted = |name: &[u8]| {
        let shown = String::from_utf8_lossy(name.strip_suffix(b"/").unwrap_or(name));
        let folders = shown.match_indices('/').map(|(at, _)| &shown[..at]);
        let mut found = false;
        // The empty name means the whole folder.
        for part in folders.chain([&*shown, ""]) {
            if let Some(used) = wanted.get_mut(part) {
                (*used, found) = (true, true);
            }
        }
        found && !known.own.iter().any(|own| is_in(name, own))
    };
    for name in names(known.changed).filter(|name| is_wanted(name)) {
        selected.files.insert(name.to_vec());
    }
    for name in names(known.others).filter(|name| is_wanted(name)) {
        if name.ends_with(b"/") {
            let shown = String::from_utf8_lossy(name);
            selected.notes.push(format!("'{shown}' is left out: it is a nested repository"));
        } else if selected.files.insert(name.to_vec()) {
            selected.new.push(name.to_vec());
        }
    }
    selected.rest = wanted
        .into_iter()
        .filter(|(name, used)| !used && !name.is_empty())
        .map(|(name, _)| name)
        .collect();
    selected
}

/// A path without empty and `.` parts; `None` if it leads out of the folder or into `.git`.
fn normalized(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with('/') || name.contains('\0') {
        return None;
    }
    let mut parts = Vec::new();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." | ".git" => return None,
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(named: &[&str], changed: &str, others: &str) -> Selected {
        let named: Vec<String> = named.iter().map(|&name| name.to_owned()).collect();
        let own = [b".counterfoil".to_vec()];
        let (changed, others) = (changed.replace(' ', "\0"), others.replace(' ', "\0"));
        select(&named, &Known { changed: changed.as_bytes(), others: others.as_bytes(), own: &own })
    }

    fn texts<'a>(names: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<String> {
        names.into_iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    #[test]
    fn files_and_folders_are_meant_by_their_names() {
        let one = selected(
            &["a.rs", "./src/", "docs/gone.md"],
            "a.rs b.rs src/x docs/gone.md",
            "src/new srcs/y",
        );
        assert_eq!(texts(&one.files), ["a.rs", "docs/gone.md", "src/new", "src/x"]);
        assert_eq!(texts(&one.new), ["src/new"]);
        assert_eq!((one.rest.len(), one.notes.len()), (0, 0));
        assert_eq!(texts(&selected(&["."], "a b", "c .counterfoil/x").files), ["a", "b", "c"]);
        assert_eq!(
            texts(&selected(&["*"], "a", "b").files),
            Vec::<String>::new(),
            "a name is no pattern"
        );
    }

    #[test]
    fn what_leads_elsewhere_is_left_out_with_a_note() {
        let out = selected(
            &["../a", "/etc/passwd", "", ".git/config", ".counterfoil/journal.db"],
            "a",
            "b",
        );
        assert!(out.files.is_empty() && out.rest.is_empty());
        assert_eq!(out.notes.len(), 5, "{:?}", out.notes);
        let nested = selected(&["vendor"], "", "vendor/lib/ vendor/a");
        assert_eq!(texts(&nested.files), ["vendor/a"]);
        assert_eq!(nested.notes, ["'vendor/lib/' is left out: it is a nested repository"]);
    }

    #[test]
    fn what_does_not_differ_is_left_over() {
        assert_eq!(selected(&["same", "a"], "a", "").rest, ["same"]);
    }

    #[test]
    fn a_file_that_git_should_forget_and_that_is_there_is_no_new_one() {
        let one = selected(&["a"], "a", "a");
        assert_eq!((texts(&one.files), one.new.len()), (vec!["a".to_owned()], 0));
    }

    #[test]
    fn a_name_that_is_no_text_is_meant_by_what_can_be_shown_of_it() {
        let own = [];
        let known = Known { changed: b"caf\xe9.txt\0", others: b"", own: &own };
        let one = select(&["caf\u{fffd}.txt".to_owned()], &known);
        assert_eq!(one.files.iter().next().unwrap(), b"caf\xe9.txt");
    }
}
