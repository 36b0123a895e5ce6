//! Finds the contracts of a workflow bundle.

use counterfoil_contract::Contract;
use counterfoil_flow::Bundle;
use std::sync::Arc;

/// Finds a contract by its id, with or without a version.
pub type ContractLookup = dyn Fn(&str) -> Option<Arc<Contract>> + Send + Sync;

/// Finds the contracts of a bundle by their ids. An id without a version means the newest version.
pub fn bundle_contracts(bundle: &Bundle) -> Arc<ContractLookup> {
    let definitions = bundle.contracts.clone();
    Arc::new(move |id: &str| {
        let matches = |name: &&String| {
            name.as_str() == id || name.rsplit_once('@').is_some_and(|(name, _)| name == id)
        };
        // Versions are compared as numbers: in the order of names, `@10` comes before `@9`.
        let version =
            |name: &str| name.rsplit_once('@').and_then(|(_, number)| number.parse::<u64>().ok());
        let (_, definition) = definitions
            .iter()
            .filter(|(name, _)| matches(name))
            .max_by_key(|(name, _)| version(name))?;
        Contract::compile(definition.clone()).ok().map(Arc::new)
    })
}
