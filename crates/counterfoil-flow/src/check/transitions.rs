//! Checks transitions: guards, coverage, targets and assignments.

use super::Checker;
use super::machine::{MachineContext, join_limited};
use crate::ast::{self, SpannedStr};
use crate::finding::Code;
use crate::value::with_article;
use crate::variable_types::problem_type;
use crate::workflow::{FailureKind, Failures, Step, Target, Transition, Wait, WorkspaceMode};
use crate::yaml_tree::{Kind, Node};
use counterfoil_contract::expr::{Expression, Scope, Type, branches};
use counterfoil_contract::suggest::did_you_mean;
use std::collections::BTreeMap;

/// The variables that the transitions of a state can read of its step.
pub(super) struct StepScope<'a> {
    pub(super) result: &'a Type,
    /// The type of `claims`; only for a step of an agent.
    pub(super) claims: Option<&'a Type>,
    /// The type of `checks`; only for a step with checks.
    pub(super) checks: Option<&'a Type>,
}

impl StepScope<'_> {
    fn with_claims(&self, scope: Scope) -> Scope {
        match self.claims {
            Some(claims) => scope.with("claims", claims.clone()),
            None => scope,
        }
    }
}

impl<'n> Checker<'n> {
    /// Checks the transitions under `next`.
    pub(super) fn next(
        &mut self,
        name: SpannedStr<'n>,
        decl: &ast::State<'n>,
        context: &MachineContext<'_, 'n>,
        step: &StepScope<'_>,
    ) -> Option<Vec<Transition>> {
        let mut scope = step.with_claims(context.scope.clone().with("result", step.result.clone()));
        if let Some(checks) = step.checks {
            scope = scope.with("checks", checks.clone());
        }
        let full_scope = scope.clone();
        let mut transitions = Vec::new();
        for transition in &decl.next {
            if self.is_late(transition.node) {
                return None;
            }
            let checked = self.transition(transition, context, &scope);
            // Later transitions are evaluated only where this guard is false.
            if let Some(guard) = checked.as_ref().and_then(|checked| checked.when.as_ref()) {
                scope = scope.assuming_not(guard);
            }
            transitions.push(checked);
        }
        let transitions: Vec<Transition> = transitions.into_iter().collect::<Option<_>>()?;
        // A state without transitions has its own finding.
        if transitions.is_empty() {
            return None;
        }
        // What the form hides may be a guard.
        if decl.is_unclear {
            return Some(transitions);
        }
        let guards: Vec<Option<&Expression>> =
            transitions.iter().map(|one| one.when.as_ref()).collect();
        let coverage = branches(&guards, &full_scope);
        for (index, why) in coverage.dead {
            let node = decl.next.get(index).map_or(decl.node, |transition| transition.node);
            self.report(
                Code::NeverFires,
                node,
                format!("this transition can never fire: {why}"),
                "remove it, or move it before the transition that shadows it",
            );
        }
        if let Some(example) = coverage.uncovered {
            let message = format!("the transitions of '{}' do not cover: {example}", name.text);
            self.report(
                Code::NotCovered,
                name.node,
                message,
                "add a transition for this case, or a default: - { go: … }",
            );
        }
        Some(transitions)
    }

