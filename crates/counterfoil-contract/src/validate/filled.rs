//! Fills in the fields that nobody but the caller can know, before the result is validated.

use super::bare_violation;
use super::describe::{SpanResolver, excerpt, field_name};
use crate::code::Code;
use crate::context::run_type;
use crate::contract::Contract;
use crate::json::unescape;
use crate::policy::Policy;
use crate::report::Violation;
use serde_json::{Map, Value};

/// What became of the fields that are filled in.
#[derive(Default)]
pub(super) struct Filled {
    /// The pointers of the fields that were filled in.
    pub(super) filled: Vec<String>,
    /// The pointers of the fields whose value is not known, and which the result does not have.
    pub(super) unknown: Vec<String>,
    /// The fields to which the agent gave another value, with the right one.
    differing: Vec<(String, Value)>,
    /// The fields whose expression has no value, with the reason.
    failed: Vec<(String, String)>,
}

/// Fills in the fields of a value.
pub(super) fn fill(contract: &Contract, policy: &Policy, value: &mut Value) -> Filled {
    let mut outcome = Filled::default();
    let Some(fields) = &contract.filled else { return outcome };
    for object in &fields.objects {
        remove_null(value, object);
    }
    let run = policy.context.as_ref().map_or(Value::Null, |context| context.run_value());
    for field in &fields.fields {
        let pointer = &field.pointer;
        let given = value.pointer(pointer).filter(|given| !given.is_null()).cloned();
        let known = field.expression.reads().iter().all(|read| {
            let mut parts = read.split('.').skip(1);
            parts.next().is_none_or(|name| run.get(name).is_some())
        });
        if !known || run.is_null() {
            if given.is_none() {
                outcome.unknown.push(pointer.clone());
            }
            continue;
        }
        match (field.expression.evaluate(&[("run", &run, &run_type())]), given) {
            (Ok(right), None) => {
                if insert(value, pointer, right) {
                    outcome.filled.push(pointer.clone());
                }
            }
            (Ok(right), Some(given)) if given != right && !field.keeps => {
                outcome.differing.push((pointer.clone(), right));
            }
            (Ok(_), Some(_)) => {}
            (Err(error), _) => outcome.failed.push((pointer.clone(), error.reason)),
        }
    }
    outcome
}

/// Removes an object that the agent gives as null: of what it is not asked for, null says nothing.
fn remove_null(root: &mut Value, pointer: &str) {
    if root.pointer(pointer).is_some_and(Value::is_null)
        && let Some((around, name)) = pointer.rsplit_once('/')
        && let Some(Value::Object(members)) = root.pointer_mut(around)
    {
        members.shift_remove(&*unescape(name));
    }
}

/// Inserts a value at a pointer. Objects on the way are created; false if something else is there.
fn insert(root: &mut Value, pointer: &str, new: Value) -> bool {
    let mut node = root;
    let names: Vec<String> =
        pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
    let Some((last, parents)) = names.split_last() else { return false };
    for name in parents {
        let Value::Object(members) = node else { return false };
        node = members.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
    }
    let Value::Object(members) = node else { return false };
    members.insert(last.clone(), new);
    true
}

impl Filled {
    /// Whether the result cannot be accepted.
    pub(super) fn is_refused(&self) -> bool {
        !self.differing.is_empty() || !self.failed.is_empty()
    }

    /// The violations of the agent's values.
    pub(super) fn violations(&self, value: &Value, spans: &SpanResolver<'_, '_>) -> Vec<Violation> {
        let differing = self.differing.iter().map(|(pointer, right)| {
            let name = field_name(pointer);
            let given = value.pointer(pointer).unwrap_or(&Value::Null);
            let message =
                format!("{name} is {}, but is filled in as {}", excerpt(given), excerpt(right));
            let mut violation = bare_violation(Code::FilledDiffers, pointer, message);
            violation.span = spans.value(pointer);
            violation.expected = excerpt(right);
            violation.received = excerpt(given);
            violation.hint = format!("leave out {name}: it is filled in");
            violation
        });
        let failed = self.failed.iter().map(|(pointer, why)| {
            let message = format!("{} could not be filled in: {why}", field_name(pointer));
            let mut violation = bare_violation(Code::RuleFailed, pointer, message);
            violation.hint = "correct `filled` in the contract".into();
            violation
        });
        differing.chain(failed).collect()
    }

    /// The warnings about fields that are left out.
    pub(super) fn warnings(&self) -> impl Iterator<Item = Violation> {
        self.unknown.iter().map(|pointer| {
            let name = field_name(pointer);
            let message = format!("{name} is filled in by a run; it is not known here");
            let mut note = bare_violation(Code::NotFilled, pointer, message);
            note.expected = "what a run fills in".into();
            note.received = "nothing".into();
            note.hint = "read the result without the field, or say what is known of the run".into();
            note
        })
    }
}
