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

/// Every value that a pointer pattern selects.
pub(crate) fn select_values<'v>(root: &'v Value, pattern: &str) -> Vec<&'v Value> {
    let mut found = vec![root];
    for token in pattern.split('/').skip(1) {
        let mut inner = Vec::with_capacity(found.len());
        for value in found {
            match value {
                Value::Array(items) if token == "*" => inner.extend(items),
                Value::Object(members) if token == "*" => inner.extend(members.values()),
                Value::Object(members) => inner.extend(members.get(token)),
                _ => {}
            }
        }
        found = inner;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_values_are_the_same_with_and_without_their_places() {
        let root = json!({"a": [{"b": 1, "c/d": null}, {"b": [2, {"b": 3}]}, 4], "b": {"x": 1, "y": {"b": 5}}});
        for pattern in
            ["", "/a", "/a/*", "/a/*/b", "/a/*/b/*", "/b/*", "/b/*/b", "/c", "/a/b", "/*/*"]
        {
            let values: Vec<&Value> =
                select(&root, pattern).into_iter().map(|(_, one)| one).collect();
            assert_eq!(select_values(&root, pattern), values, "{pattern}");
        }
    }
}
