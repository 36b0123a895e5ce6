//! What became of a claim when it was held against the world: claimed, observed, verdict, evidence.

use crate::claim::{ClaimKind, ClaimPolicy};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// What was observed agrees with it.
    Verified,
    /// What was observed does not.
    Refuted,
    /// It agreed with evidence that is older than the last change.
    Stale,
    /// It could not be held against anything.
    Unverifiable,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Verified, Self::Refuted, Self::Stale, Self::Unverifiable];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Refuted => "refuted",
            Self::Stale => "stale",
            Self::Unverifiable => "unverifiable",
        }
    }
}

/// A claim that was held against the world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimReport {
    /// Its name, as guards write it.
    pub claim: String,
    /// The field that makes it, as the contract writes it; empty for one that the engine itself
    /// makes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// What it claims.
    pub kind: ClaimKind,
    /// What follows from a refuted one.
    pub policy: ClaimPolicy,
    /// What became of it.
    pub verdict: Verdict,
    /// What the result says; long lists are cut.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub claimed: Value,
    /// What was found; long lists are cut.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub observed: Value,
    /// Where the two differ, or why nothing can be said; empty for a verified one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What it rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// The tree that the evidence speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}

impl ClaimReport {
    /// Whether the engine itself makes it, for every step.
    pub fn is_own(&self) -> bool {
        self.field.is_empty()
    }

    /// Whether the step may not go on with it.
    pub fn blocks(&self) -> bool {
        self.verdict == Verdict::Refuted && self.policy == ClaimPolicy::Require
    }
}

/// What a verdict rests on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// What it is: `diff`, `command`, `file`, `commit`, `list`, `report`, `note`.
    pub kind: String,
    /// In a line.
    pub text: String,
    /// How a command ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The end of what a command said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// The hash of a file's or an output's bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

impl Evidence {
    /// Evidence in a line.
    pub fn new(kind: &str, text: impl Into<String>) -> Self {
        Self { kind: kind.to_owned(), text: text.into(), ..Self::default() }
    }
}
