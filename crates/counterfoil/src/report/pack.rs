//! The report of `counterfoil pack show`.

use super::project_checks::ReliedOn;
use serde::Serialize;
use serde_json::Value;

/// A pack with its workflows and files.
#[derive(Debug, Serialize)]
pub(crate) struct PackReport {
    pub(crate) name: String,
    pub(crate) summary: String,
    /// The workflows; the first has the name of the pack.
    pub(crate) workflows: Vec<WorkflowReport>,
    pub(crate) files: Vec<String>,
    /// Whether the pack has a demo.
    pub(crate) demo: bool,
}

/// A workflow of a pack.
#[derive(Debug, Serialize)]
pub(crate) struct WorkflowReport {
    pub(crate) name: String,
    pub(crate) summary: String,
    pub(crate) inputs: Vec<InputReport>,
    pub(crate) agents: Vec<AgentReport>,
    pub(crate) states: Vec<MachineStates>,
    /// The checks of the project that it relies on.
    pub(crate) checks: Vec<ReliedOn>,
}

/// An input of a workflow.
#[derive(Debug, Serialize)]
pub(crate) struct InputReport {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) ty: String,
    pub(crate) required: bool,
    pub(crate) default: Option<Value>,
    pub(crate) summary: String,
}

/// An agent of a workflow.
#[derive(Debug, Serialize)]
pub(crate) struct AgentReport {
    pub(crate) name: String,
    pub(crate) contract: String,
    pub(crate) read_only: bool,
}

/// The states of a workflow or sub-workflow, in the order of its file.
#[derive(Debug, Serialize)]
pub(crate) struct MachineStates {
    /// The name of the sub-workflow; empty for the workflow itself.
    pub(crate) workflow: String,
    pub(crate) states: Vec<String>,
}

impl PackReport {
    /// The agents of all workflows, without duplicates.
    pub(crate) fn agents(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for agent in self.workflows.iter().flat_map(|workflow| &workflow.agents) {
            if !names.contains(&agent.name.as_str()) {
                names.push(&agent.name);
            }
        }
        names
    }
}
