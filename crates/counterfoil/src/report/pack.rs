//! The report of `counterfoil pack show`.

use super::project_checks::ReliedOn;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A pack in the list of packs.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PackListItem<'a> {
    /// The pack's name.
    name: &'a str,
    /// What the pack does, in one line.
    summary: &'a str,
    /// The names of its workflows; the first has the name of the pack.
    workflows: Vec<&'a str>,
    /// The names of the agents of all its workflows.
    agents: Vec<&'a str>,
    /// The inputs of its first workflow; null if it has none.
    inputs: Option<&'a [InputReport]>,
}

impl<'a> From<&'a PackReport> for PackListItem<'a> {
    fn from(pack: &'a PackReport) -> Self {
        Self {
            name: &pack.name,
            summary: &pack.summary,
            workflows: pack.workflows.iter().map(|workflow| workflow.name.as_str()).collect(),
            agents: pack.agents(),
            inputs: pack.workflows.first().map(|workflow| workflow.inputs.as_slice()),
        }
    }
}

/// A pack with its workflows and files.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PackReport {
    /// The pack's name.
    pub(crate) name: String,
    /// What the pack does, in one line.
    pub(crate) summary: String,
    /// The workflows; the first has the name of the pack.
    pub(crate) workflows: Vec<WorkflowReport>,
    /// The files of the pack.
    pub(crate) files: Vec<String>,
    /// Whether the pack has a demo.
    pub(crate) demo: bool,
}

/// A workflow of a pack.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WorkflowReport {
    /// The workflow's name.
    pub(crate) name: String,
    /// What the workflow does, in one line.
    pub(crate) summary: String,
    /// The inputs; `task` comes first.
    pub(crate) inputs: Vec<InputReport>,
    /// The agents.
    pub(crate) agents: Vec<AgentReport>,
    /// The states, by sub-workflow.
    pub(crate) states: Vec<MachineStates>,
    /// The checks of the project that it relies on.
    pub(crate) checks: Vec<ReliedOn>,
}

/// An input of a workflow.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct InputReport {
    /// The input's name.
    pub(crate) name: String,
    /// The type, as the workflow writes it.
    #[serde(rename = "type")]
    pub(crate) ty: String,
    /// Whether a run needs it.
    pub(crate) required: bool,
    /// The default value, if there is one.
    pub(crate) default: Option<Value>,
    /// What the input is, in one line.
    pub(crate) summary: String,
}

/// An agent of a workflow.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AgentReport {
    /// The agent, as the workflow names it.
    pub(crate) name: String,
    /// The contract of its result, as `id@version`.
    pub(crate) contract: String,
    /// Whether it must not write files.
    pub(crate) read_only: bool,
}

/// The states of a workflow or sub-workflow, in the order of its file.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MachineStates {
    /// The name of the sub-workflow; empty for the workflow itself.
    pub(crate) workflow: String,
    /// The names of the states.
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
