//! Limits that cannot be held, because nobody knows how much an agent uses.

use counterfoil_agents::agent::Measure;
use counterfoil_agents::assignment::AgentAssignments;
use counterfoil_flow::{Budget, Workflow};

/// A sentence for each limit of the run, or of a single attempt, that does not hold for an agent.
pub fn unheld_limits(
    workflow: &Workflow,
    budget: &Budget,
    agents: &AgentAssignments,
) -> Vec<String> {
    let mut unheld = Vec::new();
    for measure in Measure::ALL {
        for (agent, why) in agents.unknown_usage(measure) {
            let mut budgets = std::iter::once(budget).chain(workflow.attempt_budgets(agent));
            if budgets.any(|budget| measure.is_limited_by(budget)) {
                let what = measure.name();
                unheld.push(format!(
                    "the {what} of agent '{agent}' cannot be known, so the limit of {what} does \
                     not hold for it: {why}"
                ));
            }
        }
    }
    unheld
}
