//! One state machine: its names, limits, states and transitions.

use super::claims::claims_type;
use super::moves::{Outcome, troubles};
use super::types::{Presence, field, run};
use super::{Checker, graph};
use crate::draft::{KindDraft, LimitDraft, MachineDraft, Name, StateDraft};
use crate::finding::Code;
use crate::value::with_article;
use crate::workflow::{Limit, Machine, Role, State, Step, Term};
use counterfoil_contract::{ObjectType, Scope, Type, did_you_mean};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A counter with a key has this bound over all keys, unless it says otherwise.
const TOTAL: u64 = 1000;

/// What a machine's states are checked against.
pub(super) struct Frame<'a, 'n> {
    pub(super) draft: &'a MachineDraft<'n>,
    pub(super) types: &'a BTreeMap<String, Type>,
    pub(super) scope: &'a Scope,
    pub(super) agents: &'a BTreeMap<String, Role>,
    pub(super) states: &'a BTreeSet<&'n str>,
    /// The type of what the machine hands back, if it does.
    pub(super) result: Option<&'a Type>,
    pub(super) sub: bool,
}

pub(super) fn scope_of(types: &BTreeMap<String, Type>) -> Scope {
    types.iter().fold(Scope::default(), |scope, (name, ty)| scope.with(name, ty.clone()))
}

impl<'n> Checker<'n> {
    pub(super) fn machine(
        &mut self,
        name: &'n str,
        draft: &MachineDraft<'n>,
        agents: &BTreeMap<String, Role>,
    ) -> Option<Machine> {
        let before = self.reader.findings.len();
        let (inputs, mut types) = self.inputs(draft);
        if !name.is_empty() {
            // The signature was read before; what is wrong with it was said then.
            self.reader.findings.truncate(before);
        }
        let of_inputs = types.clone();
        let variables = self.variables(draft, &mut types);
        types.insert("run".into(), run());
        types.insert("counts".into(), counts(draft));
        let scope = scope_of(&types);
        let states: BTreeSet<&str> = draft.states.iter().map(|(name, _)| name.text).collect();
        for (name, _) in &draft.states {
            self.plain_name(*name, "a state");
        }
        let limits = self.limits(draft, &of_inputs, &scope, &states);
        let result = self.signatures.get(name).and_then(|signature| signature.result.clone());
        let frame = Frame {
            draft,
            types: &types,
            scope: &scope,
            agents,
            states: &states,
            result: result.as_ref(),
            sub: !name.is_empty(),
        };
        let mut checked = BTreeMap::new();
        for (name, state) in &draft.states {
            if let Some(state) = self.state(*name, state, &frame) {
                checked.insert(name.text.to_owned(), state);
            }
        }
        // Without any states, that is what is wrong.
        let start = draft.start.filter(|_| !states.is_empty());
        let start = start.and_then(|start| self.known_state(start, &states));
        if let Some(iterations) = draft.iterations {
            self.known_limit(iterations, draft);
        }
        self.unused_limits(draft);
        let whole = checked.len() == draft.states.len() && limits.len() == draft.limits.len();
        if let Some(start) = start.filter(|_| whole) {
            graph::check(&mut self.reader, draft, start, &checked, &limits);
        }
        let artifacts = self.artifacts(draft, &types);
        Some(Machine {
            name: name.to_owned(),
            inputs,
            variables,
            limits,
            iterations: draft.iterations.map(|name| name.text.to_owned()),
            start: start?.to_owned(),
            states: checked,
            order: draft.states.iter().map(|(name, _)| name.text.to_owned()).collect(),
            result,
            artifacts,
            types,
        })
    }

    fn limits(
        &mut self,
        draft: &MachineDraft<'n>,
        inputs: &BTreeMap<String, Type>,
        scope: &Scope,
        states: &BTreeSet<&'n str>,
    ) -> BTreeMap<String, Limit> {
        let mut limits = BTreeMap::new();
        for (name, limit) in &draft.limits {
            self.plain_name(*name, "a limit");
            if let Some(limit) = self.limit(limit, inputs, scope, states) {
                limits.insert(name.text.to_owned(), limit);
            }
        }
        limits
    }

