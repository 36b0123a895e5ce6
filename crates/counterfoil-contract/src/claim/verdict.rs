//! The report about a verified claim: claimed, observed, verdict, evidence.

use super::{ClaimKind, ClaimPolicy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::IntoStaticStr;

/// The outcome of verifying a claim.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    IntoStaticStr,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Verdict {
    /// The observation agrees with the claim.
    Verified,
    /// The observation contradicts the claim.
    Refuted,
    /// The claim agrees with evidence that is older than the last change.
    Stale,
    /// Nothing could be observed that supports or refutes the claim.
    Unverifiable,
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 4] = [Self::Verified, Self::Refuted, Self::Stale, Self::Unverifiable];

    /// The name used in reports.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The report about one verified claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimReport {
    /// The name of the claim, as guards write it.
    pub claim: String,
    /// The field that makes the claim, as the contract writes it; empty for a claim that is implied
    /// for every step.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// The kind of the claim.
    pub kind: ClaimKind,
    /// What happens when the claim is refuted.
    pub policy: ClaimPolicy,
    /// The outcome.
    pub verdict: Verdict,
    /// What the result says. Long lists are truncated.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub claimed: Value,
    /// What was observed. Long lists are truncated.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub observed: Value,
    /// How the two differ, or why the claim is unverifiable; empty for a verified claim.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The evidence for the verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// The snapshot of the work tree that the evidence is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}

impl ClaimReport {
    /// Whether the claim is implied for every step and made by no field.
    pub fn is_own(&self) -> bool {
        self.field.is_empty()
    }

    /// What identifies the claim among those of a step: its name, and whether it is implied. A field
    /// may have the name of an implied claim.
    pub fn id(&self) -> (&str, bool) {
        (&self.claim, self.is_own())
    }

    /// Whether the step cannot continue: a required claim is not verified, or it cannot be observed
    /// whether protected files were changed.
    pub fn blocks(&self) -> bool {
        let is_required = self.policy == ClaimPolicy::Require;
        match self.verdict {
            Verdict::Refuted | Verdict::Stale => is_required,
            Verdict::Unverifiable => is_required || self.kind == ClaimKind::Protected,
            Verdict::Verified => false,
        }
    }

    /// Whether another answer of the agent can change that a claim blocks. A workspace that cannot be
    /// observed stays so. A check that changed what it checks is run again, and may leave it then.
    pub fn is_repairable(&self) -> bool {
        matches!(self.verdict, Verdict::Refuted | Verdict::Stale)
    }
}

/// One piece of evidence for a verdict.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The kind of evidence: `diff`, `command`, `file`, `commit`, `list`, `report`, `note`.
    pub kind: String,
    /// The evidence in one line.
    pub text: String,
    /// The command line that was run, of a command.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// The exit code of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The end of a command's output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// The hash of a file or of an output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

impl Evidence {
    /// Evidence of a kind, in one line.
    pub fn new(kind: &str, text: impl Into<String>) -> Self {
        Self { kind: kind.to_owned(), text: text.into(), ..Self::default() }
    }
}
