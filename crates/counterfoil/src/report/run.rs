//! The files that a run changed.

use counterfoil_engine::RunReport;
use counterfoil_flow::ChangedFiles;
use std::collections::BTreeSet;

/// The files that a run changed. A renamed file is one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RunFiles {
    /// Those that were not renamed, in order.
    pub(crate) kept: BTreeSet<String>,
    /// The renamed ones, as old and new path.
    pub(crate) renamed: BTreeSet<(String, String)>,
    /// Their number.
    pub(crate) total: u64,
    /// Whether some are not named: an event lists only some of very many.
    pub(crate) more: bool,
    /// Whether the number is not known, and greater than `total`.
    pub(crate) is_uncounted: bool,
}

impl RunFiles {
    /// The files of changes that were made one after the other.
    pub(crate) fn of<'a>(changes: impl IntoIterator<Item = &'a ChangedFiles>) -> Self {
        let mut files = Self::default();
        let mut totals: Vec<u64> = Vec::new();
        for changed in changes.into_iter().filter(|changed| changed.total > 0) {
            let moved: BTreeSet<&String> =
                changed.renamed.iter().flat_map(|(from, to)| [from, to]).collect();
            let listed: BTreeSet<&String> = changed
                .added
                .iter()
                .chain(&changed.modified)
                .chain(&changed.deleted)
                .filter(|path| !moved.contains(path))
                .collect();
            files.more |= ((listed.len() + changed.renamed.len()) as u64) < changed.total;
            totals.push(changed.total);
            files.rename(&changed.renamed);
            // What is done to a file after it was renamed does not make it another file.
            let targets: BTreeSet<&String> = files.renamed.iter().map(|(_, to)| to).collect();
            files.kept.extend(listed.into_iter().filter(|path| !targets.contains(path)).cloned());
        }
        if let [total] = totals.as_slice() {
            files.total = *total;
        } else {
            // The same files may be in several of them.
            files.total = (files.kept.len() + files.renamed.len()) as u64;
            files.is_uncounted = files.more;
        }
        files
    }

    /// Adds the renames of a change. A file that was renamed before keeps the path from which it came:
    /// it was renamed again, or in another attempt of the same step to something else.
    fn rename(&mut self, renames: &[(String, String)]) {
        let is_moved = |path: &String| renames.iter().any(|(from, to)| from == path || to == path);
        let (moved, kept): (BTreeSet<String>, BTreeSet<String>) =
            std::mem::take(&mut self.kept).into_iter().partition(is_moved);
        self.kept = kept;
        let mut earlier = std::mem::take(&mut self.renamed);
        let again: Vec<_> = renames.iter().filter_map(|pair| earlier.take(pair)).collect();
        self.renamed.extend(again);
        for (from, to) in renames {
            if self.renamed.contains(&(from.clone(), to.clone())) {
                continue;
            }
            let is_before = |(_, path): &&(String, String)| path == from;
            // Unless it is another file, which has got the name since.
            let is_same = |(origin, _): &&(String, String)| origin == from && !moved.contains(from);
            let before = earlier.iter().find(is_before).or_else(|| earlier.iter().find(is_same));
            let Some(before) = before.cloned() else {
                self.renamed.insert((from.clone(), to.clone()));
                continue;
            };
            earlier.remove(&before);
            if before.0 == *to {
                self.kept.insert(before.0);
            } else {
                self.renamed.insert((before.0, to.clone()));
            }
        }
        self.renamed.extend(earlier);
    }

    /// All paths; a renamed file has two.
    pub(crate) fn paths(&self) -> BTreeSet<String> {
        let renamed = self.renamed.iter().flat_map(|(from, to)| [from, to]);
        self.kept.iter().chain(renamed).cloned().collect()
    }
}

/// The files that the attempts of a run changed, whether or not they were merged.
pub(crate) fn files(report: &RunReport) -> RunFiles {
    let attempts = report.attempts.iter().chain(&report.commands);
    RunFiles::of(attempts.filter_map(|attempt| attempt.changed.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(modified: &[&str], renamed: &[(&str, &str)]) -> ChangedFiles {
        ChangedFiles {
            modified: modified.iter().map(|path| (*path).to_owned()).collect(),
            renamed: renamed.iter().map(|(from, to)| ((*from).into(), (*to).into())).collect(),
            total: (modified.len() + renamed.len()) as u64,
            ..ChangedFiles::default()
        }
    }

    #[test]
    fn a_renamed_file_is_one_and_has_two_paths() {
        let files = RunFiles::of([&changed(&["x"], &[("old", "new")])]);
        assert_eq!((files.total, files.more), (2, false));
        assert_eq!(files.paths().into_iter().collect::<Vec<_>>(), ["new", "old", "x"]);
    }

    #[test]
    fn a_file_of_several_changes_is_one() {
        for (changes, total, kept) in [
            ([changed(&["a"], &[]), changed(&["a", "b"], &[])], 2, &["a", "b"][..]),
            // Renamed and then edited, edited and then renamed, and renamed in two attempts.
            ([changed(&[], &[("a", "b")]), changed(&["b"], &[])], 1, &[]),
            ([changed(&["a"], &[]), changed(&[], &[("a", "b")])], 1, &[]),
            ([changed(&[], &[("a", "b")]), changed(&[], &[("a", "b")])], 1, &[]),
            // Renamed twice, to something else by a retry, and back.
            ([changed(&[], &[("a", "b")]), changed(&[], &[("b", "c")])], 1, &[]),
            ([changed(&[], &[("a", "b")]), changed(&[], &[("a", "c")])], 1, &[]),
            ([changed(&[], &[("a", "b")]), changed(&[], &[("b", "a")])], 1, &["a"]),
            // Two files that changed their names, in two attempts.
            (
                [changed(&[], &[("a", "b"), ("b", "a")]), changed(&[], &[("a", "b"), ("b", "a")])],
                2,
                &[],
            ),
            // Another file that has the name now.
            ([changed(&[], &[("a", "b")]), changed(&["a"], &[])], 2, &["a"]),
        ] {
            let files = RunFiles::of(&changes);
            assert_eq!((files.total, files.is_uncounted), (total, false), "{changes:?}");
            assert_eq!(files.kept.iter().collect::<Vec<_>>(), kept, "{changes:?}");
        }
    }

    #[test]
    fn a_file_that_was_renamed_again_has_its_first_and_its_last_path() {
        let renames = [("a", "b"), ("b", "c"), ("c", "d")];
        let changes = renames.map(|(from, to)| changed(&[], &[(from, to)]));
        let files = RunFiles::of(&changes);
        assert_eq!(files.paths().into_iter().collect::<Vec<_>>(), ["a", "d"]);
        // A file that got the name of one that was renamed is another one.
        let new = ChangedFiles { added: vec!["a".to_owned()], total: 1, ..ChangedFiles::default() };
        let files = RunFiles::of([&changes[0], &new, &changed(&[], &[("a", "e")])]);
        assert_eq!((files.total, files.paths().len()), (2, 3));
    }

    #[test]
    fn the_number_is_not_known_if_several_changes_are_not_listed() {
        let many = ChangedFiles { total: 900, ..changed(&["a", "b"], &[]) };
        let one = RunFiles::of([&many, &ChangedFiles::default()]);
        assert_eq!((one.total, one.more, one.is_uncounted), (900, true, false));
        let both = RunFiles::of([&many, &changed(&["c"], &[])]);
        assert_eq!((both.total, both.more, both.is_uncounted), (3, true, true));
    }
}
