//! `JUnit` XML, as CI systems read it.

use super::claims::{evidence, headline, mismatch_line, not_made_line, totals as totals_line};
use super::replay::difference_line;
use crate::gate::{GatedClaims, GatedWork, Level, NotMade};
use crate::redaction;
use crate::report::replay::{Comparison, ReplayReport};
use counterfoil_contract::claim::Verdict;
use counterfoil_contract::diagnostic::Style;
use counterfoil_contract::text::{Form, escape_control, neutralize, pluralize};
use counterfoil_contract::{Report, Status};
use counterfoil_engine::ledger::Entry;
use counterfoil_flow::Cause;
use quick_junit::{
    NonSuccessKind, Report as JunitReport, SerializeError, TestCase, TestCaseStatus, TestSuite,
};
use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

/// Reports on named texts as a test suite with one test for each.
pub(crate) fn validation<'a>(
    reports: impl IntoIterator<Item = (Cow<'a, str>, &'a Report)>,
) -> Result<String, SerializeError> {
    let cases = reports.into_iter().map(|(name, report)| {
        let status = if report.status == Status::Accepted {
            TestCaseStatus::success()
        } else {
            rejection(report)
        };
        case(&report.contract, &name, status)
    });
    serialize("counterfoil", cases)
}

/// The failure of a text without an accepted result.
fn rejection(report: &Report) -> TestCaseStatus {
    let first = report.violations.first();
    let message = first.map_or("not accepted", |violation| violation.message.as_str());
    let code = first.map_or("absent", |violation| violation.code.as_str());
    let lines: Vec<String> = report
        .violations
        .iter()
        .map(|violation| {
            let position = violation
                .span
                .map(|span| format!("{}:{}: ", span.line, span.column))
                .unwrap_or_default();
            let place = match violation.pointer.as_str() {
                "" => String::new(),
                pointer => format!(" {pointer}"),
            };
            format!(
                "{position}{}{place}: {} ({})",
                violation.code, violation.message, violation.hint
            )
        })
        .collect();
    failure(code, message, &lines.join("\n"))
}

/// Claims as a test suite. A claim that cannot be verified, or does not make the job fail, is
/// skipped rather than passed. If unfinished work was looked for, that is a test, too, and a file that
/// need not be examined for it is a skipped one. The totals are the output of the suite.
pub(crate) fn claims(
    claims: &GatedClaims,
    contract: &str,
    unfinished: Option<&GatedWork>,
) -> Result<String, SerializeError> {
    let made = claims.made.iter().map(|gated| {
        let claim = &gated.claim;
        let (verdict, message) = (claim.verdict.name(), mismatch_line(claim));
        let status = match gated.level() {
            Level::Pass => TestCaseStatus::success(),
            Level::Error => failure(verdict, &message, &evidence(claim, "").join("\n")),
            Level::Note | Level::Warning => skipped(&format!("{verdict}: {message}")),
        };
        case(contract, &claim.claim, status)
    });
    let not_made = claims.not_made.iter().map(|missing| {
        let line = not_made_line(missing);
        let status = match missing.level() {
            Level::Error => failure("not-made", NotMade::NAME, &line),
            Level::Pass | Level::Note | Level::Warning => {
                skipped(&format!("{}: {line}", NotMade::NAME))
            }
        };
        case(contract, &missing.claim, status)
    });
    let work = unfinished.iter().flat_map(|work| unfinished_cases(work, contract));
    let totals = headline(&claims.totals(), claims.not_made.len());
    serialize_suite("counterfoil", made.chain(not_made).chain(work), Some(&totals))
}

/// Whether work is complete, and the files that need not be examined for it.
fn unfinished_cases(work: &GatedWork, contract: &str) -> Vec<TestCase> {
    let unread = work.not_examined.iter().filter(|file| file.counts).map(ToString::to_string);
    let lines: Vec<String> = work.places.iter().map(ToString::to_string).chain(unread).collect();
    let status = match work.places.len() {
        0 if lines.is_empty() => TestCaseStatus::success(),
        0 => failure("unknown", "whether work is unfinished is not known", &lines.join("\n")),
        places => failure("unfinished", &pluralize(places, "place"), &lines.join("\n")),
    };
    let noted = work.not_examined.iter().filter(|file| !file.counts).map(|unexamined| {
        let file = unexamined.file.as_deref().map(Path::to_string_lossy).unwrap_or_default();
        let status = skipped(&format!("not examined: {}", unexamined.reason));
        case(contract, &format!("complete: {file}"), status)
    });
    std::iter::once(case(contract, "complete", status)).chain(noted).collect()
}

