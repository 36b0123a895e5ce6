//! One state machine: its names, limits, states and transitions.

use super::types::{Presence, field, object, one_of, run};
use super::{Checker, graph};
use crate::draft::{LimitDraft, MachineDraft, Name, StateDraft, TransitionDraft};
use crate::finding::Code;
use crate::tree::{Kind, Node};
use crate::value::with_article;
use crate::workflow::{Limit, Machine, Role, State, Step, Target, Term, Transition, Trouble};
use countersign_contract::{Expression, ObjectType, Scope, Type, assignable, branches, did_you_mean};
use serde_json::Value;
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
                self.report(Code::BadLimit, node, "the limit is less than one", "write a number from 1");
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
            self.report(Code::WrongType, name.node, message, "use a text, a whole number or a boolean");
        }
        let total = draft.total.map(|node| self.reader.whole(node, "`total`"));
        if let (Some(node), None) = (draft.total, draft.per) {
            self.report(Code::BadLimit, node, "`total` means nothing without `per`", "`max` is the bound");
        }
        let per = match per {
            Some(None) => return None,
            Some(per) => per,
            None => None,
        };
        Some(Limit { max: max?, then: then?.to_owned(), per, total: total.flatten().unwrap_or(TOTAL) })
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
                let hint = format!("add `counts: {}` to a transition or a state, or take it out", name.text);
                self.report(Code::Unused, name.node, message, hint);
            }
        }
    }

    pub(super) fn known_state(&mut self, name: Name<'n>, states: &BTreeSet<&'n str>) -> Option<&'n str> {
        if let Some(known) = states.get(name.text) {
            return Some(known);
        }
        if self.reader.is_full() {
            return None;
        }
        let hint = did_you_mean(name.text, states.iter().copied())
            .unwrap_or_else(|| format!("states here: {}", listed(states.iter().copied())));
        self.report(Code::UnknownState, name.node, format!("no state is named '{}'", name.text), hint);
        None
    }

    fn known_limit(&mut self, name: Name<'n>, draft: &MachineDraft<'n>) -> Option<String> {
        let known = draft.limits.iter().map(|(name, _)| name.text);
        if known.clone().any(|known| known == name.text) {
            return Some(name.text.to_owned());
        }
        let hint = did_you_mean(name.text, known.clone()).unwrap_or_else(|| match known.clone().next() {
            Some(_) => format!("limits here: {}", listed(known)),
            None => format!("declare it: limits: {{ {}: {{ max: 5, then: … }} }}", name.text),
        });
        self.report(Code::UnknownLimit, name.node, format!("no limit is named '{}'", name.text), hint);
        None
    }

    fn state(&mut self, name: Name<'n>, draft: &StateDraft<'n>, frame: &Frame<'_, 'n>) -> Option<State> {
        let step = self.step(draft, frame);
        let counts = draft.counts.map(|name| self.known_limit(name, frame.draft));
        // What cannot be typed is any value, so that one mistake is one finding.
        let result = step.as_ref().map_or(Type::Any, |(_, ty)| ty.clone());
        let next = if matches!(step, Some((Step::End { .. }, _))) {
            Some(Vec::new())
        } else {
            self.next(name, draft, frame, &result)
        };
        let allowed = step.as_ref().map(|(step, _)| troubles(step));
        let on = self.on(name, draft, frame, &result, allowed.as_deref());
        let counts = match counts {
            Some(None) => return None,
            Some(counts) => counts,
            None => None,
        };
        Some(State { kind: step?.0, next: next?, on: on?, counts, result })
    }

    fn next(
        &mut self,
        name: Name<'n>,
        draft: &StateDraft<'n>,
        frame: &Frame<'_, 'n>,
        result: &Type,
    ) -> Option<Vec<Transition>> {
        let mut scope = frame.scope.clone().with("result", result.clone());
        let whole = scope.clone();
        let mut transitions = Vec::new();
        for transition in &draft.next {
            let checked = self.transition(transition, frame, &scope);
            // Where an earlier guard failed, its opposite holds.
            if let Some(guard) = checked.as_ref().and_then(|checked| checked.when.as_ref()) {
                scope = scope.knowing_not(guard);
            }
            transitions.push(checked);
        }
        let transitions: Vec<Transition> = transitions.into_iter().collect::<Option<_>>()?;
        // One that leads nowhere was reported; there is no more to say of it.
        if transitions.is_empty() {
            return None;
        }
        let guards: Vec<Option<&Expression>> = transitions.iter().map(|one| one.when.as_ref()).collect();
        let found = branches(&guards, &whole);
        for (index, why) in found.dead {
            let node = draft.next.get(index).map_or(draft.node, |transition| transition.node);
            self.report(
                Code::NeverFires,
                node,
                format!("this transition can never fire: {why}"),
                "take it out, or put it before the one that shadows it",
            );
        }
        if let Some(witness) = found.uncovered {
            let message = format!("the transitions of '{}' do not cover {witness}", name.text);
            self.report(
                Code::NotCovered,
                name.node,
                message,
                "add a transition for it, or a default: - { go: … }",
            );
        }
        Some(transitions)
    }

    fn on(
        &mut self,
        name: Name<'n>,
        draft: &StateDraft<'n>,
        frame: &Frame<'_, 'n>,
        result: &Type,
        allowed: Option<&[Trouble]>,
    ) -> Option<BTreeMap<Trouble, Transition>> {
        let mut on = BTreeMap::new();
        let mut whole = true;
        for (trouble, transition) in &draft.on {
            let scope = frame.scope.clone().with("problem", problem_type(result));
            let checked = self.transition(transition, frame, &scope);
            if transition.when.is_some() {
                let message = "a transition on trouble has no guard";
                self.report(
                    Code::WrongForm,
                    transition.node,
                    message,
                    "go to a state without a step and branch there",
                );
                whole = false;
            }
            let known = Trouble::ALL.iter().find(|known| known.name() == trouble.text);
            match (known, checked) {
                (Some(known), Some(checked)) => {
                    if allowed.is_some_and(|allowed| !allowed.contains(known)) {
                        let can = allowed.into_iter().flatten().map(|trouble| trouble.name());
                        let message = format!("state '{}' never ends as '{}'", name.text, trouble.text);
                        let hint = match listed(can) {
                            none if none.is_empty() => "nothing can go wrong in it: take `on` out".to_owned(),
                            can => format!("it can: {can}"),
                        };
                        self.report(Code::UnknownKey, trouble.node, message, hint);
                    }
                    on.insert(*known, checked);
                }
                (None, _) => {
                    let names = Trouble::ALL.iter().map(|trouble| trouble.name());
                    let hint = did_you_mean(trouble.text, names.clone())
                        .unwrap_or_else(|| format!("known: {}", listed(names)));
                    self.report(
                        Code::UnknownKey,
                        trouble.node,
                        format!("'{}' is no trouble", trouble.text),
                        hint,
                    );
                    whole = false;
                }
                (Some(_), None) => whole = false,
            }
        }
        whole.then_some(on)
    }

    fn transition(
        &mut self,
        draft: &TransitionDraft<'n>,
        frame: &Frame<'_, 'n>,
        scope: &Scope,
    ) -> Option<Transition> {
        let mut whole = true;
        let when = match draft.when {
            None => None,
            Some(node) => {
                let guard = self.guard(node, scope);
                whole &= guard.is_some();
                guard
            }
        };
        let scope = match &when {
            Some(guard) => scope.clone().knowing(guard),
            None => scope.clone(),
        };
        let mut set = Vec::new();
        for (name, node) in &draft.set {
            let Some(ty) = self.assigned(*name, frame) else {
                whole = false;
                continue;
            };
            match self.term(node, &scope, &ty) {
                Some(term) => set.push((name.text.to_owned(), term)),
                None => whole = false,
            }
        }
        let reason = draft.reason.map(|node| self.term(node, &scope, &Type::Any));
        let counts = draft.counts.map(|name| self.known_limit(name, frame.draft));
        let resets: Vec<Option<String>> =
            draft.resets.iter().map(|name| self.known_limit(*name, frame.draft)).collect();
        let go = match (draft.go, draft.goto) {
            (Some(name), _) => {
                self.known_state(name, frame.states).map(|name| Target::State(name.to_owned()))
            }
            (None, Some(name)) => self.computed(name, frame, &scope),
            (None, None) => None,
        };
        if !whole || matches!(reason, Some(None)) || matches!(counts, Some(None)) {
            return None;
        }
        Some(Transition {
            when,
            set,
            go: go?,
            reason: reason.flatten(),
            counts: counts.flatten(),
            resets: resets.into_iter().collect::<Option<_>>()?,
        })
    }

    fn assigned(&mut self, name: Name<'n>, frame: &Frame<'_, 'n>) -> Option<Type> {
        let variables = frame.draft.variables.iter().map(|(name, _)| name.text);
        if variables.clone().any(|known| known == name.text) {
            return frame.types.get(name.text).cloned();
        }
        let (message, hint) = if frame.draft.inputs.iter().any(|(input, _)| input.text == name.text) {
            (
                format!("'{}' is an input and does not change", name.text),
                "declare a variable for it".to_owned(),
            )
        } else {
            let hint = did_you_mean(name.text, variables.clone()).unwrap_or_else(|| {
                match variables.clone().next() {
                    Some(_) => format!("variables here: {}", listed(variables)),
                    None => format!("declare it: variables: {{ {}: string? }}", name.text),
                }
            });
            (format!("no variable is named '{}'", name.text), hint)
        };
        self.report(Code::UnknownVariable, name.node, message, hint);
        None
    }

    fn computed(&mut self, name: Name<'n>, frame: &Frame<'_, 'n>, scope: &Scope) -> Option<Target> {
        let expression = self.expression(name, scope)?;
        let Type::String(Some(values)) = expression.ty().clone() else {
            let message =
                format!("the target is {}, not one of a set of states", with_article(expression.ty()));
            self.report(
                Code::BadTarget,
                name.node,
                message,
                "use a field or variable whose type lists the states",
            );
            return None;
        };
        let mut good = true;
        for value in values.iter() {
            if !frame.states.contains(value.as_str()) {
                let hint = did_you_mean(value, frame.states.iter().copied())
                    .unwrap_or_else(|| format!("states here: {}", listed(frame.states.iter().copied())));
                let message = format!("the target may be '{value}', and no state is named so");
                self.report(Code::BadTarget, name.node, message, hint);
                good = false;
            }
        }
        good.then(|| Target::Computed(expression, values.as_ref().clone()))
    }

    fn guard(&mut self, node: &'n Node, scope: &Scope) -> Option<Expression> {
        let text = match &node.kind {
            Kind::Text(text) => text.as_str(),
            Kind::Bool(true) => "true",
            Kind::Bool(false) => "false",
            _ => {
                let message = format!("a guard is an expression, not {}", node.name());
                self.report(Code::WrongForm, node, message, "write when: result.ok");
                return None;
            }
        };
        let guard = self.expression(Name { text, node }, scope)?;
        if *guard.ty() == Type::Bool {
            return Some(guard);
        }
        let message = format!("a guard is true or false, and this is {}", with_article(guard.ty()));
        self.report(Code::NotACondition, node, message, "compare it with something");
        None
    }

    /// An expression, its problems reported where they stand.
    pub(super) fn expression(&mut self, name: Name<'n>, scope: &Scope) -> Option<Expression> {
        match Expression::compile(name.text, scope) {
            Ok(expression) => Some(expression),
            Err(problems) => {
                for problem in problems {
                    let part = (problem.start, problem.end);
                    self.reader.report_inside(
                        Code::BadExpression,
                        name.node,
                        part,
                        &problem.message,
                        &problem.hint,
                    );
                }
                None
            }
        }
    }

    /// A value written down (anything but a text) or computed (a text), of a type.
    pub(super) fn term(&mut self, node: &'n Node, scope: &Scope, ty: &Type) -> Option<Term> {
        let Some(text) = node.text() else { return self.literal(node, ty).map(Term::Literal) };
        if let Some(read) = soft_read(text, scope, ty) {
            return Some(Term::Computed(read));
        }
        let is_meant_as_words = text.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
            && *ty != Type::Any
            && crate::value::fits(&Value::String(text.to_owned()), ty).is_ok();
        let words = || format!("a text is an expression here; for the words themselves write \"'{text}'\"");
        if is_meant_as_words && let Err(problems) = Expression::compile(text, scope) {
            let message = problems.first().map(|problem| problem.message.clone()).unwrap_or_default();
            self.report(Code::BadExpression, node, message, words());
            return None;
        }
        let expression = self.expression(Name { text, node }, scope)?;
        // A type that says nothing takes everything.
        if *ty != Type::Any
            && let Err(why) = assignable(expression.ty(), ty)
        {
            let message = format!("expected {ty}: {why}");
            let hint = if is_meant_as_words { words() } else { "assign a value of that type".to_owned() };
            self.report(Code::WrongType, node, message, hint);
            return None;
        }
        Some(Term::Computed(expression))
    }
}

