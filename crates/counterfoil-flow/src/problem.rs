//! Why a step gave no result, as guards and transitions see it.

use crate::event::Cause;
use crate::workflow::{End, FailureKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The reason why a step returned no result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// The kind of failure.
    #[serde(rename = "trouble")]
    pub failure: FailureKind,
    /// The cause, if a sub-workflow failed.
    pub cause: Option<Cause>,
    /// The reason, as text.
    pub reason: String,
    /// The valid part of a rejected result, or what a sub-workflow gave at an end that is not done.
    pub partial: Option<Value>,
    /// The time at which a rate limit resets, in milliseconds since 1970.
    pub reset_at: Option<i64>,
}

impl Problem {
    pub(crate) fn new(failure: FailureKind, reason: &str) -> Self {
        Self { failure, cause: None, reason: reason.to_owned(), partial: None, reset_at: None }
    }

    /// The problem of a sub-workflow or an item that did not end as done.
    pub(crate) fn ended(outcome: End, cause: Option<Cause>, reason: &str, conflict: bool) -> Self {
        let failure = match outcome {
            _ if conflict => FailureKind::Conflict,
            End::Blocked => FailureKind::Blocked,
            End::Exhausted => FailureKind::Exhausted,
            End::Done | End::Failed => FailureKind::Failed,
        };
        Self { cause, ..Self::new(failure, reason) }
    }
}
