//! The published schemas as a test uses them: closed, so that a field that a schema does not know is
//! an error, and as an outline for people.

use crate::PROGRAM;
use counterfoil_testkit::TestProject;
use jsonschema::Validator;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What `schema --write --all` writes, by kind.
pub(super) fn published() -> BTreeMap<String, Value> {
    let project = TestProject::new(PROGRAM);
    project.run(&["schema", "--write", "schemas", "--all"]).expect(0, &[]);
    let files = std::fs::read_dir(project.path("schemas")).unwrap();
    let read = |file: std::fs::DirEntry| {
        let name = file.file_name().into_string().unwrap();
        let kind = name.strip_prefix("counterfoil-").unwrap().strip_suffix(".schema.json").unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        (kind.to_owned(), serde_json::from_str(&text).unwrap())
    };
    files.map(|file| read(file.unwrap())).collect()
}

/// The kinds of files, whose schemas are not made from types.
pub(super) const FILES: [&str; 3] = ["config", "contract", "workflow"];

/// Validators for the schemas of data, with every object closed.
pub(super) struct Shapes(BTreeMap<String, Validator>);

impl Shapes {
    /// Those of some kinds.
    pub(super) fn of(kinds: &[&str]) -> Self {
        let mut all = published();
        let closed = |kind: &&str| {
            let mut schema = all.remove(*kind).unwrap_or_else(|| panic!("no schema {kind}"));
            close(&mut schema, true);
            ((*kind).to_owned(), jsonschema::validator_for(&schema).unwrap())
        };
        Self(kinds.iter().map(closed).collect())
    }

    /// Asserts that a value has the shape, and nothing else.
    #[track_caller]
    pub(super) fn assert_fits(&self, kind: &str, value: &Value) {
        let errors: Vec<String> = self.0[kind]
            .iter_errors(value)
            .map(|error| format!("at {}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{kind}:\n{}\n{value:#}", errors.join("\n"));
    }

    /// Asserts that each of several values has the shape.
    #[track_caller]
    pub(super) fn assert_each_fits(&self, kind: &str, values: &[Value]) {
        for value in values {
            self.assert_fits(kind, value);
        }
    }

    /// Whether a value has the shape.
    pub(super) fn fits(&self, kind: &str, value: &Value) -> bool {
        self.0[kind].is_valid(value)
    }
}

/// Allows an object only the members that its schema names. `own` is false for an alternative of an
/// object that is closed as a whole.
fn close(schema: &mut Value, own: bool) {
    let Some(object) = schema.as_object_mut() else { return };
    let alternatives = ["oneOf", "anyOf", "allOf"];
    let has_members = object.contains_key("properties");
    let is_object = has_members || object.get("type") == Some(&json!("object"));
    let has_alternatives = alternatives.iter().any(|word| object.contains_key(*word));
    let closes = own && is_object && !object.contains_key("additionalProperties");
    for word in ["properties", "patternProperties", "$defs"] {
        if let Some(Value::Object(members)) = object.get_mut(word) {
            for member in members.values_mut() {
                close(member, true);
            }
        }
    }
    for word in ["items", "additionalProperties", "propertyNames"] {
        if let Some(member) = object.get_mut(word) {
            close(member, true);
        }
    }
    for word in ["prefixItems", "oneOf", "anyOf", "allOf"] {
        if let Some(Value::Array(members)) = object.get_mut(word) {
            for member in members {
                close(member, !closes);
            }
        }
    }
    if closes {
        let word = if has_alternatives { "unevaluatedProperties" } else { "additionalProperties" };
        object.insert(word.to_owned(), false.into());
    }
}

/// The fields of the schemas with their types, and the named parts once. A question mark stands for a
/// field that can be left out.
pub(super) fn outline(schemas: &BTreeMap<String, Value>) -> String {
    let mut parts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut text = String::new();
    for (kind, schema) in schemas {
        let _ = writeln!(text, "{kind}: {}\n", shape(schema, 0));
        for (name, part) in schema["$defs"].as_object().unwrap_or(&Map::new()) {
            let part = shape(part, 0);
            let known = parts.entry(name.clone()).or_default();
            if !known.contains(&part) {
                known.push(part);
            }
        }
    }
    for (name, shapes) in parts {
        for shape in shapes {
            let _ = writeln!(text, "${name}: {shape}\n");
        }
    }
    text
}

fn shape(schema: &Value, depth: usize) -> String {
    let Some(object) = schema.as_object() else { return "any".to_owned() };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let list = |values: &Value, separator: &str, one: &dyn Fn(&Value) -> String| {
        values.as_array().unwrap().iter().map(one).collect::<Vec<_>>().join(separator)
    };
    if let Some(reference) = object.get("$ref") {
        return format!("${}", text(reference).rsplit('/').next().unwrap());
    }
    if let Some(constant) = object.get("const") {
        return constant.to_string();
    }
    if let Some(values) = object.get("enum") {
        return list(values, " | ", &Value::to_string);
    }
    let mut found = String::new();
    if let Some(Value::Object(members)) = object.get("properties") {
        found.push('{');
        for (name, member) in members {
            let required = &object.get("required").cloned().unwrap_or_default();
            let is_required = required.as_array().is_some_and(|all| all.contains(&json!(name)));
            let mark = if is_required { "" } else { "?" };
            let inner = shape(member, depth + 1);
            let _ = write!(found, "\n{:indent$}{name}{mark}: {inner}", "", indent = depth * 2 + 2);
        }
        let _ = write!(found, "\n{:indent$}}}", "", indent = depth * 2);
    } else if let Some(values) = object.get("additionalProperties") {
        found = format!("{{*: {}}}", shape(values, depth));
    } else if let Some(Value::Object(values)) = object.get("patternProperties") {
        found = format!("{{*: {}}}", shape(values.values().next().unwrap(), depth));
    } else if let Some(items) = object.get("items") {
        found = format!("[{}]", shape(items, depth));
    } else if let Some(items) = object.get("prefixItems") {
        found = format!("({})", list(items, ", ", &|item| shape(item, depth)));
    } else if let Some(types) = object.get("type") {
        found = if types.is_array() { list(types, " | ", &text) } else { text(types) };
    }
    for word in ["oneOf", "anyOf"] {
        if let Some(alternatives) = object.get(word) {
            if !found.is_empty() {
                found.push_str(" & ");
            }
            found += &list(alternatives, " | ", &|one| shape(one, depth));
        }
    }
    let is_nullable = object.get("type").is_some_and(|types| types == &json!(["array", "null"]));
    if is_nullable {
        found += " | null";
    }
    if found.is_empty() { "any".to_owned() } else { found }
}
