//! Contracts in lists.

use counterfoil_contract::{Definition, Framing};
use schemars::JsonSchema;
use serde::Serialize;

/// A contract in the list of contracts.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ContractListItem<'a> {
    /// The contract's id.
    pub(crate) id: &'a str,
    /// The version.
    pub(crate) version: u32,
    /// Where in a text the result is.
    pub(crate) framing: Framing,
    /// The agent that returns the result.
    pub(crate) agent: Option<&'a str>,
    /// What the result is, in one line.
    pub(crate) summary: &'a str,
    /// Other ids of the contract.
    pub(crate) aliases: &'a [String],
    /// Why the contract is deprecated, and what to use instead.
    pub(crate) deprecated: Option<&'a str>,
    /// The file of a contract of the project; left out for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<&'a str>,
}

impl<'a> From<&'a Definition> for ContractListItem<'a> {
    fn from(definition: &'a Definition) -> Self {
        Self {
            id: &definition.contract,
            version: definition.version,
            framing: definition.framing,
            agent: definition.agent.as_deref(),
            summary: &definition.summary,
            aliases: &definition.aliases,
            deprecated: definition.deprecated.as_deref(),
            path: None,
        }
    }
}
