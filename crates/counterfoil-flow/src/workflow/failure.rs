//! What can go wrong with a step, and how a machine can end.

use serde::{Deserialize, Serialize};

/// What can go wrong with a step, as `on:` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// No result that satisfies the contract, after all repairs.
    Contract,
    /// A claim that had to hold was refuted.
    Claim,
    /// The agent failed.
    Agent,
    /// The agent could not be reached.
    Transport,
    /// A rate or quota was used up.
    Limit,
    /// The agent was not allowed to do what it had to.
    Permission,
    /// It took too long.
    Timeout,
    /// Something it needs is not there, or a sub-workflow ended as blocked.
    Blocked,
    /// A sub-workflow ended as failed.
    Failed,
    /// A sub-workflow ended as exhausted.
    Exhausted,
    /// The items of a fan-out cannot be ordered.
    Order,
    /// What was done in a worktree cannot be folded back into the repository.
    Conflict,
    /// Any of them that is not named.
    Any,
}

impl FailureKind {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Contract,
        Self::Claim,
        Self::Agent,
        Self::Transport,
        Self::Limit,
        Self::Permission,
        Self::Timeout,
        Self::Blocked,
        Self::Failed,
        Self::Exhausted,
        Self::Order,
        Self::Conflict,
        Self::Any,
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Contract => "contract",
            Self::Claim => "claim",
            Self::Agent => "agent",
            Self::Transport => "transport",
            Self::Limit => "limit",
            Self::Permission => "permission",
            Self::Timeout => "timeout",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
            Self::Exhausted => "exhausted",
            Self::Order => "order",
            Self::Conflict => "conflict",
            Self::Any => "any",
        }
    }
}

/// How a machine can end by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The work is done.
    Done,
    /// It cannot go on without somebody.
    Blocked,
    /// It failed.
    Failed,
    /// It tried as often as it may.
    Exhausted,
}

impl End {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Done, Self::Blocked, Self::Failed, Self::Exhausted];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
            Self::Exhausted => "exhausted",
        }
    }
}
