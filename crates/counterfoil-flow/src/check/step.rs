//! What happens in a state, and the type of its result.

use super::Checker;
use super::machine::{Frame, scope_of};
use super::types::{Presence, field, list_of, nullable, object, one_of};
use crate::draft::{
    Asked, BodyDraft, CommandDraft, EachDraft, KindDraft, Name, QuestionDraft, StateDraft,
    StepDraft,
};
use crate::finding::Code;
use crate::tree::Node;
use crate::workflow::{
    Body, Dispatch, Each, End, Failures, Form, Question, ShellStep, Step, Term, WorkspaceMode,
};
use counterfoil_contract::{ObjectType, Type, did_you_mean};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A command that does not say otherwise may take this long.
pub(super) const COMMAND_MS: u64 = 10 * 60 * 1000;
/// More at once than anybody's machine has room for.
const MOST_PARALLEL: u64 = 256;

impl<'n> Checker<'n> {
    /// What happens in a state and the type of `result` behind it.
    pub(super) fn step(
        &mut self,
        draft: &StateDraft<'n>,
        frame: &Frame<'_, 'n>,
    ) -> Option<(Step, Type)> {
        match &draft.kind {
            KindDraft::Agent(step) => {
                let workspace = self.workplace(step.workspace).unwrap_or_default();
                let (dispatch, ty) = self.dispatch(step, frame, frame.types)?;
                Some((Step::Agent(Dispatch { workspace, ..dispatch }), ty))
            }
            KindDraft::Command(command) => self.command(command, frame),
            KindDraft::Read(read) => self.read_step(read, frame),
            KindDraft::Changes(changes) => self.changes_step(changes, frame),
            KindDraft::Commit(commit) => self.commit_step(commit, frame),
            KindDraft::Ask(questions, asked) => self.ask(draft.node, questions, *asked, frame),
            KindDraft::Each(each) => self.each(each, frame),
            KindDraft::Order(list) => self.order(list, frame),
            KindDraft::Call { machine, with, workspace } => {
                let workspace = self.workplace(*workspace).unwrap_or_default();
                let (name, with, result) = self.call(*machine, with, frame.types)?;
                Some((
                    Step::Call { machine: name, with, workspace },
                    result.unwrap_or_else(|| object([])),
                ))
            }
            KindDraft::Route => Some((Step::Route, object([]))),
            KindDraft::End { outcome, reason, result } => {
                self.end(*outcome, *reason, *result, frame)
            }
            KindDraft::Unclear => None,
        }
    }

    fn dispatch(
        &mut self,
        draft: &StepDraft<'n>,
        frame: &Frame<'_, 'n>,
        types: &BTreeMap<String, Type>,
    ) -> Option<(Dispatch, Type)> {
        self.agents_used.insert(draft.agent.text);
        let scope = scope_of(types);
        let mut seen = types.clone();
        let mut given = BTreeMap::new();
        let mut with = Vec::new();
        for (name, node) in &draft.with {
            if seen.contains_key(name.text) {
                let message = format!("'{}' is already the name of something", name.text);
                self.report(Code::BadName, name.node, message, "choose another name");
            } else {
                self.variable_name(*name);
            }
            let (term, ty) = self.free_term(node, &scope);
            given.insert(name.text.to_owned(), ty.clone());
            seen.insert(name.text.to_owned(), ty);
            with.extend(term.map(|term| (name.text.to_owned(), term)));
        }
        let needs: Vec<_> = draft
            .needs
            .iter()
            .filter_map(|name| {
                let template = self.template(*name)?;
                self.typed_template(*name, &template, types);
                Some(template)
            })
            .collect();
        let Some(role) = frame.agents.get(draft.agent.text) else {
            // One that is declared and does not hold together was reported there.
            if !self.prompts.contains_key(draft.agent.text) {
                let names = self.prompts.keys().copied();
                let hint = did_you_mean(draft.agent.text, names.clone()).unwrap_or_else(|| {
                    match names.clone().next() {
                        Some(_) => format!("agents here: {}", names.collect::<Vec<_>>().join(", ")),
                        None => "declare it under `agents:`".to_owned(),
                    }
                });
                let message = format!("no agent is named '{}'", draft.agent.text);
                self.report(Code::UnknownAgent, draft.agent.node, message, hint);
            }
            return None;
        };
        let own = draft.prompt.map(|name| (name, self.file_template(name)));
        let prompt = match own {
            Some((name, Some(template))) => {
                self.typed_template(name, &template, &seen);
                template
            }
            Some((_, None)) => return None,
            None => {
                let template = role.prompt.clone();
                if let Some(Some(name)) = self.prompts.get(draft.agent.text).copied() {
                    self.typed_template(name, &template, &seen);
                }
                template
            }
        };
        let bounds = self.bounds(&draft.settings, role.bounds.clone());
        let held = self.held(draft.settings.claims, role.claim_policies.clone(), Some(&scope));
        let ty = role.contract.ty().clone();
        let rules = self.rules(&draft.rules, &seen, &given, &ty);
        let agent = draft.agent.text.to_owned();
        let workspace = WorkspaceMode::default();
        Some((Dispatch { agent, prompt, with, needs, claims: held, rules, workspace, bounds }, ty))
    }

