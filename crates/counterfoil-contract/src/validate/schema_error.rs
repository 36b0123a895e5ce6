//! Flattens the errors of the JSON Schema validator. For alternatives, only the errors of the
//! branch that was most likely intended are kept.

use super::pointer_set::PointerSet;
use crate::json::escape;
use crate::schema::part_of;
use crate::work;
use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// One schema error, at a pointer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SchemaError {
    pub(crate) pointer: String,
    pub(crate) kind: SchemaErrorKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SchemaErrorKind {
    Missing(String),
    Type(Vec<String>),
    Enum(Vec<Value>),
    /// A violated bound of a number, such as `at least 1`.
    Range(String),
    Length(String),
    Pattern(String),
    Size(String),
    NotUnique,
    Unexpected(String),
    Format(String),
    NoAlternative,
    TwoAlternatives,
    Other(String),
    /// The value does not satisfy this part of the schema, whose errors are listed on their own.
    Part(String),
}

/// Flattens and deduplicates validation errors.
pub(crate) fn flatten_errors<'e>(
    errors: impl IntoIterator<Item = ValidationError<'e>>,
) -> Vec<SchemaError> {
    let mut found = Vec::new();
    for error in errors {
        flatten(&error, &mut found);
    }
    let mut wrong_type = PointerSet::default();
    if found.iter().any(|error| matches!(error.kind, SchemaErrorKind::Enum(_))) {
        for error in &found {
            if matches!(error.kind, SchemaErrorKind::Type(_)) {
                wrong_type.insert(&error.pointer);
            }
        }
    }
    // Most errors are the only one of their value, so kinds are compared only where they are not.
    let mut once: HashMap<u64, bool> = HashMap::with_capacity(found.len());
    for error in &found {
        let others = once.entry(wrong_type.hash(&error.pointer));
        others.and_modify(|once| *once = false).or_insert(true);
    }
    let mut seen: HashSet<(u64, u64)> = HashSet::new();
    found.retain(|error| {
        // A value of the wrong type also fails the enum; report it only once.
        if matches!(error.kind, SchemaErrorKind::Enum(_)) && wrong_type.contains(&error.pointer) {
            return false;
        }
        let pointer = wrong_type.hash(&error.pointer);
        once.get(&pointer) == Some(&true)
            || seen.insert((pointer, kind_hash(&wrong_type, &error.kind)))
    });
    found
}

/// The hash of a kind of error.
fn kind_hash(set: &PointerSet, kind: &SchemaErrorKind) -> u64 {
    match kind {
        SchemaErrorKind::Missing(field) => set.hash(field),
        other => set.hash(&format!("{other:?}")),
    }
}

fn flatten(error: &ValidationError<'_>, found: &mut Vec<SchemaError>) {
    use ValidationErrorKind as Kind;
    work::count(1);
    let pointer = error.instance_path().as_str().to_owned();
    let mut push = |kind| found.push(SchemaError { pointer: pointer.clone(), kind });
    match error.kind() {
        Kind::Required { property } => {
            push(SchemaErrorKind::Missing(property.as_str().unwrap_or_default().to_owned()));
        }
        Kind::Type { kind } => push(SchemaErrorKind::Type(type_names(kind))),
        Kind::Enum { options } => {
            push(SchemaErrorKind::Enum(options.as_array().cloned().unwrap_or_default()));
        }
        Kind::Constant { expected_value } => {
            push(SchemaErrorKind::Enum(vec![expected_value.as_ref().clone()]));
        }
        Kind::Minimum { limit } => push(SchemaErrorKind::Range(format!("at least {limit}"))),
        Kind::Maximum { limit } => push(SchemaErrorKind::Range(format!("at most {limit}"))),
        Kind::ExclusiveMinimum { limit } => {
            push(SchemaErrorKind::Range(format!("more than {limit}")));
        }
        Kind::ExclusiveMaximum { limit } => {
            push(SchemaErrorKind::Range(format!("less than {limit}")));
        }
        Kind::MultipleOf { multiple_of } => {
            push(SchemaErrorKind::Range(format!("a multiple of {multiple_of}")));
        }
        Kind::MinLength { limit } => {
            push(SchemaErrorKind::Length(format!("at least {}", counted(*limit, "character"))));
        }
        Kind::MaxLength { limit } => {
            push(SchemaErrorKind::Length(format!("at most {}", counted(*limit, "character"))));
        }
        Kind::Pattern { pattern } => push(SchemaErrorKind::Pattern(pattern.clone())),
        Kind::MinItems { limit } => {
            push(SchemaErrorKind::Size(format!("at least {}", counted(*limit, "item"))));
        }
        Kind::MaxItems { limit } => {
            push(SchemaErrorKind::Size(format!("at most {}", counted(*limit, "item"))));
        }
        Kind::AdditionalItems { limit } => {
            push(SchemaErrorKind::Size(format!("at most {}", counted(*limit as u64, "item"))));
        }
        Kind::MinProperties { limit } => {
            push(SchemaErrorKind::Size(format!("at least {}", counted(*limit, "field"))));
        }
        Kind::MaxProperties { limit } => {
            push(SchemaErrorKind::Size(format!("at most {}", counted(*limit, "field"))));
        }
        Kind::UniqueItems => push(SchemaErrorKind::NotUnique),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            for name in unexpected {
                found.push(SchemaError {
                    pointer: format!("{pointer}/{}", escape(name)),
                    kind: SchemaErrorKind::Unexpected(name.clone()),
                });
            }
        }
        Kind::Format { format } => push(SchemaErrorKind::Format(format.clone())),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            flatten_alternatives(&pointer, context, found);
        }
        Kind::OneOfMultipleValid { .. } => push(SchemaErrorKind::TwoAlternatives),
        Kind::PropertyNames { error } => flatten(error, found),
        Kind::Not { schema } => push(match part_of(schema) {
            Some(part) => SchemaErrorKind::Part(part.to_owned()),
            None => SchemaErrorKind::Other(error.kind().keyword().to_owned()),
        }),
        other => push(SchemaErrorKind::Other(other.keyword().to_owned())),
    }
}

fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn type_names(kind: &TypeKind) -> Vec<String> {
    match kind {
        TypeKind::Single(ty) => vec![ty.to_string()],
        TypeKind::Multiple(types) => types.iter().map(|ty| ty.to_string()).collect(),
    }
}

/// Picks the branch that was most likely intended: one whose type fits, with the fewest mismatched
/// tags and then the fewest errors.
fn flatten_alternatives(
    pointer: &str,
    context: &[Vec<ValidationError<'static>>],
    found: &mut Vec<SchemaError>,
) {
    let flat: Vec<Vec<SchemaError>> = context
        .iter()
        .map(|branch| {
            let mut errors = Vec::new();
            for error in branch {
                flatten(error, &mut errors);
            }
            errors
        })
        .collect();
    let has_wrong_type = |errors: &Vec<SchemaError>| {
        errors
            .iter()
            .any(|error| error.pointer == pointer && matches!(error.kind, SchemaErrorKind::Type(_)))
    };
    if flat.iter().all(has_wrong_type) {
        let mut types: Vec<String> = Vec::new();
        for error in flat.iter().flatten().filter(|error| error.pointer == pointer) {
            if let SchemaErrorKind::Type(names) = &error.kind {
                types.extend(
                    names.iter().filter(|name| !types.contains(name)).cloned().collect::<Vec<_>>(),
                );
            }
        }
        found.push(SchemaError { pointer: pointer.to_owned(), kind: SchemaErrorKind::Type(types) });
        return;
    }
    // A union of literals, written as one constant or enum in each branch.
    let literals: Option<Vec<Value>> = flat
        .iter()
        .map(|errors| match errors.as_slice() {
            [SchemaError { pointer: at, kind: SchemaErrorKind::Enum(values) }] if at == pointer => {
                Some(values.clone())
            }
            _ => None,
        })
        .collect::<Option<Vec<_>>>()
        .map(|values| values.concat());
    if let Some(values) = literals.filter(|values| !values.is_empty()) {
        found
            .push(SchemaError { pointer: pointer.to_owned(), kind: SchemaErrorKind::Enum(values) });
        return;
    }
    let tags = |errors: &[SchemaError]| {
        errors
            .iter()
            .filter(
                |error| matches!(&error.kind, SchemaErrorKind::Enum(values) if values.len() == 1),
            )
            .count()
    };
    let score = |errors: &Vec<SchemaError>| (tags(errors), errors.len());
    let plausible: Vec<&Vec<SchemaError>> =
        flat.iter().filter(|errors| !has_wrong_type(errors) && !errors.is_empty()).collect();
    let best = plausible.iter().map(|errors| score(errors)).min();
    let mut nearest = plausible.iter().filter(|errors| Some(score(errors)) == best);
    match (nearest.next(), nearest.next()) {
        (Some(errors), None) => found.extend(errors.iter().cloned()),
        // Several branches are equally close, so the intended one is unknown.
        _ => found.push(SchemaError {
            pointer: pointer.to_owned(),
            kind: SchemaErrorKind::NoAlternative,
        }),
    }
}
