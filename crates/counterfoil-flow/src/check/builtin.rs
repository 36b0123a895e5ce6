//! Checks the states that the engine performs itself, and defines their result types.

use super::Checker;
use super::machine::MachineContext;
use super::step::COMMAND_TIMEOUT_MS;
use crate::ast::{self, SpannedStr};
use crate::template::Template;
use crate::variable_types::{Presence, field, list_of, object, one_of};
use crate::workflow::{ChangesStep, CommitStep, ReadStep, Step, Term};
use crate::yaml_tree::Node;
use counterfoil_contract::expr::{Expression, ObjectType, Type};
use std::sync::Arc;

/// The default of `since`: the revision at the start of the run.
const DEFAULT_SINCE: &str = "run.base";
/// The default of `paths`: the files that agents changed during the run.
const DEFAULT_PATHS: &str = "run.changed";

impl<'n> Checker<'n> {
    pub(super) fn read_step(
        &mut self,
        decl: &ast::ReadStep<'n>,
        context: &MachineContext<'_, 'n>,
    ) -> Option<(Step, Type)> {
        let path = self.inline_template(decl.path, context);
        let contract = match decl.contract {
            None => None,
            Some(name) => Some(self.contract(name)?),
        };
        let result = match &contract {
            Some(contract) => contract.ty().clone(),
            None => object([("text", Type::text())]),
        };
        Some((Step::Read(ReadStep { path: path?, contract }), result))
    }

    pub(super) fn changes_step(
        &mut self,
        decl: &ast::ChangesStep<'n>,
        context: &MachineContext<'_, 'n>,
    ) -> Option<(Step, Type)> {
        let since = self.term_or(decl.since, DEFAULT_SINCE, context, &Type::text());
        let split = decl.split.map(|node| self.term(node, context.scope, &Type::Int));
        let split = match split {
            Some(None) => return None,
            Some(split) => split,
            None => None,
        };
        Some((Step::Changes(ChangesStep { since: since?, split }), changes_type()))
    }

    pub(super) fn commit_step(
        &mut self,
        decl: &ast::CommitStep<'n>,
        context: &MachineContext<'_, 'n>,
    ) -> Option<(Step, Type)> {
        let message = self.inline_template(decl.message, context);
        let paths = self.term_or(decl.paths, DEFAULT_PATHS, context, &list_of(Type::text()));
        let timeout_ms = decl
            .timeout
            .and_then(|node| self.duration(node, "`timeout`"))
            .unwrap_or(COMMAND_TIMEOUT_MS);
        let result = object([
            ("ok", Type::Bool),
            ("commit", Type::text()),
            ("files", list_of(Type::text())),
            ("output", Type::text()),
        ]);
        Some((Step::Commit(CommitStep { message: message?, paths: paths?, timeout_ms }), result))
    }

    /// A template written in the workflow file, even if its text looks like a file name.
    fn inline_template(
        &mut self,
        name: SpannedStr<'n>,
        context: &MachineContext<'_, 'n>,
    ) -> Option<Template> {
        let template = self.template(name)?;
        self.check_template_types(name, &template, context.types);
        Some(template)
    }

    /// The term that a state gives, or a default expression.
    fn term_or(
        &mut self,
        node: Option<&'n Node>,
        default: &str,
        context: &MachineContext<'_, 'n>,
        ty: &Type,
    ) -> Option<Term> {
        match node {
            Some(node) => self.term(node, context.scope, ty),
            None => Expression::compile(default, context.scope).ok().map(Term::Computed),
        }
    }
}

/// The result type of a `changes` state.
fn changes_type() -> Type {
    let lines = object([("from", Type::Int), ("to", Type::Int)]);
    let file = object([
        ("path", Type::text()),
        ("change", one_of(["added", "modified", "deleted", "renamed"])),
        ("binary", Type::Bool),
        ("added", Type::Int),
        ("removed", Type::Int),
        ("lines", list_of(lines)),
    ]);
    let chunk = object([
        ("number", Type::Int),
        ("files", list_of(Type::text())),
        ("tokens", Type::Int),
        ("text", Type::text()),
    ]);
    object([
        ("base", Type::text()),
        ("files", list_of(with_old_path(file))),
        ("chunks", list_of(chunk)),
        ("added", Type::Int),
        ("removed", Type::Int),
    ])
}

/// Adds the field `old_path`, which only a renamed file has.
fn with_old_path(file: Type) -> Type {
    let Type::Object(plain) = &file else { return file };
    let mut fields = plain.fields.clone();
    fields.insert("old_path".to_owned(), field(Type::text(), Presence::Optional, fields.len()));
    Type::Object(Arc::new(ObjectType { fields, open: false }))
}
