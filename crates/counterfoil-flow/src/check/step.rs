//! Checks the step of a state, and determines the type of its result.

use super::Checker;
use super::machine::{MachineContext, scope_from_types};
use crate::ast::{self, AskForm, SpannedStr};
use crate::finding::Code;
use crate::variable_types::{Presence, field, list_of, nullable, object, one_of};
use crate::workflow::{
    Body, Dispatch, Each, End, Failures, Form, MAX_PARALLEL, Question, ShellStep, Step, Term,
    WorkspaceMode, words_field,
};
use crate::yaml_tree::Node;
use counterfoil_contract::expr::{ObjectType, Type};
use counterfoil_contract::suggest::did_you_mean;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The exit codes that a workflow can choose: those below and above have a meaning of their own.
const OWN_EXIT_CODES: std::ops::RangeInclusive<u8> = 8..=99;
/// The exit code among them that is reserved: the state of a run was destroyed while it ran.
const RESERVED_EXIT_CODE: u8 = 9;

/// The default timeout of a command.
pub(super) const COMMAND_TIMEOUT_MS: u64 = 10 * 60 * 1000;

impl<'n> Checker<'n> {
    /// The step of a state, and the type of `result` in its transitions.
    pub(super) fn step(
        &mut self,
        decl: &ast::State<'n>,
        context: &MachineContext<'_, 'n>,
    ) -> Option<(Step, Type)> {
        match &decl.kind {
            ast::StateKind::Agent(step) => {
                let workspace = self.workspace_mode(step.workspace).unwrap_or_default();
                let (dispatch, ty) = self.dispatch(step, context, context.types)?;
                Some((Step::Agent(Dispatch { workspace, ..dispatch }), ty))
            }
            ast::StateKind::Command(command) => self.command(command, context),
            ast::StateKind::Read(read) => self.read_step(read, context),
            ast::StateKind::Changes(changes) => self.changes_step(changes, context),
            ast::StateKind::Commit(commit) => self.commit_step(commit, context),
            ast::StateKind::Ask(questions, ask_form) => {
                self.ask(decl.node, questions, *ask_form, context)
            }
            ast::StateKind::Each(each) => self.each(each, context),
            ast::StateKind::Order(list) => self.order(list, context),
            ast::StateKind::Call { machine, with, workspace } => {
                let workspace = self.workspace_mode(*workspace).unwrap_or_default();
                let (name, with, result) = self.call(*machine, with, context.types)?;
                Some((
                    Step::Call { machine: name, with, workspace },
                    result.unwrap_or_else(|| object([])),
                ))
            }
            ast::StateKind::Route => Some((Step::Route, object([]))),
            ast::StateKind::End { outcome, reason, result, exit } => {
                let exit = exit.and_then(|node| self.exit_code(node, *outcome, context));
                self.end(*outcome, *reason, *result, exit, context)
            }
            ast::StateKind::Invalid => None,
        }
    }

