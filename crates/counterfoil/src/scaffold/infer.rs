//! Derives a JSON Schema from an example of a result.

use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashSet};

/// The schema of a value. Every field that is present is required, except for the `optional` ones,
/// which are paths such as `findings.line`: items of lists have no part of their own.
pub(crate) fn schema_of(example: &Value, optional: &BTreeSet<String>) -> Value {
    schema(&[example], "", optional)
}

/// The paths of all fields of a value, in its order and without duplicates.
pub(crate) fn field_paths(example: &Value) -> Vec<String> {
    let (mut paths, mut seen) = (Vec::new(), HashSet::new());
    collect_paths(example, "", &mut |path| {
        if seen.insert(path.clone()) {
            paths.push(path);
        }
    });
    paths
}

fn collect_paths(value: &Value, at: &str, add: &mut impl FnMut(String)) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = join(at, name);
                add(path.clone());
                collect_paths(value, &path, add);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_paths(item, at, add)),
        _ => {}
    }
}

fn join(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

/// The schema of values that stand in the same place.
fn schema(values: &[&Value], at: &str, optional: &BTreeSet<String>) -> Value {
    let mut types: Vec<&str> = Vec::new();
    for value in values {
        let name = type_name(value);
        if !types.contains(&name) {
            types.push(name);
        }
    }
    // A whole number is a number.
    if types.contains(&"number") {
        types.retain(|name| *name != "integer");
    }
    // Null alone says nothing about the values that a field has otherwise.
    if types.is_empty() || types == ["null"] {
        return json!({});
    }
    let mut schema = Map::new();
    let ty = match types.as_slice() {
        [one] => json!(one),
        several => json!(several),
    };
    schema.insert("type".to_owned(), ty);
    if types.contains(&"object") {
        object(&mut schema, values, at, optional);
    }
    if types.contains(&"array") {
        let items: Vec<&Value> =
            values.iter().filter_map(|value| value.as_array()).flatten().collect();
        if !items.is_empty() {
            schema.insert("items".to_owned(), self::schema(&items, at, optional));
        }
    }
    Value::Object(schema)
}

fn object(
    schema: &mut Map<String, Value>,
    values: &[&Value],
    at: &str,
    optional: &BTreeSet<String>,
) {
    let objects: Vec<&Map<String, Value>> =
        values.iter().filter_map(|value| value.as_object()).collect();
    let mut properties = Map::new();
    let mut required = Vec::new();
    for name in objects.iter().flat_map(|object| object.keys()) {
        if properties.contains_key(name) {
            continue;
        }
        let path = join(at, name);
        let present: Vec<&Value> = objects.iter().filter_map(|object| object.get(name)).collect();
        properties.insert(name.clone(), self::schema(&present, &path, optional));
        if present.len() == objects.len() && !optional.contains(&path) {
            required.push(json!(name));
        }
    }
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_present_is_required_unless_it_is_optional() {
        let example = json!({
            "ok": true, "score": 1, "note": null, "empty": [],
            "findings": [{"file": "a", "line": 3}, {"file": "b", "weight": 0.5, "line": null}],
            "mixed": [1, 2.5, "x"],
        });
        let optional = ["score".to_owned(), "findings.line".to_owned()].into();
        let schema = schema_of(&example, &optional);
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "properties": {
                    "ok": {"type": "boolean"},
                    "score": {"type": "integer"},
                    "note": {},
                    "empty": {"type": "array"},
                    "findings": {"type": "array", "items": {
                        "type": "object",
                        "properties": {
                            "file": {"type": "string"},
                            "line": {"type": ["integer", "null"]},
                            "weight": {"type": "number"},
                        },
                        "required": ["file"],
                    }},
                    "mixed": {"type": "array", "items": {"type": ["number", "string"]}},
                },
                "required": ["ok", "note", "empty", "findings", "mixed"],
            })
        );
        assert!(jsonschema::is_valid(&schema, &example));
        assert_eq!(
            field_paths(&example),
            [
                "ok",
                "score",
                "note",
                "empty",
                "findings",
                "findings.file",
                "findings.line",
                "findings.weight",
                "mixed"
            ]
        );
    }
}
