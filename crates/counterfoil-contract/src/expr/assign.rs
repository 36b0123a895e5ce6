//! Assignability: whether every value of one type is also a value of another.

use super::path::quoted;
use super::types::{ObjectType, Type};

/// Some value of one type is not a value of another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NotAssignable {
    /// Which part does not fit, and why.
    pub reason: String,
}

/// Checks that every value of `from` is also a value of `to`.
///
/// # Errors
///
/// Some value of `from` is not a value of `to`.
pub fn assignable(from: &Type, to: &Type) -> Result<(), NotAssignable> {
    fits(from, to).map_err(|reason| NotAssignable { reason })
}

fn fits(from: &Type, to: &Type) -> Result<(), String> {
    if *to == Type::Any {
        return Ok(());
    }
    from.alternatives().iter().try_for_each(|from| alternative_assignable(from, to))
}

/// Checks one alternative of a union against a type.
fn alternative_assignable(from: &Type, to: &Type) -> Result<(), String> {
    if *from == Type::Any {
        return Err(format!(
            "the type of this value is not known: a contract should say that it is {}",
            with_article(to)
        ));
    }
    let options = to.alternatives();
    if options.iter().any(|to| check_fit(from, to).is_ok()) {
        return Ok(());
    }
    if *from == Type::Null {
        return Err("may be null".into());
    }
    // Report the reason for the only alternative of the same kind, if there is exactly one.
    let candidates: Vec<&Type> = options.iter().filter(|to| same_kind(from, to)).collect();
    match candidates.as_slice() {
        [candidates] => check_fit(from, candidates),
        _ => Err(format!("{} is not {}", with_article(from), with_article(to))),
    }
}

fn check_fit(from: &Type, to: &Type) -> Result<(), String> {
    match (from, to) {
        (_, Type::Any)
        | (Type::Null, Type::Null)
        | (Type::Bool, Type::Bool)
        | (Type::Int, Type::Int | Type::Double)
        | (Type::Double, Type::Double)
        | (Type::String(_), Type::String(None)) => Ok(()),
        (Type::String(Some(from)), Type::String(Some(to))) => {
            match from.iter().find(|value| !to.contains(value)) {
                None => Ok(()),
                Some(value) => Err(format!("{} is not one of {}", quoted(value), to.join(" | "))),
            }
        }
        // An always-empty list has no item alternatives, so it is assignable to any list.
        (Type::List(from), Type::List(to)) => fits(from, to).map_err(|reason| {
            if **from == Type::Any || (from.object().is_some() && to.object().is_some()) {
                format!("in the items of the list: {reason}")
            } else {
                format!("a list of {from} is not a list of {to}")
            }
        }),
        (Type::Object(from), Type::Object(to)) => check_object_fit(from, to),
        (Type::Map(from), Type::Map(to)) => {
            fits(from, to).map_err(|reason| format!("in the values of the object: {reason}"))
        }
        (Type::Object(from), Type::Map(to)) => {
            for (name, field) in &from.fields {
                fits(&field.ty, to).map_err(|reason| format!("field '{name}': {reason}"))?;
            }
            if from.open && **to != Type::Any {
                return Err("it may have fields that no contract names".into());
            }
            Ok(())
        }
        (Type::Map(from), Type::Object(to)) => {
            for (name, field) in &to.fields {
                if field.required {
                    return Err(format!("field '{name}' may be missing"));
                }
                fits(from, &field.ty).map_err(|reason| format!("field '{name}': {reason}"))?;
            }
            Ok(())
        }
        _ => Err(format!("{} is not {}", with_article(from), with_article(to))),
    }
}

fn check_object_fit(from: &ObjectType, to: &ObjectType) -> Result<(), String> {
    for (name, wanted) in to.in_order() {
        match from.fields.get(name) {
            Some(field) => {
                if wanted.required && !field.is_present() {
                    return Err(format!("field '{name}' may be missing"));
                }
                let ty = if field.required { field.ty.clone() } else { field.ty.non_null() };
                // In an optional field, null means that the field is absent.
                if !wanted.required && ty == Type::Null {
                    continue;
                }
                let ty = if wanted.required { ty } else { ty.non_null() };
                fits(&ty, &wanted.ty).map_err(|reason| format!("field '{name}': {reason}"))?;
            }
            None if wanted.required => return Err(format!("field '{name}' may be missing")),
            None => {}
        }
    }
    Ok(())
}

fn same_kind(a: &Type, b: &Type) -> bool {
    matches!(
        (a, b),
        (Type::String(_), Type::String(_))
            | (Type::Int | Type::Double, Type::Int | Type::Double)
            | (Type::List(_), Type::List(_))
            | (Type::Object(_) | Type::Map(_), Type::Object(_) | Type::Map(_))
    )
}

/// `a string`, `an integer`, `low | high`.
pub(super) fn with_article(ty: &Type) -> String {
    let name = ty.to_string();
    match ty {
        Type::Any => "anything".into(),
        Type::Null | Type::String(Some(_)) => name,
        _ if name.starts_with(['a', 'e', 'i', 'o', 'u']) => format!("an {name}"),
        _ => format!("a {name}"),
    }
}

/// Says that values of a type have no items. The values of a string do not matter.
pub(super) fn has_no_items(ty: &Type) -> String {
    let ty = if matches!(ty, Type::String(_)) { &Type::text() } else { ty };
    format!("{} has no items", with_article(ty))
}
