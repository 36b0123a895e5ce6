//! Changes of type that a contract asks for. Driven by the validator's own errors, so that a value
//! which is right is never touched; each change is recorded, and nothing is rounded or dropped.

use super::leaf::{What, leaves};
use super::select::select;
use crate::contract::Contract;
use crate::json::escape;
use crate::policy::{Coerce, Framing, Policy, Rename};
use crate::report::Coercion;
use serde_json::{Number, Value};

/// A value can need a few rounds: a list of one, then its item.
const ROUNDS: usize = 4;

/// Coerces what the policy allows.
pub(crate) fn coerce(
    contract: &Contract,
    policy: &Policy,
    value: &mut Value,
    record: &mut Vec<Coercion>,
) {
    let block = contract.framing() == Framing::OutputBlock && !policy.strict;
    if policy.coerce == Coerce::None && !block {
        return;
    }
    for _ in 0..ROUNDS {
        let found = leaves(contract.validator().iter_errors(value));
        let mut changed = false;
        for leaf in found {
            let all = policy.coerce.allows(&leaf.pointer);
            changed |= match &leaf.what {
                What::Missing(property) => {
                    policy.coerce.allows(&format!("{}/{}", leaf.pointer, escape(property)))
                        && rename_key(value, &leaf.pointer, property, record)
                }
                What::Type(types) => {
                    let only_list = !all;
                    (all || block) && retype(value, &leaf.pointer, types, only_list, record)
                }
                What::Enum(allowed) => all && recase(value, &leaf.pointer, allowed, record),
                _ => false,
            };
        }
        if !changed {
            return;
        }
    }
}

/// Gives fields that go by another name the one the contract knows, where that one is missing.
pub(crate) fn rename(renames: &[Rename], value: &mut Value, record: &mut Vec<Coercion>) {
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

fn replace(target: &mut Value, pointer: &str, new: Value, record: &mut Vec<Coercion>) {
    record.push(Coercion {
        pointer: pointer.to_owned(),
        from: target.to_string(),
        to: new.to_string(),
    });
    *target = new;
}

/// An object key that differs only in case.
fn rename_key(root: &mut Value, pointer: &str, wanted: &str, record: &mut Vec<Coercion>) -> bool {
    let Some(Value::Object(map)) = root.pointer_mut(pointer) else { return false };
    let mut same: Vec<String> =
        map.keys().filter(|key| key.eq_ignore_ascii_case(wanted)).cloned().collect();
    let (Some(key), true) = (same.pop(), same.is_empty()) else { return false };
    rename_exactly(root, pointer, &key, wanted, record);
    true
}

/// Renames a key, keeping its place among the others.
fn rename_exactly(
    root: &mut Value,
    pointer: &str,
    from: &str,
    to: &str,
    record: &mut Vec<Coercion>,
) {
    let Some(Value::Object(map)) = root.pointer_mut(pointer) else { return };
    *map = std::mem::take(map)
        .into_iter()
        .map(|(name, value)| (if name == from { to.to_owned() } else { name }, value))
        .collect();
    record.push(Coercion {
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
    record: &mut Vec<Coercion>,
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

/// A number in a text, with its digits as they are; thousands separators in groups of three are
/// left out.
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

fn recase(root: &mut Value, pointer: &str, allowed: &[Value], record: &mut Vec<Coercion>) -> bool {
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
