//! The checks that a workflow or a contract relies on, compared with those of the project.

use counterfoil_contract::claim::{ClaimPolicy, EffectiveClaim};
use counterfoil_contract::suggest::{check_line, did_you_mean, how_to_add_check};
use counterfoil_contract::text::join_limited;
use counterfoil_engine::config::FILE;
use counterfoil_flow::{CheckUse, Finding, MissingCheck, Workflow};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The most names that a message lists.
const MAX_NAMES: usize = 8;

/// The commands of checks that the build files of the project propose, by the names of the checks.
pub(crate) type Proposed = BTreeMap<&'static str, String>;

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

/// Compares the checks that a workflow relies on with those of the project. What to add for one that is
/// missing has the proposed command, if there is one.
pub(crate) fn problems(
    workflow: &Workflow,
    configured: &BTreeSet<&str>,
    by: WrittenBy,
    proposed: &Proposed,
) -> CheckProblems {
    let missing = workflow.missing_checks(configured.iter().copied());
    let mut found = CheckProblems::default();
    // Then it is not known yet which checks there will be.
    if workflow.commands_mention(FILE) {
        found.warnings.extend(warning(&missing.iter().collect::<Vec<_>>(), proposed));
        return found;
    }
    let mut not_run = Vec::new();
    for one in &missing {
        if by == WrittenBy::User && one.meant.is_some() {
            found.misspelt.extend(one.findings(&workflow.bundle.workflow));
        } else if one.is_required() {
            found.unverifiable.push(unverifiable(one, proposed));
        } else {
            not_run.push(one);
        }
    }
    found.warnings.extend(warning(&not_run, proposed));
    found
}

/// A claim that has to be verified by a check that is not configured.
fn unverifiable(missing: &MissingCheck, proposed: &Proposed) -> String {
    let claims = missing
        .required_claims()
        .map(|(found, claim)| format!("'{}' of state '{}'", claim.name, state_name(found)));
    let claims = join_limited(claims.collect::<BTreeSet<_>>(), MAX_NAMES);
    format!(
        "there is no check {}; the claim {claims} stays not verified until there is one: {}",
        named(missing),
        how_to_add(&missing.check, proposed)
    )
}

/// The checks that are not configured and that no required claim needs.
fn warning(missing: &[&MissingCheck], proposed: &Proposed) -> Option<String> {
    let is_claimed = missing.iter().any(|one| one.uses.iter().any(|found| found.claim.is_some()));
    let (none, consequence) = match (missing, is_claimed) {
        ([], _) => return None,
        ([_], false) => ("there is no check", "it is not run until there is one"),
        ([_], true) => (
            "there is no check",
            "it is not run, and claims about it stay not verified until there is one",
        ),
        (_, false) => ("there are no checks", "they are not run until there are"),
        (_, true) => (
            "there are no checks",
            "they are not run, and claims about them stay not verified until there are",
        ),
    };
    let names = join_limited(missing.iter().map(|one| named(one)), MAX_NAMES);
    let line = |one: &&MissingCheck| format!("`{}`", line_to_add(&one.check, proposed));
    let lines = join_limited(missing.iter().map(line), MAX_NAMES);
    Some(format!("{none} {names}; {consequence}: add {lines} to [checks] in {FILE}"))
}

/// The name of a missing check, and the check of the project that was probably meant.
fn named(missing: &MissingCheck) -> String {
    match &missing.meant {
        Some(meant) => format!("'{}' (did you mean '{meant}'?)", missing.check),
        None => format!("'{}'", missing.check),
    }
}

/// How a missing check is added.
fn how_to_add(name: &str, proposed: &Proposed) -> String {
    how_to_add_check(name, proposed.get(name).map(String::as_str), FILE)
}

/// The line that adds a missing check.
fn line_to_add(name: &str, proposed: &Proposed) -> String {
    check_line(name, proposed.get(name).map(String::as_str))
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

/// The checks that workflows of the project rely on and that it does not have: each with what follows
/// from that, and what to do about it.
pub(crate) fn missing_for_workflows<'a>(
    workflows: impl IntoIterator<Item = (String, &'a [MissingCheck])>,
    proposed: &Proposed,
) -> Vec<(String, String)> {
    let mut all: BTreeMap<&str, (&MissingCheck, Vec<String>, Vec<String>)> = BTreeMap::new();
    for (file, missing) in workflows {
        for one in missing {
            let (_, refused, warned) =
                all.entry(&one.check).or_insert_with(|| (one, Vec::new(), Vec::new()));
            // `run` refuses a name that is probably misspelt, and what could only fail.
            let is_refused = one.is_required() || one.meant.is_some();
            if is_refused { refused } else { warned }.push(file.clone());
        }
    }
    let text =
        |(name, (one, refused, warned)): (&str, (&MissingCheck, Vec<String>, Vec<String>))| {
            let mut consequences = Vec::new();
            if !refused.is_empty() {
                let files = join_limited(refused, MAX_NAMES);
                consequences.push(format!("`run` refuses {files} until there is one"));
            }
            if !warned.is_empty() {
                let files = join_limited(warned, MAX_NAMES);
                consequences.push(format!(
                "until there is one, {files} cannot run it, and claims about it stay not verified"
            ));
            }
            let fix = match &one.meant {
                Some(meant) => {
                    format!("did you mean '{meant}'? Otherwise {}", how_to_add(name, proposed))
                }
                None => how_to_add(name, proposed),
            };
            (format!("'{name}'; {}", consequences.join("; ")), fix)
        };
    all.into_iter().map(text).collect()
}

/// A check that the claims of a contract rely on and that the project does not have: its name, and
/// what to do about it.
pub(crate) fn missing_for_claims(
    claims: &[EffectiveClaim],
    configured: &BTreeSet<&str>,
    proposed: &Proposed,
) -> Vec<(String, String)> {
    let names: BTreeSet<&str> = claims
        .iter()
        .filter(|claim| claim.claim.policy != ClaimPolicy::Ignore)
        .filter_map(|claim| claim.claim.check.as_deref())
        .filter(|name| !configured.contains(name))
        .collect();
    let fix = |name: &str| match did_you_mean(name, configured.iter().copied()) {
        Some(hint) => format!("{hint} Otherwise {}", how_to_add(name, proposed)),
        None => how_to_add(name, proposed),
    };
    names.into_iter().map(|name| (name.to_owned(), fix(name))).collect()
}
