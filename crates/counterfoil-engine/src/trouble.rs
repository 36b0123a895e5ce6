//! What went wrong in a run, and what nobody could check.

use crate::ledger::Entry;
use crate::run_report::{Attempt, RunReport};
use counterfoil_contract::claim::Verdict;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// Something that went wrong in a run, or that nobody could check.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Trouble<'a> {
    /// An attempt failed, and no later attempt at the same path was accepted.
    Failed(&'a Attempt),
    /// An attempt failed, and a later one at the same path was accepted.
    Corrected(&'a Attempt),
    /// A claim is refuted.
    Refuted(&'a Entry),
    /// A claim could not be verified.
    Unverifiable(&'a Entry),
}

/// What went wrong in a run, and what could not be verified.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TroubleReport<'a> {
    /// The run's id.
    pub run: &'a str,
    /// Failures, then refuted claims, then claims that could not be verified.
    pub trouble: Vec<Trouble<'a>>,
}

/// The trouble of a run that nothing corrected, in three groups: failures, refuted claims, and claims
/// that could not be verified. A failure whose reason is that of the run is left out: the outcome
/// names it.
pub fn trouble<'a>(report: &'a RunReport, entries: &'a [Entry]) -> Vec<Trouble<'a>> {
    let failed: Vec<&Attempt> = if report.outcome == "done" {
        Vec::new()
    } else {
        failed_attempts(report).filter(|attempt| attempt.reason != report.reason).collect()
    };
    let counted = |verdict: Verdict| {
        entries.iter().filter(move |entry| !entry.superseded && entry.standing == verdict)
    };
    // The same claim is unverifiable for the same reason in every visit.
    let mut named = BTreeSet::new();
    let unverifiable = counted(Verdict::Unverifiable)
        .filter(|entry| named.insert((&entry.path, &entry.claim.claim, &entry.claim.reason)));
    let failed = failed.into_iter().map(Trouble::Failed);
    let refuted = counted(Verdict::Refuted).map(Trouble::Refuted);
    failed.chain(refuted).chain(unverifiable.map(Trouble::Unverifiable)).collect()
}

/// All trouble of a run, in the same groups: also what was corrected.
pub fn all_trouble<'a>(report: &'a RunReport, entries: &'a [Entry]) -> Vec<Trouble<'a>> {
    let failed: Vec<&Attempt> = failed_attempts(report).collect();
    let attempts =
        report.attempts.iter().chain(&report.commands).filter(|attempt| {
            attempt.outcome.as_deref().is_some_and(|outcome| outcome != "accepted")
        });
    let attempts = attempts.map(|attempt| {
        let is_last = failed.iter().any(|failed| std::ptr::eq(*failed, attempt));
        if is_last { Trouble::Failed(attempt) } else { Trouble::Corrected(attempt) }
    });
    let refuted = entries.iter().filter(|entry| entry.claim.verdict == Verdict::Refuted);
    let unverifiable =
        entries.iter().filter(|entry| !entry.superseded && entry.standing == Verdict::Unverifiable);
    attempts
        .chain(refuted.map(Trouble::Refuted))
        .chain(unverifiable.map(Trouble::Unverifiable))
        .collect()
}

/// The attempts that failed and that no later attempt at the same path corrected.
fn failed_attempts(report: &RunReport) -> impl Iterator<Item = &Attempt> {
    let all = || report.attempts.iter().chain(&report.commands);
    let is_accepted = |attempt: &Attempt| attempt.outcome.as_deref() == Some("accepted");
    all().filter(move |attempt| attempt.outcome.is_some() && !is_accepted(attempt)).filter(
        move |attempt| {
            !all().any(|later| {
                later.path == attempt.path && later.n > attempt.n && is_accepted(later)
            })
        },
    )
}
