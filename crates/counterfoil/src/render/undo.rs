//! The result of `counterfoil undo`.

use super::text::{one_line, shell_quote};
use counterfoil_contract::text::{display_path, escape_control, pluralize};
use counterfoil_workspace::workspaces::Undone;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// The number of conflicting files that are listed.
const MAX_FILES: usize = 10;

/// Why there is nothing to undo, and what to do about files that the run changed all the same: these
/// and, with `more`, others.
pub(crate) fn nothing_to_undo(repo: &Path, files: &BTreeSet<String>, more: bool) -> String {
    let shown = display_path(repo);
    if files.is_empty() {
        return format!("nothing to undo in {shown}: the run changed no files\n");
    }
    let mut text = format!(
        "nothing to undo in {shown}: there is no record of what the run changed\nChanges are recorded \
         when an agent ends that worked in the folder alone, if they are not too large, and when a worktree \
         is merged; `counterfoil clean` removes the records of old runs.\nThese files changed during the run:\n"
    );
    for name in files.iter().take(MAX_FILES) {
        let _ = writeln!(text, "  {}", escape_control(name));
    }
    if more || files.len() > MAX_FILES {
        text.push_str("  …\n");
    }
    let _ = writeln!(
        text,
        "What git knows can be looked at with `git -C {0} diff`, and restored with `git -C {0} restore -p`.",
        shell_quote(&repo.display().to_string())
    );
    text
}

/// What undo leaves as it is because the attempt that may have written it was lost.
pub(crate) fn left_by_lost_attempts(files: &BTreeSet<String>) -> String {
    let mut names: Vec<String> = files.iter().take(MAX_FILES).cloned().collect();
    if files.len() > MAX_FILES {
        names.push(format!("and {} more", files.len() - MAX_FILES));
    }
    format!(
        "an attempt was lost with its process; files that were written before the run was resumed \
         are as they were then: {}",
        names.join(", ")
    )
}

/// How many files were restored, or which files prevent it.
pub(crate) fn undo(undone: &Undone) -> String {
    let mut text = String::new();
    if undone.changed_since.is_empty() {
        let files = usize::try_from(undone.restored).unwrap_or(usize::MAX);
        let _ = writeln!(text, "undone: restored {}", pluralize(files, "file"));
    } else {
        text.push_str("nothing was restored: these files have changed since the run\n");
        for path in undone.changed_since.iter().take(MAX_FILES) {
            let _ = writeln!(text, "  {}", escape_control(path));
        }
        if undone.changed_since.len() > MAX_FILES {
            let _ = writeln!(text, "  … and {} more", undone.changed_since.len() - MAX_FILES);
        }
        text.push_str("revert these changes and run undo again, or undo other steps by name\n");
    }
    for note in &undone.notes {
        let _ = writeln!(text, "note: {}", one_line(note));
    }
    text
}
