//! The outcome of a run, and the cause of a failure.

use crate::workflow::{End, FailureKind};
use serde::{Deserialize, Serialize};

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The work is done.
    Done,
    /// The run needs a person to continue.
    Blocked,
    /// The run failed.
    Failed,
    /// The run was cancelled.
    Cancelled,
    /// A limit is exhausted, or there was no progress.
    Exhausted,
    /// A budget is used up.
    Budget,
}

impl Outcome {
    /// The name in JSON.
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

/// The cause of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// No result satisfies the contract.
    Contract,
    /// A claim was refuted.
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
    /// The same request was repeated and nothing changed.
    NoProgress,
}

impl Cause {
    /// The name in JSON.
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

    /// The cause for a kind of failure, if it has one.
    pub fn from_failure(failure: FailureKind) -> Option<Self> {
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
