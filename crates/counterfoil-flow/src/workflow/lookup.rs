//! Parts of a workflow by name, for a process that has only a reference to them.

use super::{Body, Dispatch, Listing, Step, Workflow};
use counterfoil_contract::Contract;
use std::sync::Arc;

impl Workflow {
    /// The compiled contract of an agent, which may read unknown fields in another way than the
    /// contract of the same name of another agent.
    pub(crate) fn contract_of(&self, agent: &str, reference: &str) -> Option<&Arc<Contract>> {
        let own = self.agents.get(agent).map(|role| &role.contract);
        own.filter(|contract| contract.reference() == reference)
            .or_else(|| self.contract(reference))
    }

    /// The compiled contract of an agent, a command or a file, by `id@version`.
    pub fn contract(&self, reference: &str) -> Option<&Arc<Contract>> {
        let machines = std::iter::once(&self.main).chain(self.machines.values());
        let of_steps = machines.flat_map(|machine| machine.states.values()).filter_map(|state| {
            match &state.kind {
                Step::Command(step) => step.output.as_ref(),
                Step::Read(step) => step.contract.as_ref(),
                _ => None,
            }
        });
        self.agents
            .values()
            .map(|role| &role.contract)
            .chain(of_steps)
            .find(|contract| contract.reference() == reference)
    }

    /// The agent step of a state, with the list it belongs to if it runs for each item.
    pub(crate) fn dispatch(
        &self,
        machine: &str,
        state: &str,
    ) -> Option<(&Dispatch, Option<&Listing>)> {
        match &self.machine(machine)?.states.get(state)?.kind {
            Step::Agent(dispatch) => Some((dispatch, None)),
            Step::Each(each) => match &each.body {
                Body::Agent(dispatch) => Some((dispatch, Some(&each.listing))),
                Body::Machine { .. } => None,
            },
            _ => None,
        }
    }
}
