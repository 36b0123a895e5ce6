//! What can be kept of a rejected result: the good items of the lists a contract names. Nothing is
//! dropped silently: every item left out stands in the report with its reasons.

use super::select::select;
use crate::json::escape;
use crate::report::{RejectedItem, Violation};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};

/// The salvaged value and the items left out of it.
///
/// Lists inside lists come first: what is wrong with an inner item costs that item, not the one
/// around it.
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
    let mut open: Vec<&Violation> = violations.iter().collect();
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
            // Violations are few; look each one's item up rather than each item's violations.
            let mut own: BTreeMap<&str, Vec<Violation>> = BTreeMap::new();
            let known: HashSet<&str> = items.iter().map(String::as_str).collect();
            open.retain(|violation| {
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
                        own.entry(item).or_default().push((*violation).clone());
                        false
                    }
                    None => true,
                }
            });
            rejected.extend(
                own.into_iter().map(|(item, violations)| RejectedItem {
                    pointer: item.to_owned(),
                    violations,
                }),
            );
        }
    }
    rejected.sort_by_key(|item| order(&item.pointer));
    (Some(without(value, &rejected)), rejected)
}

/// Pointers in the order of the value: numbers by size.
fn order(pointer: &str) -> Vec<(usize, String)> {
    pointer
        .split('/')
        .skip(1)
        .map(|token| (token.parse().unwrap_or(usize::MAX), token.to_owned()))
        .collect()
}

/// The value without the rejected items. Inner lists first, so that the places of what is around
/// them stay.
fn without(value: &Value, rejected: &[RejectedItem]) -> Value {
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
    for ((_, list), gone) in by_list {
        match partial.pointer_mut(list) {
            Some(Value::Array(items)) => {
                let mut index = 0;
                items.retain(|_| {
                    index += 1;
                    !gone.contains((index - 1).to_string().as_str())
                });
            }
            Some(Value::Object(members)) => {
                members.retain(|key, _| !gone.contains(escape(key).as_str()))
            }
            _ => {}
        }
    }
    partial
}
