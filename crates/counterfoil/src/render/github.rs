//! Workflow commands of GitHub Actions: annotations on the file.

use super::claims::{mismatch_line, not_made_line};
use super::replay::difference_line;
use crate::gate::{GatedClaims, GatedWork, Level, NotMade};
use crate::redaction;
use crate::report::lint::LintFinding;
use crate::report::replay::{Comparison, ReplayReport};
use counterfoil_contract::Report;
use counterfoil_contract::claim::Verdict;
use counterfoil_contract::diagnostic::Style;
use counterfoil_engine::ledger::Entry;
use counterfoil_engine::{Attempt, RunReport};
use counterfoil_flow::{AttemptOutcome, Cause};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// A report as annotations on a file; without one if the text was read from standard input.
pub(crate) fn render(report: &Report, file: Option<&Path>) -> String {
    let mut out = String::new();
    let file = file.map(|file| property(&file.to_string_lossy()));
    for violation in report.violations.iter().chain(&report.warnings) {
        let command = if violation.code.is_warning() { "warning" } else { "error" };
        let mut place = String::new();
        if let Some(file) = &file {
            let _ = write!(place, "file={file},");
            if let Some(span) = violation.span {
                let _ = write!(place, "line={},col={},", span.line, span.column);
            }
        }
        let title = format!("{}: {}", violation.code, violation.code.title());
        let text = format!("{} {} ({})", violation.pointer, violation.message, violation.hint);
        let _ = writeln!(
            out,
            "::{command} {place}title={}::{}",
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
        let text = format!("{}{hint}", finding.text());
        let text = escape(&redaction::text_about_definition(&text));
        let _ = writeln!(out, "::{} {properties},title={title}::{text}", finding.level());
    }
    if let Some(note) = note {
        let _ = writeln!(out, "::notice title=files left out::{}", message(note));
    }
    out
}

/// An annotation of a run.
struct Annotation {
    command: &'static str,
    title: String,
    text: String,
}

/// A run as annotations: attempts that failed, claims that do not hold, and how the run ended. In a
/// run that is done, they are warnings: a later attempt corrected them. GitHub shows few annotations of
/// a step, so that nothing is said twice.
pub(crate) fn run(run: &RunReport, entries: &[Entry]) -> String {
    redaction::learn(&(run, entries));
    let is_done = run.outcome == "done";
    let serious = if is_done { "warning" } else { "error" };
    let claims = last_claims(entries);
    let mut all = Vec::new();
    for attempt in run.attempts.iter().chain(&run.commands) {
        let Some(outcome) = attempt.ending().filter(|_| !attempt.is_success()) else { continue };
        // The claim has an annotation.
        let blocks = |entry: &&Entry| {
            entry.path == attempt.path && entry.visit == attempt.visit && entry.claim.blocks()
        };
        if outcome == AttemptOutcome::Claim.name() && claims.iter().any(blocks) {
            continue;
        }
        let title = format!("{} #{}: {outcome}", attempt.path.join("/"), attempt.n);
        all.push(Annotation { command: serious, title, text: attempt.why() });
    }
    // The claims because of which the run failed are those of its last attempt that a claim failed.
    let mut attempts = run.attempts.iter().chain(&run.commands);
    let failed = attempts.rfind(|attempt| {
        run.cause == Some(Cause::Claim)
            && attempt.outcome.as_deref() == Some(AttemptOutcome::Claim.name())
            && attempt.reason == run.reason
    });
    let mut because = Vec::new();
    for entry in claims {
        let verdict = if entry.corrected { Verdict::Refuted } else { entry.standing };
        let title = format!(
            "{} #{}: {} {}",
            entry.path.join("/"),
            entry.n,
            entry.claim.claim,
            verdict.name()
        );
        let line = mismatch_line(&entry.claim);
        let (command, text) = match verdict {
            Verdict::Verified => continue,
            _ if entry.corrected => ("warning", format!("refuted earlier and corrected: {line}")),
            Verdict::Refuted => (serious, line),
            _ if entry.claim.blocks() => (serious, line),
            Verdict::Stale => ("warning", entry.since.clone()),
            Verdict::Unverifiable => ("notice", line),
        };
        let is_of = |failed: &Attempt| failed.path == entry.path && failed.n == entry.n;
        if !entry.corrected && entry.claim.blocks() && failed.is_some_and(is_of) {
            because.push(title.clone());
        }
        all.push(Annotation { command, title, text });
    }
    let command = match run.outcome.as_str() {
        "done" | "waiting" => "notice",
        _ => "error",
    };
    if because.is_empty() {
        let says_it = |one: &&Annotation| !one.text.is_empty() && run.reason.contains(&one.text);
        because.extend(all.iter().rfind(says_it).map(|one| one.title.clone()));
    }
    let text = if !because.is_empty() {
        format!("because of {}", because.join(", "))
    } else if run.reason.is_empty() {
        run.outcome.clone()
    } else {
        run.reason.clone()
    };
    let title = format!("{} {}: {}", run.workflow, run.run, run.outcome);
    all.push(Annotation { command, title, text });
    let mut out = String::new();
    for Annotation { command, title, text } in all {
        let _ = writeln!(out, "::{command} title={}::{}", property(&title), message(&text));
    }
    out
}

/// The last state of each claim in each visit of a step. Of one that was corrected, it is what was
/// refuted before.
fn last_claims(entries: &[Entry]) -> Vec<&Entry> {
    let mut places = BTreeMap::new();
    let mut last: Vec<&Entry> = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.superseded || entry.corrected) {
        let place = (entry.path.as_slice(), entry.visit, entry.claim.id());
        let Some(index) = places.get(&place).copied() else {
            places.insert(place, last.len());
            last.push(entry);
            continue;
        };
        let is_replaced =
            |earlier: &&mut &Entry| !(earlier.corrected && entry.standing == Verdict::Verified);
        if let Some(earlier) = last.get_mut(index).filter(is_replaced) {
            *earlier = entry;
        }
    }
    last
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

/// The message of a workflow command: redacted, then escaped.
fn message(text: &str) -> String {
    escape(&redaction::text(text))
}

/// A property of a workflow command.
fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

fn escape(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}
