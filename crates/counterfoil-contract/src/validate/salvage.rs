//! Salvages the valid items of a rejected result, from the lists that the contract names. Every
//! omitted item is in the report with its violations.

use super::select::select;
use crate::json::escape;
use crate::report::{RejectedItem, Violation};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};

/// Returns the salvaged value and the rejected items.
///
/// Nested lists are processed first, so a violation in an inner item rejects that item and not the
/// enclosing one.
pub(crate) fn salvage(
    value: &Value,
    violations: &[Violation],
    lists: &[String],
) -> (Option<Value>, Vec<RejectedItem>) {
    if lists.is_empty() || !(value.is_object() || value.is_array()) {
        return (None, Vec::new());
    }
    let mut patterns: Vec<&String> = lists.iter().collect();
    patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.matches('/').count()));
    let mut unassigned: Vec<&Violation> = violations.iter().collect();
    let mut rejected: Vec<RejectedItem> = Vec::new();
    for pattern in patterns {
        for (pointer, target) in select(value, pattern) {
            let items: Vec<String> = match target {
                Value::Array(items) => {
                    (0..items.len()).map(|index| format!("{pointer}/{index}")).collect()
                }
                Value::Object(members) => {
                    members.keys().map(|key| format!("{pointer}/{}", escape(key))).collect()
                }
                _ => Vec::new(),
            };
            // There are few violations, so look up the item of each violation, not the reverse.
            let mut by_item: BTreeMap<&str, Vec<Violation>> = BTreeMap::new();
            let known: HashSet<&str> = items.iter().map(String::as_str).collect();
            unassigned.retain(|violation| {
                let depth = pointer.len() + 1;
                let end = violation
                    .pointer
                    .get(depth..)
                    .map(|rest| depth + rest.find('/').unwrap_or(rest.len()));
                let item = end
                    .and_then(|end| violation.pointer.get(..end))
                    .and_then(|item| known.get(item));
                match item {
                    Some(item) => {
                        by_item.entry(item).or_default().push((*violation).clone());
                        false
                    }
                    None => true,
                }
            });
            rejected.extend(by_item.into_iter().map(|(item, violations)| RejectedItem {
                pointer: item.to_owned(),
                violations,
                value: value.pointer(item).cloned().unwrap_or_default(),
            }));
        }
    }
    rejected.sort_by_key(|item| sort_key(&item.pointer));
    (Some(remove_items(value, &rejected)), rejected)
}

/// The lists whose items have no list inside that is salvaged itself.
pub(crate) fn innermost(lists: &[String]) -> impl Iterator<Item = &String> {
    let has_inner =
        |list: &String| lists.iter().any(|other| other.starts_with(&format!("{list}/")));
    lists.iter().filter(move |list| !has_inner(list))
}

/// A sort key that orders pointers as in the value: indexes numerically.
fn sort_key(pointer: &str) -> Vec<(usize, String)> {
    pointer
        .split('/')
        .skip(1)
        .map(|token| (token.parse().unwrap_or(usize::MAX), token.to_owned()))
        .collect()
}

/// The value without the rejected items. Inner lists are processed first, so that the indexes of
/// enclosing items stay valid.
fn remove_items(value: &Value, rejected: &[RejectedItem]) -> Value {
    let mut partial = value.clone();
    let mut by_list: BTreeMap<(std::cmp::Reverse<usize>, &str), HashSet<&str>> = BTreeMap::new();
    for item in rejected {
        if let Some((list, token)) = item.pointer.rsplit_once('/') {
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
                members.retain(|key, _| !rejected_tokens.contains(escape(key).as_str()));
            }
            _ => {}
        }
    }
    partial
}
