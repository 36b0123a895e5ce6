//! How attempts end: their outcome, what they said, changed and cost.

use crate::workflow::Trouble;
use countersign_contract::ClaimReport;
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
    pub changed: Option<Changed>,
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
pub struct Changed {
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
    pub fn trouble(self) -> Option<Trouble> {
        match self {
            Self::Accepted | Self::Cancelled => None,
            Self::Contract => Some(Trouble::Contract),
            Self::Claim => Some(Trouble::Claim),
            Self::Agent => Some(Trouble::Agent),
            Self::Transport => Some(Trouble::Transport),
            Self::Limit => Some(Trouble::Limit),
            Self::Permission => Some(Trouble::Permission),
            Self::Timeout => Some(Trouble::Timeout),
            Self::Blocked => Some(Trouble::Blocked),
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
