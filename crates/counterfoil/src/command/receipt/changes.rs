//! What a run changed, as git shows it.

use counterfoil_contract::text::display_path;
use counterfoil_engine::receipt::Receipt;
use counterfoil_workspace::git::GitCommand;
use counterfoil_workspace::snapshot::{Settings, Snapshotter};
use std::collections::BTreeSet;
use std::path::Path;

/// The maximum size of a diff.
const MAX_DIFF_BYTES: u64 = 1 << 20;
/// The maximum number of commits whose diffs are included.
const MAX_COMMITS: usize = 100;

/// Adds the diffs of the commits, and of the changed files against the commit at the start. What
/// cannot be read is noted.
pub(super) fn add(receipt: &mut Receipt, repo: &Path, state: &Path) {
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
    if !receipt.changes.files.is_empty() {
        match diff(receipt, repo, state) {
            Ok(diff) => receipt.changes.diff = diff,
            Err(why) => notes.push(format!("the diff of the changed files is left out: {why}")),
        }
    }
    receipt.notes.extend(notes);
}

/// The difference between the commit at the start of the run and the files that it changed, as they
/// are now.
fn diff(receipt: &Receipt, repo: &Path, state: &Path) -> Result<String, String> {
    let Some(base) = receipt.asked.base.as_deref() else {
        return Err("the run did not start from a commit".to_owned());
    };
    let settings = Settings { excluded: BTreeSet::from([state.to_owned()]), ..Settings::default() };
    let mut snapshotter = Snapshotter::open(repo, settings);
    if !snapshotter.is_git() {
        return Err(format!("{} is not a git repository", display_path(repo)));
    }
    let now = snapshotter.snapshot();
    let all = snapshotter.differences(Some(base), &now).map_err(|error| error.to_string())?;
    let changed: BTreeSet<&str> = receipt.changes.files.iter().map(String::as_str).collect();
    let is_changed = |path: &Path| path.to_str().is_some_and(|path| changed.contains(path));
    let files = all.files.iter().filter(|file| is_changed(&file.path));
    let patch = snapshotter.patch(&all, files, &now, MAX_DIFF_BYTES);
    patch
        .map(|patch| String::from_utf8_lossy(&patch.text).into_owned())
        .map_err(|error| error.to_string())
}
