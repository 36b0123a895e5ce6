//! How a run starts, and how it is resumed.

use super::{AssignedAgent, Changes, Origin};
use crate::workflow::Budget;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The facts with which a run starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Started {
    /// The id of the run.
    pub run: String,
    /// The workflow's name.
    pub workflow: String,
    /// The workflow's version.
    pub version: u32,
    /// The hash of the bundle.
    pub bundle: String,
    /// The version of the decision rules.
    pub decide: u32,
    /// The inputs of the run.
    pub inputs: Map<String, Value>,
    /// The programs that are assigned to the agents, by agent.
    pub agents: BTreeMap<String, AssignedAgent>,
    /// The budget of the run.
    pub budget: Budget,
    /// The repository.
    pub repo: String,
    /// The folder whose files are observed: the top of the git repository, or the folder of the run
    /// itself without git. Empty in runs of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub observed: String,
    /// The files of the workflow that are in the repository, as relative paths. No agent may change
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<String>,
    /// The commit at HEAD; none outside of git, or before the first commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The digest of the project's configuration. None in runs of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
}

/// How a run was resumed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resumed {
    /// The person or program that resumed it.
    pub by: String,
    /// From where, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Box<Origin>>,
    /// The agents that are assigned to another program from here on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, AssignedAgent>,
    /// What changes from here on.
    #[serde(default, skip_serializing_if = "Changes::is_empty")]
    pub changes: Changes,
    /// The digest of the project's configuration from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// Whether it was only taken up to be cancelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub to_cancel: bool,
}
