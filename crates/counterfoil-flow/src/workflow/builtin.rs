//! Built-in steps: read a file, collect changes, make a commit.

use super::Term;
use crate::template::Template;
use counterfoil_contract::Contract;
use std::sync::Arc;

/// A step that reads a file.
#[derive(Debug)]
pub struct ReadStep {
    /// The path, relative to the workspace.
    pub path: Template,
    /// The contract of the file; without it, the result is its text.
    pub contract: Option<Arc<Contract>>,
}

/// A step that collects the changes since a revision.
#[derive(Debug)]
pub struct ChangesStep {
    /// The revision.
    pub since: Term,
    /// The maximum number of tokens per chunk of the patch; without it, there is one chunk.
    pub split: Option<Term>,
}

/// A step that makes a commit.
#[derive(Debug)]
pub struct CommitStep {
    /// The commit message.
    pub message: Template,
    /// The paths to commit, relative to the workspace.
    pub paths: Term,
    /// The timeout, including the hooks of the repository, in milliseconds.
    pub timeout_ms: u64,
}
