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
            files.kept.retain(|path| !moved.contains(path));
            files.renamed.extend(changed.renamed.iter().cloned());
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
            // Another file that has the name now.
            ([changed(&[], &[("a", "b")]), changed(&["a"], &[])], 2, &["a"]),
        ] {
            let files = RunFiles::of(&changes);
            assert_eq!((files.total, files.is_uncounted), (total, false), "{changes:?}");
            assert_eq!(files.kept.iter().collect::<Vec<_>>(), kept, "{changes:?}");
        }
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