    /// A term whose type follows from what it is.
    fn free_term(
        &mut self,
        node: &'n Node,
        scope: &counterfoil_contract::Scope,
    ) -> (Option<Term>, Type) {
        match node.text() {
            Some(text) => match self.expression(Name { text, node }, scope) {
                Some(expression) => {
                    let ty = expression.ty().clone();
                    (Some(Term::Computed(expression)), ty)
                }
                None => (None, Type::Any),
            },
            None => {
                let value = node.json();
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

    fn command(&mut self, draft: &CommandDraft<'n>, frame: &Frame<'_, 'n>) -> Option<(Step, Type)> {
        let mut typed = |name: Name<'n>| {
            let template = self.template(name)?;
            self.typed_template(name, &template, frame.types);
            Some(template)
        };
        let argv: Vec<_> = draft.argv.iter().filter_map(|name| typed(*name)).collect();
        let input = draft.input.map(&mut typed);
        let cwd = draft.cwd.map(&mut typed);
        let output = draft.output.map(|name| self.contract(name));
        let timeout_ms =
            draft.timeout.and_then(|node| self.duration(node, "`timeout`")).unwrap_or(COMMAND_MS);
        if argv.len() != draft.argv.len()
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
                fields.insert("value".into(), field(contract.ty().clone(), Presence::Always, 3));
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
        drafts: &[(Name<'n>, QuestionDraft<'n>)],
        asked: Asked,
        frame: &Frame<'_, 'n>,
    ) -> Option<(Step, Type)> {
        let mut questions = Vec::new();
        let mut fields = BTreeMap::new();
        for (name, draft) in drafts {
            if asked == Asked::Several {
                self.plain_name(*name, "a question");
            }
            let text = draft.question.and_then(|text| {
                let template = self.file_template(text)?;
                self.typed_template(text, &template, frame.types);
                Some(template)
            });
            let form = self.form(draft);
            if draft.optional && drafts.iter().all(|(_, other)| other.optional) {
                let message = "every question here is optional, so none would be waited for";
                self.report(Code::WrongForm, name.node, message, "make one of them count");
            }
            let ty = match &form {
                Form::Choices(choices) => Type::String(Some(Arc::new(choices.clone()))),
                Form::Pattern(_) | Form::Text => Type::text(),
            };
            let (ty, presence) = if draft.optional {
                (nullable(ty), Presence::Sometimes)
            } else {
                (ty, Presence::Always)
            };
            fields.insert(name.text.to_owned(), field(ty, presence, fields.len()));
            questions.push(Question {
                name: name.text.to_owned(),
                text: text?,
                form,
                optional: draft.optional,
            });
        }
        if questions.is_empty() {
            self.report(Code::MissingKey, node, "nothing is asked", "add a question");
            return None;
        }
        Some((Step::Ask(questions), Type::Object(Arc::new(ObjectType { fields, open: false }))))
    }

    fn form(&mut self, draft: &QuestionDraft<'n>) -> Form {
        match (&draft.choices, draft.pattern) {
            (Some(choices), None) => {
                Form::Choices(choices.iter().map(|name| name.text.to_owned()).collect())
            }
            (None, Some(pattern)) => {
                let whole = format!("^(?:{})$", pattern.text);
                if let Err(error) = regex::RegexBuilder::new(&whole).size_limit(1 << 20).build() {
                    let why = error.to_string();
                    let why = why.lines().last().unwrap_or(&why).trim_start_matches("error: ");
                    let message = format!("the pattern cannot be used: {why}");
                    self.report(
                        Code::WrongForm,
                        pattern.node,
                        message,
                        "see the syntax of the regex crate",
                    );
                }
                Form::Pattern(pattern.text.to_owned())
            }
            (Some(_), Some(pattern)) => {
                let message = "an answer is one of the choices or of a pattern, not both";
                self.report(Code::WrongForm, pattern.node, message, "keep one");
                Form::Text
            }
            (None, None) => Form::Text,
        }
    }

    fn call(
        &mut self,
        machine: Name<'n>,
        given: &[(Name<'n>, &'n Node)],
        types: &BTreeMap<String, Type>,
    ) -> Option<Called> {
        self.machines_used.insert(machine.text);
        let Some(signature) = self.signatures.get(machine.text) else {
            let names = self.signatures.keys().copied();
            let hint = did_you_mean(machine.text, names.clone()).unwrap_or_else(|| {
                match names.clone().next() {
                    Some(_) => {
                        format!("sub-workflows here: {}", names.collect::<Vec<_>>().join(", "))
                    }
                    None => "declare it under `workflows:`".to_owned(),
                }
            });
            let message = format!("no sub-workflow is named '{}'", machine.text);
            self.report(Code::UnknownWorkflow, machine.node, message, hint);
            return None;
        };
        let (inputs, result) = (signature.inputs.clone(), signature.result.clone());
        let scope = scope_of(types);
        let mut with = Vec::new();
        let mut whole = true;
        for (name, node) in given {
            let Some(input) = inputs.get(name.text) else {
                let names = inputs.keys().map(String::as_str);
                let hint = did_you_mean(name.text, names.clone()).unwrap_or_else(|| {
                    format!("its inputs: {}", names.collect::<Vec<_>>().join(", "))
                });
                let message = format!("'{}' has no input '{}'", machine.text, name.text);
                self.report(Code::UnknownVariable, name.node, message, hint);
                whole = false;
                continue;
            };
            match self.term(node, &scope, &input.ty) {
                Some(term) => with.push((name.text.to_owned(), term)),
                None => whole = false,
            }
        }
        for (name, input) in &inputs {
            if input.default.is_none() && !given.iter().any(|(given, _)| given.text == name) {
                let message = format!("'{}' needs the input '{name}'", machine.text);
                self.report(
                    Code::MissingKey,
                    machine.node,
                    message,
                    format!("add with: {{ {name}: … }}"),
                );
                whole = false;
            }
        }
        whole.then(|| (machine.text.to_owned(), with, result))
    }

    fn each(&mut self, draft: &EachDraft<'n>, frame: &Frame<'_, 'n>) -> Option<(Step, Type)> {
        let (listing, types) = self.listing(&draft.listing, frame);
        let parallel =
            draft.parallel.and_then(|node| self.reader.whole(node, "`parallel`")).unwrap_or(1);
        if let Some(node) = draft.parallel.filter(|_| parallel == 0 || parallel > MOST_PARALLEL) {
            let message = format!("{parallel} items cannot run at once");
            self.report(
                Code::WrongForm,
                node,
                message,
                format!("write a number from 1 to {MOST_PARALLEL}"),
            );
        }
        let failures = match draft.failures.map(|name| (name, name.text)) {
            None | Some((_, "stop")) => Failures::Stop,
            Some((_, "collect")) => Failures::Collect,
            Some((name, other)) => {
                let hint = did_you_mean(other, ["stop", "collect"])
                    .unwrap_or_else(|| "write stop or collect".into());
                self.report(
                    Code::WrongForm,
                    name.node,
                    format!("'{other}' is not a way to take failures"),
                    hint,
                );
                Failures::Stop
            }
        };
        let workspace = self.place_of_items(draft, parallel, frame.agents);
        let (body, value) = match draft.body.as_ref()? {
            BodyDraft::Agent(step) => {
                let (dispatch, ty) = self.dispatch(step, frame, &types)?;
                (Body::Agent(dispatch), Some(ty))
            }
            BodyDraft::Machine { machine, with } => {
                let (machine, with, result) = self.call(*machine, with, &types)?;
                (Body::Machine { machine, with }, result)
            }
        };
        let each = Each {
            listing: listing?,
            parallel: u32::try_from(parallel).unwrap_or(1),
            failures,
            workspace,
            body,
        };
        Some((Step::Each(Box::new(each)), collected(value)))
    }

    fn end(
        &mut self,
        outcome: Name<'n>,
        reason: Option<&'n Node>,
        result: Option<&'n Node>,
        frame: &Frame<'_, 'n>,
    ) -> Option<(Step, Type)> {
        let known = End::ALL.into_iter().find(|end| end.name() == outcome.text);
        if known.is_none() {
            let names = End::ALL.iter().map(|end| end.name());
            let hint = did_you_mean(outcome.text, names.clone())
                .unwrap_or_else(|| format!("known: {}", names.collect::<Vec<_>>().join(", ")));
            self.report(
                Code::WrongForm,
                outcome.node,
                format!("'{}' is not an outcome", outcome.text),
                hint,
            );
        }
        let reason = reason.map(|node| self.term(node, frame.scope, &Type::Any));
        let given = match (result, frame.result) {
            (Some(node), Some(ty)) => Some(self.term(node, frame.scope, ty)),
            (Some(node), None) => {
                let (message, hint) = if frame.sub {
                    (
                        "this sub-workflow does not say what it hands back",
                        "add `result: type` to it",
                    )
                } else {
                    ("the main workflow hands nothing back", "use a variable or an artifact")
                };
                self.report(Code::WrongForm, node, message, hint);
                None
            }
            (None, Some(ty)) if known == Some(End::Done) && !ty.is_nullable() => {
                let message =
                    format!("this end hands nothing back, and the sub-workflow promises {ty}");
                self.report(Code::MissingKey, outcome.node, message, "add `result: …`");
                None
            }
            (None, _) => None,
        };
        if matches!(reason, Some(None)) || matches!(given, Some(None)) {
            return None;
        }
        let step = Step::End { outcome: known?, reason: reason.flatten(), result: given.flatten() };
        Some((step, object([])))
    }
}

/// A sub-workflow that is run: its name, what it is given, and what it hands back.
type Called = (String, Vec<(String, Term)>, Option<Type>);

/// What a fan-out gives: every item, the values of those that are done, and those that are not.
fn collected(value: Option<Type>) -> Type {
    let outcome = one_of(["done", "blocked", "failed", "exhausted", "skipped"]);
    let Type::Object(plain) =
        object([("key", Type::text()), ("outcome", outcome), ("reason", Type::text())])
    else {
        return Type::Any;
    };
    let mut fields = plain.fields.clone();
    if let Some(value) = &value {
        fields.insert("value".into(), field(value.clone(), Presence::Sometimes, 3));
    }
    let item = Type::Object(Arc::new(ObjectType { fields, open: false }));
    object([
        ("items", list_of(item)),
        ("done", list_of(value.unwrap_or(Type::Any))),
        ("failed", list_of(Type::Object(plain))),
        ("total", Type::Int),
    ])
}
