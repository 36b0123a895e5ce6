//! The user's index: what it lists, and the entries that a commit needs.

use super::super::{literal_pathspecs, names, nul_list};
use super::PATHSPEC_FROM_STDIN;
use counterfoil_workspace::git::{GitCommand, GitError};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// How often, and in which interval, a locked index is polled.
const LOCK_POLLS: u32 = 10;
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The files in an index.
#[derive(Debug, Default)]
pub(super) struct Entries {
    pub(super) names: BTreeSet<Vec<u8>>,
    /// Those that git does not look at: they are marked as unchanged or as not checked out.
    pub(super) marked: BTreeSet<Vec<u8>>,
}

/// The files below a folder in the index.
pub(super) fn entries(folder: &Path) -> Result<Entries, GitError> {
    let listed = GitCommand::new(folder, ["ls-files", "-v", "-z"]).run()?;
    let mut entries = Entries::default();
    for line in names(&listed.stdout) {
        let [tag, b' ', name @ ..] = line else { continue };
        if tag.is_ascii_lowercase() || *tag == b'S' {
            entries.marked.insert(name.to_vec());
        }
        entries.names.insert(name.to_vec());
    }
    Ok(entries)
}

/// Removes the marks that hide files from git.
pub(super) fn remove_marks(folder: &Path, marked: &BTreeSet<Vec<u8>>) -> Result<(), GitError> {
    if marked.is_empty() {
        return Ok(());
    }
    for option in ["--no-assume-unchanged", "--no-skip-worktree"] {
        let call = GitCommand::new(folder, ["update-index", option, "-z", "--stdin"]);
        call.stdin(nul_list(marked)).run()?;
    }
    Ok(())
}

/// Waits for a lock on the index: even commands that only read may hold it for a moment.
pub(super) fn wait_for_index_lock(folder: &Path) -> Result<(), GitError> {
    let index = folder
        .join(GitCommand::new(folder, ["rev-parse", "--git-path", "index.lock"]).run()?.line());
    for _ in 0..LOCK_POLLS {
        if !index.exists() {
            break;
        }
        std::thread::sleep(LOCK_POLL_INTERVAL);
    }
    Ok(())
}

/// Adds untracked files to the index by name, without their content.
pub(super) fn add_intent(folder: &Path, new: &[Vec<u8>]) -> Result<(), GitError> {
    if new.is_empty() {
        return Ok(());
    }
    let call = GitCommand::new(folder, ["add", "--force", "--intent-to-add"])
        .arg(PATHSPEC_FROM_STDIN[0])
        .arg(PATHSPEC_FROM_STDIN[1]);
    call.stdin(literal_pathspecs(new)).run()?;
    Ok(())
}

/// Removes these files from the index again. Returns a note if that fails.
pub(super) fn remove_intent_to_add(folder: &Path, new: &[Vec<u8>]) -> Option<String> {
    if new.is_empty() {
        return None;
    }
    // Only entries without content are ours; an entry with content was added by somebody else.
    let diff = [
        "diff",
        "--name-only",
        "-z",
        "--no-renames",
        "--relative",
        "--no-ext-diff",
        "--diff-filter=A",
    ];
    let announced = GitCommand::new(folder, diff).arg("--").arg(".").run();
    let announced =
        announced.map(|answer| names(&answer.stdout).map(<[u8]>::to_vec).collect::<BTreeSet<_>>());
    let removed = announced.and_then(|announced| {
        let list = nul_list(new.iter().filter(|name| announced.contains(*name)));
        if list.is_empty() {
            return Ok(());
        }
        let call = GitCommand::new(folder, ["update-index", "--force-remove", "-z", "--stdin"]);
        call.stdin(list).run().map(|_| ())
    });
    removed.err().map(|why| format!("git still lists the new files as ones to be added: {why}"))
}
