//! Verifies that work is complete: that the changes add nothing unfinished.

use super::assessment::ClaimAssessment;
use super::extract::{self, CommandClaim};
use super::state::VerificationState;
use super::{VerifyContext, command};
use crate::unfinished::UnfinishedWork;
use counterfoil_contract::Contract;
use counterfoil_contract::claim::{EffectiveClaim, Evidence, Verdict};
use counterfoil_contract::text::{display_path, join_limited, pluralize};
use serde_json::{Value, json};

/// The maximum number of places in the evidence.
const MAX_LISTED: usize = 20;

pub(super) fn verify(
    effective: &EffectiveClaim,
    contract: &Contract,
    value: &Value,
    state: &VerificationState,
    context: &mut VerifyContext<'_>,
) -> Option<ClaimAssessment> {
    let claimed = if effective.field.is_empty() {
        // The workflow makes this claim, whatever the result says.
        Value::Null
    } else {
        let found = extract::field_values(&effective.field, value)?;
        let claimed = found.first().map(|found| found.value.clone()).unwrap_or_default();
        match command::resolve_claim(effective, contract, value, &found) {
            Ok(CommandClaim::Succeeds) => claimed,
            Ok(_) => return None,
            Err(why) => return Some(ClaimAssessment::unverifiable(claimed, why.to_string())),
        }
    };
    if let Err(why) = &state.changes {
        let reason = format!("the changes cannot be determined: {why}");
        return Some(ClaimAssessment::unverifiable(claimed, reason));
    }
    let work = context.view.unfinished_work();
    let is_implied = effective.field.is_empty();
    Some(assess(claimed, &work, context.concurrent_writer, is_implied))
}

fn assess(
    claimed: Value,
    work: &UnfinishedWork,
    other: Option<&str>,
    is_implied: bool,
) -> ClaimAssessment {
    let count = work.places.len();
    let observed = json!({ "unfinished": count });
    let places = work.places.iter().take(MAX_LISTED);
    let evidence = places.map(|place| Evidence::new("diff", place.to_string()));
    let (verdict, reason) = match (count, other) {
        (0, _) if work.unread.is_empty() && work.unknown.is_empty() => {
            (Verdict::Verified, String::new())
        }
        // Nobody said that these files are complete. What the workflow asks for is what can be found.
        (0, _) if work.unread.is_empty() && is_implied => (Verdict::Verified, String::new()),
        (0, _) if work.unread.is_empty() => {
            let files = join_limited(work.unknown.iter().map(|path| display_path(path)), 5);
            let count = pluralize(work.unknown.len(), "changed file");
            let why = format!(
                "{count} of a kind in which unfinished work is not found: {files}; let a check or a person decide whether the work is complete"
            );
            (Verdict::Unverifiable, why)
        }
        (0, _) => {
            let why = join_limited(&work.unread, 3);
            (Verdict::Unverifiable, format!("not all changes could be read: {why}"))
        }
        (_, Some(other)) => {
            let count = pluralize(count, "unfinished place");
            (Verdict::Unverifiable, format!("{count} may be the work of {other}"))
        }
        (_, None) => {
            let places = join_limited(work.places.iter().map(ToString::to_string), 3);
            (Verdict::Refuted, format!("{}: {places}", pluralize(count, "unfinished place")))
        }
    };
    let mut assessment = ClaimAssessment::new(verdict, claimed, observed).with_reason(reason);
    assessment.evidence.extend(evidence);
    if let Some(more @ 1..) = count.checked_sub(MAX_LISTED) {
        assessment = assessment.with_evidence(Evidence::new("diff", format!("and {more} more")));
    }
    if is_implied && !work.unknown.is_empty() {
        let files = join_limited(work.unknown.iter().map(|path| display_path(path)), 5);
        let note = format!("unfinished work is not found in files of this kind: {files}");
        assessment = assessment.with_evidence(Evidence::new("note", note));
    }
    assessment.with_notes(work.unread.iter().take(MAX_LISTED).map(ToString::to_string))
}
