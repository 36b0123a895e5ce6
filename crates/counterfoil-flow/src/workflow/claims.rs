//! What a step is held to beside its contract: its claims, the paths it may write, and where it
//! works.

use crate::template::Template;
use counterfoil_contract::{ClaimPolicy, Expression, HeldClaim};
use std::collections::BTreeMap;

/// The claims that the engine makes for every step of an agent, as guards name them.
pub(crate) const PROTECTED: &str = "protected";
/// No test was removed, skipped or emptied.
pub(crate) const TESTS: &str = "tests";

/// What the claims of an agent are held to.
#[derive(Clone, Debug)]
pub struct ClaimPolicies {
    /// The claims of its contract, with what the workflow says otherwise.
    pub claims: Vec<HeldClaim>,
    /// What follows when it wrote what it may not. It is put back whatever follows.
    pub protected: ClaimPolicy,
    /// What follows when it removed, skipped or emptied tests.
    pub tests: ClaimPolicy,
}

/// What a state says about the claims of its agent.
#[derive(Debug)]
pub struct StateClaims {
    /// What they are held to.
    pub policies: ClaimPolicies,
    /// What the step was asked to fix, by the name of the claim that it is fixed.
    pub findings: BTreeMap<String, Expression>,
}

/// What agents may write.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// Only there, as globs; anywhere, if there is no list.
    pub writes: Option<Vec<String>>,
    /// Never there, as globs that may name inputs and variables of the run; one that begins with
    /// `!` lets through again what those before it hold.
    pub protect: Vec<Template>,
    /// What follows when something was written that may not be.
    pub protection: ClaimPolicy,
    /// What follows when tests were removed, skipped or emptied.
    pub tests: ClaimPolicy,
}

/// Where work is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkspaceMode {
    /// Where the frame works: in the repository, or in the worktree of a frame around it.
    #[default]
    Repository,
    /// In a worktree of its own, which is folded back when the work is done.
    Worktree,
}

impl WorkspaceMode {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Repository, Self::Worktree];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Repository => "repository",
            Self::Worktree => "worktree",
        }
    }
}
