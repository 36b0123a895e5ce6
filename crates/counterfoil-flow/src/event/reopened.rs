//! What a person changes when a run is taken up again, and the reopening of a run that had ended.

use super::{AssignedAgent, Origin, Outcome};
use crate::workflow::Budget;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What a person changes when a run is taken up again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// The parts of the budget that change, as totals of the whole run.
    #[serde(default, skip_serializing_if = "is_unlimited")]
    pub budget: Budget,
    /// The new maxima of limits: by name, those of a sub-workflow as `sub-workflow.limit`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, u64>,
    /// The new values of inputs.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
    /// Why, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub because: String,
}

impl Changes {
    /// Whether nothing is changed and no reason is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn is_unlimited(budget: &Budget) -> bool {
    *budget == Budget::default()
}

/// A run that had ended was reopened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reopened {
    /// The person or program that reopened it.
    pub by: String,
    /// From where, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Box<Origin>>,
    /// How it had ended.
    pub outcome: Outcome,
    /// Why it had ended, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The state of the main workflow in which it continues.
    pub state: String,
    /// What changes from here on.
    #[serde(default, skip_serializing_if = "Changes::is_empty")]
    pub changes: Changes,
    /// The agents that are assigned to another program from here on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, AssignedAgent>,
    /// The frames with which it continues, by id, in the form that they have in the run state.
    pub frames: Map<String, Value>,
    /// The frames of items that continue when their turn comes.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parked: Map<String, Value>,
    /// The questions that are open again.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub questions: Map<String, Value>,
}
