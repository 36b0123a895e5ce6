//! Derives what agents are asked for: a field with a default that is marked `x-asked: optional` may be
//! left out or null, although a reader always finds it.

use crate::code::Code;
use crate::problem::Problem;
use crate::schema::add_null;
use serde_json::Value;

/// The keyword that marks a field.
const KEYWORD: &str = "x-asked";

/// The schema in which the marked fields are optional; `None` if no field is marked.
pub(super) fn compile(schema: &Value, problems: &mut Vec<Problem>) -> Option<Value> {
    let mut asked = schema.clone();
    relax(&mut asked, "schema", problems).then_some(asked)
}

/// Makes the marked fields optional; whether there are any. The recursion is bounded, because the
/// depth of contract schemas is limited.
fn relax(node: &mut Value, place: &str, problems: &mut Vec<Problem>) -> bool {
    let mut found = false;
    match node {
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                found |= relax(item, &format!("{place}[{index}]"), problems);
            }
        }
        Value::Object(map) => {
            for (key, member) in map.iter_mut() {
                let place = format!("{place}.{key}");
                match (key.as_str(), member) {
                    ("default" | "enum" | "const" | "examples" | "required", _) => {}
                    // The keys are names of fields and definitions, not keywords.
                    (
                        "properties" | "patternProperties" | "$defs" | "definitions"
                        | "dependentSchemas",
                        Value::Object(schemas),
                    ) => {
                        for (name, schema) in schemas {
                            found |= relax(schema, &format!("{place}.{name}"), problems);
                        }
                    }
                    (_, member) => found |= relax(member, &place, problems),
                }
            }
            let mut optional = Vec::new();
            if let Some(Value::Object(properties)) = map.get_mut("properties") {
                for (name, field) in properties {
                    if unmark(field, &format!("{place}.properties.{name}"), problems) {
                        optional.push(name.clone());
                    }
                }
            }
            if let Some(Value::Array(required)) = map.get_mut("required") {
                required.retain(|name| !optional.iter().any(|one| name == one));
            }
            found |= !optional.is_empty();
        }
        _ => {}
    }
    found
}

/// Makes a field nullable if it is marked; whether it is.
fn unmark(field: &mut Value, place: &str, problems: &mut Vec<Problem>) -> bool {
    let Value::Object(map) = field else { return false };
    let Some(word) = map.shift_remove(KEYWORD) else { return false };
    if word != "optional" || map.get("default").is_none_or(Value::is_null) {
        problems.push(Problem::new(
            Code::BadSchema,
            &format!("{place}.{KEYWORD}"),
            format!("`{KEYWORD}` is `optional`, and the field has a default"),
            "write x-asked: optional beside a default, or leave it out",
        ));
    }
    add_null(field);
    true
}
