//! Claims, writable paths and workspaces of a step.

use crate::template::Template;
use counterfoil_contract::claim::{Claim, ClaimKind, ClaimPolicy, EffectiveClaim};
use counterfoil_contract::expr::Expression;
use std::collections::BTreeMap;
use strum::IntoStaticStr;

/// The claim about protected paths that every agent step has, as guards name it.
pub(crate) const PROTECTED: &str = "protected";
/// The claim that no test was removed, skipped or emptied.
pub(crate) const TESTS: &str = "tests";
/// The claim that the changes leave nothing unfinished. A workflow turns it on.
pub(crate) const COMPLETE: &str = "complete";

/// The claim that the work of a step is complete, whatever its result says.
pub(crate) fn complete_claim(policy: ClaimPolicy) -> EffectiveClaim {
    EffectiveClaim {
        name: COMPLETE.to_owned(),
        field: String::new(),
        claim: Claim { policy, ..Claim::new(ClaimKind::Complete) },
        findings: None,
    }
}

/// The policies for the claims of an agent.
#[derive(Clone, Debug)]
pub struct ClaimPolicies {
    /// The claims of its contract, with the overrides of the workflow.
    pub claims: Vec<EffectiveClaim>,
    /// The policy for writes to protected paths. The files are restored under every policy.
    pub protected: ClaimPolicy,
    /// The policy for tests that were removed, skipped or emptied.
    pub tests: ClaimPolicy,
}

/// The claims of an agent in one state.
#[derive(Debug)]
pub struct StateClaims {
    /// The policies for the claims.
    pub policies: ClaimPolicies,
    /// The findings that the step was asked to fix, by the name of the claim.
    pub findings: BTreeMap<String, Expression>,
}

/// The paths that agents may write.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// Globs of the writable paths; any path, if there is no list.
    pub writes: Option<Vec<String>>,
    /// Globs of the protected paths. They may use inputs and variables of the run; a glob that
    /// starts with `!` makes an exception from those before it.
    pub protect: Vec<Template>,
    /// The policy for writes to protected paths.
    pub protection: ClaimPolicy,
    /// The policy for tests that were removed, skipped or emptied.
    pub tests: ClaimPolicy,
}

/// The workspace in which a step works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum WorkspaceMode {
    /// The workspace of the frame: the repository, or the worktree of a parent frame.
    #[default]
    Repository,
    /// A worktree of its own, which is merged when the work is done.
    Worktree,
}

impl WorkspaceMode {
    /// All variants.
    pub const ALL: [Self; 2] = [Self::Repository, Self::Worktree];

    /// The name in workflows.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
