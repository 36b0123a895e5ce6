//! How runs end, and why.

use crate::workflow::{End, FailureKind};
use serde::{Deserialize, Serialize};

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The work is done.
    Done,
    /// It cannot go on without somebody.
    Blocked,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// It tried as often as it may, or nothing moved.
    Exhausted,
    /// It spent what it may.
    Budget,
}

impl Outcome {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Exhausted => "exhausted",
            Self::Budget => "budget",
        }
    }
}

impl From<End> for Outcome {
    fn from(end: End) -> Self {
        match end {
            End::Done => Self::Done,
            End::Blocked => Self::Blocked,
            End::Failed => Self::Failed,
            End::Exhausted => Self::Exhausted,
        }
    }
}

/// Why something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// No result that satisfies the contract.
    Contract,
    /// A claim was refuted.
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
    /// The same thing was asked for again and again and nothing changed.
    NoProgress,
}

impl Cause {
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
            Self::NoProgress => "no-progress",
        }
    }

    /// The cause that a trouble is.
    pub fn of(failure: FailureKind) -> Option<Self> {
        match failure {
            FailureKind::Contract => Some(Self::Contract),
            FailureKind::Claim => Some(Self::Claim),
            FailureKind::Agent => Some(Self::Agent),
            FailureKind::Transport => Some(Self::Transport),
            FailureKind::Limit => Some(Self::Limit),
            FailureKind::Permission => Some(Self::Permission),
            FailureKind::Timeout => Some(Self::Timeout),
            FailureKind::Blocked
            | FailureKind::Failed
            | FailureKind::Exhausted
            | FailureKind::Order
            | FailureKind::Conflict
            | FailureKind::Any => None,
        }
    }
}
