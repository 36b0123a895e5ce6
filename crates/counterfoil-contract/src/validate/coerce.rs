//! Type coercions that a contract allows, and values in the form of their origin that stand for
//! another one: an absolute path inside the workspace, a line 0. They are driven by validation errors, so a valid value is
//! never changed. Each change is recorded, and nothing is rounded or dropped.

use super::listing;
use super::schema_error::{SchemaError, SchemaErrorKind};
use super::select::select;
use crate::capped::Capped;
use crate::contract::Contract;
use crate::expr::Type;
use crate::json::escape;
use crate::policy::{Coerce, Framing, Policy, Rename};
use crate::report::Coercion;
use serde_json::{Number, Value};

/// The maximum number of rounds. A value can need several, for example first to become a list and
/// then to have its item converted.
const MAX_ROUNDS: usize = 4;

/// Whether a coercion may make a value valid, by its first error: listing all of them takes long.
pub(crate) fn may_help(contract: &Contract, policy: &Policy, value: &Value) -> bool {
    if policy.strict {
        return false;
    }
    if policy.coerce != Coerce::None || contract.framing() == Framing::OutputBlock {
        return true;
    }
    let first = listing::first_error(contract.validator(), value);
    let is_hopeless = |error: &SchemaError| {
        use SchemaErrorKind::{Enum, Missing, Type};
        matches!(error.kind, Missing(_) | Type(_) | Enum(_))
    };
    !first.iter().any(is_hopeless)
}

/// Applies the coercions that the policy allows. Returns the errors of the value that is left, if
/// they are known.
pub(crate) fn coerce(
    contract: &Contract,
    policy: &Policy,
    value: &mut Value,
    record: &mut Capped<Coercion>,
) -> Option<Vec<SchemaError>> {
    if policy.strict {
        return None;
    }
    for _ in 0..MAX_ROUNDS {
        let errors = listing::errors(contract.validator(), value);
        if !apply(contract, policy, value, &errors, record) {
            return Some(errors);
        }
    }
    None
}

/// Applies the coercions for the first error of a value, and returns whether there are any. If not,
/// the value stays invalid, whatever the others are.
pub(crate) fn changes_first(
    contract: &Contract,
    policy: &Policy,
    value: &mut Value,
    record: &mut Capped<Coercion>,
) -> bool {
    let first = listing::first_error(contract.validator(), value);
    !policy.strict && apply(contract, policy, value, &first, record)
}

/// Applies the coercions for some errors. Returns whether anything changed.
fn apply(
    contract: &Contract,
    policy: &Policy,
    value: &mut Value,
    errors: &[SchemaError],
    record: &mut Capped<Coercion>,
) -> bool {
    let block = contract.framing() == Framing::OutputBlock;
    let mut changed = false;
    for error in errors {
        let all = policy.coerce.allows(&error.pointer);
        changed |= match &error.kind {
            SchemaErrorKind::Missing(property) => {
                policy.coerce.allows(&format!("{}/{}", error.pointer, escape(property)))
                    && rename_key(value, &error.pointer, property, record)
            }
            SchemaErrorKind::Type(types) => {
                let only_list = !all;
                (all || block) && retype(value, &error.pointer, types, only_list, record)
            }
            SchemaErrorKind::Enum(allowed) => all && recase(value, &error.pointer, allowed, record),
            SchemaErrorKind::Range(_) => clear_line(contract, value, &error.pointer, record),
            SchemaErrorKind::Format(format) if format == "repo-path" => {
                make_relative(value, &error.pointer, policy, record)
            }
            _ => false,
        };
    }
    changed
}

/// Renames fields as the contract's `rename` policy says, where the target field is missing.
pub(crate) fn rename(renames: &[Rename], value: &mut Value, record: &mut Capped<Coercion>) {
    for Rename { at, from, to } in renames {
        let objects: Vec<String> =
            select(value, at).into_iter().map(|(pointer, _)| pointer).collect();
        for pointer in objects {
            if let Some(Value::Object(map)) = value.pointer(&pointer)
                && map.contains_key(from)
                && !map.contains_key(to)
            {
                rename_exactly(value, &pointer, from, to, record);
            }
        }
    }
}

fn replace(target: &mut Value, pointer: &str, new: Value, record: &mut Capped<Coercion>) {
    record.push(|| Coercion {
        pointer: pointer.to_owned(),
        from: target.to_string(),
        to: new.to_string(),
    });
    *target = new;
}

/// Renames an object key that differs from the required one only in case.
fn rename_key(
    root: &mut Value,
    pointer: &str,
    wanted: &str,
    record: &mut Capped<Coercion>,
) -> bool {
    let Some(Value::Object(map)) = root.pointer_mut(pointer) else { return false };
    let mut same: Vec<String> =
        map.keys().filter(|key| key.eq_ignore_ascii_case(wanted)).cloned().collect();
    let (Some(key), true) = (same.pop(), same.is_empty()) else { return false };
    rename_exactly(root, pointer, &key, wanted, record);
    true
}

/// Renames a key and keeps its position among the others.
fn rename_exactly(
    root: &mut Value,
    pointer: &str,
    from: &str,
    to: &str,
    record: &mut Capped<Coercion>,
) {
    let Some(Value::Object(map)) = root.pointer_mut(pointer) else { return };
    *map = std::mem::take(map)
        .into_iter()
        .map(|(name, value)| (if name == from { to.to_owned() } else { name }, value))
        .collect();
    record.push(|| Coercion {
        pointer: format!("{pointer}/{}", escape(to)),
        from: Value::from(from).to_string(),
        to: Value::from(to).to_string(),
    });
}

