//! The result of `counterfoil clean`.

use super::text::timestamp;
use crate::cli::CleanArgs;
use crate::report::clean::Remains;
use counterfoil_contract::text::pluralize;
use std::fmt::Write;

/// The number of runs that are named.
const MAX_NAMED: usize = 20;

/// What was removed, or would be.
pub(crate) fn cleaned(
    selected: &[&Remains],
    all: &[Remains],
    worktrees: usize,
    args: &CleanArgs,
) -> String {
    let runs = all.len();
    let mut text = String::new();
    for one in selected.iter().take(MAX_NAMED) {
        let _ = writeln!(text, "{}  {}  {}", one.run, timestamp(one.updated_at), bytes(one.bytes));
    }
    if selected.len() > MAX_NAMED {
        let _ = writeln!(text, "… and {} more", selected.len() - MAX_NAMED);
    }
    let total = bytes(selected.iter().map(|one| one.bytes).sum());
    let verb = if args.dry_run { "would remove" } else { "removed" };
    let _ = match selected.len() {
        0 if all.iter().all(|one| !one.ended || one.bytes == 0) => {
            writeln!(text, "nothing to remove: no run that ended has files left")
        }
        0 if args.max_size.is_some() => writeln!(
            text,
            "nothing to remove: no run of {runs} ended long enough ago, or less than --max-size is used"
        ),
        0 => writeln!(text, "nothing to remove: no run of {runs} ended long enough ago"),
        count => writeln!(text, "{verb} {total} of {} of {runs}", pluralize(count, "run")),
    };
    if worktrees > 0 {
        let _ = writeln!(text, "removed {}", pluralize(worktrees, "worktree"));
    }
    text
}

/// A size with the unit that fits.
fn bytes(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        1_048_576..1_073_741_824 => format!("{} MiB", bytes >> 20),
        _ => format!("{}.{} GiB", bytes >> 30, (bytes >> 20) % 1024 * 10 / 1024),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_unit_that_fits() {
        for (size, text) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (2048, "2 KiB"),
            (5 << 20, "5 MiB"),
            ((3 << 30) + (1 << 29), "3.5 GiB"),
        ] {
            assert_eq!(bytes(size), text);
        }
    }
}
