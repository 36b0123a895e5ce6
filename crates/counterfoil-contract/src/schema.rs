//! Compiles a JSON Schema within limits: nothing is fetched, patterns run in linear time, and a
//! schema whose validation would not end is rejected.

mod parts;

pub(crate) use parts::{ROOT_PART, part_of};

use crate::code::Code;
use crate::problem::Problem;
use crate::suggest::did_you_mean;
use crate::text::truncate;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, Validator};
use parts::Division;
use serde_json::{Value, json};
use std::fmt;

/// A compiled schema.
pub(crate) struct SchemaValidator {
    validator: Validator,
    listing: Listing,
}

/// How the errors of a value are listed.
pub(crate) enum Listing {
    /// By the validator, all at once.
    Whole,
    /// By this validator, part by part.
    Parts(Box<Validator>),
    /// Not at all: only whether a value is valid is known.
    Unlisted,
}

impl fmt::Debug for SchemaValidator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SchemaValidator")
    }
}

impl SchemaValidator {
    /// Whether a value satisfies the schema.
    pub(crate) fn is_valid(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }

    pub(crate) fn whole(&self) -> &Validator {
        &self.validator
    }

    pub(crate) fn listing(&self) -> &Listing {
        &self.listing
    }
}

/// How much of a name of a schema a message shows, in characters.
const MAX_SHOWN: usize = 60;
/// The memory limit of a compiled pattern.
const PATTERN_BYTES: usize = 1 << 20;

/// Whether a path is inside the repository: relative, without `..`.
fn is_repo_path(text: &str) -> bool {
    let drive = text.as_bytes().get(1) == Some(&b':') && text.as_bytes()[0].is_ascii_alphabetic();
    !text.is_empty()
        && !text.starts_with(['/', '\\', '~'])
        && !drive
        && !text.contains('\0')
        && !text.split(['/', '\\']).any(|part| part == "..")
}

/// Whether a text has the form `2/3`, with a first number from 1 to the second.
fn is_n_of_m(text: &str) -> bool {
    let number = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().ok()).flatten()
    };
    text.split_once('/')
        .and_then(|(n, m)| Some((number(n)?, number(m)?)))
        .is_some_and(|(n, m)| 1 <= n && n <= m)
}

/// The schema with all objects closed to unknown fields.
pub(crate) fn closed(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            let mut out: serde_json::Map<String, Value> = map
                .iter()
                .map(|(key, value)| {
                    let value = match key.as_str() {
                        "enum" | "const" | "default" | "examples" | "required" => value.clone(),
                        // A property may have the name of a keyword.
                        "properties" | "$defs" | "patternProperties" => Value::Object(
                            value
                                .as_object()
                                .into_iter()
                                .flatten()
                                .map(|(name, schema)| (name.clone(), closed(schema)))
                                .collect(),
                        ),
                        _ => closed(value),
                    };
                    (key.clone(), value)
                })
                .collect();
            if out.contains_key("properties") && !out.contains_key("additionalProperties") {
                out.insert("additionalProperties".into(), Value::Bool(false));
            }
            Value::Object(out)
        }
        Value::Array(items) => Value::Array(items.iter().map(closed).collect()),
        other => other.clone(),
    }
}

/// Whether closing every object of a schema closes it to unknown fields and to nothing else: no
/// object gets its fields from several places.
pub(crate) fn is_closable(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            let has = |keyword: &&str| map.get(*keyword).is_some_and(|value| !value.is_string());
            let composes = ["allOf", "if", "not", "dependentSchemas"].iter().any(has);
            let is_object = map.get("properties").is_some_and(Value::is_object);
            let adds = ["anyOf", "oneOf", "$ref"].iter().any(|keyword| map.contains_key(*keyword));
            if composes || (is_object && adds) {
                return false;
            }
            map.values().all(is_closable)
        }
        Value::Array(items) => items.iter().all(is_closable),
        _ => true,
    }
}

