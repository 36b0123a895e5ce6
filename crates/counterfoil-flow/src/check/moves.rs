//! Transitions: guards that are total and alive, targets that exist, assignments of the right type.

use super::Checker;
use super::machine::{Frame, listed};
use super::types::{Presence, field, object, one_of};
use crate::draft::{Name, StateDraft, TransitionDraft};
use crate::finding::Code;
use crate::tree::{Kind, Node};
use crate::value::with_article;
use crate::workflow::{FailureKind, Failures, Step, Target, Transition, Wait, WorkspaceMode};
use counterfoil_contract::{Expression, ObjectType, Scope, Type, branches, did_you_mean};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the transitions of a state can see of its step.
pub(super) struct Outcome<'a> {
    pub(super) result: &'a Type,
    /// For the state of an agent.
    pub(super) claims: Option<&'a Type>,
}

impl Outcome<'_> {
    fn with_claims(&self, scope: Scope) -> Scope {
        match self.claims {
            Some(claims) => scope.with("claims", claims.clone()),
            None => scope,
        }
    }
}

impl<'n> Checker<'n> {
    pub(super) fn next(
        &mut self,
        name: Name<'n>,
        draft: &StateDraft<'n>,
        frame: &Frame<'_, 'n>,
        step: &Outcome<'_>,
    ) -> Option<Vec<Transition>> {
        let mut scope = step.with_claims(frame.scope.clone().with("result", step.result.clone()));
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
        let guards: Vec<Option<&Expression>> =
            transitions.iter().map(|one| one.when.as_ref()).collect();
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

    pub(super) fn on(
        &mut self,
        name: Name<'n>,
        draft: &StateDraft<'n>,
        frame: &Frame<'_, 'n>,
        step: &Outcome<'_>,
        allowed: Option<&[FailureKind]>,
    ) -> Option<BTreeMap<FailureKind, Transition>> {
        let mut on = BTreeMap::new();
        let mut whole = true;
        for (trouble, transition) in &draft.on {
            let scope =
                step.with_claims(frame.scope.clone().with("problem", problem_type(step.result)));
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
            let known = FailureKind::ALL.iter().find(|known| known.name() == trouble.text);
            match (known, checked) {
                (Some(known), Some(checked)) => {
                    if allowed.is_some_and(|allowed| !allowed.contains(known)) {
                        let can = allowed.into_iter().flatten().map(|trouble| trouble.name());
                        let message =
                            format!("state '{}' never ends as '{}'", name.text, trouble.text);
                        let hint = match listed(can) {
                            none if none.is_empty() => {
                                "nothing can go wrong in it: take `on` out".to_owned()
                            }
                            can => format!("it can: {can}"),
                        };
                        self.report(Code::UnknownKey, trouble.node, message, hint);
                    }
                    on.insert(*known, checked);
                }
                (None, _) => {
                    let names = FailureKind::ALL.iter().map(|trouble| trouble.name());
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
        let wait = draft.wait.map(|node| {
            self.starts_something(node, go.as_ref(), frame);
            self.pause(node, &scope)
        });
        if !whole
            || matches!(reason, Some(None))
            || matches!(counts, Some(None))
            || matches!(wait, Some(None))
        {
            return None;
        }
        Some(Transition {
            when,
            set,
            go: go?,
            reason: reason.flatten(),
            counts: counts.flatten(),
            resets: resets.into_iter().collect::<Option<_>>()?,
            wait: wait.flatten(),
        })
    }

    /// A duration, or an expression that gives seconds.
    fn pause(&mut self, node: &'n Node, scope: &Scope) -> Option<Wait> {
        let text = node.text().filter(|text| text.parse::<jiff::SignedDuration>().is_err());
        let Some(text) = text else { return self.duration(node, "`wait`").map(Wait::For) };
        let seconds = self.expression(Name { text, node }, scope)?;
        if *seconds.ty() == Type::Int {
            return Some(Wait::Seconds(seconds));
        }
        let message = format!("`wait` is {}, not a number of seconds", with_article(seconds.ty()));
        self.report(
            Code::WrongType,
            node,
            message,
            "write 30s, or an expression that gives an integer",
        );
        None
    }

    /// Only what is started can wait: a question or a branch would not.
    fn starts_something(&mut self, node: &'n Node, go: Option<&Target>, frame: &Frame<'_, 'n>) {
        let Some(go) = go else { return };
        let idle = go.states().iter().find(|name| {
            let state = frame.draft.states.iter().find(|(known, _)| known.text == name.as_str());
            state.is_some_and(|(_, state)| !state.kind.is_started())
        });
        if let Some(name) = idle {
            let message = format!("nothing is started in '{name}' that could wait");
            self.report(
                Code::WrongForm,
                node,
                message,
                "lead to a state in which an agent or a command works",
            );
        }
    }

    fn assigned(&mut self, name: Name<'n>, frame: &Frame<'_, 'n>) -> Option<Type> {
        let variables = frame.draft.variables.iter().map(|(name, _)| name.text);
        if variables.clone().any(|known| known == name.text) {
            return frame.types.get(name.text).cloned();
        }
        let (message, hint) =
            if frame.draft.inputs.iter().any(|(input, _)| input.text == name.text) {
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
            let message = format!(
                "the target is {}, not one of a set of states",
                with_article(expression.ty())
            );
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
                let hint = did_you_mean(value, frame.states.iter().copied()).unwrap_or_else(|| {
                    format!("states here: {}", listed(frame.states.iter().copied()))
                });
                let message = format!("the target may be '{value}', and no state is named so");
                self.report(Code::BadTarget, name.node, message, hint);
                good = false;
            }
        }
        good.then(|| Target::Computed(expression, values.as_ref().clone()))
    }

    pub(super) fn guard(&mut self, node: &'n Node, scope: &Scope) -> Option<Expression> {
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
}

/// What can go wrong in a state of this kind.
pub(super) fn troubles(step: &Step) -> Vec<FailureKind> {
    use FailureKind::{
        Agent, Any, Blocked, Claim, Conflict, Contract, Exhausted, Failed, Limit, Order,
        Permission, Timeout, Transport,
    };
    let (mut troubles, workspace) = match step {
        Step::Agent(dispatch) => (
            vec![Contract, Claim, Agent, Transport, Limit, Permission, Timeout, Blocked],
            dispatch.workspace,
        ),
        Step::Command(command) if command.output.is_some() => {
            (vec![Contract, Timeout], WorkspaceMode::Repository)
        }
        Step::Command(_) => (vec![Timeout], WorkspaceMode::Repository),
        Step::Read(read) if read.contract.is_some() => {
            (vec![Contract, Blocked], WorkspaceMode::Repository)
        }
        Step::Read(_) | Step::Changes(_) => (vec![Blocked], WorkspaceMode::Repository),
        Step::Commit(_) => (vec![Blocked, Timeout], WorkspaceMode::Repository),
        Step::Each(each) if each.failures == Failures::Collect => {
            (vec![Order], WorkspaceMode::Repository)
        }
        Step::Each(each) => (vec![Order, Blocked, Failed, Exhausted], each.workspace),
        Step::Order(_) => (vec![Order], WorkspaceMode::Repository),
        Step::Call { workspace, .. } => (vec![Blocked, Failed, Exhausted], *workspace),
        Step::Ask(_) | Step::Route | Step::End { .. } => return Vec::new(),
    };
    if workspace == WorkspaceMode::Worktree {
        troubles.push(Conflict);
    }
    troubles.push(Any);
    troubles
}

/// What `problem` is in a transition on trouble.
pub(crate) fn problem_type(result: &Type) -> Type {
    let names = FailureKind::ALL.iter().filter(|trouble| **trouble != FailureKind::Any);
    let outcome =
        Type::String(Some(Arc::new(names.map(|trouble| trouble.name().to_owned()).collect())));
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
