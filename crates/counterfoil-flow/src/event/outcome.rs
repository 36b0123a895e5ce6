//! The outcome of a run, and the cause of a failure.

use crate::workflow::{End, FailureKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
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
        self.into()
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
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
        self.into()
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
