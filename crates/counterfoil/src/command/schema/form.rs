//! The form in which derived schemas are published.
//!
//! A derived schema describes a type of Rust. A published one describes JSON, to programs in any
//! language: without the width of integers and the defaults of readers, open for new fields, and with
//! all fields of an object in one place.

use schemars::Schema;
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Where a schema has its named parts, and how it refers to them.
const PARTS: &str = "$defs";
const REFERENCE: &str = "#/$defs/";

/// A derived schema as a document with a title and a description.
pub(super) fn document(mut schema: Schema, title: &str, description: &str) -> Value {
    RecursiveTransform(without_rust).transform(&mut schema);
    let parts = parts_of(&mut schema);
    let mut join = RecursiveTransform(|schema: &mut Schema| join_members(schema, &parts));
    join.transform(&mut schema);
    let mut parts = Value::Object(parts.clone());
    for part in parts.as_object_mut().into_iter().flat_map(Map::values_mut) {
        if let Ok(part) = part.try_into() {
            join.transform(part);
        }
    }
    let mut document = Map::from_iter([
        ("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema")),
        ("title".to_owned(), json!(title)),
        ("description".to_owned(), json!(description)),
    ]);
    for (key, value) in std::mem::take(schema.ensure_object()) {
        document.entry(key).or_insert(value);
    }
    let mut document = Value::Object(document);
    if let Some(parts) = used_parts(&document, parts) {
        document[PARTS] = parts;
    }
    document
}

/// The schema of a line that has an event: one flat object for each kind, with the fields that every
/// line has.
///
/// The line has the event as the journal stores it. What older versions did not write yet has a
/// default, and is not required.
pub(super) fn flat_events(line: &Schema, mut event: Schema) -> Schema {
    RecursiveTransform(without_defaulted).transform(&mut event);
    let kinds = match event.remove("oneOf") {
        Some(Value::Array(kinds)) => kinds,
        _ => Vec::new(),
    };
    let flat = kinds.into_iter().filter_map(|mut variant| {
        let fields = variant.get_mut("properties")?.as_object_mut()?;
        let kind = fields.keys().next()?.clone();
        let fields = fields.remove(&kind)?;
        let mut object = line.as_object()?.clone();
        for word in ["$schema", "title"] {
            object.shift_remove(word);
        }
        object.insert("description".to_owned(), variant.get("description")?.clone());
        object["properties"]["kind"] = json!({"type": "string", "const": kind});
        match fields.get("$ref") {
            Some(reference) => drop(object.insert("$ref".to_owned(), reference.clone())),
            None => merge(&mut object, fields.as_object()?),
        }
        Some(Value::Object(object))
    });
    let flat = flat.collect();
    event.insert("oneOf".to_owned(), Value::Array(flat));
    event
}

/// Removes what concerns only programs in Rust, and the line breaks of comments.
fn without_rust(schema: &mut Schema) {
    for word in ["default", "format"] {
        schema.remove(word);
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        let paragraphs = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
        *text = paragraphs.collect::<Vec<_>>().join("\n\n");
    }
}

/// Makes the schema of an object that is printed open for the fields of newer versions. A field that
/// may be left out is left out instead of being null.
pub(super) fn for_output(schema: &mut Schema) {
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        schema.remove("additionalProperties");
    }
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (name, property) in properties {
        if !required.iter().any(|required| required == name)
            && let Some(property) = property.as_object_mut()
        {
            without_null(property);
        }
    }
}

/// Removes null from the values that a schema allows beside others.
fn without_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            schema["type"] = only.clone();
        }
    }
    let Some(Value::Array(mut alternatives)) = schema.shift_remove("anyOf") else { return };
    alternatives.retain(|alternative| alternative.get("type") != Some(&json!("null")));
    match alternatives.as_slice() {
        [Value::Object(only)] => schema.extend(only.clone()),
        _ => drop(schema.insert("anyOf".to_owned(), alternatives.into())),
    }
}

/// Takes members that have a default from the required ones.
fn without_defaulted(schema: &mut Schema) {
    let has_default = |property: &Value| property.get("default").is_some();
    let properties = schema.get("properties").and_then(Value::as_object).cloned();
    let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) else { return };
    required.retain(|name| {
        let property =
            name.as_str().and_then(|name| properties.as_ref().and_then(|all| all.get(name)));
        !property.is_some_and(has_default)
    });
}

/// Takes the named parts out of a schema.
fn parts_of(schema: &mut Schema) -> Map<String, Value> {
    match schema.remove(PARTS) {
        Some(Value::Object(parts)) => parts,
        _ => Map::new(),
    }
}

/// Replaces a reference that stands beside members by the members that it refers to.
fn join_members(schema: &mut Schema, parts: &Map<String, Value>) {
    let Some(object) = schema.as_object_mut() else { return };
    if !object.contains_key("properties") {
        return;
    }
    let Some(Value::String(reference)) = object.shift_remove("$ref") else { return };
    let part = reference.strip_prefix(REFERENCE).and_then(|name| parts.get(name));
    if let Some(part) = part.and_then(Value::as_object) {
        merge(object, part);
    }
}

/// Adds the members of another schema of an object.
fn merge(object: &mut Map<String, Value>, other: &Map<String, Value>) {
    for (key, value) in other {
        match (object.get_mut(key), value) {
            (Some(Value::Object(members)), Value::Object(more)) => {
                members.extend(more.clone());
            }
            (Some(Value::Array(names)), Value::Array(more)) => names.extend(more.iter().cloned()),
            (Some(_), _) => {}
            (None, value) => drop(object.insert(key.clone(), value.clone())),
        }
    }
}

/// The parts that a document refers to, directly or through other parts.
fn used_parts(document: &Value, parts: Value) -> Option<Value> {
    let Value::Object(mut parts) = parts else { return None };
    let mut used = BTreeSet::new();
    let mut next = vec![document];
    while let Some(value) = next.pop() {
        match value {
            Value::Array(values) => next.extend(values),
            Value::Object(members) => next.extend(members.values()),
            Value::String(text) => {
                if let Some((name, part)) =
                    text.strip_prefix(REFERENCE).and_then(|name| parts.get_key_value(name))
                    && used.insert(name.clone())
                {
                    next.push(part);
                }
            }
            _ => {}
        }
    }
    parts.retain(|name, _| used.contains(name));
    (!parts.is_empty()).then_some(Value::Object(parts))
}
