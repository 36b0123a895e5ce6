//! Verifies a number that a result states by counting.

use super::assessment::ClaimAssessment;
use super::check::{CheckStatus, idle_text, run};
use super::claimed_counts::ClaimedNumber;
use super::extract;
use super::format;
use super::path::{ChangeIndex, ResolvedPath};
use super::state::VerificationState;
use super::{Check, Figures, TestCounts, VerifyContext, command, probe};
use counterfoil_contract::claim::{EffectiveClaim, Evidence, Figure, Verdict};
use counterfoil_contract::text::duration;
use counterfoil_workspace::snapshot::Change;
use serde_json::{Value, json};
use std::path::Path;

pub(super) async fn verify(
    effective: &EffectiveClaim,
    value: &Value,
    state: &mut VerificationState,
    context: &mut VerifyContext<'_>,
) -> Option<ClaimAssessment> {
    let found = extract::field_values(&effective.field, value)?;
    let first = found.first()?;
    let numbers = found.iter().map(|found| ClaimedNumber::from_value(found.value));
    let Some(numbers) = numbers.collect::<Option<Vec<_>>>() else {
        return Some(ClaimAssessment::unverifiable(first.value.clone(), "it is not a number"));
    };
    let claimed = &ClaimedNumber::sum(&numbers);
    let claim = &effective.claim;
    Some(match (&claim.of, claim.figure) {
        (Some(of), _) => against_list(claimed, of, value),
        (None, Some(figure)) => match figure {
            Figure::Total | Figure::Passed | Figure::Failed | Figure::Skipped => {
                let found = if claim.run.is_some() || claim.check.is_some() {
                    Some(command::find_check(claim, context.config))
                } else {
                    writer_of(claim.report.as_deref(), context).map(Ok)
                };
                match found {
                    Some(Ok(check)) => {
                        against_check(claimed, figure, effective, check, state, context).await
                    }
                    Some(Err(why)) => ClaimAssessment::unverifiable(json!(claimed), why),
                    None => against_report(claimed, figure, claim.report.as_deref(), state),
                }
            }
            Figure::TestsAdded | Figure::TestsRemoved => {
                against_tests(claimed, figure, context.view.test_counts())
            }
            Figure::FilesAdded
            | Figure::FilesModified
            | Figure::FilesDeleted
            | Figure::FilesChanged => against_changes(claimed, figure, state),
        },
        (None, None) => ClaimAssessment::unverifiable(
            json!(claimed),
            "the claim does not say what is counted: add `of` or `figure`",
        ),
    })
}

/// Compares the claimed number with the observed one. `also` are further numbers that are accepted.
fn compare(claimed: &ClaimedNumber, observed: u64, also: &[u64], what: &str) -> ClaimAssessment {
    if claimed.is(observed) || also.iter().any(|count| claimed.is(*count)) {
        return ClaimAssessment::new(Verdict::Verified, json!(claimed), json!(claimed));
    }
    ClaimAssessment::new(Verdict::Refuted, json!(claimed), json!(observed))
        .with_reason(format!("claimed {claimed}, {what} {observed}"))
}

fn against_list(claimed: &ClaimedNumber, of: &str, value: &Value) -> ClaimAssessment {
    // A list that is absent or null has no items.
    let found = extract::field_values(of, value).unwrap_or_default();
    let many = of.split('/').any(|token| token == "*");
    let counted = found.iter().map(|found| match found.value {
        Value::Array(items) => items.len() as u64,
        Value::Object(members) if !many => members.len() as u64,
        _ => 1,
    });
    let observed: u64 = counted.sum();
    let list = of.trim_start_matches('/');
    compare(claimed, observed, &[], &format!("`{list}` has"))
        .with_evidence(Evidence::new("list", format!("`{list}` has {}", items(observed))))
}

fn items(count: u64) -> String {
    counterfoil_contract::text::pluralize(usize::try_from(count).unwrap_or(usize::MAX), "item")
}

fn figure_name(figure: Figure) -> &'static str {
    match figure {
        Figure::Total => "tests in total",
        Figure::Passed => "tests passed",
        Figure::Failed => "tests failed",
        Figure::Skipped => "tests skipped",
        Figure::TestsAdded => "tests added",
        Figure::TestsRemoved => "tests removed",
        Figure::FilesAdded => "files added",
        Figure::FilesModified => "files modified",
        Figure::FilesDeleted => "files deleted",
        Figure::FilesChanged => "files changed",
    }
}