/// A run as a test suite: its attempts, its claims, and the run itself. An attempt that failed, or a
/// claim that is not verified, and that did not make the run fail is skipped rather than passed.
pub(crate) fn run(
    run: &counterfoil_engine::RunReport,
    entries: &[Entry],
) -> Result<String, SerializeError> {
    redaction::learn(&(run, entries));
    let timed = |name: &str, wall_ms: u64, status: TestCaseStatus| {
        let mut case = case(&run.workflow, name, status);
        case.set_time(Duration::from_millis(wall_ms));
        case
    };
    let is_done = run.outcome == "done";
    let attempts = run.attempts.iter().chain(&run.commands).map(|attempt| {
        let name = format!("{} #{}", attempt.path.join("/"), attempt.n);
        let status = match attempt.ending().unwrap_or("running") {
            _ if attempt.is_success() => TestCaseStatus::success(),
            // In a run that is done, it is no failure: a later attempt corrected it, or the workflow
            // went on.
            ending if is_done => skipped(&format!("{ending}: {}", attempt.why())),
            ending => failure(ending, &attempt.why(), ""),
        };
        timed(&name, attempt.usage.wall_ms, status)
    });
    let failed_by_claim = run.cause == Some(Cause::Claim);
    let counted = entries.iter().filter(|entry| !entry.superseded || entry.corrected);
    let claims = counted.map(|entry| {
        // A claim that was corrected in a later reply of the same attempt has a case of its own.
        let earlier =
            if entry.superseded { format!(" in reply {}", entry.reply) } else { String::new() };
        // A field may have the name of a claim that is implied for every step.
        let verb = if entry.claim.is_own() { "implies" } else { "claims" };
        let (path, claim) = (entry.path.join("/"), &entry.claim.claim);
        let name = format!("{path} #{} {verb} {claim}{earlier}", entry.n);
        let (verdict, message) = (entry.standing.name(), mismatch_line(&entry.claim));
        let status = match entry.standing {
            Verdict::Verified => TestCaseStatus::success(),
            Verdict::Refuted if entry.corrected => {
                skipped(&format!("refuted earlier and corrected: {message}"))
            }
            _ if failed_by_claim && entry.claim.blocks() => {
                failure(verdict, &message, &evidence(&entry.claim, &entry.since).join("\n"))
            }
            Verdict::Stale => skipped(&format!("{verdict}: {}", entry.since)),
            Verdict::Refuted | Verdict::Unverifiable => skipped(&format!("{verdict}: {message}")),
        };
        case(&run.workflow, &name, status)
    });
    let status =
        if is_done { TestCaseStatus::success() } else { failure(&run.outcome, &run.reason, "") };
    let mut whole = timed("run", run.usage.wall_ms, status);
    if let Some(totals) = &run.claims {
        whole.set_system_out(visible(&totals_line(totals)));
    }
    serialize(&run.workflow, attempts.chain(claims).chain([whole]))
}

/// Replayed attempts as a test suite. A new attempt is skipped rather than passed, unless the
/// recording was updated.
pub(crate) fn replay(reports: &[ReplayReport]) -> Result<String, SerializeError> {
    let cases = reports.iter().map(|report| {
        let status = match &report.comparison {
            Comparison::Changed { differences } if !report.updated => {
                let lines: Vec<String> = differences
                    .iter()
                    .map(|difference| difference_line(difference, Style::default()))
                    .collect();
                let message = lines.first().map(String::as_str).unwrap_or_default();
                failure("changed", message, &lines.join("\n"))
            }
            Comparison::Broken { problem } => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
                status.set_type("broken").set_message(one_line(problem));
                status
            }
            Comparison::New if !report.updated => skipped("no outcome was recorded"),
            Comparison::Same | Comparison::New | Comparison::Changed { .. } => {
                TestCaseStatus::success()
            }
        };
        case(report.contract.as_deref().unwrap_or("counterfoil"), &report.name, status)
    });
    serialize("counterfoil replay", cases)
}

fn case(class: &str, name: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(one_line(name), status);
    case.set_classname(one_line(class));
    case
}

fn failure(kind: &str, message: &str, description: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_type(one_line(kind)).set_message(one_line(message));
    if !description.is_empty() {
        status.set_description(visible(description));
    }
    status
}

fn skipped(message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(one_line(message));
    status
}

/// A text on one line without secrets.
fn one_line(text: &str) -> String {
    escape_control(&redaction::text(text))
}

/// A text without secrets, with unsafe characters in their visible form. The writer of the report
/// would leave out those that XML cannot contain, and whole escape sequences.
fn visible(text: &str) -> String {
    neutralize(&redaction::text(text), Form::Text).into_owned()
}

/// A report with a single test suite.
fn serialize(
    name: &str,
    cases: impl IntoIterator<Item = TestCase>,
) -> Result<String, SerializeError> {
    serialize_suite(name, cases, None)
}

/// A report with a single test suite and its output.
fn serialize_suite(
    name: &str,
    cases: impl IntoIterator<Item = TestCase>,
    output: Option<&str>,
) -> Result<String, SerializeError> {
    let mut suite = TestSuite::new(one_line(name));
    suite.add_test_cases(cases);
    if let Some(output) = output {
        suite.set_system_out(visible(output));
    }
    let mut report = JunitReport::unnamed();
    report.add_test_suite(suite);
    report.to_string()
}
