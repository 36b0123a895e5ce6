//! Selects values by a pointer pattern.

use crate::json::escape;
use serde_json::Value;

/// Every value that a pointer pattern selects, with its pointer.
pub(crate) fn select<'v>(root: &'v Value, pattern: &str) -> Vec<(String, &'v Value)> {
    select_with(root, pattern, String::new(), |pointer, step| match step {
        Step::Index(index) => format!("{pointer}/{index}"),
        Step::Key(key) => format!("{pointer}/{}", escape(key)),
    })
}

/// Every value that a pointer pattern selects.
pub(crate) fn select_values<'v>(root: &'v Value, pattern: &str) -> Vec<&'v Value> {
    let found = select_with(root, pattern, (), |(), _| ());
    found.into_iter().map(|((), value)| value).collect()
}

/// A step from a value to one inside of it.
enum Step<'s> {
    Index(usize),
    Key(&'s str),
}

/// Every value that a pattern selects, with its place: that of the root, extended by `extend`.
fn select_with<'v, P>(
    root: &'v Value,
    pattern: &str,
    place: P,
    extend: impl Fn(&P, Step<'_>) -> P,
) -> Vec<(P, &'v Value)> {
    let mut found = vec![(place, root)];
    for token in pattern.split('/').skip(1) {
        let mut inner = Vec::with_capacity(found.len());
        for (place, value) in &found {
            match value {
                Value::Array(items) if token == "*" => {
                    let items = items.iter().enumerate();
                    inner.extend(items.map(|(i, item)| (extend(place, Step::Index(i)), item)));
                }
                Value::Object(members) if token == "*" => {
                    let members = members.iter();
                    inner.extend(members.map(|(key, item)| (extend(place, Step::Key(key)), item)));
                }
                Value::Object(members) => {
                    let member = members.get(token);
                    inner.extend(member.map(|item| (extend(place, Step::Key(token)), item)));
                }
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
