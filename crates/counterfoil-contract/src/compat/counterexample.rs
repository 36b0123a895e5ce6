//! Searches for values that one contract accepts and another rejects. Candidates are made by
//! changing examples at every position that either contract declares, and are checked against both.

use crate::contract::Contract;
use crate::expr::Type;
use crate::json::escape;
use crate::reporting::validate_value;
use serde_json::{Value, json};

/// The maximum number of changes to try.
const MAX_TRIED: usize = 20_000;
/// The maximum number of values to return.
const MAX_FOUND: usize = 16;

/// Values that satisfy `accepts` but not `passes`: one for each pointer at which the reader reports
/// a violation, with that pointer.
pub(crate) fn search(
    writer: &Contract,
    reader: &Contract,
    accepts: &dyn Fn(&Value) -> bool,
    passes: &dyn Fn(&Value) -> bool,
) -> Vec<(String, Value)> {
    let mut found: Vec<(String, Value)> = Vec::new();
    let mut tried = 0;
    let mut starts: Vec<Value> = [writer, reader]
        .iter()
        .flat_map(|contract| {
            let definition = contract.definition();
            definition
                .examples
                .iter()
                .chain(definition.counter_examples.iter().map(|counter| &counter.value))
                .cloned()
        })
        .collect();
    starts.push(sample(writer.ty(), 0));
    starts.extend(starts.clone().iter().map(|start| known_fields(start, writer.ty())));
    // Keep a value only if the reader reports a violation at a new pointer.
    let consider = |value: &Value, found: &mut Vec<(String, Value)>| {
        if !accepts(value) || passes(value) {
            return;
        }
        let objections = validate_value(reader, value, &reader.policy().strictly()).violations;
        let pointer = objections
            .iter()
            .map(|violation| &violation.pointer)
            .find(|pointer| !found.iter().any(|(pointer_found, _)| pointer_found == *pointer));
        if let Some(pointer) = pointer {
            found.push((pointer.clone(), value.clone()));
        }
    };
    for start in &starts {
        consider(start, &mut found);
        for pointer in pointers(start, writer.ty(), reader.ty()) {
            for change in changes(&pointer, writer, reader) {
                if found.len() >= MAX_FOUND || tried >= MAX_TRIED {
                    return found;
                }
                tried += 1;
                consider(&changed(start, &pointer, change), &mut found);
            }
        }
    }
    found
}

/// The pointers of all parts of a value, and of the fields that either type declares.
fn pointers(value: &Value, a: &Type, b: &Type) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut open = vec![(String::new(), Some(value))];
    while let Some((pointer, value)) = open.pop() {
        let path: Vec<&str> = pointer.split('/').skip(1).collect();
        let mut names: Vec<String> = Vec::new();
        for ty in [a, b] {
            if let Some(object) = ty.at(path.iter().copied()).and_then(|ty| ty.object().cloned()) {
                names.extend(object.fields.keys().cloned());
            }
        }
        match value {
            Some(Value::Object(members)) => names.extend(members.keys().cloned()),
            Some(Value::Array(items)) => {
                names.extend((0..items.len().min(3)).map(|index| index.to_string()));
            }
            _ => {}
        }
        names.sort();
        names.dedup();
        if all.len() > 500 {
            break;
        }
        for name in names {
            let child = format!("{pointer}/{}", escape(&name));
            let next = value.and_then(|value| value.pointer(&format!("/{}", escape(&name))));
            all.push(child.clone());
            if next.is_some() {
                open.push((child, next));
            }
        }
    }
    all
}

/// The changes to try at a pointer: removal, values of every type, every enum value, and values
/// around the bounds.
fn changes(pointer: &str, writer: &Contract, reader: &Contract) -> Vec<Option<Value>> {
    let mut all = vec![None];
    let path: Vec<&str> = pointer.split('/').skip(1).collect();
    for ty in [writer.ty(), reader.ty()] {
        for alternative in
            ty.at(path.iter().copied()).iter().flat_map(|ty| ty.alternatives().to_vec())
        {
            if let Type::String(Some(values)) = &alternative {
                all.extend(values.iter().map(|value| Some(Value::from(value.as_str()))));
            }
            all.push(Some(sample(&alternative, 0)));
        }
    }
    for contract in [writer, reader] {
        all.extend(bounds(contract.raw_schema(), &path).into_iter().map(Some));
    }
    for value in [
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(-1),
        json!(1),
        json!(1.5),
        json!(""),
        json!("x"),
        json!([]),
        json!({}),
        json!("../x"),
    ] {
        all.push(Some(value));
    }
    all
}

