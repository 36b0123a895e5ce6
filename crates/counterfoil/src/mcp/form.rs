//! How the arguments of a call carry a result. Vendors want an object at the root of a tool's
//! schema, without alternatives, so what is something else is wrapped; several contracts need a
//! name beside the result.

use counterfoil_contract::render::vendor::{self, Target};
use counterfoil_contract::{Contract, Type, did_you_mean};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The argument that holds a result which cannot be the arguments themselves.
pub(super) const RESULT: &str = "result";
/// The argument that names the contract, where there are several.
pub(super) const CONTRACT: &str = "contract";

/// What clients add to the arguments of every tool for their own use, and forget to take out again.
const OF_CLIENTS: [&str; 1] = ["wait_for_previous"];

/// How arguments carry a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// They are the result.
    Bare,
    /// They hold it under `result`.
    Wrapped,
    /// They hold it under `result`, and name its contract.
    Named,
}

/// What arguments hold.
#[derive(Debug)]
pub(super) struct Taken<'d> {
    /// The contract that is meant.
    pub(super) contract: &'d Arc<Contract>,
    /// The result; none if there is none.
    pub(super) value: Option<Value>,
}

impl Form {
    /// The form for these contracts.
    pub(super) fn of(contracts: &[Arc<Contract>], target: Target) -> Self {
        match contracts {
            [one] if stands_alone(&lowered(one, target)) => Self::Bare,
            [_] => Self::Wrapped,
            _ => Self::Named,
        }
    }

    /// The schema of the arguments.
    pub(super) fn schema(self, contracts: &[Arc<Contract>], target: Target) -> Map<String, Value> {
        let mut defs = Map::new();
        let mut schema = match (self, contracts) {
            (Self::Bare, [one]) => match lowered(one, target) {
                Value::Object(map) => return map,
                _ => Map::new(),
            },
            (_, [one]) => {
                let result = placed(lowered(one, target), "/properties/result", "", &mut defs);
                closed(vec![(RESULT, result)], &[RESULT], target)
            }
            _ => {
                let place = |(index, one): (usize, &Arc<Contract>)| {
                    let tag = format!("{}.", one.reference().replace(['/', '@'], "."));
                    let at = format!("/properties/result/anyOf/{index}");
                    placed(lowered(one, target), &at, &tag, &mut defs)
                };
                let results: Vec<Value> = contracts.iter().enumerate().map(place).collect();
                let named = named(contracts, "The contract that the result is held to");
                let result = json!({"description": "The result, as that contract describes it", "anyOf": results});
                closed(vec![(CONTRACT, named), (RESULT, result)], &[CONTRACT, RESULT], target)
            }
        };
        if !defs.is_empty() {
            schema.insert("$defs".into(), Value::Object(defs));
        }
        schema
    }

    /// What the arguments hold; the error says what is wrong with them and the way out.
    pub(super) fn take(
        self,
        contracts: &[Arc<Contract>],
        mut arguments: Map<String, Value>,
    ) -> Result<Taken<'_>, String> {
        let contract = match self {
            Self::Named => chosen(contracts, arguments.shift_remove(CONTRACT).as_ref())?,
            Self::Bare | Self::Wrapped => contracts.first().ok_or("there is no contract here")?,
        };
        let only = arguments.len() == 1 && arguments.contains_key(RESULT);
        let value = match self {
            // Whoever wraps what needs no wrapping means what is inside, unless `result` is a name
            // of the contract's own.
            Self::Bare if only && !may_hold(contract, RESULT) => arguments.shift_remove(RESULT),
            Self::Bare => Some(Value::Object(arguments)),
            Self::Wrapped | Self::Named if only => arguments.shift_remove(RESULT),
            Self::Wrapped | Self::Named if arguments.is_empty() => None,
            // Whoever leaves the wrapping out means the arguments, if the result can be an object
            // at all.
            Self::Wrapped if may_be_object(contract) => Some(Value::Object(arguments)),
            Self::Wrapped | Self::Named => {
                let names: Vec<&str> =
                    arguments.keys().map(String::as_str).filter(|name| *name != RESULT).collect();
                return Err(format!(
                    "put the result under `{RESULT}` and nothing beside it; `{}` is not known here",
                    names.join("`, `")
                ));
            }
        };
        Ok(Taken { contract, value: value.map(|value| unquoted(contract, value)) })
    }
}

/// The arguments without what the client added for itself.
pub(super) fn own(
    contracts: &[Arc<Contract>],
    mut arguments: Map<String, Value>,
) -> Map<String, Value> {
    for name in OF_CLIENTS {
        if !contracts.iter().any(|contract| may_hold(contract, name)) {
            arguments.shift_remove(name);
        }
    }
    arguments
}

