//! The checks that a workflow or a contract relies on, compared with those of the project.

use counterfoil_contract::claim::{ClaimPolicy, EffectiveClaim};
use counterfoil_contract::suggest::did_you_mean;
use counterfoil_contract::text::join_limited;
use counterfoil_engine::config::FILE;
use counterfoil_flow::{CheckUse, Finding, MissingCheck, Workflow};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// The most names that a message lists.
const MAX_NAMES: usize = 8;
/// How a missing check is added.
const HOW_TO_ADD: &str =
    "add it to [checks] in counterfoil.toml; `counterfoil init` proposes the usual ones";

/// Whose workflow relies on checks that the project does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WrittenBy {
    /// The user, who can correct a name.
    User,
    /// A pack, which is for projects with other checks, too.
    Pack,
}

/// What is wrong with the checks that a workflow relies on.
#[derive(Debug, Default)]
pub(crate) struct CheckProblems {
    /// Names that are probably misspelt.
    pub(crate) misspelt: Vec<Finding>,
    /// Claims that have to be verified and cannot be: the run would fail by them.
    pub(crate) unverifiable: Vec<String>,
    /// Checks that are not run, although the workflow names them.
    pub(crate) warnings: Vec<String>,
}

/// Compares the checks that a workflow relies on with those of the project.
pub(crate) fn problems(
    workflow: &Workflow,
    configured: &BTreeSet<&str>,
    by: WrittenBy,
) -> CheckProblems {
    let missing = workflow.missing_checks(configured.iter().copied());
    let mut found = CheckProblems::default();
    // Then it is not known yet which checks there will be.
    if workflow.commands_mention(FILE) {
        found.warnings.extend(warning(&missing.iter().collect::<Vec<_>>()));
        return found;
    }
    let mut not_run = Vec::new();
    for one in &missing {
        if by == WrittenBy::User && one.meant.is_some() {
            found.misspelt.extend(one.findings(&workflow.bundle.workflow));
        } else if one.is_required() {
            found.unverifiable.push(unverifiable(one));
        } else {
            not_run.push(one);
        }
    }
    found.warnings.extend(warning(&not_run));
    found
}

/// A claim that has to be verified by a check that is not configured.
fn unverifiable(missing: &MissingCheck) -> String {
    let claims = missing
        .required_claims()
        .map(|(found, claim)| format!("'{}' of state '{}'", claim.name, state_name(found)));
    let claims = join_limited(claims.collect::<BTreeSet<_>>(), MAX_NAMES);
    let hint = meant(missing).unwrap_or_default();
    format!(
        "the check '{}' is not configured, and has to verify the claim {claims}; {hint}{HOW_TO_ADD}",
        missing.check
    )
}

/// The checks that are not configured and that no required claim needs.
fn warning(missing: &[&MissingCheck]) -> Option<String> {
    if missing.is_empty() {
        return None;
    }
    let names = missing.iter().map(|one| match &one.meant {
        Some(meant) => format!("{} (did you mean '{meant}'?)", one.check),
        None => one.check.clone(),
    });
    let is_claimed = missing.iter().any(|one| one.uses.iter().any(|found| found.claim.is_some()));
    let claims = if is_claimed { ", and claims about them are not verified" } else { "" };
    Some(format!(
        "checks of the workflow that are not configured: {}; they are not run{claims}; add them to \
         [checks] in counterfoil.toml; `counterfoil init` proposes the usual ones",
        join_limited(names.collect::<Vec<_>>(), MAX_NAMES)
    ))
}

fn meant(missing: &MissingCheck) -> Option<String> {
    Some(format!("did you mean '{}'? Otherwise ", missing.meant.as_ref()?))
}

fn state_name(found: &CheckUse) -> String {
    match found.machine.as_str() {
        "" => found.state.clone(),
        machine => format!("{machine}/{}", found.state),
    }
}

/// A check that a workflow relies on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ReliedOn {
    /// The check's name.
    pub(crate) name: String,
    /// Whether the project has it; none if its configuration cannot be read.
    pub(crate) configured: Option<bool>,
    /// The states that run it.
    pub(crate) states: Vec<String>,
    /// The claims that it verifies.
    pub(crate) claims: Vec<String>,
    /// Whether one of the claims has to be verified.
    pub(crate) required: bool,
}

/// The checks that a workflow relies on, in the order of the file.
pub(crate) fn relied_on(workflow: &Workflow, configured: Option<&BTreeSet<&str>>) -> Vec<ReliedOn> {
    let mut all: Vec<ReliedOn> = Vec::new();
    for found in &workflow.check_uses {
        let at = match all.iter().position(|one| one.name == found.check) {
            Some(at) => at,
            None => {
                all.push(ReliedOn {
                    name: found.check.clone(),
                    configured: configured.map(|known| known.contains(found.check.as_str())),
                    states: Vec::new(),
                    claims: Vec::new(),
                    required: false,
                });
                all.len() - 1
            }
        };
        let one = &mut all[at];
        let (list, name) = match &found.claim {
            Some(claim) => {
                one.required |= claim.policy == ClaimPolicy::Require;
                (&mut one.claims, claim.name.clone())
            }
            None => (&mut one.states, state_name(found)),
        };
        if !list.contains(&name) {
            list.push(name);
        }
    }
    all
}

/// A check that the claims of a contract rely on and that the project does not have: its name, and
/// what to do about it.
pub(crate) fn missing_for_claims(
    claims: &[EffectiveClaim],
    configured: &BTreeSet<&str>,
) -> Vec<(String, String)> {
    let names: BTreeSet<&str> = claims
        .iter()
        .filter(|claim| claim.claim.policy != ClaimPolicy::Ignore)
        .filter_map(|claim| claim.claim.check.as_deref())
        .filter(|name| !configured.contains(name))
        .collect();
    let fix = |name: &str| match did_you_mean(name, configured.iter().copied()) {
        Some(hint) => format!("{hint} Otherwise {HOW_TO_ADD}"),
        None => HOW_TO_ADD.to_owned(),
    };
    names.into_iter().map(|name| (name.to_owned(), fix(name))).collect()
}
