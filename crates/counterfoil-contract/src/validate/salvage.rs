//! Salvages the valid items of a rejected result, from the lists that the contract names. Every
//! omitted item is in the report with its violations, or counted there.

use super::Findings;
use crate::capped::MAX_LISTED;
use crate::json::unescape;
use crate::report::{RejectedItem, Violation};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What is salvaged of a rejected result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Salvaged {
    /// The result without the items that are rejected.
    pub(crate) partial: Option<Value>,
    /// The first of those items.
    pub(crate) rejected_items: Vec<RejectedItem>,
    /// The pointers of the others.
    pub(crate) others: Vec<String>,
}

/// Returns the salvaged value and the rejected items.
///
/// Nested lists are processed first, so a violation in an inner item rejects that item and not the
/// enclosing one.
pub(crate) fn salvage(value: &Value, found: &Findings, lists: &[String]) -> Salvaged {
    if lists.is_empty() || !(value.is_object() || value.is_array()) || found.is_incomplete() {
        return Salvaged::default();
    }
    let mut patterns: Vec<&String> = lists.iter().collect();
    patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.matches('/').count()));
    let item_of = |pointer: &str| patterns.iter().find_map(|list| item_end(value, list, pointer));
    let mut by_item: HashMap<&str, Vec<&Violation>> = HashMap::new();
    for violation in found.listed() {
        if let Some(end) = item_of(&violation.pointer) {
            by_item.entry(&violation.pointer[..end]).or_default().push(violation);
        }
    }
    for pointer in found.others() {
        if let Some(end) = item_of(pointer) {
            by_item.entry(&pointer[..end]).or_default();
        }
    }
    let mut rejected: Vec<(&str, Vec<&Violation>)> = by_item.into_iter().collect();
    rejected.sort_by_cached_key(|(pointer, _)| sort_key(pointer));
    let partial = Some(remove_items(value, rejected.iter().map(|(pointer, _)| *pointer)));
    let others = rejected.split_off(rejected.len().min(MAX_LISTED));
    let item = |(pointer, violations): (&str, Vec<&Violation>)| RejectedItem {
        pointer: pointer.to_owned(),
        violations: violations.into_iter().cloned().collect(),
        value: value.pointer(pointer).cloned().unwrap_or_default(),
    };
    Salvaged {
        partial,
        rejected_items: rejected.into_iter().map(item).collect(),
        others: others.into_iter().map(|(pointer, _)| pointer.to_owned()).collect(),
    }
}

/// The end of the part of a pointer that names an item of a list, if it names something in one.
fn item_end(root: &Value, list: &str, pointer: &str) -> Option<usize> {
    let mut value = root;
    let mut end = 0;
    for wanted in list.split('/').skip(1).map(Some).chain([None]) {
        let token = pointer.get(end..)?.strip_prefix('/')?;
        let token = &token[..token.find('/').unwrap_or(token.len())];
        end += 1 + token.len();
        value = match value {
            Value::Array(items) if wanted.is_none_or(|wanted| wanted == "*") => {
                let is_plain = token == "0" || !token.starts_with(['0', '+']);
                items.get(token.parse::<usize>().ok().filter(|_| is_plain)?)?
            }
            Value::Object(members)
                if wanted.is_none_or(|wanted| wanted == "*" || wanted == token) =>
            {
                members.get(unescape(token).as_ref())?
            }
            _ => return None,
        };
    }
    Some(end)
}

/// The lists whose items have no list inside that is salvaged itself.
pub(crate) fn innermost(lists: &[String]) -> impl Iterator<Item = &String> {
    let has_inner =
        |list: &String| lists.iter().any(|other| other.starts_with(&format!("{list}/")));
    lists.iter().filter(move |list| !has_inner(list))
}

/// A sort key that orders pointers as in the value: indexes numerically.
fn sort_key(pointer: &str) -> Vec<(usize, &str)> {
    pointer.split('/').skip(1).map(|token| (token.parse().unwrap_or(usize::MAX), token)).collect()
}

/// The value without the rejected items. Inner lists are processed first, so that the indexes of
/// enclosing items stay valid.
fn remove_items<'p>(value: &Value, rejected: impl Iterator<Item = &'p str>) -> Value {
    let mut partial = value.clone();
    let mut by_list: BTreeMap<(std::cmp::Reverse<usize>, &str), HashSet<&str>> = BTreeMap::new();
    for item in rejected {
        if let Some((list, token)) = item.rsplit_once('/') {
            by_list
                .entry((std::cmp::Reverse(list.matches('/').count()), list))
                .or_default()
                .insert(token);
        }
    }
    for ((_, list), rejected_tokens) in by_list {
        match partial.pointer_mut(list) {
            Some(Value::Array(items)) => {
                let mut index = 0;
                items.retain(|_| {
                    index += 1;
                    !rejected_tokens.contains((index - 1).to_string().as_str())
                });
            }
            Some(Value::Object(members)) => {
                let names: HashSet<_> =
                    rejected_tokens.iter().map(|token| unescape(token)).collect();
                members.retain(|key, _| !names.contains(key.as_str()));
            }
            _ => {}
        }
    }
    partial
}
