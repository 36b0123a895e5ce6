//! The assessment of a claim, from which its report is made.

use counterfoil_contract::claim::{ClaimReport, EffectiveClaim, Evidence, Verdict};
use serde_json::Value;

/// The verdict on a claim, with the reason and the evidence.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ClaimAssessment {
    pub(super) verdict: Verdict,
    pub(super) claimed: Value,
    pub(super) observed: Value,
    pub(super) reason: String,
    pub(super) evidence: Vec<Evidence>,
}

impl ClaimAssessment {
    pub(super) fn new(verdict: Verdict, claimed: Value, observed: Value) -> Self {
        Self { verdict, claimed, observed, reason: String::new(), evidence: Vec::new() }
    }

    /// A claim that could not be verified, with the reason.
    pub(super) fn unverifiable(claimed: Value, reason: impl Into<String>) -> Self {
        Self::new(Verdict::Unverifiable, claimed, Value::Null).with_reason(reason)
    }

    pub(super) fn with_reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }

    pub(super) fn with_evidence(mut self, evidence: Evidence) -> Self {
        self.evidence.push(evidence);
        self
    }

    pub(super) fn with_notes(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.evidence.extend(notes.into_iter().map(|note| Evidence::new("note", note)));
        self
    }

    pub(super) fn into_report(
        self,
        effective: &EffectiveClaim,
        tree: Option<String>,
    ) -> ClaimReport {
        ClaimReport {
            claim: effective.name.clone(),
            field: effective.field.clone(),
            kind: effective.claim.kind,
            policy: effective.claim.policy,
            verdict: self.verdict,
            claimed: self.claimed,
            observed: self.observed,
            reason: self.reason,
            evidence: self.evidence,
            tree,
        }
    }
}
