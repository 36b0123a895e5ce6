//! Selects values by a pointer pattern.

use crate::json::escape;
use serde_json::Value;

/// Every value that a pointer pattern selects, with its pointer.
pub(crate) fn select<'v>(root: &'v Value, pattern: &str) -> Vec<(String, &'v Value)> {
    let mut found = vec![(String::new(), root)];
    for token in pattern.split('/').skip(1) {
        found = found
            .into_iter()
            .flat_map(|(pointer, value)| -> Vec<(String, &Value)> {
                match value {
                    Value::Array(items) if token == "*" => items
                        .iter()
                        .enumerate()
                        .map(|(i, item)| (format!("{pointer}/{i}"), item))
                        .collect(),
                    Value::Object(members) if token == "*" => members
                        .iter()
                        .map(|(key, item)| (format!("{pointer}/{}", escape(key)), item))
                        .collect(),
                    Value::Object(members) => members
                        .get(token)
                        .map(|item| (format!("{pointer}/{}", escape(token)), item))
                        .into_iter()
                        .collect(),
                    _ => Vec::new(),
                }
            })
            .collect();
    }
    found
}