fn retype(
    root: &mut Value,
    pointer: &str,
    types: &[String],
    only_list: bool,
    record: &mut Capped<Coercion>,
) -> bool {
    let Some(value) = root.pointer_mut(pointer) else { return false };
    let wants = |name: &str| types.iter().any(|ty| ty == name);
    if let (Value::String(text), false) = (&*value, only_list) {
        let new = if wants("integer") {
            number(text).filter(|number| !number.as_str().contains(['.', 'e', 'E']))
        } else if wants("number") {
            number(text)
        } else {
            None
        };
        if let Some(number) = new {
            replace(value, pointer, Value::Number(number), record);
            return true;
        }
        let flag = match text.trim().to_lowercase().as_str() {
            "true" | "yes" => Some(true),
            "false" | "no" => Some(false),
            _ => None,
        };
        if let Some(flag) = flag.filter(|_| wants("boolean")) {
            replace(value, pointer, Value::Bool(flag), record);
            return true;
        }
    }
    if wants("array") && !value.is_array() && !value.is_null() {
        let new = Value::Array(vec![value.clone()]);
        replace(value, pointer, new, record);
        return true;
    }
    false
}

/// Makes an absolute path inside the workspace relative to it.
fn make_relative(
    root: &mut Value,
    pointer: &str,
    policy: &Policy,
    record: &mut Capped<Coercion>,
) -> bool {
    let Some(value) = root.pointer_mut(pointer) else { return false };
    let workspaces = policy.context.iter().flat_map(|context| &context.workspace);
    let relative = value.as_str().and_then(|path| {
        workspaces.filter(|folder| folder.starts_with('/')).find_map(|folder| {
            let rest = path.strip_prefix(folder.trim_end_matches('/'))?.strip_prefix('/')?;
            let rest = rest.trim_start_matches('/');
            (!rest.is_empty()).then(|| rest.to_owned())
        })
    });
    let Some(relative) = relative else { return false };
    replace(value, pointer, Value::from(relative), record);
    true
}

/// The names of fields that hold a line number.
const LINE_FIELDS: [&str; 5] = ["line", "line_number", "start_line", "end_line", "lineno"];

/// Makes a line 0 null, or leaves it out, where the field allows that: lines count from 1, and many
/// programs write 0 for no line.
fn clear_line(
    contract: &Contract,
    root: &mut Value,
    pointer: &str,
    record: &mut Capped<Coercion>,
) -> bool {
    let Some((parent, name)) = pointer.rsplit_once('/') else { return false };
    if !LINE_FIELDS.contains(&name) || root.pointer(pointer).and_then(Value::as_u64) != Some(0) {
        return false;
    }
    let object = contract.ty().at(parent.split('/').skip(1)).and_then(|ty| ty.object().cloned());
    let Some(field) = object.and_then(|object| object.fields.get(name).cloned()) else {
        return false;
    };
    let nullable = field.ty.alternatives().contains(&Type::Null);
    let Some(Value::Object(members)) = root.pointer_mut(parent) else { return false };
    if nullable {
        members.insert(name.to_owned(), Value::Null);
    } else if !field.required {
        members.shift_remove(name);
    } else {
        return false;
    }
    record.push(|| Coercion {
        pointer: pointer.to_owned(),
        from: "0".to_owned(),
        to: "null".to_owned(),
    });
    true
}

/// Parses a number and keeps its digits exactly. Thousands separators between groups of three are
/// removed.
fn number(text: &str) -> Option<Number> {
    let text = text.trim();
    if let Ok(number) = text.parse::<Number>() {
        return Some(number);
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) =
        digits.split_once('.').map_or((digits, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut groups = whole.split(',');
    let first = groups.next()?;
    let digit = |group: &str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit());
    let grouped = whole.contains(',')
        && first.len() <= 3
        && digit(first)
        && groups.all(|group| group.len() == 3 && digit(group))
        && fraction.is_none_or(digit);
    if grouped { text.replace(',', "").parse().ok() } else { None }
}

fn recase(
    root: &mut Value,
    pointer: &str,
    allowed: &[Value],
    record: &mut Capped<Coercion>,
) -> bool {
    let Some(value) = root.pointer_mut(pointer) else { return false };
    let Some(text) = value.as_str() else { return false };
    let mut same = allowed
        .iter()
        .filter(|value| value.as_str().is_some_and(|value| value.eq_ignore_ascii_case(text)));
    let (Some(new), None) = (same.next().cloned(), same.next()) else { return false };
    replace(value, pointer, new, record);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits_and_are_never_rounded() {
        let text = |text: &str| number(text).map(|number| number.to_string());
        assert_eq!(text("3").as_deref(), Some("3"));
        assert_eq!(text("1,234").as_deref(), Some("1234"));
        assert_eq!(text("-1,234,567.50").as_deref(), Some("-1234567.50"));
        for bad in ["1,23", "12,3456", ",123", "1,234,", "three", "", "1 234", "0x1f", "1.2.3"] {
            assert_eq!(number(bad), None, "{bad}");
        }
    }
}
