//! The kinds of failures of a step, and the ways in which a machine can end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// The kind of failure of a step, as `on:` names it.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    IntoStaticStr,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum FailureKind {
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
    /// Something that the step needs does not exist, or a sub-workflow ended as blocked.
    Blocked,
    /// A sub-workflow ended as failed.
    Failed,
    /// A sub-workflow ended as exhausted.
    Exhausted,
    /// The items of a list have no valid order.
    Order,
    /// The work in a worktree conflicts with the repository.
    Conflict,
    /// Any failure that is not named.
    Any,
}

impl FailureKind {
    /// All variants.
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

    /// The name in workflows and in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The outcome with which a machine ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum End {
    /// The work is done.
    Done,
    /// The machine needs a person to continue.
    Blocked,
    /// The work failed.
    Failed,
    /// A limit is exhausted.
    Exhausted,
}

impl End {
    /// All variants.
    pub const ALL: [Self; 4] = [Self::Done, Self::Blocked, Self::Failed, Self::Exhausted];

    /// The name in workflows and in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
