//! Types of the variables that the engine provides to expressions and templates: `run`, `problem`,
//! `claims` and `checks`. The checker and the run-time code share them.

use crate::event::CheckStatus;
use crate::workflow::{ClaimPolicies, FailureKind, PROTECTED, TESTS};
use counterfoil_contract::expr::{Field, ObjectType, Type};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The verdict that a guard reads for a claim that the result does not make, or that is ignored.
pub(crate) const NO_CLAIM: &str = "none";

/// An object type with these required fields.
pub(crate) fn object<const N: usize>(fields: [(&str, Type); N]) -> Type {
    let fields = fields
        .into_iter()
        .enumerate()
        .map(|(position, (name, ty))| (name.to_owned(), field(ty, Presence::Required, position)));
    Type::Object(Arc::new(ObjectType { fields: fields.collect(), open: false }))
}

/// Whether a field is required or optional.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Required,
    Optional,
}

/// A field of an object type.
pub(crate) fn field(ty: Type, presence: Presence, position: usize) -> Field {
    Field {
        ty,
        required: presence == Presence::Required,
        default: None,
        placeholder: None,
        description: None,
        position,
    }
}

/// A string type with these values.
pub(crate) fn one_of<const N: usize>(values: [&str; N]) -> Type {
    Type::String(Some(Arc::new(values.iter().map(|&value| value.to_owned()).collect())))
}

/// A list type.
pub(crate) fn list_of(ty: Type) -> Type {
    Type::List(Arc::new(ty))
}

/// A type that also accepts null.
pub(crate) fn nullable(ty: Type) -> Type {
    Type::union(vec![ty, Type::Null])
}

/// The type of `run` in expressions and prompts.
pub(crate) fn run_type(checks: &[String]) -> Type {
    let Type::Object(plain) = object([
        ("id", Type::text()),
        ("workflow", Type::text()),
        ("started", Type::text()),
        ("date", Type::text()),
        ("iteration", Type::Int),
        ("state", Type::text()),
        ("now", Type::text()),
        ("base", Type::text()),
        ("changed", list_of(Type::text())),
        ("rejected", list_of(rejected_type())),
        ("base_checks", checks_type(checks)),
    ]) else {
        return Type::Any;
    };
    let mut fields = plain.fields.clone();
    let position = fields.len();
    let paths = field(list_of(Type::text()), Presence::Optional, position);
    fields.insert("step_changed".into(), paths);
    Type::Object(Arc::new(ObjectType { fields, open: false }))
}

/// The type of an item of `run.rejected`.
fn rejected_type() -> Type {
    object([("at", Type::text()), ("reason", Type::text()), ("text", Type::text())])
}

/// An object whose fields are known only at run time.
fn open_object() -> Type {
    Type::Map(Arc::new(Type::Any))
}

/// The type of `run` in artifacts, which also has the outcome so far, the items and the questions.
pub(crate) fn artifact_run_type(checks: &[String]) -> Type {
    let item = object([
        ("state", Type::text()),
        ("key", Type::text()),
        ("outcome", Type::text()),
        ("at", Type::text()),
        ("reason", Type::text()),
        ("inputs", open_object()),
        ("variables", open_object()),
        ("inner", Type::Any),
        ("value", Type::Any),
    ]);
    let question =
        object([("id", Type::text()), ("question", Type::text()), ("state", Type::text())]);
    let Type::Object(plain) = run_type(checks) else { return Type::Any };
    let mut fields = plain.fields.clone();
    for (name, ty) in [
        ("outcome", Type::text()),
        ("reason", Type::text()),
        ("updated", Type::text()),
        ("from", Type::text()),
        ("items", list_of(item)),
        ("questions", list_of(question)),
    ] {
        let position = fields.len();
        fields.insert(name.to_owned(), field(ty, Presence::Required, position));
    }
    Type::Object(Arc::new(ObjectType { fields, open: false }))
}

/// The type of `problem` in a transition under `on`.
pub(crate) fn problem_type(result: &Type) -> Type {
    let names = FailureKind::ALL.iter().filter(|kind| **kind != FailureKind::Any);
    let outcome = Type::String(Some(Arc::new(names.map(|kind| kind.name().to_owned()).collect())));
    let Type::Object(plain) = object([("outcome", outcome), ("reason", Type::text())]) else {
        return Type::Any;
    };
    let mut fields = plain.fields.clone();
    fields.insert("partial".into(), field(result.clone(), Presence::Optional, 2));
    fields.insert("cause".into(), field(one_of(CAUSES), Presence::Optional, 3));
    Type::Object(Arc::new(ObjectType { fields, open: false }))
}

/// The possible values of `problem.cause`.
const CAUSES: [&str; 8] =
    ["contract", "claim", "agent", "transport", "limit", "permission", "timeout", "no-progress"];

/// The type of `claims` in the transitions of a state: the verdict on each claim of its agent.
pub(crate) fn claims_type(policies: &ClaimPolicies) -> Type {
    let verdict = one_of(["verified", "refuted", "stale", "unverifiable", NO_CLAIM]);
    let outcome = object([("verdict", verdict), ("reason", Type::text())]);
    let names: BTreeSet<&str> =
        policies.claims.iter().map(|claim| claim.name.as_str()).chain([PROTECTED, TESTS]).collect();
    let fields = names.into_iter().enumerate();
    let fields =
        fields.map(|(at, name)| (name.to_owned(), field(outcome.clone(), Presence::Required, at)));
    Type::Object(Arc::new(ObjectType { fields: fields.collect(), open: false }))
}

/// The name of a check in expressions and templates: `-` and `/` are written `_`.
pub(crate) fn check_variable(name: &str) -> String {
    name.replace(['-', '/'], "_")
}

/// The type of the outcome of a check.
pub(crate) fn check_type() -> Type {
    let status = one_of(CheckStatus::ALL.map(CheckStatus::name));
    let Type::Object(plain) = object([
        ("status", status),
        ("command", Type::text()),
        ("reason", Type::text()),
        ("output", Type::text()),
    ]) else {
        return Type::Any;
    };
    let mut fields = plain.fields.clone();
    for name in ["exit_code", "total", "passed", "failed", "skipped"] {
        let position = fields.len();
        fields.insert(name.to_owned(), field(nullable(Type::Int), Presence::Optional, position));
    }
    Type::Object(Arc::new(ObjectType { fields, open: false }))
}

/// The type of `checks` in the transitions of a state with these checks.
pub(crate) fn checks_type(names: &[String]) -> Type {
    let fields = names.iter().enumerate();
    let fields = fields
        .map(|(at, name)| (check_variable(name), field(check_type(), Presence::Required, at)));
    Type::Object(Arc::new(ObjectType { fields: fields.collect(), open: false }))
}