/// Compiles a schema. A reference to another document or an endless reference is a problem.
pub(crate) fn build_validator(schema: &Value) -> Result<SchemaValidator, Problem> {
    if let Some((place, reference)) = outside_reference(schema) {
        return Err(Problem::new(
            Code::RemoteReference,
            &place,
            format!("the schema refers to '{reference}', and nothing is fetched"),
            "copy what it refers to into $defs and write #/$defs/name",
        ));
    }
    match endless(schema) {
        Some(Endless::Cycle(place)) => {
            return Err(Problem::new(
                Code::BadSchema,
                &place,
                "the schema refers to itself without stepping into a value",
                "a recursive schema must recur inside properties or items",
            ));
        }
        Some(Endless::Alternatives(place)) => {
            return Err(Problem::new(
                Code::BadSchema,
                &place,
                format!("the schema compares one value with more than {MAX_COMPARED} schemas"),
                "write fewer alternatives; a schema that is referred to counts each time",
            ));
        }
        None => {}
    }
    let validator = compile(schema).map_err(|error| invalid_schema(&error))?;
    let listing = match parts::divide(schema) {
        Division::Whole => Listing::Whole,
        Division::Parts(parts) => compile(&parts)
            .map_or(Listing::Unlisted, |validator| Listing::Parts(Box::new(validator))),
        Division::Unlisted => Listing::Unlisted,
    };
    Ok(SchemaValidator { validator, listing })
}

/// The types of JSON Schema.
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

/// What is wrong with a schema that is not JSON Schema.
fn invalid_schema(error: &jsonschema::ValidationError<'_>) -> Problem {
    let path = error.instance_path().as_str();
    let place = format!("schema{path}");
    let problem =
        |message: String, hint: String| Problem::new(Code::BadSchema, &place, message, hint);
    match (error.kind(), error.instance().as_ref()) {
        (ValidationErrorKind::AnyOf { .. }, value) if path.ends_with("/type") => {
            let names = match value {
                Value::Array(names) => names.as_slice(),
                name => std::slice::from_ref(name),
            };
            let types = || format!("the types are {}", TYPES.join(", "));
            let unknown =
                names.iter().find(|name| !name.as_str().is_some_and(|name| TYPES.contains(&name)));
            match unknown {
                Some(Value::String(name)) => problem(
                    format!("'{}' is no type", truncate(name, MAX_SHOWN)),
                    did_you_mean(name, TYPES).unwrap_or_else(types),
                ),
                Some(_) => problem("a type is a name or a list of names".to_owned(), types()),
                // Names that are all types.
                None => problem("the list of types is empty or has one twice".to_owned(), types()),
            }
        }
        (ValidationErrorKind::Format { format }, _) if format == "regex" => problem(
            error.to_string(),
            "see JSON Schema 2020-12; patterns may not look around or back".to_owned(),
        ),
        _ => problem(error.to_string(), "see JSON Schema 2020-12".to_owned()),
    }
}

fn compile(schema: &Value) -> Result<Validator, jsonschema::ValidationError<'_>> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(true)
        .with_format("repo-path", is_repo_path)
        .with_format("n-of-m", is_n_of_m)
        .with_pattern_options(
            PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES),
        )
        .offline()
        .build(schema)
}

/// Makes a schema accept null; returns false if it did already.
pub(crate) fn add_null(schema: &mut Value) -> bool {
    let Value::Object(map) = schema else { return false };
    let null = json!("null");
    match map.get_mut("type") {
        Some(Value::Array(types)) => {
            if types.contains(&null) {
                return false;
            }
            types.push(null);
        }
        Some(ty @ Value::String(_)) => *ty = json!([ty.clone(), "null"]),
        _ => {
            let is_null = |branch: &Value| branch.get("type") == Some(&null);
            if let Some(Value::Array(branches)) = map.get_mut("anyOf") {
                if branches.iter().any(is_null) {
                    return false;
                }
                branches.push(json!({"type": "null"}));
            } else {
                let inner = Value::Object(std::mem::take(map));
                *schema = json!({"anyOf": [inner, {"type": "null"}]});
                return true;
            }
        }
    }
    if let Value::Object(map) = schema {
        // A constant becomes an enum, which can include null.
        if let Some(literal) = map.remove("const") {
            map.insert("enum".into(), json!([literal]));
        }
        if let Some(Value::Array(values)) = map.get_mut("enum")
            && !values.contains(&Value::Null)
        {
            values.push(Value::Null);
        }
    }
    true
}

