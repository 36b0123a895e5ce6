//! `JUnit` XML, as CI systems read it.

use countersign_contract::{Report, Status};
use std::fmt::Write;

/// A report as a test suite of one.
pub(crate) fn render(report: &Report, name: &str) -> String {
    let failures = usize::from(report.status != Status::Accepted);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(out, "<testsuites tests=\"1\" failures=\"{failures}\" errors=\"0\">");
    let _ = writeln!(
        out,
        "  <testsuite name=\"countersign\" tests=\"1\" failures=\"{failures}\" errors=\"0\" skipped=\"0\">"
    );
    let _ =
        writeln!(out, "    <testcase classname=\"{}\" name=\"{}\">", escape(&report.contract), escape(name));
    if failures > 0 {
        let message =
            report.violations.first().map_or("not accepted", |violation| violation.message.as_str());
        let kind = report.violations.first().map_or("absent", |violation| violation.code.as_str());
        let _ = write!(out, "      <failure message=\"{}\" type=\"{kind}\">", escape(message));
        for violation in &report.violations {
            let place =
                violation.span.map(|span| format!("{}:{}: ", span.line, span.column)).unwrap_or_default();
            let _ = writeln!(
                out,
                "{}",
                escape(&format!(
                    "{place}{} {}: {} ({})",
                    violation.code, violation.pointer, violation.message, violation.hint
                ))
            );
        }
        out.push_str("      </failure>\n");
    }
    out.push_str("    </testcase>\n  </testsuite>\n</testsuites>\n");
    out
}

/// Text inside XML 1.0, which has no control characters.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(character),
            control if control < ' ' || matches!(control, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}
