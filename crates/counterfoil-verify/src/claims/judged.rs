//! What a claim came to, before it is a report.

use counterfoil_contract::claim::{ClaimReport, EffectiveClaim, Evidence, Verdict};
use serde_json::Value;

/// What a claim came to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    pub(super) claimed: Value,
    pub(super) observed: Value,
    pub(super) reason: String,
    pub(super) evidence: Vec<Evidence>,
}

impl Judged {
    pub(super) fn new(verdict: Verdict, claimed: Value, observed: Value) -> Self {
        Self { verdict, claimed, observed, reason: String::new(), evidence: Vec::new() }
    }

    /// It could not be held against anything, and why.
    pub(super) fn unverifiable(claimed: Value, reason: impl Into<String>) -> Self {
        Self::new(Verdict::Unverifiable, claimed, Value::Null).because(reason)
    }

    pub(super) fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }

    pub(super) fn with(mut self, evidence: Evidence) -> Self {
        self.evidence.push(evidence);
        self
    }

    pub(super) fn with_notes(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.evidence.extend(notes.into_iter().map(|note| Evidence::new("note", note)));
        self
    }

    pub(super) fn report(self, held: &EffectiveClaim, tree: Option<String>) -> ClaimReport {
        ClaimReport {
            claim: held.name.clone(),
            field: held.field.clone(),
            kind: held.claim.kind,
            policy: held.claim.policy,
            verdict: self.verdict,
            claimed: self.claimed,
            observed: self.observed,
            reason: self.reason,
            evidence: self.evidence,
            tree,
        }
    }
}
