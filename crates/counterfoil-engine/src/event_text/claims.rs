//! The claims because of which a repair is requested.

use counterfoil_contract::claim::{ClaimReport, Verdict};
use counterfoil_contract::text::pluralize;

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
