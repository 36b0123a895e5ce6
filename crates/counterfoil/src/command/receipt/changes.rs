//! What a run changed: its commits as git shows them, and the files as its steps left them.

use counterfoil_contract::text::{join_limited, pluralize};
use counterfoil_engine::receipt::Receipt;
use counterfoil_engine::{DiffLimits, Engine, FilesDiff, RunReport};
use counterfoil_workspace::git::GitCommand;
use std::path::Path;
use std::time::Duration;

/// The maximum size of a diff.
const MAX_DIFF_BYTES: u64 = 1 << 20;
/// The maximum number of commits whose diffs are included.
const MAX_COMMITS: usize = 100;
/// The most files that a note names.
const MAX_NAMED: usize = 10;
/// What is compared.
const LIMITS: DiffLimits = DiffLimits {
    files: 10_000,
    file_bytes: 16 << 20,
    bytes: 64 << 20,
    // The same run has the same receipt, also on a busy machine.
    patience: Duration::from_secs(30),
};

/// Adds the diffs of the commits, and of the files that the steps changed. What cannot be read is
/// noted.
pub(super) fn add(receipt: &mut Receipt, engine: &Engine, report: &RunReport, repo: &Path) {
    let mut notes = Vec::new();
    for (number, commit) in receipt.commits.iter_mut().enumerate() {
        let name = &commit.commit;
        // What the journal holds is never an option of git.
        if !name.bytes().all(|byte| byte.is_ascii_hexdigit()) || number >= MAX_COMMITS {
            notes.push(format!("the diff of commit {name} is left out"));
            continue;
        }
        let show = ["show", "--format=", "--no-color", "--no-ext-diff", "--no-textconv"];
        match GitCommand::new(repo, show).arg(name).max_output(MAX_DIFF_BYTES).run() {
            Ok(shown) => commit.diff = String::from_utf8_lossy(&shown.stdout).into_owned(),
            Err(error) => notes.push(format!("the diff of commit {name} is left out: {error}")),
        }
    }
    match engine.run_diff(&report.run, &LIMITS) {
        Ok(changes) => {
            let (diff, note) = unified(&changes.diff);
            receipt.changes.diff = diff;
            notes.extend(note);
            let steps = report.attempts.iter().chain(&report.commands);
            let unrecorded = changes.unrecorded(steps);
            notes.extend(note_of(
                &unrecorded,
                "the diff does not have all changes of",
                "they are not recorded (not merged, of several agents at once, too large, or removed \
                 with `counterfoil clean`)",
            ));
            let known = |mut files: Vec<String>| {
                files.retain(|file| !unrecorded.contains(file));
                files
            };
            notes.extend(note_of(
                &known(changes.changed_between),
                "the diff does not have the changes between the steps of",
                "it is not recorded who made them",
            ));
            let since = known(changes.changed_since);
            if !report.resumable && !since.is_empty() {
                let when = if ended_with_its_agents(engine, report) {
                    "since the run ended"
                } else {
                    "after the agents of the run ended"
                };
                notes.push(format!("{} changed {when}: {}", count(&since), names(&since)));
            }
        }
        Err(error) => {
            notes.push(format!("the diff of the changed files is left out: {error}"));
        }
    }
    receipt.notes.extend(notes);
}

/// Whether nothing else happened in the run that may have changed files without a record: no command,
/// and nothing that a person was waited for.
fn ended_with_its_agents(engine: &Engine, report: &RunReport) -> bool {
    report.commands.iter().all(|command| command.builtin.is_some())
        && report.reopened.is_empty()
        && report.interrupted.is_empty()
        && engine.view(&report.run).is_ok_and(|view| view.answers().is_empty())
}

/// As much of a difference as a receipt holds, and a note of what it does not hold.
fn unified(diff: &FilesDiff) -> (String, Option<String>) {
    let mut text = String::new();
    let mut left_out = Vec::new();
    for file in &diff.files {
        let unified = file.unified();
        if (text.len() + unified.len()) as u64 > MAX_DIFF_BYTES {
            left_out.push(file.path.clone());
        } else {
            text.push_str(&unified);
        }
    }
    let total = left_out.len() + diff.left_out;
    let note = (total > 0).then(|| {
        let named =
            if left_out.is_empty() { String::new() } else { format!(": {}", names(&left_out)) };
        format!(
            "the diff of {} is left out, since it is too large{named}",
            pluralize(total, "file")
        )
    });
    (text, note)
}

/// A note on files, if there are any.
fn note_of(files: &[String], what: &str, why: &str) -> Option<String> {
    (!files.is_empty()).then(|| format!("{what} {}, since {why}: {}", count(files), names(files)))
}

fn count(files: &[String]) -> String {
    pluralize(files.len(), "file")
}

fn names(files: &[String]) -> String {
    join_limited(files, MAX_NAMED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_engine::{DiffBody, FileDiff};

    fn file(path: &str, lines: usize) -> FileDiff {
        let hunks = "+line\n".repeat(lines);
        let body = DiffBody::Text { added: lines, removed: 0, hunks };
        FileDiff { path: path.to_owned(), existed: true, exists: true, body }
    }

    #[test]
    fn what_is_too_large_is_left_out_and_named() {
        let small = || file("small", 1);
        let files = vec![file("large", 1 << 20), small()];
        let (text, note) = unified(&FilesDiff { files, left_out: 0 });
        assert_eq!(text, small().unified());
        assert_eq!(note.unwrap(), "the diff of 1 file is left out, since it is too large: large");
        let (_, note) = unified(&FilesDiff { files: vec![small()], left_out: 2 });
        assert_eq!(note.unwrap(), "the diff of 2 files is left out, since it is too large");
        let (_, note) = unified(&FilesDiff { files: vec![small()], left_out: 0 });
        assert_eq!(note, None);
    }
}
