//! Workflow commands of GitHub Actions: annotations on the file.

use super::weight::{Level, Weighed};
use crate::tell;
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

/// Claims as annotations on the text that makes them.
pub(crate) fn claims(claims: &[Weighed], name: &str) -> String {
    let mut out = String::new();
    for weighed in claims {
        let command = match weighed.level() {
            Level::Quiet => continue,
            Level::Note => "notice",
            Level::Warning => "warning",
            Level::Error => "error",
        };
        let title = format!("{} {}", weighed.claim.claim, weighed.claim.verdict.name());
        let text = tell::claims::against(&weighed.claim);
        let (file, title) = (property(name), property(&title));
        let _ = writeln!(out, "::{command} file={file},title={title}::{}", message(&text));
    }
    out
}

fn message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}
