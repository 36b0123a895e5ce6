//! `JUnit` XML, as CI systems read it.

use super::weight::{Level, Weighed};
use crate::tell;
use crate::tell::replay::{Replayed, Result as Came};
use counterfoil_contract::diagnostic::Style;
use counterfoil_contract::{Report, Status};
use std::fmt::Write;

/// A report as a test suite of one.
pub(crate) fn render(report: &Report, name: &str) -> String {
    let failures = usize::from(report.status != Status::Accepted);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(out, "<testsuites tests=\"1\" failures=\"{failures}\" errors=\"0\">");
    let _ = writeln!(
        out,
        "  <testsuite name=\"counterfoil\" tests=\"1\" failures=\"{failures}\" errors=\"0\" skipped=\"0\">"
    );
    let _ = writeln!(
        out,
        "    <testcase classname=\"{}\" name=\"{}\">",
        escape(&report.contract),
        escape(name)
    );
    if failures > 0 {
        let message = report
            .violations
            .first()
            .map_or("not accepted", |violation| violation.message.as_str());
        let kind = report.violations.first().map_or("absent", |violation| violation.code.as_str());
        let _ = write!(out, "      <failure message=\"{}\" type=\"{kind}\">", escape(message));
        for violation in &report.violations {
            let place = violation
                .span
                .map(|span| format!("{}:{}: ", span.line, span.column))
                .unwrap_or_default();
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

/// Claims as a test suite. What cannot be told, or does not count, is skipped rather than passed.
pub(crate) fn claims(claims: &[Weighed], contract: &str) -> String {
    let (mut cases, mut failures, mut skipped) = (String::new(), 0, 0);
    for weighed in claims {
        let claim = &weighed.claim;
        let _ = write!(
            cases,
            "    <testcase classname=\"{}\" name=\"{}\"",
            escape(contract),
            escape(&claim.claim)
        );
        let message = escape(&tell::claims::against(claim));
        match weighed.level() {
            Level::Quiet => cases.push_str("/>\n"),
            Level::Error => {
                failures += 1;
                let kind = claim.verdict.name();
                let evidence = escape(&tell::claims::evidence(claim, "").join("\n"));
                let _ = writeln!(
                    cases,
                    ">\n      <failure message=\"{message}\" type=\"{kind}\">{evidence}</failure>\n    </testcase>"
                );
            }
            Level::Note | Level::Warning => {
                skipped += 1;
                let kind = claim.verdict.name();
                let _ = writeln!(
                    cases,
                    ">\n      <skipped message=\"{kind}: {message}\"/>\n    </testcase>"
                );
            }
        }
    }
    let tests = claims.len();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"{tests}\" failures=\"{failures}\" errors=\"0\">\n  \
         <testsuite name=\"counterfoil\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\">\n{cases}  </testsuite>\n</testsuites>\n"
    )
}

/// A run as a test suite: its attempts, and the run itself.
pub(crate) fn of_run(run: &counterfoil_engine::Report) -> String {
    let mut cases = String::new();
    let mut failures = 0;
    let mut case = |name: &str, seconds: f64, failure: Option<(&str, &str)>| {
        let _ = write!(
            cases,
            "    <testcase classname=\"{}\" name=\"{}\" time=\"{seconds:.3}\"",
            escape(&run.workflow),
            escape(name)
        );
        match failure {
            None => cases.push_str("/>\n"),
            Some((kind, message)) => {
                failures += 1;
                let _ = writeln!(
                    cases,
                    ">\n      <failure message=\"{}\" type=\"{}\"/>\n    </testcase>",
                    escape(message),
                    escape(kind)
                );
            }
        }
    };
    #[allow(clippy::cast_precision_loss)] // Milliseconds of a run are far below 2^52.
    let seconds = |ms: u64| ms as f64 / 1000.0;
    for attempt in run.attempts.iter().chain(&run.commands) {
        let name = format!("{} #{}", attempt.path.join("/"), attempt.n);
        let outcome = attempt.outcome.as_deref().unwrap_or("running");
        // What a later attempt made good is no failure of a run that is done.
        let failed = outcome != "accepted" && run.outcome != "done";
        let failure = failed.then_some((outcome, attempt.reason.as_str()));
        case(&name, seconds(attempt.usage.wall_ms), failure);
    }
    let failure = (run.outcome != "done").then_some((run.outcome.as_str(), run.reason.as_str()));
    case("run", seconds(run.usage.wall_ms), failure);
    let tests = run.attempts.len() + run.commands.len() + 1;
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"{tests}\" failures=\"{failures}\" errors=\"0\">\n  \
         <testsuite name=\"{}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"0\">\n{cases}  </testsuite>\n</testsuites>\n",
        escape(&run.workflow)
    )
}

/// Replayed attempts as a test suite. What is new is skipped rather than passed, unless it was
/// recorded now.
pub(crate) fn of_replay(all: &[Replayed]) -> String {
    let (mut cases, mut failures, mut errors, mut skipped) = (String::new(), 0, 0, 0);
    for one in all {
        let contract = one.contract.as_deref().unwrap_or("counterfoil");
        let _ = write!(
            cases,
            "    <testcase classname=\"{}\" name=\"{}\"",
            escape(contract),
            escape(&one.name)
        );
        match &one.came {
            Came::Changed { differences } if !one.updated => {
                failures += 1;
                let lines: Vec<String> = differences
                    .iter()
                    .map(|difference| tell::replay::line(difference, Style::default()))
                    .collect();
                let message = escape(lines.first().map(String::as_str).unwrap_or_default());
                let _ = writeln!(
                    cases,
                    ">\n      <failure message=\"{message}\" type=\"changed\">{}</failure>\n    </testcase>",
                    escape(&lines.join("\n"))
                );
            }
            Came::Broken { problem } => {
                errors += 1;
                let _ = writeln!(
                    cases,
                    ">\n      <error message=\"{}\" type=\"broken\"/>\n    </testcase>",
                    escape(problem)
                );
            }
            Came::New if !one.updated => {
                skipped += 1;
                cases.push_str(
                    ">\n      <skipped message=\"nothing was recorded\"/>\n    </testcase>\n",
                );
            }
            Came::Same | Came::New | Came::Changed { .. } => cases.push_str("/>\n"),
        }
    }
    let tests = all.len();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\">\n  \
         <testsuite name=\"counterfoil replay\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\">\n{cases}  </testsuite>\n</testsuites>\n"
    )
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
            control if control < ' ' || matches!(control, '\u{fffe}' | '\u{ffff}') => {
                out.push('\u{fffd}')
            }
            other => out.push(other),
        }
    }
    out
}
