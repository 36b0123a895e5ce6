//! Checks a state machine: its names, limits, states and transitions.

use super::transitions::{StepScope, failure_kinds};
use super::{Checker, state_graph};
use crate::ast::{self, SpannedStr};
use crate::finding::Code;
use crate::value::with_article;
use crate::variable_types::{Presence, claims_type, field, run_type};
use crate::workflow::{Limit, Machine, Role, State, Step, Term};
use counterfoil_contract::expr::{ObjectType, Scope, Type};
use counterfoil_contract::suggest::did_you_mean;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The default of `total`, which bounds a limit with `per` over all its keys.
const DEFAULT_TOTAL: u64 = 1000;

/// The machine that a state is checked in.
pub(super) struct MachineContext<'a, 'n> {
    /// The name; empty for the main machine.
    pub(super) name: &'a str,
    pub(super) machine: &'a ast::Machine<'n>,
    pub(super) types: &'a BTreeMap<String, Type>,
    pub(super) scope: &'a Scope,
    pub(super) agents: &'a BTreeMap<String, Role>,
    pub(super) states: &'a BTreeSet<&'n str>,
    /// The type of the machine's result, if it has one.
    pub(super) result: Option<&'a Type>,
    pub(super) is_sub_workflow: bool,
}

/// An expression scope with these variables.
pub(super) fn scope_from_types(types: &BTreeMap<String, Type>) -> Scope {
    types.iter().fold(Scope::default(), |scope, (name, ty)| scope.with(name, ty.clone()))
}

impl<'n> Checker<'n> {
    pub(super) fn machine(
        &mut self,
        name: &'n str,
        decl: &ast::Machine<'n>,
        agents: &BTreeMap<String, Role>,
    ) -> Option<Machine> {
        let before = self.reader.findings.len();
        let (inputs, mut types) = self.inputs(decl);
        if !name.is_empty() {
            // The inputs were checked with the signatures; drop the repeated findings.
            self.reader.findings.truncate(before);
        }
        let input_types = types.clone();
        let variables = self.variables(decl, &mut types);
        self.check_hidden_variables(decl);
        types.insert("run".into(), run_type(&self.checks));
        types.insert("counts".into(), counts_type(decl));
        let scope = scope_from_types(&types);
        let states: BTreeSet<&str> = decl.states.iter().map(|(name, _)| name.text).collect();
        for (name, _) in &decl.states {
            self.check_name(*name, "a state");
        }
        let limits = self.limits(decl, &input_types, &scope, &states);
        let result = self.signatures.get(name).and_then(|signature| signature.result.clone());
        let context = MachineContext {
            name,
            machine: decl,
            types: &types,
            scope: &scope,
            agents,
            states: &states,
            result: result.as_ref(),
            is_sub_workflow: !name.is_empty(),
        };
        let mut checked = BTreeMap::new();
        for (name, state) in &decl.states {
            if self.is_late(name.node) {
                return None;
            }
            if let Some(state) = self.state(*name, state, &context) {
                checked.insert(name.text.to_owned(), state);
            }
        }
        let start = decl.start.and_then(|start| self.known_state(start, &states));
        if decl.states.first().is_some_and(|(name, _)| self.is_late(name.node)) {
            return None;
        }
        if let Some(iterations) = decl.iterations {
            self.known_limit(iterations, decl);
        }
        self.unused_limits(decl);
        let is_complete = checked.len() == decl.states.len() && limits.len() == decl.limits.len();
        if let Some(start) = start.filter(|_| is_complete) {
            state_graph::check(&mut self.reader, decl, start, &checked, &limits);
        }
        let artifacts = self.artifacts(decl, &types);
        Some(Machine {
            name: name.to_owned(),
            inputs,
            variables,
            limits,
            iterations: decl.iterations.map(|name| name.text.to_owned()),
            start: start?.to_owned(),
            states: checked,
            order: decl.states.iter().map(|(name, _)| name.text.to_owned()).collect(),
            result,
            artifacts,
            types,
        })
    }

    fn limits(
        &mut self,
        decl: &ast::Machine<'n>,
        inputs: &BTreeMap<String, Type>,
        scope: &Scope,
        states: &BTreeSet<&'n str>,
    ) -> BTreeMap<String, Limit> {
        let mut limits = BTreeMap::new();
        for (name, limit) in &decl.limits {
            self.check_name(*name, "a limit");
            if let Some(limit) = self.limit(limit, inputs, scope, states) {
                limits.insert(name.text.to_owned(), limit);
            }
        }
        limits
    }

    fn limit(
        &mut self,
        decl: &ast::Limit<'n>,
        inputs: &BTreeMap<String, Type>,
        scope: &Scope,
        states: &BTreeSet<&'n str>,
    ) -> Option<Limit> {
        let then = decl.then.and_then(|name| self.known_state(name, states));
        let max = decl.max.and_then(|node| {
            // Only inputs are in scope: the run cannot change the bound.
            let term = self.term(node, &scope_from_types(inputs), &Type::Int)?;
            if let Term::Literal(value) = &term
                && value.as_u64().is_none_or(|max| max == 0)
            {
                self.report(
                    Code::BadLimit,
                    node,
                    "the limit must be at least 1",
                    "write a whole number of at least 1",
                );
            }
            Some(term)
        });
        let per = decl.per.map(|name| self.expression(name, scope));
        if let Some(Some(per)) = &per
            && !per
                .ty()
                .alternatives()
                .iter()
                .all(|ty| matches!(ty, Type::String(_) | Type::Int | Type::Bool))
            && let Some(name) = decl.per
        {
            let message = format!("`per` is {}, which cannot be a key", with_article(per.ty()));
            self.report(
                Code::WrongType,
                name.node,
                message,
                "use a string, an integer or a boolean",
            );
        }
        let total = decl.total.map(|node| self.reader.unsigned(node, "`total`"));
        if let (Some(node), None) = (decl.total, decl.per) {
            self.report(
                Code::BadLimit,
                node,
                "`total` has no effect without `per`",
                "remove `total`, or add `per`",
            );
        }
        let per = match per {
            Some(None) => return None,
            Some(per) => per,
            None => None,
        };
        Some(Limit {
            max: max?,
            then: then?.to_owned(),
            per,
            total: total.flatten().unwrap_or(DEFAULT_TOTAL),
        })
    }

