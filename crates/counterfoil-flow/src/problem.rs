//! Why a step gave no result, as guards and transitions see it.

use crate::event::Cause;
use crate::workflow::{End, FailureKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Why a step gave no result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// What kind.
    #[serde(rename = "trouble")]
    pub failure: FailureKind,
    /// Why it failed, if it is a sub-workflow that did.
    pub cause: Option<Cause>,
    /// Why, in words.
    pub reason: String,
    /// What could be salvaged.
    pub partial: Option<Value>,
    /// When a limit is lifted.
    pub reset_at: Option<i64>,
}

impl Problem {
    pub(crate) fn new(failure: FailureKind, reason: &str) -> Self {
        Self { failure, cause: None, reason: reason.to_owned(), partial: None, reset_at: None }
    }

    /// A sub-workflow or item that did not end well.
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
