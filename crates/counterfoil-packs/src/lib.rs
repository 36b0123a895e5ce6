//! Counterfoil's five packs: their contracts as Rust types, their workflows as files.
//!
//! Each type in [`contracts`] is one contract: its fields define the schema, and its
//! [`AgentOutput`](contracts::AgentOutput) adds the rules, claims and examples that a schema cannot
//! express. The engine knows no contract by name: it looks them up in the [`registry`]. The
//! workflows, prompts and demos of a pack are embedded files, available through [`packs`]. This
//! crate does not interpret them.
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
#[cfg(doctest)]
mod pages;
mod review_fix;
mod spec_pipeline;
mod value;

use counterfoil_contract::{Definition, Registry};
use std::sync::LazyLock;

pub use pack::{Pack, PackedWorkflow, pack, packs};

/// Every contract type of every pack, and the functions to use them.
pub mod contracts {
    pub use crate::execution_loop::*;
    pub use crate::feature_pipeline::*;
    pub use crate::gated_team::*;
    pub use crate::review_fix::*;
    pub use crate::spec_pipeline::*;
    pub use crate::value::{LineRef, Nullable};
    pub use counterfoil_contract::typed::validate_output;
    pub use counterfoil_contract::{
        AgentOutput, ParseError, Rejection, RepoPath, Timestamp, contract_of, parse,
    };
}

/// Every contract of every pack, in the order of the packs.
pub fn definitions() -> Vec<Definition> {
    packs().iter().flat_map(Pack::definitions).collect()
}

/// Earlier published versions of contracts. A result, a workflow or a run that names one can still
/// be read.
pub fn earlier_definitions() -> Vec<Definition> {
    packs().iter().flat_map(Pack::earlier_definitions).collect()
}

/// A registry with every contract of every pack.
pub fn registry() -> Registry {
    static ALL: LazyLock<Registry> =
        LazyLock::new(|| build_registry(earlier_definitions(), definitions()));
    ALL.clone()
}

/// A registry for looking up one id: it has the contracts of the id's pack, or all contracts if the
/// id names no pack. It is faster than [`registry`] for a program that needs a single contract.
pub fn registry_for(id: &str) -> Registry {
    match pack(id.split('/').next().unwrap_or_default()) {
        Some(pack) => pack.registry().clone(),
        None => registry(),
    }
}

fn build_registry(earlier: Vec<Definition>, current: Vec<Definition>) -> Registry {
    let mut registry = Registry::new();
    for definition in earlier.into_iter().chain(current) {
        // A test proves that no built-in contract is refused. An embedding program should not fail
        // if one were.
        if let Err(error) = registry.add(definition) {
            tracing::error!(target: "counterfoil::packs", %error, "a contract of the packs was left out");
        }
    }
    registry
}