/// The first reference to another document.
fn outside_reference(schema: &Value) -> Option<(String, String)> {
    let mut open = vec![("schema".to_owned(), schema)];
    while let Some((place, value)) = open.pop() {
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    if matches!(key.as_str(), "$ref" | "$dynamicRef")
                        && let Some(target) = member.as_str()
                        && !target.starts_with('#')
                    {
                        return Some((format!("{place}.{key}"), target.to_owned()));
                    }
                    if !matches!(key.as_str(), "enum" | "const" | "examples" | "default") {
                        open.push((format!("{place}.{key}"), member));
                    }
                }
            }
            Value::Array(items) => {
                open.extend(
                    items
                        .iter()
                        .enumerate()
                        .map(|(index, item)| (format!("{place}[{index}]"), item)),
                );
            }
            _ => {}
        }
    }
    None
}

/// Why validation would not end, or not soon, with the place.
enum Endless {
    /// References and combinators reach the same schema again, on the same value.
    Cycle(String),
    /// They reach too many schemas.
    Alternatives(String),
}

/// The most schemas with which references and combinators compare one value.
const MAX_COMPARED: usize = 10_000;

/// Finds what would make validation endless.
fn endless(schema: &Value) -> Option<Endless> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        Open,
        Done,
    }
    let mut marks: std::collections::HashMap<*const Value, Mark> = std::collections::HashMap::new();
    // How many schemas each one compares a value with, itself among them.
    let mut compared: std::collections::HashMap<*const Value, usize> =
        std::collections::HashMap::new();
    let place =
        |node: &Value| node.get("$ref").and_then(Value::as_str).unwrap_or("schema").to_owned();
    let mut roots: Vec<&Value> = vec![schema];
    let mut all: Vec<&Value> = Vec::new();
    while let Some(value) = roots.pop() {
        all.push(value);
        match value {
            Value::Object(members) => roots.extend(members.values()),
            Value::Array(items) => roots.extend(items),
            _ => {}
        }
    }
    for start in all {
        if marks.contains_key(&std::ptr::from_ref(start)) {
            continue;
        }
        // Depth first, with a stack: a node is done when its exit entry is popped.
        let mut stack = vec![(start, false)];
        while let Some((node, exit)) = stack.pop() {
            let key = std::ptr::from_ref(node);
            if exit {
                marks.insert(key, Mark::Done);
                let inner = same_value(schema, node).into_iter();
                let inner = inner.map(|next| compared.get(&std::ptr::from_ref(next)).unwrap_or(&1));
                let all = inner.fold(1, |sum: usize, count| sum.saturating_add(*count));
                if all > MAX_COMPARED {
                    return Some(Endless::Alternatives(place(node)));
                }
                compared.insert(key, all);
                continue;
            }
            match marks.get(&key) {
                Some(Mark::Done) => continue,
                Some(Mark::Open) => {
                    return Some(Endless::Cycle(place(node)));
                }
                None => {}
            }
            marks.insert(key, Mark::Open);
            stack.push((node, true));
            for next in same_value(schema, node) {
                match marks.get(&std::ptr::from_ref(next)) {
                    Some(Mark::Open) => {
                        return Some(Endless::Cycle(place(node)));
                    }
                    Some(Mark::Done) => {}
                    None => stack.push((next, false)),
                }
            }
        }
    }
    None
}

/// The schemas that a schema applies to the same value.
fn same_value<'s>(root: &'s Value, node: &'s Value) -> Vec<&'s Value> {
    let Value::Object(members) = node else { return Vec::new() };
    let mut next = Vec::new();
    for (key, member) in members {
        match (key.as_str(), member) {
            ("$ref" | "$dynamicRef", Value::String(target)) => {
                next.extend(target.strip_prefix('#').and_then(|pointer| root.pointer(pointer)));
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => next.extend(branches),
            ("not" | "if" | "then" | "else", schema) => next.push(schema),
            _ => {}
        }
    }
    next
}

/// The schema with its id.
pub(crate) fn with_id(schema: &Value, reference: &str) -> Value {
    let mut out = serde_json::Map::new();
    out.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    out.insert("$id".into(), json!(format!("urn:counterfoil:{reference}")));
    if let Value::Object(map) = schema {
        for (key, value) in map {
            out.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    Value::Object(out)
}
