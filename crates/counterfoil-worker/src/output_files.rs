//! The files in a repository that this program writes for people: logs to which it prints, and
//! receipts. They are nobody's change. A process that resumes a run reads which those are.

use crate::verification::baselines;
use counterfoil_workspace::{Durability, save_json};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

fn list(state: &Path, run: &str) -> PathBuf {
    baselines(state, run).join("output-files")
}

/// The files that processes wrote for people while the run had not ended.
pub fn output_files(state: &Path, run: &str) -> BTreeSet<PathBuf> {
    let known = std::fs::read(list(state, run)).ok();
    let known = known.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    known.unwrap_or_default()
}

/// Adds files to those of a run. They do not count as changes when it is resumed; a process that
/// drives it does not learn of them.
///
/// # Errors
///
/// The list cannot be written.
pub fn add_output_files(
    state: &Path,
    run: &str,
    paths: impl IntoIterator<Item = PathBuf>,
) -> io::Result<()> {
    let known = output_files(state, run);
    let all: BTreeSet<PathBuf> = paths.into_iter().chain(known.iter().cloned()).collect();
    if all == known {
        return Ok(());
    }
    save_json(&list(state, run), Durability::Unsynced, &all)
}
