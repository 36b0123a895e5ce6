//! Lists the errors of a value by its schema, in bounded time. A schema whose errors could be
//! countless is listed part by part: the errors of a member only once, and only where they explain
//! the error of the value around it.

use super::schema_error::{SchemaError, SchemaErrorKind, flatten_errors};
use super::walk::count_values;
use crate::schema::{Listing, ROOT_PART, SchemaValidator};
use crate::work;
use jsonschema::Validator;
use serde_json::{Map, Value};
use std::collections::{HashSet, VecDeque};

/// The most values that all the parts are compared with, together. A value counts for each part
/// that it is in.
const MAX_COMPARED: usize = 2_000_000;

/// The most errors of the validator that are read, those of other alternatives among them.
const MAX_READ: u64 = 500_000;

/// The errors of a value. A value that is not valid has at least one.
pub(super) fn errors(schema: &SchemaValidator, value: &Value) -> Vec<SchemaError> {
    match schema.listing() {
        Listing::Whole => flatten_errors(schema.whole().iter_errors(value)),
        Listing::Parts(parts) => {
            if schema.is_valid(value) {
                return Vec::new();
            }
            let errors = by_parts(parts, value);
            if errors.is_empty() { vec![unlisted(String::new())] } else { errors }
        }
        Listing::Unlisted if schema.is_valid(value) => Vec::new(),
        Listing::Unlisted => vec![unlisted(String::new())],
    }
}

/// The first error of a value, or the errors of the alternative that comes closest. Empty if it is
/// valid.
pub(super) fn first_error(schema: &SchemaValidator, value: &Value) -> Vec<SchemaError> {
    match schema.listing() {
        Listing::Whole => flatten_errors(schema.whole().validate(value).err()),
        _ if schema.is_valid(value) => Vec::new(),
        _ => vec![unlisted(String::new())],
    }
}

fn unlisted(pointer: String) -> SchemaError {
    SchemaError { pointer, kind: SchemaErrorKind::Part(String::new()) }
}

fn by_parts(parts: &Validator, value: &Value) -> Vec<SchemaError> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut open = VecDeque::from([(ROOT_PART.to_owned(), String::new())]);
    let (mut compared, mut read) = (0, 0);
    while let Some((part, at)) = open.pop_front() {
        let Some(inner) = value.pointer(&at) else { continue };
        compared += count_values(inner);
        if compared > MAX_COMPARED || read > MAX_READ || work::is_over() {
            found.push(unlisted(at));
            continue;
        }
        let (errors, steps) = work::counted(|| {
            let alone = Map::from_iter([(part.clone(), inner.clone())]);
            flatten_errors(parts.iter_errors(&Value::Object(alone)))
        });
        read += steps;
        for SchemaError { pointer, kind } in errors {
            let below = pointer.get(1 + part.len()..).unwrap_or_default();
            let pointer = format!("{at}{below}");
            match kind {
                SchemaErrorKind::Part(part) => {
                    if seen.insert((part.clone(), pointer.clone())) {
                        open.push_back((part, pointer));
                    }
                }
                kind => found.push(SchemaError { pointer, kind }),
            }
        }
    }
    found
}
