//! Workflow commands of GitHub Actions: annotations on the file.

use super::claims::{mismatch_line, not_made_line};
use super::replay::difference_line;
use crate::gate::{GatedClaims, GatedWork, Level, NotMade};
use crate::report::lint::LintFinding;
use crate::report::replay::{Comparison, ReplayReport};
use counterfoil_contract::Report;
use counterfoil_contract::claim::Verdict;
use counterfoil_contract::diagnostic::Style;
use counterfoil_engine::RunReport;
use std::fmt::Write;
use std::path::Path;

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

/// Where the result is.
#[derive(Clone, Copy)]
pub(crate) struct Answer<'a> {
    /// The file; none if it was read from standard input.
    pub(crate) file: Option<&'a Path>,
    /// The line in which the result begins.
    pub(crate) line: Option<usize>,
}

/// Claims as annotations on the result that makes them: one for each that is not verified.
pub(crate) fn claims(claims: &GatedClaims, answer: Answer<'_>) -> String {
    let mut place = String::new();
    if let Some(file) = answer.file {
        let _ = write!(place, "file={},", property(&file.to_string_lossy()));
        if let Some(line) = answer.line {
            let _ = write!(place, "line={line},");
        }
    }
    let mut out = String::new();
    let mut annotate = |level: Level, name: &str, state: &str, text: &str| {
        let command = match level {
            Level::Pass => return,
            Level::Note => "notice",
            Level::Warning => "warning",
            Level::Error => "error",
        };
        let title = property(&format!("{name} {state}"));
        let _ = writeln!(out, "::{command} {place}title={title}::{}", message(text));
    };
    for gated in &claims.made {
        let claim = &gated.claim;
        annotate(gated.level(), &claim.claim, claim.verdict.name(), &mismatch_line(claim));
    }
    for missing in &claims.not_made {
        annotate(missing.level(), &missing.claim, NotMade::NAME, &not_made_line(missing));
    }
    out
}

/// Unfinished work, and files that were not examined, as annotations on the files.
pub(crate) fn unfinished(work: Option<&GatedWork>) -> String {
    let mut out = String::new();
    let Some(work) = work else { return out };
    for unexamined in &work.not_examined {
        let (command, known) = if unexamined.counts {
            ("error", "whether work is unfinished is not known: ")
        } else {
            ("notice", "not examined for unfinished work: ")
        };
        let file = unexamined.file.as_ref();
        let file = file.map(|file| format!("file={},", property(&file.to_string_lossy())));
        let text = message(&format!("{known}{}", unexamined.reason));
        let _ = writeln!(out, "::{command} {}title=not examined::{text}", file.unwrap_or_default());
    }
    for place in &work.places {
        let file = property(&place.file.to_string_lossy());
        let title = property(&format!("unfinished: {}", place.kind.name()));
        let text = message(&place.text);
        let _ = writeln!(out, "::error file={file},line={},title={title}::{text}", place.line);
    }
    out
}

/// Findings about contract and workflow files as annotations on these files, and what else is to know.
pub(crate) fn lint(findings: &[LintFinding], note: Option<&str>) -> String {
    let mut out = String::new();
    for finding in findings {
        let mut properties = format!("file={}", property(&finding.file.to_string_lossy()));
        if let Some(position) = finding.position {
            let _ = write!(properties, ",line={}", position.line);
            if let Some(column) = position.column {
                let _ = write!(properties, ",col={column}");
            }
        }
        let title = property(&format!("{}: {}", finding.code, finding.title));
        let hint =
            if finding.hint.is_empty() { String::new() } else { format!(" ({})", finding.hint) };
        let text = message(&format!("{}{hint}", finding.text()));
        let _ = writeln!(out, "::{} {properties},title={title}::{text}", finding.level());
    }
    if let Some(note) = note {
        let _ = writeln!(out, "::notice title=files left out::{}", message(note));
    }
    out
}

/// A run as annotations: attempts that failed, claims that do not hold, and how the run ended. In a
/// run that is done, they are warnings: a later attempt corrected them.
pub(crate) fn run(run: &RunReport) -> String {
    let mut out = String::new();
    let mut annotate = |command: &str, title: &str, text: &str| {
        let (title, text) = (property(title), message(text));
        let _ = writeln!(out, "::{command} title={title}::{text}");
    };
    let is_done = run.outcome == "done";
    let serious = if is_done { "warning" } else { "error" };
    for attempt in run.attempts.iter().chain(&run.commands) {
        let name = format!("{} #{}", attempt.path.join("/"), attempt.n);
        if let Some(outcome) = attempt.outcome.as_deref().filter(|outcome| *outcome != "accepted") {
            annotate(serious, &format!("{name}: {outcome}"), &attempt.reason);
        }
        for claim in attempt.earlier_claims.values().flatten().chain(&attempt.claims) {
            let command = match claim.verdict {
                Verdict::Verified => continue,
                Verdict::Refuted | Verdict::Stale => serious,
                Verdict::Unverifiable => "notice",
            };
            let title = format!("{name}: {} {}", claim.claim, claim.verdict.name());
            annotate(command, &title, &mismatch_line(claim));
        }
    }
    let command = match run.outcome.as_str() {
        "done" | "waiting" => "notice",
        _ => "error",
    };
    let text = if run.reason.is_empty() { &run.outcome } else { &run.reason };
    annotate(command, &format!("{} {}: {}", run.workflow, run.run, run.outcome), text);
    out
}

/// Replayed attempts as annotations: those that changed or cannot be replayed.
pub(crate) fn replay(reports: &[ReplayReport]) -> String {
    let mut out = String::new();
    for report in reports {
        let (title, text) = match &report.comparison {
            Comparison::Changed { differences } if !report.updated => {
                let lines = differences.iter().map(|one| difference_line(one, Style::default()));
                ("changed", lines.collect::<Vec<_>>().join("\n"))
            }
            Comparison::Broken { problem } => ("broken", problem.clone()),
            Comparison::Same | Comparison::New | Comparison::Changed { .. } => continue,
        };
        let title = property(&format!("{}: {title}", report.name));
        let _ = writeln!(out, "::error title={title}::{}", message(&text));
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
