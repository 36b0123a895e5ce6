//! The short form of a schema, `name: type`, which is compiled to JSON Schema.
//!
//! ```yaml
//! fields:
//!   ok: boolean
//!   level: low | medium | high
//!   files: [path]
//!   note?: string              # may be missing
//!   tests: { passed: integer, failed: integer }
//!   score: { type: number, minimum: 0, maximum: 10 }   # any JSON Schema, recognised by `type`, `enum` or `$ref`
//! ```

use serde_json::{Map, Value, json};

/// A type in the short form that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", place(path))]
pub struct FieldError {
    /// The path to the type inside the form, such as `fields.tests.passed`; empty for the whole.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
}

fn place(path: &str) -> String {
    match path.trim_start_matches('.') {
        "" => String::new(),
        path => format!("{path}: "),
    }
}

/// Everything that is wrong with a type in the short form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct FieldErrors(pub Vec<FieldError>);

/// Compiles one type in the short form (`string?`, `[path]`, `low | high`, fields, a JSON Schema)
/// to a JSON Schema.
///
/// # Errors
///
/// If a part of the form names no type: every such part, with its path.
pub fn short_type(form: &Value) -> Result<Value, FieldErrors> {
    let mut problems = Vec::new();
    let schema = field(form, "", &mut problems);
    schema.filter(|_| problems.is_empty()).ok_or(FieldErrors(problems))
}

/// Compiles the fields of a contract.
pub(crate) fn to_schema(fields: &Map<String, Value>) -> Result<Value, Vec<FieldError>> {
    let mut problems = Vec::new();
    let schema = object(fields, "fields", &mut problems);
    if problems.is_empty() { Ok(schema) } else { Err(problems) }
}

fn object(fields: &Map<String, Value>, path: &str, problems: &mut Vec<FieldError>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, form) in fields {
        let (name, optional) = match name.strip_suffix('?') {
            Some(name) => (name, true),
            None => (name.as_str(), false),
        };
        let path = format!("{path}.{name}");
        if let Some(schema) = field(form, &path, problems) {
            properties.insert(name.to_owned(), schema);
        }
        if !optional {
            required.push(Value::from(name));
        }
    }
    json!({"type": "object", "properties": properties, "required": required})
}

fn field(form: &Value, path: &str, problems: &mut Vec<FieldError>) -> Option<Value> {
    let mut wrong = |message: String| {
        problems.push(FieldError { path: path.to_owned(), message });
        None
    };
    match form {
        Value::String(text) => match named(text) {
            Ok(schema) => Some(schema),
            Err(message) => wrong(message),
        },
        Value::Array(items) => match items.as_slice() {
            [item] => {
                let item = field(item, &format!("{path}[]"), problems)?;
                Some(json!({"type": "array", "items": item}))
            }
            _ => wrong("a list has one type for all its items, as in [string]".into()),
        },
        Value::Object(map) => {
            if ["type", "enum", "$ref", "const", "anyOf", "oneOf"]
                .iter()
                .any(|keyword| map.contains_key(*keyword))
            {
                Some(form.clone())
            } else if map.is_empty() {
                Some(json!({"type": "object"}))
            } else {
                Some(object(map, path, problems))
            }
        }
        _ => wrong("expected a type name, a list of one type, or fields".into()),
    }
}

fn named(text: &str) -> Result<Value, String> {
    let text = text.trim();
    if let Some(inner) = text.strip_suffix('?') {
        let schema = named(inner)?;
        return Ok(json!({"anyOf": [schema, {"type": "null"}]}));
    }
    if text.contains('|') {
        let values: Vec<&str> = text.split('|').map(str::trim).collect();
        if values.iter().any(|value| value.is_empty()) {
            return Err(format!("'{text}' has an empty alternative"));
        }
        return Ok(json!({"type": "string", "enum": values}));
    }
    Ok(match text {
        "string" | "text" => json!({"type": "string"}),
        "integer" | "int" => json!({"type": "integer"}),
        "number" => json!({"type": "number"}),
        "boolean" | "bool" => json!({"type": "boolean"}),
        "path" => json!({"type": "string", "format": "repo-path"}),
        "timestamp" => json!({"type": "string", "format": "date-time"}),
        "count" => json!({"type": "integer", "minimum": 0}),
        "object" => json!({"type": "object"}),
        "list" => json!({"type": "array"}),
        "any" => json!({}),
        other => {
            let known = [
                "string",
                "integer",
                "number",
                "boolean",
                "path",
                "timestamp",
                "count",
                "object",
                "list",
                "any",
            ];
            let hint = crate::suggest::did_you_mean(other, known)
                .unwrap_or_else(|| format!("known types: {}", known.join(", ")));
            return Err(format!("unknown type '{other}'; {hint}"));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_is_a_schema() {
        let fields = json!({
            "ok": "boolean", "level": "low | high", "files": ["path"], "note?": "string",
            "tests": {"passed": "count"}, "score": {"type": "number", "minimum": 0}
        });
        let schema = to_schema(fields.as_object().unwrap()).unwrap();
        assert_eq!(schema["required"], json!(["ok", "level", "files", "tests", "score"]));
        assert_eq!(schema["properties"]["level"]["enum"], json!(["low", "high"]));
        assert_eq!(schema["properties"]["files"]["items"]["format"], "repo-path");
        assert_eq!(schema["properties"]["tests"]["required"], json!(["passed"]));
    }

    #[test]
    fn all_problems_at_once_with_their_paths() {
        let fields = json!({"a": "strng", "b": {"c": 3}, "d": ["string", "int"]});
        let problems = to_schema(fields.as_object().unwrap()).unwrap_err();
        let paths: Vec<_> = problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(paths, ["fields.a", "fields.b.c", "fields.d"]);
        assert!(problems[0].message.contains("did you mean 'string'?"));
    }
}
