//! What the steps of a run changed in the files, all together. The contents come from the records of
//! the state folder, as for the difference of an attempt, so later changes of others are left out.

use crate::engine::Engine;
use crate::files_diff::{DiffLimits, FilesDiff, compare, spans};
use crate::receipt::changed_files;
use crate::run_report::Attempt;
use counterfoil_workspace::workspaces::{Error, RecordedChanges};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What the steps of a run changed, as far as it is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunDiff {
    /// The differences by path, from the first change to the last one. A file that something else
    /// changed in between has several, in order.
    pub diff: FilesDiff,
    /// The files that something else changed between two recorded changes.
    pub changed_between: Vec<String>,
    /// The files that are not what the last recorded change, or its undoing, left.
    pub changed_since: Vec<String>,
    /// The files of which changes are recorded, by attempt or workspace.
    recorded: BTreeMap<String, BTreeSet<String>>,
}

impl Engine {
    /// What the steps of a run changed in the files.
    ///
    /// # Errors
    ///
    /// A record cannot be read.
    pub fn run_diff(&self, run: &str, limits: &DiffLimits) -> Result<RunDiff, Error> {
        let records = self.workspaces(Path::new(".")).all_recorded_changes(run);
        let mut recorded: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for record in &records {
            let paths = record.files().map(|file| file.path);
            recorded.entry(record.id().to_owned()).or_default().extend(paths);
        }
        let all = spans(&records);
        let several = all.iter().filter(|(_, spans)| spans.len() > 1);
        let changed_between: Vec<String> = several.map(|(path, _)| path.clone()).collect();
        let changed_since = changed_since(&records);
        let diff = compare(&records, all.into_values().flatten(), limits)?;
        Ok(RunDiff { diff, changed_between, changed_since, recorded })
    }
}

/// The files that are not what the last change left that was not undone, or if all were, what was
/// there before the first one. What cannot be read is not among them.
fn changed_since(records: &[RecordedChanges]) -> Vec<String> {
    let mut ends: BTreeMap<String, (&RecordedChanges, usize)> = BTreeMap::new();
    for record in records {
        for (place, file) in record.files().enumerate() {
            // What is undone goes back to before the first of the changes that are undone.
            if !record.is_undone() || !ends.contains_key(&file.path) {
                ends.insert(file.path, (record, place));
            }
        }
    }
    let is_changed =
        |(record, place): &(&RecordedChanges, usize)| record.is_still(*place) == Some(false);
    ends.into_iter().filter(|(_, end)| is_changed(end)).map(|(path, _)| path).collect()
}

impl RunDiff {
    /// The files that these attempts of the run changed as they were observed, and of which the changes
    /// are not recorded (any more).
    pub fn unrecorded<'a>(&self, attempts: impl Iterator<Item = &'a Attempt>) -> Vec<String> {
        let mut steps: BTreeMap<String, Vec<&Attempt>> = BTreeMap::new();
        let mut ids = BTreeSet::new();
        for attempt in attempts {
            let path = attempt.path.join("/");
            ids.insert(format!("{path}#{}", attempt.n));
            steps.entry(path).or_default().push(attempt);
        }
        // A worktree may be that of several steps.
        let merged: Vec<&BTreeSet<String>> =
            self.recorded.iter().filter(|(id, _)| !ids.contains(*id)).map(|(_, of)| of).collect();
        let mut missing = BTreeSet::new();
        for (path, attempts) in steps {
            // An attempt includes what the earlier ones of the same step changed.
            let own: Vec<&BTreeSet<String>> = attempts
                .iter()
                .filter_map(|attempt| self.recorded.get(&format!("{path}#{}", attempt.n)))
                .collect();
            let is_recorded =
                |file: &String| own.iter().chain(&merged).any(|files| files.contains(file));
            missing.extend(changed_files(&attempts).into_iter().filter(|file| !is_recorded(file)));
        }
        missing.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_flow::{ChangedFiles, Usage};

    fn attempt(path: &str, n: u32, files: &[&str]) -> Attempt {
        let modified = files.iter().map(|file| (*file).to_owned()).collect();
        Attempt {
            path: vec![path.to_owned()],
            item: None,
            agent: None,
            builtin: None,
            n,
            visit: 1,
            attempt: n,
            outcome: None,
            is_lost: false,
            contract: None,
            value: None,
            violations: Vec::new(),
            claims: Vec::new(),
            earlier_claims: BTreeMap::new(),
            changed: Some(ChangedFiles { modified, ..ChangedFiles::default() }),
            checks: BTreeMap::new(),
            repairs_asked: 0,
            repairs_at: Vec::new(),
            replies: Vec::new(),
            usage: Usage::default(),
            reason: String::new(),
            started_at: 0,
            ended_at: None,
        }
    }

    fn recorded(records: &[(&str, &[&str])]) -> RunDiff {
        let files = |files: &[&str]| files.iter().map(|file| (*file).to_owned()).collect();
        let recorded = records.iter().map(|(id, of)| ((*id).to_owned(), files(of))).collect();
        RunDiff { recorded, ..RunDiff::default() }
    }

    #[test]
    fn what_a_step_or_a_worktree_recorded_is_not_missing() {
        let attempts =
            [attempt("a", 1, &["x"]), attempt("a", 2, &["x", "y"]), attempt("b", 1, &["x", "z"])];
        let missing = |records: &[(&str, &[&str])]| recorded(records).unrecorded(attempts.iter());
        assert_eq!(missing(&[]), ["x", "y", "z"]);
        assert_eq!(missing(&[("a#1", &["x"]), ("a#2", &["y"])]), ["x", "z"]);
        let all: [(&str, &[&str]); 3] = [("a#1", &["x"]), ("a#2", &["y"]), ("b#1", &["x", "z"])];
        assert!(missing(&all).is_empty());
        assert!(missing(&[("tree#7", &["x", "y", "z"])]).is_empty());
    }
}