    fn unused_limits(&mut self, decl: &ast::Machine<'n>) {
        if !decl.is_clear() {
            return;
        }
        let mut used: BTreeSet<&str> =
            decl.states.iter().filter_map(|(_, s)| s.counts).map(|n| n.text).collect();
        for (_, state) in &decl.states {
            let transitions =
                state.next.iter().chain(state.on.iter().map(|(_, transition)| transition));
            used.extend(
                transitions.filter_map(|transition| transition.counts).map(|name| name.text),
            );
        }
        // A name that is not known may stand for one that is not used.
        let known = decl.limits.iter().map(|(name, _)| name.text);
        if used.iter().any(|name| !known.clone().any(|known| known == *name)) {
            return;
        }
        for (name, _) in &decl.limits {
            if !used.contains(name.text) {
                let message = format!("the limit '{}' is never counted", name.text);
                let hint = format!(
                    "add `counts: {}` to a transition or a state, or remove the limit",
                    name.text
                );
                self.report(Code::Unused, name.node, message, hint);
            }
        }
    }

    pub(super) fn known_state(
        &mut self,
        name: SpannedStr<'n>,
        states: &BTreeSet<&'n str>,
    ) -> Option<&'n str> {
        if let Some(known) = states.get(name.text) {
            return Some(known);
        }
        // A machine without states has its own finding.
        if states.is_empty() || self.reader.at_limit() {
            return None;
        }
        let hint = did_you_mean(name.text, states.iter().copied())
            .unwrap_or_else(|| format!("known states: {}", join_limited(states.iter().copied())));
        self.report(
            Code::UnknownState,
            name.node,
            format!("no state is named '{}'", name.text),
            hint,
        );
        None
    }

    pub(super) fn known_limit(
        &mut self,
        name: SpannedStr<'n>,
        decl: &ast::Machine<'n>,
    ) -> Option<String> {
        let known = decl.limits.iter().map(|(name, _)| name.text);
        if known.clone().any(|known| known == name.text) {
            return Some(name.text.to_owned());
        }
        let hint =
            did_you_mean(name.text, known.clone()).unwrap_or_else(|| match known.clone().next() {
                Some(_) => format!("known limits: {}", join_limited(known)),
                None => format!("declare it: limits: {{ {}: {{ max: 5, then: … }} }}", name.text),
            });
        self.report(
            Code::UnknownLimit,
            name.node,
            format!("no limit is named '{}'", name.text),
            hint,
        );
        None
    }

    fn state(
        &mut self,
        name: SpannedStr<'n>,
        decl: &ast::State<'n>,
        context: &MachineContext<'_, 'n>,
    ) -> Option<State> {
        let step = self.step(decl, context);
        let counts = decl.counts.map(|name| self.known_limit(name, context.machine));
        // The result of an invalid step can be anything, so that one mistake causes one finding.
        let result = step.as_ref().map_or(Type::Any, |(_, ty)| ty.clone());
        let claims = match &step {
            Some((Step::Agent(dispatch), _)) => Some(claims_type(&dispatch.claims.policies)),
            // The same holds for its claims.
            None if matches!(decl.kind, ast::StateKind::Agent(_)) => Some(Type::Any),
            _ => None,
        };
        let (checks, checks_type) = self.state_checks(decl);
        self.note_check_uses((context.name, name), decl, step.as_ref().map(|(step, _)| step));
        let step_scope =
            StepScope { result: &result, claims: claims.as_ref(), checks: checks_type.as_ref() };
        let next = if matches!(step, Some((Step::End { .. }, _))) {
            Some(Vec::new())
        } else {
            self.next(name, decl, context, &step_scope)
        };
        let possible = step.as_ref().map(|(step, _)| failure_kinds(step));
        let on = self.on(name, decl, context, &step_scope, possible.as_deref());
        let counts = match counts {
            Some(None) => return None,
            Some(counts) => counts,
            None => None,
        };
        Some(State {
            kind: step?.0,
            next: next?,
            on: on?,
            counts,
            result,
            claims,
            checks,
            checks_type,
        })
    }
}

/// The type of `counts`: the number of times each limit has been counted.
fn counts_type(decl: &ast::Machine<'_>) -> Type {
    let fields = decl.limits.iter().filter(|(_, limit)| limit.per.is_none()).enumerate().map(
        |(position, (name, _))| {
            (name.text.to_owned(), field(Type::Int, Presence::Required, position))
        },
    );
    Type::Object(Arc::new(ObjectType { fields: fields.collect(), open: false }))
}

/// Joins names with commas, up to a maximum number.
pub(super) fn join_limited<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const MAX_NAMES: usize = 12;
    counterfoil_contract::text::join_limited(names, MAX_NAMES)
}
