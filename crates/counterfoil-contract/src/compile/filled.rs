//! Checks the fields that are filled in, and derives what remains to be asked of the agent.

use crate::code::Code;
#[cfg(feature = "rules")]
use crate::context::run_type;
#[cfg(feature = "rules")]
use crate::contract::FilledField;
use crate::contract::FilledFields;
use crate::definition::{Definition, filled_field};
use crate::expr::Type;
#[cfg(feature = "rules")]
use crate::expr::{Expression, Scope, assignable};
use crate::json::escape;
use crate::problem::Problem;
use crate::schema::build_validator;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::HashSet;

/// Types are known this many levels deep. Deeper objects are asked for, also if they are filled.
const MAX_DEPTH: usize = 64;

/// The fields that are filled in; none if there are none, or if one is not valid. `asked` is the
/// schema with the fields that agents may leave out.
pub(super) fn compile(
    definition: &Definition,
    schema: &Value,
    asked: &Value,
    root: &Type,
    problems: &mut Vec<Problem>,
) -> Option<FilledFields> {
    if definition.filled.is_empty() {
        return None;
    }
    let before = problems.len();
    #[cfg(feature = "rules")]
    let mut fields = Vec::new();
    let mut pointers = Vec::new();
    for (field, source) in &definition.filled {
        let place = format!("filled.{field}");
        let field = filled_field(field);
        let path: Vec<&str> = field.split('/').collect();
        let mut refuse = |message: String, hint: &str| {
            problems.push(Problem::new(Code::BadFilled, &place, message, hint));
        };
        let known = property_at(schema, &path).is_some();
        let Some(ty) = root.at(path.iter().copied()).filter(|_| known) else {
            refuse(
                format!("'{field}' is not a field of the result"),
                "name a field, or a field of an object as in meta/run; lists have no place here",
            );
            continue;
        };
        pointers.push(pointer_of(field));
        #[cfg(feature = "rules")]
        match Expression::compile(source, &Scope::for_variable("run", run_type())) {
            Ok(expression) => match assignable(expression.ty(), &ty) {
                Ok(()) => {
                    let pointer = pointers.last().cloned().unwrap_or_default();
                    let keeps = place.ends_with('?');
                    fields.push(FilledField { pointer, expression, keeps });
                }
                Err(why) => refuse(
                    format!("the expression does not fit the field: {why}"),
                    "give it the type of the field",
                ),
            },
            Err(found) => {
                for problem in found {
                    refuse(
                        problem.message.clone(),
                        "expressions see `run`: id, workflow, step, task, attempt, started, ended, duration_ms, workspace",
                    );
                }
            }
        }
        #[cfg(not(feature = "rules"))]
        {
            let _ = (ty, source);
            refuse(
                "this build has no support for expressions".into(),
                "enable the feature `rules` of counterfoil-contract",
            );
        }
    }
    let mut relaxed = schema.clone();
    let mut asked = asked.clone();
    let mut examples = definition.examples.clone();
    let objects = filled_objects(definition, schema);
    let fields_and_objects =
        definition.filled.keys().map(|key| filled_field(key)).chain(objects.iter().copied());
    for field in fields_and_objects {
        let path: Vec<&str> = field.split('/').collect();
        remove(&mut relaxed, &path, false);
        remove(&mut asked, &path, true);
        let (name, parents) = path.split_last().unwrap_or((&"", &[]));
        for example in &mut examples {
            let parent = parents.iter().try_fold(example, |value, name| value.get_mut(*name));
            if let Some(Value::Object(members)) = parent {
                members.shift_remove(*name);
            }
        }
    }
    let relaxed = match build_validator(&relaxed) {
        Ok(relaxed) => relaxed,
        Err(problem) => {
            problems.push(problem);
            return None;
        }
    };
    let ty = Type::from_schema(&asked);
    (problems.len() == before).then_some(FilledFields {
        #[cfg(feature = "rules")]
        fields,
        #[cfg(feature = "rules")]
        objects: objects.into_iter().map(pointer_of).collect(),
        relaxed,
        schema: asked,
        ty,
        examples,
    })
}

