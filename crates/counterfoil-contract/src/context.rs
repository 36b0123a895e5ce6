//! What is known of the attempt whose result is read, besides the text.

use serde::{Deserialize, Serialize};

/// What is known of the attempt whose result is read. What is not known is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Context {
    /// The absolute paths of the workspace's folder: one, or several if it has several names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workspace: Vec<String>,
    /// The run's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The workflow's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// The state of the workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The key of the item that the step works on, in a step for each of several items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The attempt's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<String>,
    /// When the attempt began, as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// When the reply was complete, as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Milliseconds from the one to the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}
