//! The claims that events tell of: those that are refuted, and those because of which a repair is
//! requested.

use super::parts::reason_suffix;
use counterfoil_contract::claim::{ClaimReport, Verdict};
use counterfoil_contract::text::{join_limited, pluralize};

/// The most refuted claims that are named.
const MAX_NAMED: usize = 8;

/// The claims because of which a repair was requested although the contract accepts the result.
pub fn doubted(claims: &[ClaimReport]) -> Vec<&ClaimReport> {
    let required: Vec<&ClaimReport> = claims.iter().filter(|claim| claim.blocks()).collect();
    let refuted = claims.iter().filter(|claim| claim.verdict == Verdict::Refuted);
    if required.is_empty() { refuted.collect() } else { required }
}

/// How many claims a repair was requested for, if it was requested for claims.
pub(super) fn repair_reason(claims: &[ClaimReport]) -> Option<String> {
    let doubted = doubted(claims);
    let are_refuted = doubted.iter().all(|claim| claim.verdict == Verdict::Refuted);
    let verdict = if are_refuted { "refuted" } else { "not verified" };
    (!doubted.is_empty()).then(|| format!("{} {verdict}", pluralize(doubted.len(), "claim")))
}

/// The names of the refuted claims, and why if there is only one; none if no claim is refuted.
pub(super) fn refuted_text(claims: &[ClaimReport]) -> Option<String> {
    let refuted = claims.iter().filter(|claim| claim.verdict == Verdict::Refuted);
    let refuted: Vec<&ClaimReport> = refuted.collect();
    match refuted.as_slice() {
        [] => None,
        [one] => Some(format!("{}{}", one.claim, reason_suffix(&one.reason))),
        several => Some(join_limited(several.iter().map(|claim| &claim.claim), MAX_NAMED)),
    }
}
