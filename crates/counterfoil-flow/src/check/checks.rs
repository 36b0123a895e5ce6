//! Checks which checks of the project the states name. Whether the project has them is not known
//! here: `Workflow::missing_checks` compares them with those of a project, and one that it does not
//! have is `not-configured` when the workflow runs.

use super::Checker;
use crate::ast::{self, SpannedStr};
use crate::finding::Code;
use crate::variable_types::{check_variable, checks_type};
use crate::workflow::{CheckUse, ClaimUse, Step};
use crate::yaml_tree::Node;
use counterfoil_contract::claim::ClaimPolicy;
use counterfoil_contract::expr::Type;
use std::collections::{BTreeMap, BTreeSet};

/// The names of all checks that the states of a workflow run, in the order of the file.
pub(super) fn names(decl: &ast::Workflow<'_>) -> Vec<String> {
    let machines = std::iter::once(&decl.main).chain(decl.machines.iter().map(|(_, one)| one));
    let states = machines.flat_map(|machine| machine.states.iter().map(|(_, state)| state));
    let mut seen = BTreeSet::new();
    let names = states.flat_map(|state| state.checks.iter().map(|name| name.text));
    names.filter(|name| seen.insert(*name)).map(str::to_owned).collect()
}

/// The settings of the claims in a state that runs an agent, for itself or for each item.
fn claims_setting<'n>(kind: &ast::StateKind<'n>) -> Option<&'n Node> {
    match kind {
        ast::StateKind::Agent(step) => step.settings.claims,
        ast::StateKind::Each(each) => match each.body.as_ref()? {
            ast::Body::Agent(step) => step.settings.claims,
            ast::Body::Machine { .. } => None,
        },
        _ => None,
    }
}

impl<'n> Checker<'n> {
    /// The checks of a state, and the type of `checks` in its transitions.
    pub(super) fn state_checks(&mut self, decl: &ast::State<'n>) -> (Vec<String>, Option<Type>) {
        let mut known: BTreeMap<String, &str> = BTreeMap::new();
        for name in &decl.checks {
            self.check_name(*name, "a check");
            match known.insert(check_variable(name.text), name.text) {
                Some(same) if same == name.text => {
                    let message = format!("the check '{}' occurs twice", name.text);
                    self.report(Code::BadName, name.node, message, "remove one of them");
                }
                Some(other) => {
                    let message = format!(
                        "the checks '{other}' and '{}' have the same name in expressions",
                        name.text
                    );
                    self.report(Code::BadName, name.node, message, "rename one of them");
                }
                None => {}
            }
        }
        let names: Vec<String> = decl.checks.iter().map(|name| name.text.to_owned()).collect();
        let ty = (!names.is_empty()).then(|| checks_type(&names));
        (names, ty)
    }

    /// Notes the checks that a state of a machine runs, and those that verify the claims of its agent.
    pub(super) fn note_check_uses(
        &mut self,
        (machine, state): (&str, SpannedStr<'n>),
        decl: &ast::State<'n>,
        step: Option<&Step>,
    ) {
        let used = |check: &str, claim, span| CheckUse {
            check: check.to_owned(),
            machine: machine.to_owned(),
            state: state.text.to_owned(),
            claim,
            span,
        };
        for name in &decl.checks {
            let span = self.reader.first_line(name.node);
            self.check_uses.push(used(name.text, None, span));
        }
        let Some(dispatch) = step.and_then(Step::dispatch) else { return };
        for effective in &dispatch.claims.policies.claims {
            let claim = &effective.claim;
            let Some(check) = claim.check.as_deref() else { continue };
            if claim.policy == ClaimPolicy::Ignore {
                continue;
            }
            let set_here = claims_setting(&decl.kind).and_then(|node| {
                let mut entries = node.entries()?.iter();
                entries.find(|(key, _)| key.text() == Some(&effective.name)).map(|(key, _)| key)
            });
            let span = self.reader.first_line(set_here.unwrap_or(state.node));
            let claim = ClaimUse { name: effective.name.clone(), policy: claim.policy };
            self.check_uses.push(used(check, Some(claim), span));
        }
    }

    /// Reports a variable named `checks` in a machine whose states have checks: it would be hidden.
    pub(super) fn check_hidden_variables(&mut self, machine: &ast::Machine<'n>) {
        if machine.states.iter().all(|(_, state)| state.checks.is_empty()) {
            return;
        }
        let variables = machine.inputs.iter().chain(&machine.variables);
        for (name, _) in variables.filter(|(name, _)| name.text == "checks") {
            let message = "'checks' has another meaning here: a state of the machine runs checks";
            self.report(Code::BadName, name.node, message, "choose another name");
        }
    }
}