/// The contract that a call names; with only one, none need be named.
pub(super) fn chosen<'d>(
    contracts: &'d [Arc<Contract>],
    named: Option<&Value>,
) -> Result<&'d Arc<Contract>, String> {
    let all = || contracts.iter().map(|one| one.reference()).collect::<Vec<_>>().join(", ");
    let name = match (named, contracts) {
        (None | Some(Value::Null), [one]) => return Ok(one),
        (Some(Value::String(name)), _) => name,
        (None | Some(Value::Null), _) => {
            return Err(format!("say which `{CONTRACT}` is meant: {}", all()));
        }
        (Some(other), _) => {
            return Err(format!(
                "`{CONTRACT}` is the id of a contract, not {other:.80}; there are: {}",
                all()
            ));
        }
    };
    // The newest version answers to the bare id.
    let newest = contracts.iter().filter(|one| one.id() == name).max_by_key(|one| one.version());
    contracts.iter().find(|one| one.reference() == name).or(newest).ok_or_else(|| {
        let near = did_you_mean(name, contracts.iter().map(|one| one.reference()));
        let near = near.map(|near| format!("{near} ")).unwrap_or_default();
        format!("there is no contract '{name}' here; {near}there are: {}", all())
    })
}

/// The schema of an argument that names a contract.
pub(super) fn named(contracts: &[Arc<Contract>], description: &str) -> Value {
    let names: Vec<&str> = contracts.iter().map(|one| one.reference()).collect();
    json!({"type": "string", "enum": names, "description": description})
}

/// An object with these fields and no others, as far as the dialect can say so.
pub(super) fn closed(
    properties: Vec<(&str, Value)>,
    required: &[&str],
    target: Target,
) -> Map<String, Value> {
    let properties: Map<String, Value> =
        properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    let mut schema = Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), Value::Object(properties)),
        ("required".to_owned(), json!(required)),
    ]);
    if target != Target::Gemini {
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
    schema
}

/// The contract's schema in a dialect, as a part of a tool: without a name of its own, to which its
/// references would belong.
fn lowered(contract: &Contract, target: Target) -> Value {
    let mut schema = vendor::schema(contract, target).schema;
    if let Value::Object(map) = &mut schema {
        map.shift_remove("$id");
        map.shift_remove("$schema");
    }
    schema
}

/// Whether a schema can be that of a tool.
pub(super) fn stands_alone(schema: &Value) -> bool {
    let alternatives = ["$ref", "anyOf", "oneOf", "allOf", "enum", "const", "not", "if"];
    schema.get("type").is_some_and(|ty| ty == "object")
        && alternatives.iter().all(|keyword| schema.get(keyword).is_none())
}

/// A schema as a part of a larger one: its definitions go to the root, under a tag, and its
/// references follow.
fn placed(mut schema: Value, at: &str, tag: &str, defs: &mut Map<String, Value>) -> Value {
    refer(&mut schema, at, tag);
    if let Value::Object(map) = &mut schema
        && let Some(Value::Object(own)) = map.shift_remove("$defs")
    {
        defs.extend(own.into_iter().map(|(name, schema)| (format!("{tag}{name}"), schema)));
    }
    schema
}

fn refer(schema: &mut Value, at: &str, tag: &str) {
    match schema {
        Value::Object(map) => {
            for (keyword, value) in map {
                match (keyword.as_str(), value) {
                    ("$ref", Value::String(reference)) => {
                        let moved = match reference.strip_prefix("#/$defs/") {
                            Some(name) => Some(format!("#/$defs/{tag}{name}")),
                            None => {
                                reference.strip_prefix('#').map(|inner| format!("#{at}{inner}"))
                            }
                        };
                        if let Some(moved) = moved {
                            *reference = moved;
                        }
                    }
                    // What stands in these is data.
                    ("const" | "enum" | "default" | "examples", _) => {}
                    (_, value) => refer(value, at, tag),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| refer(item, at, tag)),
        _ => {}
    }
}

/// Whether a result that is an object can have this field: it is known, or its keys are data.
fn may_hold(contract: &Contract, name: &str) -> bool {
    contract.ty().alternatives().iter().any(|ty| match ty {
        Type::Object(object) => object.fields.contains_key(name),
        Type::Map(_) | Type::Any => true,
        _ => false,
    })
}

fn may_be_object(contract: &Contract) -> bool {
    contract
        .ty()
        .alternatives()
        .iter()
        .any(|ty| matches!(ty, Type::Object(_) | Type::Map(_) | Type::Any))
}

/// A result that was handed in as the text of its JSON, where it cannot be a text.
fn unquoted(contract: &Contract, value: Value) -> Value {
    let may_be_text =
        contract.ty().alternatives().iter().any(|ty| matches!(ty, Type::String(_) | Type::Any));
    match &value {
        Value::String(text) if !may_be_text => match serde_json::from_str(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => inner,
            _ => value,
        },
        _ => value,
    }
}