    fn limit(
        &mut self,
        draft: &LimitDraft<'n>,
        inputs: &BTreeMap<String, Type>,
        scope: &Scope,
        states: &BTreeSet<&'n str>,
    ) -> Option<Limit> {
        let then = draft.then.and_then(|name| self.known_state(name, states));
        let max = draft.max.and_then(|node| {
            // Only inputs: a bound that the run could move is none.
            let term = self.term(node, &scope_of(inputs), &Type::Int)?;
            if let Term::Literal(value) = &term
                && value.as_u64().is_none_or(|max| max == 0)
            {
                self.report(
                    Code::BadLimit,
                    node,
                    "the limit is less than one",
                    "write a number from 1",
                );
            }
            Some(term)
        });
        let per = draft.per.map(|name| self.expression(name, scope));
        if let Some(Some(per)) = &per
            && !per
                .ty()
                .alternatives()
                .iter()
                .all(|ty| matches!(ty, Type::String(_) | Type::Int | Type::Bool))
            && let Some(name) = draft.per
        {
            let message = format!("a counter cannot be kept by {}", with_article(per.ty()));
            self.report(
                Code::WrongType,
                name.node,
                message,
                "use a text, a whole number or a boolean",
            );
        }
        let total = draft.total.map(|node| self.reader.whole(node, "`total`"));
        if let (Some(node), None) = (draft.total, draft.per) {
            self.report(
                Code::BadLimit,
                node,
                "`total` means nothing without `per`",
                "`max` is the bound",
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
            total: total.flatten().unwrap_or(TOTAL),
        })
    }

    fn unused_limits(&mut self, draft: &MachineDraft<'n>) {
        let mut used: BTreeSet<&str> =
            draft.states.iter().filter_map(|(_, s)| s.counts).map(|n| n.text).collect();
        for (_, state) in &draft.states {
            let moves = state.next.iter().chain(state.on.iter().map(|(_, transition)| transition));
            used.extend(moves.filter_map(|transition| transition.counts).map(|name| name.text));
        }
        for (name, _) in &draft.limits {
            if !used.contains(name.text) {
                let message = format!("nothing counts the limit '{}'", name.text);
                let hint = format!(
                    "add `counts: {}` to a transition or a state, or take it out",
                    name.text
                );
                self.report(Code::Unused, name.node, message, hint);
            }
        }
    }

    pub(super) fn known_state(
        &mut self,
        name: Name<'n>,
        states: &BTreeSet<&'n str>,
    ) -> Option<&'n str> {
        if let Some(known) = states.get(name.text) {
            return Some(known);
        }
        if self.reader.is_full() {
            return None;
        }
        let hint = did_you_mean(name.text, states.iter().copied())
            .unwrap_or_else(|| format!("states here: {}", listed(states.iter().copied())));
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
        name: Name<'n>,
        draft: &MachineDraft<'n>,
    ) -> Option<String> {
        let known = draft.limits.iter().map(|(name, _)| name.text);
        if known.clone().any(|known| known == name.text) {
            return Some(name.text.to_owned());
        }
        let hint =
            did_you_mean(name.text, known.clone()).unwrap_or_else(|| match known.clone().next() {
                Some(_) => format!("limits here: {}", listed(known)),
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
        name: Name<'n>,
        draft: &StateDraft<'n>,
        frame: &Frame<'_, 'n>,
    ) -> Option<State> {
        let step = self.step(draft, frame);
        let counts = draft.counts.map(|name| self.known_limit(name, frame.draft));
        // What cannot be typed is any value, so that one mistake is one finding.
        let result = step.as_ref().map_or(Type::Any, |(_, ty)| ty.clone());
        let claims = match &step {
            Some((Step::Agent(dispatch), _)) => Some(claims_type(&dispatch.claims.policies)),
            // What it claims cannot be told either.
            None if matches!(draft.kind, KindDraft::Agent(_)) => Some(Type::Any),
            _ => None,
        };
        let seen = Outcome { result: &result, claims: claims.as_ref() };
        let next = if matches!(step, Some((Step::End { .. }, _))) {
            Some(Vec::new())
        } else {
            self.next(name, draft, frame, &seen)
        };
        let allowed = step.as_ref().map(|(step, _)| troubles(step));
        let on = self.on(name, draft, frame, &seen, allowed.as_deref());
        let counts = match counts {
            Some(None) => return None,
            Some(counts) => counts,
            None => None,
        };
        Some(State { kind: step?.0, next: next?, on: on?, counts, result, claims })
    }
}

fn counts(draft: &MachineDraft<'_>) -> Type {
    let fields = draft.limits.iter().filter(|(_, limit)| limit.per.is_none()).enumerate().map(
        |(position, (name, _))| {
            (name.text.to_owned(), field(Type::Int, Presence::Always, position))
        },
    );
    Type::Object(Arc::new(ObjectType { fields: fields.collect(), open: false }))
}

pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const MOST: usize = 12;
    let names: Vec<&str> = names.collect();
    if names.len() > MOST {
        return format!("{} and {} more", names[..MOST].join(", "), names.len() - MOST);
    }
    names.join(", ")
}