    /// Checks the transitions under `on`. `possible` are the failures that the step can have.
    pub(super) fn on(
        &mut self,
        name: SpannedStr<'n>,
        decl: &ast::State<'n>,
        context: &MachineContext<'_, 'n>,
        step: &StepScope<'_>,
        possible: Option<&[FailureKind]>,
    ) -> Option<BTreeMap<FailureKind, Transition>> {
        let mut on = BTreeMap::new();
        let mut is_valid = true;
        for (failure, transition) in &decl.on {
            let scope =
                step.with_claims(context.scope.clone().with("problem", problem_type(step.result)));
            let checked = self.transition(transition, context, &scope);
            if transition.when.is_some() {
                let message = "a transition under `on` cannot have a guard";
                self.report(
                    Code::WrongForm,
                    transition.node,
                    message,
                    "go to a state without a step, and branch there",
                );
                is_valid = false;
            }
            let known = FailureKind::ALL.iter().find(|known| known.name() == failure.text);
            match (known, checked) {
                (Some(known), Some(checked)) => {
                    if possible.is_some_and(|possible| !possible.contains(known)) {
                        let names = possible.into_iter().flatten().map(|kind| kind.name());
                        let message =
                            format!("state '{}' cannot fail with '{}'", name.text, failure.text);
                        let hint = match join_limited(names) {
                            none if none.is_empty() => "it cannot fail: remove `on`".to_owned(),
                            names => format!("its possible failures: {names}"),
                        };
                        self.report(Code::UnknownKey, failure.node, message, hint);
                    }
                    on.insert(*known, checked);
                }
                (None, _) => {
                    let names = FailureKind::ALL.iter().map(|kind| kind.name());
                    let hint = did_you_mean(failure.text, names.clone())
                        .unwrap_or_else(|| format!("known failures: {}", join_limited(names)));
                    self.report(
                        Code::UnknownKey,
                        failure.node,
                        format!("'{}' is not a kind of failure", failure.text),
                        hint,
                    );
                    is_valid = false;
                }
                (Some(_), None) => is_valid = false,
            }
        }
        is_valid.then_some(on)
    }

