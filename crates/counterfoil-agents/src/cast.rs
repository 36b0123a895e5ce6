//! Who plays the agents of a workflow.

use crate::agent::{Agent, Equipment, Identity, Spec, SpecError, Unavailable};
use counterfoil_flow::{AssignedAgent, Workflow};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Who plays which agent.
#[derive(Clone, Default)]
pub struct Cast {
    players: BTreeMap<String, (AssignedAgent, Arc<dyn Agent>)>,
}

/// An agent that nobody, or the wrong one, plays.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CastError {
    /// Nobody plays it.
    #[error(
        "nobody plays the agent{} {}; say who with --agent SPEC for all, or --agent NAME=SPEC, or in counterfoil.toml: agent = \"SPEC\"",
        if agents.len() == 1 { "" } else { "s" },
        agents.join(", ")
    )]
    Nobody {
        /// Which.
        agents: Vec<String>,
    },
    /// There is no such agent.
    #[error("the workflow has no agent '{name}'{hint}")]
    Unknown {
        /// The name.
        name: String,
        /// What may have been meant.
        hint: String,
    },
    /// The spec is none.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// It cannot be had.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl Cast {
    /// Nobody yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one who plays an agent; `spec` is how they are shown and found again when the run is
    /// resumed.
    #[must_use]
    pub fn with(mut self, name: &str, spec: &str, agent: Arc<dyn Agent>) -> Self {
        let Identity { model, version } = agent.identity();
        let player =
            AssignedAgent { spec: spec.to_owned(), backs_off: agent.backs_off(), model, version };
        self.players.insert(name.to_owned(), (player, agent));
        self
    }

    /// The cast that specs name: by agent, and one for the rest; where they name none, the one that
    /// the project's settings do. The same script is the same agent, so that it is played in
    /// one order for all it plays. `played` are the recorded replies that were used before.
    pub fn from_specs(
        workflow: &Workflow,
        named: &BTreeMap<String, String>,
        rest: Option<&str>,
        equipment: &Equipment,
        played: &[u32],
    ) -> Result<Self, CastError> {
        for name in named.keys() {
            if !workflow.agents.contains_key(name) {
                let known = workflow.agents.keys().map(String::as_str);
                let hint = counterfoil_contract::suggest::did_you_mean(name, known.clone())
                    .unwrap_or_else(|| {
                        format!("its agents: {}", known.collect::<Vec<_>>().join(", "))
                    });
                return Err(CastError::Unknown { name: name.clone(), hint: format!("; {hint}") });
            }
        }
        let mut known: BTreeMap<String, Arc<dyn Agent>> = BTreeMap::new();
        let mut cast = Self::new();
        let mut nobody = Vec::new();
        for name in workflow.agents.keys() {
            let set =
                equipment.agents.named.get(name).and_then(|settings| settings.spec.as_deref());
            let set = || set.or(equipment.agents.rest.as_deref());
            let Some(spec) = named.get(name).map(String::as_str).or(rest).or_else(set) else {
                nobody.push(name.clone());
                continue;
            };
            let agent = match known.get(spec) {
                Some(agent) => agent.clone(),
                None => {
                    let parsed = Spec::parse(spec)?;
                    let agent = parsed.agent(name, equipment, played)?;
                    if parsed.is_shared() {
                        known.insert(spec.to_owned(), agent.clone());
                    }
                    agent
                }
            };
            cast = cast.with(name, spec, agent);
        }
        if nobody.is_empty() { Ok(cast) } else { Err(CastError::Nobody { agents: nobody }) }
    }

    /// Who plays an agent.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Agent>> {
        self.players.get(name).map(|(_, agent)| agent.clone())
    }

    /// The players, as the journal keeps them.
    pub fn players(&self) -> BTreeMap<String, AssignedAgent> {
        self.players.iter().map(|(name, (player, _))| (name.clone(), player.clone())).collect()
    }

    /// The answer that one of them has ready for a question.
    pub fn answer(&self, question: &str) -> Option<String> {
        self.players.values().find_map(|(_, agent)| agent.answer(question))
    }
}
