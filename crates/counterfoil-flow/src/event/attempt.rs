//! The end of an attempt: its outcome, replies, changes and cost.

use super::CheckReport;
use crate::workflow::FailureKind;
use counterfoil_contract::claim::{ClaimKind, ClaimReport};
use counterfoil_contract::{Context, Violation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use strum::IntoStaticStr;

/// The end of an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ended {
    /// The attempt.
    pub attempt: String,
    /// The outcome.
    pub outcome: AttemptOutcome,
    /// The accepted result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The valid part of a rejected result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Value>,
    /// The reason, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The violations of the last reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Violation>")]
    pub violations: Vec<Value>,
    /// The verdicts on its claims.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimReport>,
    /// The files that it changed, also if its result was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<ChangedFiles>,
    /// The last reply; each earlier reply has an event of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Reply>,
    /// What the last reply cost.
    #[serde(default)]
    pub usage: Usage,
    /// The time at which a rate limit resets, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<i64>,
    /// The hash of the work tree after the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// The outcomes of checks, by name, for an attempt that ran checks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checks: BTreeMap<String, CheckReport>,
    /// The items of lists that were rejected in one of its replies, and that the last one does not
    /// have in a valid form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<RejectedPart>,
}

impl Ended {
    /// An attempt with an outcome, of which nothing else is known.
    pub fn new(attempt: impl Into<String>, outcome: AttemptOutcome) -> Self {
        Self {
            attempt: attempt.into(),
            outcome,
            value: None,
            partial: None,
            reason: String::new(),
            violations: Vec::new(),
            claims: Vec::new(),
            changed: None,
            reply: None,
            usage: Usage::default(),
            reset_at: None,
            tree: None,
            checks: BTreeMap::new(),
            rejected: Vec::new(),
        }
    }

    /// Whether its claims are those of a result. Without one, there are only claims of the engine.
    pub fn verifies_result(&self) -> bool {
        matches!(self.outcome, AttemptOutcome::Accepted | AttemptOutcome::Claim)
            || !self.claims.iter().all(is_verified_at_end)
    }
}

/// Whether a claim is one that the engine verifies at the end of every attempt, also of one without a
/// result.
pub fn is_verified_at_end(claim: &ClaimReport) -> bool {
    claim.is_own() && matches!(claim.kind, ClaimKind::Protected | ClaimKind::TestsKept)
}

/// An item of a list in a result that was rejected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RejectedPart {
    /// The JSON pointer of the item in its reply.
    pub at: String,
    /// Why it was rejected.
    pub reason: String,
    /// The item as it was given, as JSON.
    pub text: String,
}

/// The files that an attempt changed in its workspace. Long lists are truncated; `total` counts
/// all files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFiles {
    /// New files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// Files with other content or another mode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modified: Vec<String>,
    /// Deleted files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deleted: Vec<String>,
    /// Renamed files, as old and new path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renamed: Vec<(String, String)>,
    /// The number of changed files.
    pub total: u64,
    /// What could not be observed, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum AttemptOutcome {
    /// The result satisfies its contract.
    Accepted,
    /// No result satisfies the contract, after all repairs.
    Contract,
    /// A required claim was refuted.
    Claim,
    /// The agent failed.
    Agent,
    /// The agent could not be reached.
    Transport,
    /// A rate limit or quota is exhausted.
    Limit,
    /// The agent lacked a permission.
    Permission,
    /// The attempt timed out.
    Timeout,
    /// Something that the step needs does not exist. Only built-in steps end this way.
    Blocked,
    /// The attempt was stopped.
    Cancelled,
}

impl AttemptOutcome {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The kind of failure; none for an accepted or stopped attempt.
    pub fn failure(self) -> Option<FailureKind> {
        match self {
            Self::Accepted | Self::Cancelled => None,
            Self::Contract => Some(FailureKind::Contract),
            Self::Claim => Some(FailureKind::Claim),
            Self::Agent => Some(FailureKind::Agent),
            Self::Transport => Some(FailureKind::Transport),
            Self::Limit => Some(FailureKind::Limit),
            Self::Permission => Some(FailureKind::Permission),
            Self::Timeout => Some(FailureKind::Timeout),
            Self::Blocked => Some(FailureKind::Blocked),
        }
    }
}

/// A reply of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    /// The transcript file with everything that was received.
    pub transcript: String,
    /// The hash of the transcript.
    pub sha256: String,
    /// The status: accepted, rejected, absent, or the kind of failure.
    pub status: String,
    /// The codes of the violations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<String>,
    /// The first violation, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The first line of what the agent said instead of a result, if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
    /// The model that replied, if the program tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The index of the recorded reply, for an agent that replays a recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub played: Option<u32>,
    /// The channel of the result.
    #[serde(default, skip_serializing_if = "Channel::is_text")]
    pub channel: Channel,
    /// The file with the text of the answer, if the transcript has the events of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The file with the end of what the program wrote to standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<String>,
    /// The file with the results that were submitted through the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submissions: Option<String>,
    /// The file with the program's structured output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<String>,
    /// The program's conversation id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The exit code of the program; negative for a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The actions that were denied to the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// Further notes: contradictions to the result, anomalies in the output of the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The version of the rules by which the result was looked for; 0 if it was not, or by the first
    /// version.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reader: u32,
    /// What was known of the attempt, if the result depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Box<Context>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The channel by which a result is returned.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Channel {
    /// The text of the answer.
    #[default]
    Text,
    /// The structured output of the program.
    Native,
    /// A submission through the tool.
    Submitted,
}

impl Channel {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }

    // By reference: the signature is serde's.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    fn is_text(&self) -> bool {
        *self == Self::Text
    }
}

/// What an attempt or a run consumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// The cost in US dollars.
    #[serde(deserialize_with = "crate::value::amount")]
    pub cost_usd: f64,
    /// The wall-clock time, in milliseconds.
    pub wall_ms: u64,
}

impl Usage {
    /// Whether nothing was consumed.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cost_usd += other.cost_usd;
        self.wall_ms = self.wall_ms.saturating_add(other.wall_ms);
    }
}