fn pointer_of(field: &str) -> String {
    field.split('/').map(|name| format!("/{}", escape(name))).collect()
}

/// The objects of which every field is filled in, the inner ones first. Nothing of them is left for
/// the agent.
fn filled_objects<'d>(definition: &'d Definition, schema: &Value) -> Vec<&'d str> {
    let mut filled: HashSet<String> =
        definition.filled.keys().map(|key| filled_field(key).to_owned()).collect();
    let mut objects: Vec<&str> = Vec::new();
    for key in definition.filled.keys() {
        let field = filled_field(key);
        objects.extend(field.match_indices('/').take(MAX_DEPTH).map(|(end, _)| &field[..end]));
    }
    objects.sort_unstable_by_key(|object| (Reverse(object.matches('/').count()), *object));
    objects.dedup();
    objects.retain(|object| {
        let path: Vec<&str> = object.split('/').collect();
        let node = property_at(schema, &path).map(|node| resolve(schema, node));
        let fields = node
            .filter(|node| !may_have_others(node))
            .and_then(|node| node.get("properties")?.as_object());
        let is_filled = fields.is_some_and(|fields| {
            fields
                .keys()
                .all(|name| !name.contains('/') && filled.contains(&format!("{object}/{name}")))
        });
        if is_filled {
            filled.insert((*object).to_owned());
        }
        is_filled
    });
    objects
}

/// Whether an object may have fields, or need some, that are not among its properties.
fn may_have_others(object: &Value) -> bool {
    const OTHERS: [&str; 8] = [
        "patternProperties",
        "allOf",
        "anyOf",
        "oneOf",
        "if",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
    ];
    let more = object.get("additionalProperties");
    let properties = object.get("properties").and_then(Value::as_object);
    let is_known = |name: &Value| {
        name.as_str().is_some_and(|name| properties.is_some_and(|all| all.contains_key(name)))
    };
    let required = object.get("required").and_then(Value::as_array);
    let is_enough = |least: &Value| {
        let least = least.as_u64().and_then(|least| usize::try_from(least).ok());
        least.is_some_and(|least| least <= properties.map_or(0, serde_json::Map::len))
    };
    matches!(more, Some(Value::Bool(true) | Value::Object(_)))
        || OTHERS.iter().any(|keyword| object.get(*keyword).is_some())
        || required.is_some_and(|names| !names.iter().all(is_known))
        || object.get("minProperties").is_some_and(|least| !is_enough(least))
}

/// The schema of a property, through `properties` and references.
fn property_at<'s>(root: &'s Value, path: &[&str]) -> Option<&'s Value> {
    let mut node = root;
    for name in path {
        node = resolve(root, node).get("properties")?.get(*name)?;
    }
    Some(node)
}

fn resolve<'s>(root: &'s Value, node: &'s Value) -> &'s Value {
    let target = node.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix('#'));
    target.and_then(|pointer| root.pointer(pointer)).unwrap_or(node)
}

/// Makes a property optional, or removes it altogether. A reference on the way is replaced by what
/// it refers to, since others may refer to the same.
fn remove(root: &mut Value, path: &[&str], altogether: bool) {
    let Some((name, parents)) = path.split_last() else { return };
    let whole = root.clone();
    let mut node = root;
    for parent in parents {
        *node = resolve(&whole, node).clone();
        let Some(next) = node.get_mut("properties").and_then(|all| all.get_mut(*parent)) else {
            return;
        };
        node = next;
    }
    *node = resolve(&whole, node).clone();
    if let Some(Value::Array(required)) = node.get_mut("required") {
        required.retain(|required| required != name);
    }
    if altogether && let Some(Value::Object(properties)) = node.get_mut("properties") {
        properties.shift_remove(*name);
    }
}
