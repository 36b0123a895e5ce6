//! States in which the engine does something itself, and the types of what they give.

use super::Checker;
use super::machine::Frame;
use super::step::COMMAND_MS;
use super::types::{Presence, field, list_of, object, one_of};
use crate::draft::{ChangesDraft, CommitDraft, Name, ReadDraft};
use crate::template::Template;
use crate::tree::Node;
use crate::workflow::{ChangesStep, CommitStep, ReadStep, Step, Term};
use counterfoil_contract::{Expression, ObjectType, Type};
use std::sync::Arc;

/// What changed is looked at since the run began, unless a state says otherwise.
const SINCE: &str = "run.base";
/// What agents were seen to change is committed, unless a state says otherwise.
const PATHS: &str = "run.changed";

impl<'n> Checker<'n> {
    pub(super) fn read_step(
        &mut self,
        draft: &ReadDraft<'n>,
        frame: &Frame<'_, 'n>,
    ) -> Option<(Step, Type)> {
        let path = self.in_place(draft.path, frame);
        let contract = match draft.contract {
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
        draft: &ChangesDraft<'n>,
        frame: &Frame<'_, 'n>,
    ) -> Option<(Step, Type)> {
        let since = self.term_or(draft.since, SINCE, frame, &Type::text());
        let split = draft.split.map(|node| self.term(node, frame.scope, &Type::Int));
        let split = match split {
            Some(None) => return None,
            Some(split) => split,
            None => None,
        };
        Some((Step::Changes(ChangesStep { since: since?, split }), changes_type()))
    }

    pub(super) fn commit_step(
        &mut self,
        draft: &CommitDraft<'n>,
        frame: &Frame<'_, 'n>,
    ) -> Option<(Step, Type)> {
        let message = self.in_place(draft.message, frame);
        let paths = self.term_or(draft.paths, PATHS, frame, &list_of(Type::text()));
        let timeout_ms =
            draft.timeout.and_then(|node| self.duration(node, "`timeout`")).unwrap_or(COMMAND_MS);
        let result = object([
            ("ok", Type::Bool),
            ("commit", Type::text()),
            ("files", list_of(Type::text())),
            ("output", Type::text()),
        ]);
        Some((Step::Commit(CommitStep { message: message?, paths: paths?, timeout_ms }), result))
    }

    /// A template that stands in the file itself, also if it reads like the name of another.
    fn in_place(&mut self, name: Name<'n>, frame: &Frame<'_, 'n>) -> Option<Template> {
        let template = self.template(name)?;
        self.typed_template(name, &template, frame.types);
        Some(template)
    }

    /// What a state says, or else what an expression gives.
    fn term_or(
        &mut self,
        said: Option<&'n Node>,
        otherwise: &str,
        frame: &Frame<'_, 'n>,
        ty: &Type,
    ) -> Option<Term> {
        match said {
            Some(node) => self.term(node, frame.scope, ty),
            None => Expression::compile(otherwise, frame.scope).ok().map(Term::Computed),
        }
    }
}

/// What is known of changes.
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

/// A renamed file also has the name it had.
fn with_old_path(file: Type) -> Type {
    let Type::Object(plain) = &file else { return file };
    let mut fields = plain.fields.clone();
    fields.insert("old_path".to_owned(), field(Type::text(), Presence::Sometimes, fields.len()));
    Type::Object(Arc::new(ObjectType { fields, open: false }))
}