/// Values at and around the bounds of the schema at a path.
fn bounds(root: &Value, path: &[&str]) -> Vec<Value> {
    let mut node = root;
    for token in path {
        node = resolve(root, node);
        let next = node
            .get("properties")
            .and_then(|properties| properties.get(token))
            .or_else(|| node.get("items"));
        let Some(next) = next else { return Vec::new() };
        node = next;
    }
    node = resolve(root, node);
    let mut values = Vec::new();
    for keyword in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
        if let Some(bound) = node.get(keyword).and_then(Value::as_i64) {
            values.extend([json!(bound - 1), json!(bound), json!(bound + 1)]);
        }
    }
    for keyword in ["minLength", "maxLength"] {
        if let Some(length) = node
            .get(keyword)
            .and_then(Value::as_u64)
            .and_then(|length| usize::try_from(length).ok())
            .filter(|length| *length < 10_000)
        {
            values.extend(
                [length.saturating_sub(1), length, length + 1]
                    .map(|length| json!("x".repeat(length))),
            );
        }
    }
    values
}

fn resolve<'s>(root: &'s Value, node: &'s Value) -> &'s Value {
    let target = node
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| root.pointer(reference.strip_prefix('#')?));
    if let Some(target) = target {
        return target;
    }
    let branch = node.get("anyOf").and_then(Value::as_array).and_then(|branches| {
        branches.iter().find(|branch| branch.get("type") != Some(&json!("null")))
    });
    match branch {
        Some(branch) if branch.get("$ref").is_some() => branch
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| root.pointer(reference.strip_prefix('#')?))
            .unwrap_or(branch),
        Some(branch) => branch,
        None => node,
    }
}

fn changed(start: &Value, pointer: &str, change: Option<Value>) -> Value {
    let mut value = start.clone();
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        return change.unwrap_or(Value::Null);
    };
    let name = name.replace("~1", "/").replace("~0", "~");
    match (value.pointer_mut(parent), change) {
        (Some(Value::Object(map)), Some(new)) => {
            map.insert(name, new);
        }
        (Some(Value::Object(map)), None) => {
            map.remove(&name);
        }
        (Some(Value::Array(items)), change) => {
            if let Some(index) = name.parse::<usize>().ok().filter(|index| *index < items.len()) {
                match change {
                    Some(new) => items[index] = new,
                    None => {
                        items.remove(index);
                    }
                }
            }
        }
        _ => {}
    }
    value
}

/// The value with only the fields that its type declares.
fn known_fields(value: &Value, ty: &Type) -> Value {
    match (value, ty.object()) {
        (Value::Object(members), Some(object)) => Value::Object(
            members
                .iter()
                .filter_map(|(name, member)| {
                    object
                        .fields
                        .get(name)
                        .map(|field| (name.clone(), known_fields(member, &field.ty)))
                })
                .collect(),
        ),
        (Value::Array(items), _) => {
            let item = ty.items().unwrap_or(&Type::Any);
            Value::Array(items.iter().map(|value| known_fields(value, item)).collect())
        }
        _ => value.clone(),
    }
}

/// A small sample value of a type.
fn sample(ty: &Type, depth: usize) -> Value {
    match ty {
        Type::Any | Type::Null => Value::Null,
        Type::Bool => json!(false),
        Type::Int => json!(1),
        Type::Double => json!(1.5),
        Type::String(Some(values)) => values.first().map_or(json!(""), |value| json!(value)),
        Type::String(None) => json!("some text"),
        Type::List(items) if depth < 4 => json!([sample(items, depth + 1)]),
        Type::Object(object) if depth < 4 => Value::Object(
            object
                .fields
                .iter()
                .filter(|(_, field)| field.required)
                .map(|(name, field)| (name.clone(), sample(&field.ty, depth + 1)))
                .collect(),
        ),
        Type::List(_) => json!([]),
        Type::Object(_) | Type::Map(_) => json!({}),
        Type::Union(types) => {
            types.iter().find(|ty| **ty != Type::Null).map_or(Value::Null, |ty| sample(ty, depth))
        }
    }
}