    fn dispatch(
        &mut self,
        decl: &ast::AgentStep<'n>,
        context: &MachineContext<'_, 'n>,
        types: &BTreeMap<String, Type>,
    ) -> Option<(Dispatch, Type)> {
        self.agents_used.insert(decl.agent.text);
        let scope = scope_from_types(types);
        let mut prompt_types = types.clone();
        let mut with_types = BTreeMap::new();
        let mut with = Vec::new();
        for (name, node) in &decl.with {
            if prompt_types.contains_key(name.text) {
                let message = format!("the name '{}' is already in use", name.text);
                self.report(Code::BadName, name.node, message, "choose another name");
            } else {
                self.check_variable_name(*name);
            }
            let (term, ty) = self.untyped_term(node, &scope);
            with_types.insert(name.text.to_owned(), ty.clone());
            prompt_types.insert(name.text.to_owned(), ty);
            with.extend(term.map(|term| (name.text.to_owned(), term)));
        }
        let needs: Vec<_> = decl
            .needs
            .iter()
            .filter_map(|name| {
                let template = self.template(*name)?;
                self.check_template_types(*name, &template, types);
                Some(template)
            })
            .collect();
        let Some(role) = context.agents.get(decl.agent.text) else {
            // A declared agent with problems has been reported at its declaration.
            if !self.prompts.contains_key(decl.agent.text) {
                let names = self.prompts.keys().copied();
                let hint = did_you_mean(decl.agent.text, names.clone()).unwrap_or_else(|| {
                    match names.clone().next() {
                        Some(_) => {
                            format!("known agents: {}", names.collect::<Vec<_>>().join(", "))
                        }
                        None => "declare the agent under `agents:`".to_owned(),
                    }
                });
                let message = format!("no agent is named '{}'", decl.agent.text);
                self.report(Code::UnknownAgent, decl.agent.node, message, hint);
                self.has_unknown_agent = true;
            }
            return None;
        };
        let own = decl.prompt.map(|name| (name, self.file_template(name)));
        let prompt = match own {
            Some((name, Some(template))) => {
                self.check_template_types(name, &template, &prompt_types);
                template
            }
            Some((_, None)) => return None,
            None => {
                let template = role.prompt.clone();
                if let Some(Some(name)) = self.prompts.get(decl.agent.text).copied() {
                    self.check_template_types(name, &template, &prompt_types);
                }
                template
            }
        };
        let bounds = self.bounds(&decl.settings, role.bounds.clone());
        let claims =
            self.state_claims(decl.settings.claims, role.claim_policies.clone(), Some(&scope));
        let ty = role.contract.ty().clone();
        let rules = self.rules(&decl.rules, &prompt_types, &with_types, &ty);
        let agent = decl.agent.text.to_owned();
        let workspace = WorkspaceMode::default();
        Some((Dispatch { agent, prompt, with, needs, claims, rules, workspace, bounds }, ty))
    }

    /// A term without an expected type, and the type it has.
    fn untyped_term(
        &mut self,
        node: &'n Node,
        scope: &counterfoil_contract::expr::Scope,
    ) -> (Option<Term>, Type) {
        match node.text() {
            Some(text) => match self.expression(SpannedStr { text, node }, scope) {
                Some(expression) => {
                    let ty = expression.ty().clone();
                    (Some(Term::Computed(expression)), ty)
                }
                None => (None, Type::Any),
            },
            None => {
                let value = node.to_json();
                let ty = match &value {
                    serde_json::Value::Bool(_) => Type::Bool,
                    serde_json::Value::Number(number) if number.is_i64() || number.is_u64() => {
                        Type::Int
                    }
                    serde_json::Value::Number(_) => Type::Double,
                    _ => Type::Any,
                };
                (Some(Term::Literal(value)), ty)
            }
        }
    }

