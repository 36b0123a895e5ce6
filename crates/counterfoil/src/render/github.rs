//! Workflow commands of GitHub Actions: annotations on the file.

use super::claims::mismatch_line;
use crate::gate::{GatedClaim, Level};
use counterfoil_contract::Report;
use std::fmt::Write;

/// A report as annotations.
pub(crate) fn render(report: &Report, name: &str) -> String {
    let mut out = String::new();
    for violation in report.violations.iter().chain(&report.warnings) {
        let command = if violation.code.is_warning() { "warning" } else { "error" };
        let mut properties = format!("file={}", property(name));
        if let Some(span) = violation.span {
            let _ = write!(properties, ",line={},col={}", span.line, span.column);
        }
        let title = format!("{}: {}", violation.code, violation.code.title());
        let text = format!("{} {} ({})", violation.pointer, violation.message, violation.hint);
        let _ = writeln!(
            out,
            "::{command} {properties},title={}::{}",
            property(&title),
            message(text.trim())
        );
    }
    out
}

/// Claims as annotations on the file that contains them.
pub(crate) fn claims(claims: &[GatedClaim], name: &str) -> String {
    let mut out = String::new();
    for gated in claims {
        let command = match gated.level() {
            Level::Pass => continue,
            Level::Note => "notice",
            Level::Warning => "warning",
            Level::Error => "error",
        };
        let title = format!("{} {}", gated.claim.claim, gated.claim.verdict.name());
        let text = mismatch_line(&gated.claim);
        let (file, title) = (property(name), property(&title));
        let _ = writeln!(out, "::{command} file={file},title={title}::{}", message(&text));
    }
    out
}

/// Escapes the message of a workflow command.
fn message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a workflow command.
fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}
