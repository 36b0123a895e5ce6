//! Assigns a program to each agent of a workflow.

use crate::agent::{Agent, Identity, Measure};
use crate::environment::AgentEnvironment;
use crate::spec::{AgentSpec, SpecError, UnavailableAgent};
use counterfoil_flow::{AssignedAgent, Workflow};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The programs that are assigned to the agents of a workflow.
#[derive(Clone, Default)]
pub struct AgentAssignments {
    assigned: BTreeMap<String, (AssignedAgent, Arc<dyn Agent>)>,
}

/// A workflow's agents could not be assigned.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AssignmentError {
    /// Some agents have no program.
    #[error(
        "no program is assigned to agent{} {}",
        if agents.len() == 1 { "" } else { "s" },
        quoted(agents)
    )]
    Unassigned {
        /// The names of the agents.
        agents: Vec<String>,
    },
    /// A program was assigned to an agent that the workflow does not have.
    #[error("the workflow has no agent '{name}'; {}", suggestion(name, known))]
    UnknownAgent {
        /// The name that was given.
        name: String,
        /// The agents of the workflow.
        known: Vec<String>,
    },
    /// A spec is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The program behind a spec cannot be used.
    #[error(transparent)]
    Unavailable(#[from] UnavailableAgent),
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn suggestion(name: &str, known: &[String]) -> String {
    counterfoil_contract::suggest::did_you_mean(name, known.iter().map(String::as_str))
        .unwrap_or_else(|| format!("its agents: {}", known.join(", ")))
}

impl AgentAssignments {
    /// Without any assignment.
    pub fn new() -> Self {
        Self::default()
    }

    /// Assigns an agent object to the workflow agent `name`. The run records `spec`, and a resumed
    /// run creates the agent from it again.
    #[must_use]
    pub fn with(mut self, name: &str, spec: &str, agent: Arc<dyn Agent>) -> Self {
        let Identity { model, version } = agent.identity();
        let (backs_off, retry) = (agent.backs_off(), agent.retry());
        let assigned = AssignedAgent { spec: spec.to_owned(), backs_off, retry, model, version };
        self.assigned.insert(name.to_owned(), (assigned, agent));
        self
    }

    /// Assigns every agent of a workflow from specs. `named` applies to single agents and `rest` to
    /// all others; where neither applies, the project's settings do. Agents with the same script
    /// share one agent object, so that its replies are played in one order. `played` lists the
    /// recorded replies that were used before, by the spec of their script.
    ///
    /// # Errors
    ///
    /// An agent has no spec or is unknown to the workflow, a spec is invalid, or its program cannot
    /// be used.
    pub fn from_specs(
        workflow: &Workflow,
        named: &BTreeMap<String, String>,
        rest: Option<&str>,
        environment: &AgentEnvironment,
        played: &BTreeMap<String, Vec<u32>>,
    ) -> Result<Self, AssignmentError> {
        if let Some(name) = named.keys().find(|name| !workflow.agents.contains_key(*name)) {
            let known = workflow.agents.keys().cloned().collect();
            return Err(AssignmentError::UnknownAgent { name: name.clone(), known });
        }
        let mut shared: BTreeMap<String, Arc<dyn Agent>> = BTreeMap::new();
        let mut assignments = Self::new();
        let mut unassigned = Vec::new();
        for name in workflow.agents.keys() {
            let configured =
                environment.agents.named.get(name).and_then(|settings| settings.spec.as_deref());
            let configured = || configured.or(environment.agents.rest.as_deref());
            let Some(spec) = named.get(name).map(String::as_str).or(rest).or_else(configured)
            else {
                unassigned.push(name.clone());
                continue;
            };
            let agent = match shared.get(spec) {
                Some(agent) => agent.clone(),
                None => {
                    let parsed = AgentSpec::parse(spec)?;
                    let played = played.get(spec).map_or(&[][..], Vec::as_slice);
                    let agent = parsed.agent(name, environment, played)?;
                    if parsed.is_shared() {
                        shared.insert(spec.to_owned(), agent.clone());
                    }
                    agent
                }
            };
            assignments = assignments.with(name, spec, agent);
        }
        if unassigned.is_empty() {
            Ok(assignments)
        } else {
            Err(AssignmentError::Unassigned { agents: unassigned })
        }
    }

    /// The agent object that is assigned to a workflow agent.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Agent>> {
        self.assigned.get(name).map(|(_, agent)| agent.clone())
    }

    /// The assignments as the journal records them.
    pub fn assigned(&self) -> BTreeMap<String, AssignedAgent> {
        self.assigned.iter().map(|(name, (agent, _))| (name.clone(), agent.clone())).collect()
    }

    /// The agents of which cannot be known how much they use, each with the reason.
    pub fn unknown_usage(&self, measure: Measure) -> Vec<(&str, String)> {
        let assigned = self.assigned.iter();
        assigned
            .filter_map(|(name, (_, agent))| Some((name.as_str(), agent.unknown_usage(measure)?)))
            .collect()
    }

    /// The answer that one of the agents has ready for a question to a person.
    pub fn answer(&self, question: &str) -> Option<String> {
        self.assigned.values().find_map(|(_, agent)| agent.answer(question))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unassigned_agents_are_listed() {
        let message = |agents: &[&str]| {
            let agents = agents.iter().map(|agent| (*agent).to_owned()).collect();
            AssignmentError::Unassigned { agents }.to_string()
        };
        assert_eq!(message(&["qa"]), "no program is assigned to agent `qa`");
        assert_eq!(message(&["dev", "qa"]), "no program is assigned to agents `dev`, `qa`");
    }
}
