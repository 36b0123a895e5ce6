//! What went wrong in a run, and what nobody could check.

use crate::ledger::Entry;
use crate::run_report::{Attempt, RunReport};
use counterfoil_contract::claim::Verdict;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

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
    let attempts: Vec<&Attempt> = report.attempts.iter().chain(&report.commands).collect();
    trouble_among(report, &attempts, entries)
}

/// The same for a report without attempts, with these attempts.
pub fn trouble_among<'a>(
    outline: &RunReport,
    attempts: &[&'a Attempt],
    entries: &'a [Entry],
) -> Vec<Trouble<'a>> {
    let mut failed = if outline.outcome == "done" { Vec::new() } else { failed_attempts(attempts) };
    failed.retain(|attempt| attempt.reason != outline.reason);
    let counted = |verdict: Verdict| {
        entries.iter().filter(move |entry| !entry.superseded && entry.standing == verdict)
    };
    // The same claim is unverifiable for the same reason in every visit.
    let mut named = BTreeSet::new();
    let unverifiable = counted(Verdict::Unverifiable)
        .filter(|entry| named.insert((&entry.path, entry.claim.id(), &entry.claim.reason)));
    let failed = failed.into_iter().map(Trouble::Failed);
    let refuted = counted(Verdict::Refuted).map(Trouble::Refuted);
    failed.chain(refuted).chain(unverifiable.map(Trouble::Unverifiable)).collect()
}

/// All trouble of a run, in the same groups: also what was corrected.
pub fn all_trouble<'a>(report: &'a RunReport, entries: &'a [Entry]) -> Vec<Trouble<'a>> {
    let all: Vec<&Attempt> = report.attempts.iter().chain(&report.commands).collect();
    let failed: BTreeSet<*const Attempt> =
        failed_attempts(&all).into_iter().map(std::ptr::from_ref).collect();
    let attempts = all
        .into_iter()
        .filter(|attempt| attempt.outcome.as_deref().is_some_and(|outcome| outcome != ACCEPTED))
        .map(|attempt| {
            let is_last = failed.contains(&std::ptr::from_ref(attempt));
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

/// The outcome of an attempt whose result counts.
const ACCEPTED: &str = "accepted";

/// The attempts that failed and that no later attempt at the same path corrected.
fn failed_attempts<'a>(attempts: &[&'a Attempt]) -> Vec<&'a Attempt> {
    let mut last_accepted: BTreeMap<&[String], u32> = BTreeMap::new();
    for attempt in attempts.iter().filter(|attempt| attempt.outcome.as_deref() == Some(ACCEPTED)) {
        let last = last_accepted.entry(&attempt.path).or_default();
        *last = attempt.n.max(*last);
    }
    let is_failed = |attempt: &&Attempt| {
        attempt.outcome.as_deref().is_some_and(|outcome| outcome != ACCEPTED)
            && last_accepted.get(attempt.path.as_slice()).is_none_or(|last| *last <= attempt.n)
    };
    attempts.iter().copied().filter(is_failed).collect()
}