fn against_figures(
    claimed: &ClaimedNumber,
    figure: Figure,
    figures: &Figures,
    source: &str,
) -> ClaimAssessment {
    let name = figure_name(figure);
    let Some(observed) = figures.get(figure) else {
        return ClaimAssessment::unverifiable(
            json!(claimed),
            format!("{source} does not say how many {name}"),
        );
    };
    let also =
        if figure == Figure::Total { figures.ran().into_iter().collect() } else { Vec::new() };
    compare(claimed, observed, &also, &format!("{source} says {name}:"))
}

/// The check that writes a report, by the configuration.
fn writer_of(report: Option<&str>, context: &VerifyContext<'_>) -> Option<Check> {
    let plain = |path: &str| path.trim_start_matches("./").to_owned();
    let report = plain(report?);
    let writes = |check: &&Check| check.report.as_deref().map(plain).as_ref() == Some(&report);
    context.config.checks.values().find(writes).cloned()
}

/// Compares with a report that no check of the engine wrote: the agent may have written it. It can
/// refute a claim, but not verify it.
fn against_report(
    claimed: &ClaimedNumber,
    figure: Figure,
    report: Option<&str>,
    state: &VerificationState,
) -> ClaimAssessment {
    let unknown = |why: String| ClaimAssessment::unverifiable(json!(claimed), why);
    let Some(report) = report else {
        return unknown(
            "the claim names no report to read the figure from: add `report`, `check` or `run`"
                .to_owned(),
        );
    };
    let name = format::display_text(report);
    let path = match state.resolver.resolve(report) {
        ResolvedPath::Inside(path, _) => path,
        ResolvedPath::Outside(why) => {
            return unknown(format!("the report {name} was not read: {why}"));
        }
    };
    if probe::presence(&state.resolver, &path).0 == probe::Presence::Absent {
        return unknown(format!(
            "the report {name} does not exist; configure the test runner to write it"
        ));
    }
    let seen = match probe::read(&state.resolver, &path) {
        Ok(seen) => seen,
        Err(why) => return unknown(format!("the report {name} cannot be read: {why}")),
    };
    let figures = match Figures::from_report(&seen.bytes) {
        Ok(figures) => figures,
        Err(why) => return unknown(format!("the report {name} cannot be used: {why}")),
    };
    let mut assessment = against_figures(claimed, figure, &figures, "the report");
    assessment.evidence.push(Evidence {
        sha256: Some(seen.sha256),
        ..Evidence::new("report", format!("{name}: {}", figures.to_text()))
    });
    match newer_change(&path, state) {
        Some(newer) if assessment.verdict != Verdict::Unverifiable => {
            let difference = if assessment.reason.is_empty() {
                String::new()
            } else {
                format!("{}; ", assessment.reason)
            };
            assessment.verdict = Verdict::Stale;
            assessment.with_reason(format!(
                "{difference}the report {name} is older than the last change ({newer})"
            ))
        }
        _ if assessment.verdict == Verdict::Verified => {
            assessment.verdict = Verdict::Unverifiable;
            assessment.with_reason(format!(
                "the report {name} agrees, but no check of the engine wrote it; name it as `report` of a check in {}",
                crate::config::FILE
            ))
        }
        _ => assessment,
    }
}

/// A file that changed after a report was written.
fn newer_change(report: &Path, state: &VerificationState) -> Option<String> {
    let written = probe::modified_at(&state.resolver, report)?;
    let changes = state.changes.as_ref().ok()?;
    state
        .claimable(changes)
        .filter(|(path, change)| *path != report && *change != Change::Deleted)
        .find(|(path, _)| {
            probe::changed_at(&state.resolver, path).is_some_and(|changed| changed > written)
        })
        .map(|(path, _)| format::display_path(path))
}

