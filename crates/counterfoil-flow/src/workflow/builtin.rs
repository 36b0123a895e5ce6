//! What the engine does itself in a state: reading a file, looking at what changed, committing.

use super::Term;
use crate::template::Template;
use counterfoil_contract::Contract;
use std::sync::Arc;

/// A file that is read.
#[derive(Debug)]
pub struct ReadStep {
    /// Where it stands, in the workspace.
    pub path: Template,
    /// What it must satisfy; without it, it is any text.
    pub contract: Option<Arc<Contract>>,
}

/// What changed since a revision.
#[derive(Debug)]
pub struct ChangesStep {
    /// The revision.
    pub since: Term,
    /// How many tokens a chunk of the patch may have; without it, there is one chunk.
    pub split: Option<Term>,
}

/// A commit.
#[derive(Debug)]
pub struct CommitStep {
    /// What it says.
    pub message: Template,
    /// What is committed: paths in the workspace.
    pub paths: Term,
    /// How long it may take with the hooks of the repository, in milliseconds.
    pub timeout_ms: u64,
}