    /// Checks a transition.
    fn transition(
        &mut self,
        decl: &ast::Transition<'n>,
        context: &MachineContext<'_, 'n>,
        scope: &Scope,
    ) -> Option<Transition> {
        let mut is_valid = true;
        let when = match decl.when {
            None => None,
            Some(node) => {
                let guard = self.guard(node, scope);
                is_valid &= guard.is_some();
                guard
            }
        };
        let scope = match &when {
            Some(guard) => scope.clone().assuming(guard),
            None => scope.clone(),
        };
        let mut set = Vec::new();
        for (name, node) in &decl.set {
            let Some(ty) = self.variable_type(*name, context) else {
                is_valid = false;
                continue;
            };
            match self.term(node, &scope, &ty) {
                Some(term) => set.push((name.text.to_owned(), term)),
                None => is_valid = false,
            }
        }
        let reason = decl.reason.map(|node| self.term(node, &scope, &Type::Any));
        let counts = decl.counts.map(|name| self.known_limit(name, context.machine));
        let resets: Vec<Option<String>> =
            decl.resets.iter().map(|name| self.known_limit(*name, context.machine)).collect();
        let go = match (decl.go, decl.goto) {
            (Some(name), _) => {
                self.known_state(name, context.states).map(|name| Target::State(name.to_owned()))
            }
            (None, Some(name)) => self.computed_target(name, context, &scope),
            (None, None) => None,
        };
        let wait = decl.wait.map(|node| {
            self.check_wait_target(node, go.as_ref(), context);
            self.wait(node, &scope)
        });
        if !is_valid
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

    /// The value of `wait`: a duration, or an expression for a number of seconds.
    fn wait(&mut self, node: &'n Node, scope: &Scope) -> Option<Wait> {
        let text = node.text().filter(|text| text.parse::<jiff::SignedDuration>().is_err());
        let Some(text) = text else { return self.duration(node, "`wait`").map(Wait::For) };
        let seconds = self.expression(SpannedStr { text, node }, scope)?;
        if *seconds.ty() == Type::Int {
            return Some(Wait::Seconds(seconds));
        }
        let message = format!("`wait` is {}, not a number of seconds", with_article(seconds.ty()));
        self.report(
            Code::WrongType,
            node,
            message,
            "write a duration such as 30s, or an expression for an integer",
        );
        None
    }

    /// Reports a `wait` before a state that starts no attempt, such as a question or a branch.
    fn check_wait_target(
        &mut self,
        node: &'n Node,
        go: Option<&Target>,
        context: &MachineContext<'_, 'n>,
    ) {
        let Some(go) = go else { return };
        let idle = go.states().iter().find(|name| {
            let state =
                context.machine.states.iter().find(|(known, _)| known.text == name.as_str());
            state.is_some_and(|(_, state)| !state.kind.starts_attempt())
        });
        if let Some(name) = idle {
            let message = format!("`wait` has no effect: '{name}' runs no agent or command");
            self.report(
                Code::WrongForm,
                node,
                message,
                "go to a state that runs an agent, a command or a built-in step",
            );
        }
    }

    /// The type of the variable that a transition assigns.
    fn variable_type(
        &mut self,
        name: SpannedStr<'n>,
        context: &MachineContext<'_, 'n>,
    ) -> Option<Type> {
        let variables = context.machine.variables.iter().map(|(name, _)| name.text);
        if variables.clone().any(|known| known == name.text) {
            return context.types.get(name.text).cloned();
        }
        let (message, hint) =
            if context.machine.inputs.iter().any(|(input, _)| input.text == name.text) {
                (
                    format!("'{}' is an input and cannot be assigned", name.text),
                    "declare a variable, and assign that".to_owned(),
                )
            } else {
                let hint = did_you_mean(name.text, variables.clone()).unwrap_or_else(|| {
                    match variables.clone().next() {
                        Some(_) => format!("known variables: {}", join_limited(variables)),
                        None => format!("declare it: variables: {{ {}: string? }}", name.text),
                    }
                });
                (format!("no variable is named '{}'", name.text), hint)
            };
        self.report(Code::UnknownVariable, name.node, message, hint);
        None
    }

    /// Checks a `goto`.
    fn computed_target(
        &mut self,
        name: SpannedStr<'n>,
        context: &MachineContext<'_, 'n>,
        scope: &Scope,
    ) -> Option<Target> {
        let expression = self.expression(name, scope)?;
        let Type::String(Some(values)) = expression.ty().clone() else {
            let message = format!(
                "the target is {}, not one of a list of states",
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
        let mut all_known = true;
        for value in values.iter() {
            if !context.states.contains(value.as_str()) {
                let hint =
                    did_you_mean(value, context.states.iter().copied()).unwrap_or_else(|| {
                        format!("known states: {}", join_limited(context.states.iter().copied()))
                    });
                let message = format!("the target may be '{value}', but no state has this name");
                self.report(Code::BadTarget, name.node, message, hint);
                all_known = false;
            }
        }
        all_known.then(|| Target::Computed(expression, values.as_ref().clone()))
    }

    /// Checks a guard, which must be a boolean expression.
    pub(super) fn guard(&mut self, node: &'n Node, scope: &Scope) -> Option<Expression> {
        let text = match &node.kind {
            Kind::Text(text) => text.as_str(),
            Kind::Bool(true) => "true",
            Kind::Bool(false) => "false",
            _ => {
                let message = format!("a guard must be an expression, not {}", node.describe());
                self.report(Code::WrongForm, node, message, "write when: result.ok");
                return None;
            }
        };
        let guard = self.expression(SpannedStr { text, node }, scope)?;
        if *guard.ty() == Type::Bool {
            return Some(guard);
        }
        let message = format!("a guard must be a boolean, not {}", with_article(guard.ty()));
        self.report(Code::GuardNotBoolean, node, message, "compare the value with something");
        None
    }
}

/// The failures that a step of this kind can have.
pub(super) fn failure_kinds(step: &Step) -> Vec<FailureKind> {
    use FailureKind::{
        Agent, Any, Blocked, Claim, Conflict, Contract, Exhausted, Failed, Limit, Order,
        Permission, Timeout, Transport,
    };
    let (mut kinds, workspace) = match step {
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
        kinds.push(Conflict);
    }
    kinds.push(Any);
    kinds
}