/// A field that may be missing, read as null where null will do: `fix_info: result.fix_info` needs no guard if the
/// variable is optional.
fn soft_read(text: &str, scope: &Scope, ty: &Type) -> Option<Expression> {
    let is_path = text.contains('.')
        && text.split('.').all(|part| {
            part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
    if !is_path || !ty.is_nullable() || Expression::compile(text, scope).is_ok() {
        return None;
    }
    let read = Expression::compile(&format!("has({text}) ? {text} : null"), scope).ok()?;
    (*ty == Type::Any || assignable(read.ty(), ty).is_ok()).then_some(read)
}

/// What can go wrong in a state of this kind.
fn troubles(step: &Step) -> Vec<Trouble> {
    use Trouble::{
        Agent, Any, Blocked, Claim, Contract, Exhausted, Failed, Limit, Order, Permission, Timeout, Transport,
    };
    match step {
        Step::Agent(_) => vec![Contract, Claim, Agent, Transport, Limit, Permission, Timeout, Blocked, Any],
        Step::Command(command) if command.output.is_some() => vec![Contract, Timeout, Any],
        Step::Command(_) => vec![Timeout, Any],
        Step::Each(each) => {
            let mut troubles = vec![Order];
            if each.failures == crate::workflow::Failures::Stop {
                troubles.extend([Blocked, Failed, Exhausted]);
            }
            troubles.push(Any);
            troubles
        }
        Step::Call { .. } => vec![Blocked, Failed, Exhausted, Any],
        Step::Ask(_) | Step::Route | Step::End { .. } => Vec::new(),
    }
}

/// What `problem` is in a transition on trouble.
pub(crate) fn problem_type(result: &Type) -> Type {
    let names = Trouble::ALL.iter().filter(|trouble| **trouble != Trouble::Any);
    let outcome = Type::String(Some(Arc::new(names.map(|trouble| trouble.name().to_owned()).collect())));
    let Type::Object(plain) = object([("outcome", outcome), ("reason", Type::text())]) else {
        return Type::Any;
    };
    let mut fields = plain.fields.clone();
    fields.insert("partial".into(), field(result.clone(), Presence::Sometimes, 2));
    fields.insert("cause".into(), field(one_of(CAUSES), Presence::Sometimes, 3));
    Type::Object(Arc::new(ObjectType { fields, open: false }))
}

/// Why a machine failed.
const CAUSES: [&str; 8] =
    ["contract", "claim", "agent", "transport", "limit", "permission", "timeout", "no-progress"];

fn counts(draft: &MachineDraft<'_>) -> Type {
    let fields =
        draft.limits.iter().filter(|(_, limit)| limit.per.is_none()).enumerate().map(
            |(position, (name, _))| (name.text.to_owned(), field(Type::Int, Presence::Always, position)),
        );
    Type::Object(Arc::new(ObjectType { fields: fields.collect(), open: false }))
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const MOST: usize = 12;
    let names: Vec<&str> = names.collect();
    if names.len() > MOST {
        return format!("{} and {} more", names[..MOST].join(", "), names.len() - MOST);
    }
    names.join(", ")
}
