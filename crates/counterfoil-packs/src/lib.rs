//! Counterfoil's five packs: their contracts as Rust types, their workflows as files.
//!
//! A pack is a dialect: the same kind of agents, reporting in another form. Each type here is one
//! contract; its fields are the schema, its [`AgentOutput`](contracts::AgentOutput) says what a
//! schema cannot. The engine knows none of them by name: it reads them from the [`registry`]. The
//! workflows, prompts and demos of a pack are files, which [`packs`] hands out; what is in them is
//! for whoever runs workflows.
//!
//! ```
//! use counterfoil_packs::contracts::{QaOutput, validate_output};
//!
//! let text = r#"All good: {"dod_achieved": true, "checks": [{"criterion": "tests pass", "passed": true}]}"#;
//! let qa: QaOutput = validate_output(text).unwrap();
//! assert!(qa.dod_achieved);
//! ```

mod earlier;
mod execution_loop;
mod feature_pipeline;
mod gated_team;
mod pack;
mod review_fix;
mod spec_pipeline;
mod value;

use counterfoil_contract::{Definition, Registry};

pub use pack::{Pack, PackedWorkflow, pack, packs};

/// Every type of every pack, and what it takes to use them.
pub mod contracts {
    pub use crate::execution_loop::*;
    pub use crate::feature_pipeline::*;
    pub use crate::gated_team::*;
    pub use crate::review_fix::*;
    pub use crate::spec_pipeline::*;
    pub use crate::value::{LineRef, Nullable};
    pub use counterfoil_contract::{
        AgentOutput, Rejection, RepoPath, Timestamp, contract_of, parse, validate_output,
    };
}

/// Every contract of every pack, in the order of the packs.
pub fn definitions() -> Vec<Definition> {
    packs().iter().flat_map(Pack::definitions).collect()
}

/// Versions that were published before the current ones. A result, a workflow or a run that names
/// one still finds it.
pub fn earlier_definitions() -> Vec<Definition> {
    earlier::definitions()
}

/// A registry with every contract of every pack.
pub fn registry() -> Registry {
    registry_of(definitions())
}

/// A registry that can answer for one id: with the contracts of its pack if the id names one, else
/// with all. It is the quicker way for a program that needs a single contract.
pub fn registry_for(id: &str) -> Registry {
    match pack(id.split('/').next().unwrap_or_default()) {
        Some(pack) => registry_of(pack.definitions()),
        None => registry(),
    }
}

fn registry_of(definitions: Vec<Definition>) -> Registry {
    let mut registry = Registry::new();
    let is_here = |earlier: &Definition| {
        definitions.iter().any(|current| current.contract == earlier.contract)
    };
    let earlier: Vec<Definition> = earlier::definitions().into_iter().filter(is_here).collect();
    for definition in earlier.into_iter().chain(definitions) {
        // A test proves that none of ours is refused; a program that embeds us need not stop if one
        // were.
        if let Err(error) = registry.add(definition) {
            tracing::error!(target: "counterfoil::packs", %error, "a contract of the packs was left out");
        }
    }
    registry
}
