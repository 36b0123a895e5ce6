//! The result of `counterfoil undo`.

use super::text::one_line;
use counterfoil_contract::text::{escape_control, pluralize};
use counterfoil_workspace::workspaces::Undone;
use std::fmt::Write;

/// The number of conflicting files that are listed.
const MAX_FILES: usize = 10;

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
        text.push_str(
            "revert these changes and run undo again, or undo other workspaces by name\n",
        );
    }
    for note in &undone.notes {
        let _ = writeln!(text, "note: {}", one_line(note));
    }
    text
}
