//! Checks that the defaults of a schema are valid values of their fields.

use crate::code::Code;
use crate::problem::Problem;
use crate::schema::build_validator;
use serde_json::Value;

/// The defaults that are not valid values of their field.
pub(super) fn check(root: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut open = vec![("schema".to_owned(), root)];
    while let Some((place, node)) = open.pop() {
        let Value::Object(map) = node else {
            if let Value::Array(items) = node {
                open.extend(
                    items
                        .iter()
                        .enumerate()
                        .map(|(index, item)| (format!("{place}[{index}]"), item)),
                );
            }
            continue;
        };
        for (key, member) in map {
            if !matches!(key.as_str(), "default" | "enum" | "const" | "examples") {
                open.push((format!("{place}.{key}"), member));
            }
        }
        let Some(default) = map.get("default").filter(|default| !default.is_null()) else {
            continue;
        };
        let alone = serde_json::json!({"$defs": root.get("$defs").cloned().unwrap_or(Value::Bool(true)), "allOf": [node]});
        let alone = if root.get("$defs").is_some() { alone } else { node.clone() };
        if build_validator(&alone).is_ok_and(|validator| !validator.is_valid(default)) {
            problems.push(Problem::new(
                Code::BadSchema,
                &format!("{place}.default"),
                format!("the default {default} is not a value of its field"),
                "give a default that the field allows",
            ));
        }
    }
    problems
}
