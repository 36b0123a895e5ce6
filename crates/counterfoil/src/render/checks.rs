//! What failed checks of the project printed.

use super::text::one_line;
use counterfoil_flow::{CheckStatus, Ended};

/// How many lines of the output of a failed check are shown.
const MAX_LINES: usize = 6;

/// The beginning of what failed checks printed.
pub(super) fn failing_output(ended: &Ended) -> Vec<String> {
    let failed = ended.checks.values().filter(|report| report.status == CheckStatus::Failed);
    let lines = failed.flat_map(|report| {
        report.output.lines().filter(|line| !line.trim().is_empty()).take(MAX_LINES)
    });
    lines.map(|line| format!("  {}", one_line(line))).collect()
}