    fn command(
        &mut self,
        decl: &ast::CommandStep<'n>,
        context: &MachineContext<'_, 'n>,
    ) -> Option<(Step, Type)> {
        let mut typed = |name: SpannedStr<'n>| {
            let template = self.template(name)?;
            self.check_template_types(name, &template, context.types);
            Some(template)
        };
        let argv: Vec<_> = decl.argv.iter().filter_map(|name| typed(*name)).collect();
        let input = decl.input.map(&mut typed);
        let cwd = decl.cwd.map(&mut typed);
        let output = decl.output.map(|name| self.contract(name));
        let timeout_ms = decl
            .timeout
            .and_then(|node| self.duration(node, "`timeout`"))
            .unwrap_or(COMMAND_TIMEOUT_MS);
        if argv.len() != decl.argv.len()
            || [&input, &cwd].iter().any(|one| matches!(one, Some(None)))
        {
            return None;
        }
        let Type::Object(plain) =
            object([("ok", Type::Bool), ("exit_code", Type::Int), ("output", Type::text())])
        else {
            return None;
        };
        let mut fields = plain.fields.clone();
        let output = match output {
            Some(None) => return None,
            Some(Some(contract)) => {
                fields.insert("value".into(), field(contract.ty().clone(), Presence::Required, 3));
                Some(contract)
            }
            None => None,
        };
        let ty = Type::Object(Arc::new(ObjectType { fields, open: false }));
        let command =
            ShellStep { argv, input: input.flatten(), output, cwd: cwd.flatten(), timeout_ms };
        Some((Step::Command(command), ty))
    }

    fn ask(
        &mut self,
        node: &Node,
        decls: &[(SpannedStr<'n>, ast::Question<'n>)],
        ask_form: AskForm,
        context: &MachineContext<'_, 'n>,
    ) -> Option<(Step, Type)> {
        let mut questions = Vec::new();
        let mut fields = BTreeMap::new();
        for (name, decl) in decls {
            if ask_form == AskForm::Multiple {
                self.check_name(*name, "a question");
            }
            let text = decl.question.and_then(|text| {
                let template = self.file_template(text)?;
                self.check_template_types(text, &template, context.types);
                Some(template)
            });
            let form = self.answer_form(decl);
            if decl.optional && decls.iter().all(|(_, other)| other.optional) {
                let message = "at least one question must be required";
                self.report(
                    Code::WrongForm,
                    name.node,
                    message,
                    "remove `optional: true` from one of them",
                );
            }
            let ty = match &form {
                Form::Choices(choices) => Type::String(Some(Arc::new(choices.clone()))),
                Form::Pattern(_) | Form::Text => Type::text(),
            };
            let (ty, presence) = if decl.optional {
                (nullable(ty), Presence::Optional)
            } else {
                (ty, Presence::Required)
            };
            fields.insert(name.text.to_owned(), field(ty, presence, fields.len()));
            if matches!(form, Form::Choices(_)) {
                let words = field(nullable(Type::text()), Presence::Optional, fields.len());
                fields.entry(words_field(name.text)).or_insert(words);
            }
            questions.push(Question {
                name: name.text.to_owned(),
                text: text?,
                form,
                optional: decl.optional,
            });
        }
        if questions.is_empty() {
            self.report(Code::MissingKey, node, "the state has no question", "add a question");
            return None;
        }
        Some((Step::Ask(questions), Type::Object(Arc::new(ObjectType { fields, open: false }))))
    }

    /// The form of an answer: one of the choices, a pattern, or any text.
    fn answer_form(&mut self, decl: &ast::Question<'n>) -> Form {
        match (&decl.choices, decl.pattern) {
            (Some(choices), None) => {
                Form::Choices(choices.iter().map(|name| name.text.to_owned()).collect())
            }
            (None, Some(pattern)) => {
                let anchored = format!("^(?:{})$", pattern.text);
                if let Err(error) = regex::RegexBuilder::new(&anchored).size_limit(1 << 20).build()
                {
                    let why = error.to_string();
                    let why = why.lines().last().unwrap_or(&why).trim_start_matches("error: ");
                    let message = format!("the pattern is invalid: {why}");
                    self.report(
                        Code::WrongForm,
                        pattern.node,
                        message,
                        "see the regular expression syntax of the Rust regex crate",
                    );
                }
                Form::Pattern(pattern.text.to_owned())
            }
            (Some(_), Some(pattern)) => {
                let message = "a question has either `choices` or `pattern`, not both";
                self.report(Code::WrongForm, pattern.node, message, "keep one of them");
                Form::Text
            }
            (None, None) => Form::Text,
        }
    }

    /// The run of a sub-workflow.
    fn call(
        &mut self,
        machine: SpannedStr<'n>,
        given: &[(SpannedStr<'n>, &'n Node)],
        types: &BTreeMap<String, Type>,
    ) -> Option<MachineCall> {
        self.machines_used.insert(machine.text);
        let Some(signature) = self.signatures.get(machine.text) else {
            let names = self.signatures.keys().copied();
            let hint = did_you_mean(machine.text, names.clone()).unwrap_or_else(|| {
                match names.clone().next() {
                    Some(_) => {
                        format!("known sub-workflows: {}", names.collect::<Vec<_>>().join(", "))
                    }
                    None => "declare the sub-workflow under `workflows:`".to_owned(),
                }
            });
            let message = format!("no sub-workflow is named '{}'", machine.text);
            self.report(Code::UnknownWorkflow, machine.node, message, hint);
            self.has_unknown_machine = true;
            return None;
        };
        let (inputs, result) = (signature.inputs.clone(), signature.result.clone());
        let scope = scope_from_types(types);
        let mut with = Vec::new();
        let mut is_valid = true;
        for (name, node) in given {
            let Some(input) = inputs.get(name.text) else {
                let names = inputs.keys().map(String::as_str);
                let hint = did_you_mean(name.text, names.clone()).unwrap_or_else(|| {
                    format!("known inputs: {}", names.collect::<Vec<_>>().join(", "))
                });
                let message = format!("'{}' has no input '{}'", machine.text, name.text);
                self.report(Code::UnknownVariable, name.node, message, hint);
                is_valid = false;
                continue;
            };
            match self.term(node, &scope, &input.ty) {
                Some(term) => with.push((name.text.to_owned(), term)),
                None => is_valid = false,
            }
        }
        for (name, input) in &inputs {
            if input.default.is_none() && !given.iter().any(|(given, _)| given.text == name) {
                let message = format!("'{}' requires the input '{name}'", machine.text);
                self.report(
                    Code::MissingKey,
                    machine.node,
                    message,
                    format!("add with: {{ {name}: … }}"),
                );
                is_valid = false;
            }
        }
        is_valid.then(|| (machine.text.to_owned(), with, result))
    }

    fn each(
        &mut self,
        decl: &ast::Each<'n>,
        context: &MachineContext<'_, 'n>,
    ) -> Option<(Step, Type)> {
        let (listing, types) = self.listing(&decl.listing, context);
        let parallel = self.parallel(decl, context);
        let failures = match decl.failures.map(|name| (name, name.text)) {
            None | Some((_, "stop")) => Failures::Stop,
            Some((_, "collect")) => Failures::Collect,
            Some((name, other)) => {
                let hint = did_you_mean(other, ["stop", "collect"])
                    .unwrap_or_else(|| "write stop or collect".into());
                self.report(
                    Code::WrongForm,
                    name.node,
                    format!("'{other}' is not a value of `failures`"),
                    hint,
                );
                Failures::Stop
            }
        };
        let workspace = self.item_workspace_mode(decl, context.agents);
        let (body, value) = match decl.body.as_ref()? {
            ast::Body::Agent(step) => {
                let (dispatch, ty) = self.dispatch(step, context, &types)?;
                (Body::Agent(dispatch), Some(ty))
            }
            ast::Body::Machine { machine, with } => {
                let (machine, with, result) = self.call(*machine, with, &types)?;
                (Body::Machine { machine, with }, result)
            }
        };
        let each = Each {
            listing: listing?,
            parallel: parallel.unwrap_or_else(|| Term::Literal(1.into())),
            failures,
            workspace,
            body,
        };
        Some((Step::Each(Box::new(each)), fan_out_type(value)))
    }

    /// How many items run at once: a number, or an expression.
    fn parallel(&mut self, decl: &ast::Each<'n>, context: &MachineContext<'_, 'n>) -> Option<Term> {
        let node = decl.parallel?;
        if node.text().is_some() {
            return self.term(node, context.scope, &Type::Int);
        }
        let number = self.reader.unsigned(node, "`parallel`")?;
        if number == 0 || number > u64::from(MAX_PARALLEL) {
            let message = format!("`parallel` is out of range: {number}");
            let hint = format!("write a number from 1 to {MAX_PARALLEL}");
            self.report(Code::WrongForm, node, message, hint);
        }
        Some(Term::Literal(number.into()))
    }

    /// The exit code of an end state.
    fn exit_code(
        &mut self,
        node: &'n Node,
        outcome: SpannedStr<'n>,
        context: &MachineContext<'_, 'n>,
    ) -> Option<u8> {
        let (message, hint) = if context.is_sub_workflow {
            ("a sub-workflow has no exit code", "set it at an end of the main workflow")
        } else if outcome.text == End::Done.name() {
            ("a run that is done exits with 0", "remove the key, or end as `failed`")
        } else {
            let code = node.to_json().as_u64().and_then(|code| u8::try_from(code).ok());
            match code.filter(|code| OWN_EXIT_CODES.contains(code) && *code != RESERVED_EXIT_CODE) {
                Some(code) => return Some(code),
                None => {
                    ("expected an exit code of 8, or from 10 to 99", "the others have a meaning")
                }
            }
        };
        self.report(Code::WrongForm, node, message, hint);
        None
    }

    /// An end of the machine.
    fn end(
        &mut self,
        outcome: SpannedStr<'n>,
        reason: Option<&'n Node>,
        result: Option<&'n Node>,
        exit: Option<u8>,
        context: &MachineContext<'_, 'n>,
    ) -> Option<(Step, Type)> {
        let known = End::ALL.into_iter().find(|end| end.name() == outcome.text);
        if known.is_none() {
            let names = End::ALL.iter().map(|end| end.name());
            let hint = did_you_mean(outcome.text, names.clone()).unwrap_or_else(|| {
                format!("known outcomes: {}", names.collect::<Vec<_>>().join(", "))
            });
            self.report(
                Code::WrongForm,
                outcome.node,
                format!("'{}' is not an outcome", outcome.text),
                hint,
            );
        }
        let reason = reason.map(|node| self.term(node, context.scope, &Type::Any));
        let given = match (result, context.result) {
            (Some(node), Some(ty)) => Some(self.term(node, context.scope, ty)),
            (Some(node), None) => {
                let (message, hint) = if context.is_sub_workflow {
                    (
                        "the sub-workflow declares no result type",
                        "add `result: type` to the sub-workflow",
                    )
                } else {
                    ("the main workflow has no result", "use a variable or an artifact")
                };
                self.report(Code::WrongForm, node, message, hint);
                None
            }
            (None, Some(ty)) if known == Some(End::Done) && !ty.is_nullable() => {
                let message = format!("this end has no result, but the sub-workflow declares {ty}");
                self.report(Code::MissingKey, outcome.node, message, "add `result: …`");
                None
            }
            (None, _) => None,
        };
        if matches!(reason, Some(None)) || matches!(given, Some(None)) {
            return None;
        }
        let step =
            Step::End { outcome: known?, reason: reason.flatten(), result: given.flatten(), exit };
        Some((step, object([])))
    }
}

/// The run of a sub-workflow: its name, its inputs, and the type of its result.
type MachineCall = (String, Vec<(String, Term)>, Option<Type>);

/// The result type of a fan-out: every item, the values of the items that are done, and the others.
fn fan_out_type(value: Option<Type>) -> Type {
    let outcome = one_of(["done", "blocked", "failed", "exhausted", "skipped"]);
    let Type::Object(plain) =
        object([("key", Type::text()), ("outcome", outcome), ("reason", Type::text())])
    else {
        return Type::Any;
    };
    let mut fields = plain.fields.clone();
    if let Some(value) = &value {
        fields.insert("value".into(), field(value.clone(), Presence::Optional, 3));
    }
    let item = Type::Object(Arc::new(ObjectType { fields, open: false }));
    object([
        ("items", list_of(item)),
        ("done", list_of(value.unwrap_or(Type::Any))),
        ("failed", list_of(Type::Object(plain))),
        ("total", Type::Int),
    ])
}
