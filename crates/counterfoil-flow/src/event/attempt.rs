//! How attempts end: their outcome, what they said, changed and cost.

use crate::workflow::FailureKind;
use counterfoil_contract::ClaimReport;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// The attempt.
    pub attempt: String,
    /// How.
    pub outcome: AttemptOutcome,
    /// The result, if accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// What could be salvaged of a result that was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Value>,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What was wrong with the last reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Value>,
    /// What became of its claims.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimReport>,
    /// What it changed, whatever became of its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<ChangedFiles>,
    /// The last reply; those before it stand in their own events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Reply>,
    /// What the last reply cost.
    #[serde(default)]
    pub usage: Usage,
    /// When a limit is lifted, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<i64>,
    /// A fingerprint of the work tree behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}

/// What an attempt changed in its workspace. Long lists are cut; `total` counts all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangedFiles {
    /// Files that were not there before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// Files whose bytes or mode differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modified: Vec<String>,
    /// Files that are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deleted: Vec<String>,
    /// Files that are there under another name: from, to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renamed: Vec<(String, String)>,
    /// How many files.
    pub total: u64,
    /// What could not be seen, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// How an attempt can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttemptOutcome {
    /// A result that satisfies its contract.
    Accepted,
    /// None, after all repairs.
    Contract,
    /// A claim that had to hold was refuted.
    Claim,
    /// The agent failed.
    Agent,
    /// It could not be reached.
    Transport,
    /// A rate or quota is used up.
    Limit,
    /// It was not allowed to do what it had to.
    Permission,
    /// It took too long.
    Timeout,
    /// Something it needs is not there. Only what the engine does itself ends so.
    Blocked,
    /// It was stopped.
    Cancelled,
}

impl AttemptOutcome {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Cancelled => "cancelled",
            Self::Contract => "contract",
            Self::Claim => "claim",
            Self::Agent => "agent",
            Self::Transport => "transport",
            Self::Limit => "limit",
            Self::Permission => "permission",
            Self::Timeout => "timeout",
            Self::Blocked => "blocked",
        }
    }

    /// The trouble it is; none for one that was accepted or stopped.
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

/// One reply of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The file with everything that was received.
    pub transcript: String,
    /// Its hash.
    pub sha256: String,
    /// What came of it: accepted, rejected, absent, or how it failed.
    pub status: String,
    /// The codes of what was wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<String>,
    /// The first thing that was wrong, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Which of its recorded replies this was, for an agent that plays them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub played: Option<u32>,
    /// By which way the result came.
    #[serde(default, skip_serializing_if = "Channel::is_text")]
    pub channel: Channel,
    /// The file with the text of the answer, where the transcript holds the events of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The file with the end of what the program wrote to standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<String>,
    /// The file with the results that were handed in through the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submissions: Option<String>,
    /// The file with the result by the program's own structured output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<String>,
    /// The program's id of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The exit code of the program; a signal is negative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// What the agent was not allowed to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// What else is worth telling: what contradicts the result, what was odd about the program's
    /// output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A way by which a result comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Channel {
    /// In the text of the answer.
    #[default]
    Text,
    /// By the program's own structured output.
    Native,
    /// Handed in through the tool.
    Submitted,
}

impl Channel {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Native => "native",
            Self::Submitted => "submitted",
        }
    }

    // By reference, as serde asks.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    fn is_text(&self) -> bool {
        *self == Self::Text
    }
}

/// What was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens in.
    pub input_tokens: u64,
    /// Tokens out.
    pub output_tokens: u64,
    /// Money.
    #[serde(deserialize_with = "crate::value::amount")]
    pub cost_usd: f64,
    /// Time, in milliseconds.
    pub wall_ms: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cost_usd += other.cost_usd;
        self.wall_ms = self.wall_ms.saturating_add(other.wall_ms);
    }
}
