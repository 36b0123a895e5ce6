//! The errors of the JSON Schema validator, flattened to what is really wrong: of alternatives, the
//! branch that was meant.

use crate::json::escape;
use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

/// One thing that the schema does not allow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Leaf {
    pub(crate) pointer: String,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    Missing(String),
    Type(Vec<String>),
    Enum(Vec<Value>),
    /// A bound of a number, as `at least 1`.
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
}

/// Flattens errors.
pub(crate) fn leaves<'e>(errors: impl IntoIterator<Item = ValidationError<'e>>) -> Vec<Leaf> {
    let mut found = Vec::new();
    for error in errors {
        flatten(&error, &mut found);
    }
    let mut unique: Vec<Leaf> = Vec::new();
    let mut seen: std::collections::HashSet<String> = std::collections::HashSet::new();
    let wrong_type: std::collections::HashSet<String> = found
        .iter()
        .filter(|leaf| matches!(leaf.what, What::Type(_)))
        .map(|leaf| leaf.pointer.clone())
        .collect();
    for leaf in found {
        // A value of the wrong type is none of those allowed either; once is enough.
        let said = matches!(leaf.what, What::Enum(_)) && wrong_type.contains(&leaf.pointer);
        if !said && seen.insert(format!("{} {:?}", leaf.pointer, leaf.what)) {
            unique.push(leaf);
        }
    }
    unique
}

fn flatten(error: &ValidationError<'_>, found: &mut Vec<Leaf>) {
    use ValidationErrorKind as Kind;
    let pointer = error.instance_path().as_str().to_owned();
    let mut push = |what| found.push(Leaf { pointer: pointer.clone(), what });
    match error.kind() {
        Kind::Required { property } => {
            push(What::Missing(property.as_str().unwrap_or_default().to_owned()))
        }
        Kind::Type { kind } => push(What::Type(type_names(kind))),
        Kind::Enum { options } => push(What::Enum(options.as_array().cloned().unwrap_or_default())),
        Kind::Constant { expected_value } => {
            push(What::Enum(vec![expected_value.as_ref().clone()]))
        }
        Kind::Minimum { limit } => push(What::Range(format!("at least {limit}"))),
        Kind::Maximum { limit } => push(What::Range(format!("at most {limit}"))),
        Kind::ExclusiveMinimum { limit } => push(What::Range(format!("more than {limit}"))),
        Kind::ExclusiveMaximum { limit } => push(What::Range(format!("less than {limit}"))),
        Kind::MultipleOf { multiple_of } => {
            push(What::Range(format!("a multiple of {multiple_of}")))
        }
        Kind::MinLength { limit } => {
            push(What::Length(format!("at least {}", counted(*limit, "character"))))
        }
        Kind::MaxLength { limit } => {
            push(What::Length(format!("at most {}", counted(*limit, "character"))))
        }
        Kind::Pattern { pattern } => push(What::Pattern(pattern.clone())),
        Kind::MinItems { limit } => {
            push(What::Size(format!("at least {}", counted(*limit, "item"))))
        }
        Kind::MaxItems { limit } => {
            push(What::Size(format!("at most {}", counted(*limit, "item"))))
        }
        Kind::AdditionalItems { limit } => push(What::Size(format!("at most {limit} items"))),
        Kind::MinProperties { limit } => {
            push(What::Size(format!("at least {}", counted(*limit, "field"))))
        }
        Kind::MaxProperties { limit } => {
            push(What::Size(format!("at most {}", counted(*limit, "field"))))
        }
        Kind::UniqueItems => push(What::NotUnique),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            for name in unexpected {
                found.push(Leaf {
                    pointer: format!("{pointer}/{}", escape(name)),
                    what: What::Unexpected(name.clone()),
                });
            }
        }
        Kind::Format { format } => push(What::Format(format.clone())),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            branch(&pointer, context, found)
        }
        Kind::OneOfMultipleValid { .. } => push(What::TwoAlternatives),
        Kind::PropertyNames { error } => flatten(error, found),
        other => push(What::Other(other.keyword().to_owned())),
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

/// Picks the branch of an alternative that was meant: one whose type fits, with the fewest errors,
/// and not one that says of a tag that it is another.
fn branch(pointer: &str, context: &[Vec<ValidationError<'static>>], found: &mut Vec<Leaf>) {
    let flat: Vec<Vec<Leaf>> = context
        .iter()
        .map(|errors| {
            let mut leaves = Vec::new();
            for error in errors {
                flatten(error, &mut leaves);
            }
            leaves
        })
        .collect();
    let wrong_here = |leaves: &Vec<Leaf>| {
        leaves.iter().any(|leaf| leaf.pointer == pointer && matches!(leaf.what, What::Type(_)))
    };
    if flat.iter().all(wrong_here) {
        let mut types: Vec<String> = Vec::new();
        for leaf in flat.iter().flatten().filter(|leaf| leaf.pointer == pointer) {
            if let What::Type(names) = &leaf.what {
                types.extend(
                    names.iter().filter(|name| !types.contains(name)).cloned().collect::<Vec<_>>(),
                );
            }
        }
        found.push(Leaf { pointer: pointer.to_owned(), what: What::Type(types) });
        return;
    }
    // Constants and enums of one value each, as a union of literals is written.
    let literals: Option<Vec<Value>> = flat
        .iter()
        .map(|leaves| match leaves.as_slice() {
            [Leaf { pointer: at, what: What::Enum(values) }] if at == pointer => {
                Some(values.clone())
            }
            _ => None,
        })
        .collect::<Option<Vec<_>>>()
        .map(|values| values.concat());
    if let Some(values) = literals.filter(|values| !values.is_empty()) {
        found.push(Leaf { pointer: pointer.to_owned(), what: What::Enum(values) });
        return;
    }
    let tags = |leaves: &[Leaf]| {
        leaves
            .iter()
            .filter(|leaf| matches!(&leaf.what, What::Enum(values) if values.len() == 1))
            .count()
    };
    let score = |leaves: &Vec<Leaf>| (tags(leaves), leaves.len());
    let plausible: Vec<&Vec<Leaf>> =
        flat.iter().filter(|leaves| !wrong_here(leaves) && !leaves.is_empty()).collect();
    let best = plausible.iter().map(|leaves| score(leaves)).min();
    let mut nearest = plausible.iter().filter(|leaves| Some(score(leaves)) == best);
    match (nearest.next(), nearest.next()) {
        (Some(leaves), None) => found.extend(leaves.iter().cloned()),
        // Two are equally near: none of them can be said to be meant.
        _ => found.push(Leaf { pointer: pointer.to_owned(), what: What::NoAlternative }),
    }
}