async fn against_check(
    claimed: &ClaimedNumber,
    figure: Figure,
    effective: &EffectiveClaim,
    mut check: Check,
    state: &mut VerificationState,
    context: &mut VerifyContext<'_>,
) -> ClaimAssessment {
    if effective.claim.report.is_some() {
        check.report.clone_from(&effective.claim.report);
    }
    let outcome = run(&check, state, context).await;
    let assessment = match (&outcome.status, outcome.figures) {
        (CheckStatus::Exited(_), Some(figures)) => {
            let assessment =
                against_figures(claimed, figure, &figures, &format!("`{}`", outcome.line));
            match &outcome.changed {
                Some(changed) if assessment.verdict == Verdict::Verified => ClaimAssessment {
                    verdict: Verdict::Stale,
                    reason: format!(
                        "`{}` changed the files that it checks: {}",
                        outcome.line,
                        if changed.is_empty() {
                            "which ones is not known".to_owned()
                        } else {
                            format::join_limited(changed)
                        }
                    ),
                    ..assessment
                },
                _ => assessment,
            }
        }
        (CheckStatus::Exited(_), None) => {
            let why = format!(
                "`{}` prints no figures in a known format; configure a report for it",
                outcome.line
            );
            ClaimAssessment::unverifiable(json!(claimed), why)
        }
        (CheckStatus::CouldNotRun(why), _) => ClaimAssessment::unverifiable(
            json!(claimed),
            format!("`{}` could not be run: {why}", outcome.line),
        ),
        (CheckStatus::Idle(why), _) => {
            ClaimAssessment::unverifiable(json!(claimed), idle_text(&outcome.line, why))
        }
        (CheckStatus::Unfinished(how), _) => {
            ClaimAssessment::unverifiable(json!(claimed), how.text(&outcome.line))
        }
        (CheckStatus::TimedOut(after), _) => {
            let why =
                format!("`{}` took longer than {} and was stopped", outcome.line, duration(*after));
            ClaimAssessment::unverifiable(json!(claimed), why)
        }
        (CheckStatus::Stopped, _) => {
            ClaimAssessment::unverifiable(json!(claimed), format!("`{}` was stopped", outcome.line))
        }
    };
    assessment.with_evidence(outcome.evidence()).with_notes(outcome.notes)
}

fn against_tests(
    claimed: &ClaimedNumber,
    figure: Figure,
    tests: Option<TestCounts>,
) -> ClaimAssessment {
    let Some(TestCounts { added, removed, in_vain }) = tests else {
        let why = "the tests cannot be counted: the changed files are in no supported language";
        return ClaimAssessment::unverifiable(json!(claimed), why);
    };
    let observed = if figure == Figure::TestsAdded { added } else { removed };
    let mut assessment =
        compare(claimed, observed, &[], &format!("{} observed:", figure_name(figure)))
            .with_evidence(Evidence::new(
                "list",
                format!("tests in the tree: {added} added, {removed} removed"),
            ));
    if figure == Figure::TestsAdded && !in_vain.is_empty() {
        let names: Vec<String> = in_vain.iter().map(ToString::to_string).collect();
        let names = format::join_limited(&names);
        let more = format!("{} more that check nothing: {names}", in_vain.len());
        if assessment.verdict == Verdict::Refuted {
            assessment.reason = format!("{}; not counted: {more}", assessment.reason);
        }
        assessment = assessment.with_notes([format!("not counted: {more}")]);
    }
    assessment
}

fn against_changes(
    claimed: &ClaimedNumber,
    figure: Figure,
    state: &VerificationState,
) -> ClaimAssessment {
    let changes = match &state.changes {
        Ok(changes) => changes,
        Err(why) => {
            return ClaimAssessment::unverifiable(
                json!(claimed),
                format!("the changes cannot be determined: {why}"),
            );
        }
    };
    let index = ChangeIndex::new(changes);
    let wanted = |change: Change| match figure {
        Figure::FilesAdded => change == Change::Added,
        Figure::FilesModified => change == Change::Modified,
        Figure::FilesDeleted => change == Change::Deleted,
        _ => true,
    };
    let (mut observed, mut renames) = (0, 0);
    for (path, _) in state.claimable(changes).filter(|(_, change)| wanted(*change)) {
        observed += 1;
        let is_half = match figure {
            // One of the two names of a renamed file may count for both.
            Figure::FilesChanged => index.renamed_to(path).is_some(),
            _ => index.renamed_from(path).or_else(|| index.renamed_to(path)).is_some(),
        };
        renames += u64::from(is_half);
    }
    let mut also = vec![observed - renames];
    if figure == Figure::FilesModified {
        // A renamed file may count as modified.
        also.push(observed + changes.renamed.len() as u64);
    }
    compare(claimed, observed, &also, &format!("{} observed:", figure_name(figure)))
        .with_evidence(Evidence::new("diff", state.summary(changes)))
        .with_notes(changes.notes.clone())
}
