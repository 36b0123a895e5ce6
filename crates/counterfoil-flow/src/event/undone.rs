//! The undoing of what a run changed.

use super::Origin;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Files that a run changed are put back to what they were. It is recorded before the first of them
/// is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Undone {
    /// The person or program that did it.
    pub by: String,
    /// From where, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Box<Origin>>,
    /// The attempts and workspaces whose changes are undone, in the order in which they were made.
    pub steps: Vec<String>,
    /// The files, sorted. The list may be shortened.
    pub files: Vec<String>,
    /// The number of files.
    pub total: u64,
}
