//! Compiling a JSON Schema, bounded: nothing is fetched, patterns run in linear time, and what
//! would not end is refused.

use crate::code::Code;
use crate::contract::Contract;
use crate::problem::Problem;
use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

/// Compiled patterns may take this much memory.
const PATTERN_BYTES: usize = 1 << 20;

/// A path inside the repository: relative, with no way up.
fn is_repo_path(text: &str) -> bool {
    let drive = text.as_bytes().get(1) == Some(&b':') && text.as_bytes()[0].is_ascii_alphabetic();
    !text.is_empty()
        && !text.starts_with(['/', '\\', '~'])
        && !drive
        && !text.contains('\0')
        && !text.split(['/', '\\']).any(|part| part == "..")
}

/// `2/3`: a number from 1 to the second one.
fn is_n_of_m(text: &str) -> bool {
    let number = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().ok()).flatten()
    };
    text.split_once('/')
        .and_then(|(n, m)| Some((number(n)?, number(m)?)))
        .is_some_and(|(n, m)| 1 <= n && n <= m)
}

/// Compiles a schema. Nothing is fetched, patterns run in linear time, and a schema that only
/// refers to itself is refused.
pub(crate) fn build_validator(schema: &Value) -> Result<Validator, Problem> {
    if let Some((place, reference)) = outside_reference(schema) {
        return Err(Problem::new(
            Code::RemoteReference,
            &place,
            format!("the schema refers to '{reference}', and nothing is fetched"),
            "copy what it refers to into $defs and write #/$defs/name",
        ));
    }
    if let Some(place) = empty_cycle(schema) {
        return Err(Problem::new(
            Code::BadSchema,
            &place,
            "the schema refers to itself without stepping into a value",
            "a recursive schema must recur inside properties or items",
        ));
    }
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
        .map_err(|error| {
            Problem::new(
                Code::BadSchema,
                &format!("schema{}", error.instance_path()),
                error.to_string(),
                "see JSON Schema 2020-12; patterns may not look around or back",
            )
        })
}

/// The first reference that leads out of the schema.
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

/// A place from which references and combinators lead back to it on the same value: validation
/// would not end.
fn empty_cycle(schema: &Value) -> Option<String> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        Open,
        Done,
    }
    let mut marks: std::collections::HashMap<*const Value, Mark> = std::collections::HashMap::new();
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
        // Depth first, with a stack: a node is left when its exit entry is met.
        let mut stack = vec![(start, false)];
        while let Some((node, exit)) = stack.pop() {
            let key = std::ptr::from_ref(node);
            if exit {
                marks.insert(key, Mark::Done);
                continue;
            }
            match marks.get(&key) {
                Some(Mark::Done) => continue,
                Some(Mark::Open) => {
                    return Some(
                        node.get("$ref").and_then(Value::as_str).unwrap_or("schema").to_owned(),
                    );
                }
                None => {}
            }
            marks.insert(key, Mark::Open);
            stack.push((node, true));
            for next in same_value(schema, node) {
                match marks.get(&std::ptr::from_ref(next)) {
                    Some(Mark::Open) => {
                        return Some(
                            node.get("$ref").and_then(Value::as_str).unwrap_or("schema").to_owned(),
                        );
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

/// A default must be a value of its field: nobody wrote it, so nobody could be told to correct it.
pub(crate) fn check_defaults(contract: &Contract) -> Vec<Problem> {
    let root = &contract.schema;
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
