//! The arguments of the submit tool. Vendors require a plain object at the root of a tool's schema,
//! without alternatives, so any other result is wrapped. With several contracts, the arguments also
//! name the contract.

use counterfoil_contract::Contract;
use counterfoil_contract::expr::Type;
use counterfoil_contract::render::vendor::{self, Target};
use counterfoil_contract::suggest::did_you_mean;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The argument that holds a wrapped result.
pub(super) const RESULT: &str = "result";
/// The argument that names the contract if there are several.
pub(super) const CONTRACT: &str = "contract";

/// Arguments that some clients add to every tool for their own use and do not remove.
const CLIENT_ARGUMENTS: [&str; 1] = ["wait_for_previous"];

/// How the arguments of a call hold a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgumentLayout {
    /// The arguments are the result.
    Bare,
    /// The argument `result` is the result.
    Wrapped,
    /// The argument `result` is the result, and `contract` names its contract.
    Named,
}

/// The decoded arguments of a call.
#[derive(Debug)]
pub(super) struct Arguments<'d> {
    /// The contract of the result.
    pub(super) contract: &'d Arc<Contract>,
    /// The result, if the arguments have one.
    pub(super) value: Option<Value>,
}

impl ArgumentLayout {
    /// The layout for a set of contracts.
    pub(super) fn for_contracts(contracts: &[Arc<Contract>], target: Target) -> Self {
        match contracts {
            [one] if is_tool_schema(&vendor_schema(one, target)) => Self::Bare,
            [_] => Self::Wrapped,
            _ => Self::Named,
        }
    }

    /// The schema of the arguments.
    pub(super) fn schema(self, contracts: &[Arc<Contract>], target: Target) -> Map<String, Value> {
        let mut defs = Map::new();
        let mut schema = match (self, contracts) {
            (Self::Bare, [one]) => match vendor_schema(one, target) {
                Value::Object(map) => return map,
                _ => Map::new(),
            },
            (_, [one]) => {
                let schema = vendor_schema(one, target);
                let result = embed(schema, "/properties/result", "", &mut defs);
                closed_object(vec![(RESULT, result)], &[RESULT], target)
            }
            _ => {
                let embed_one = |(index, one): (usize, &Arc<Contract>)| {
                    let prefix = format!("{}.", one.reference().replace(['/', '@'], "."));
                    let at = format!("/properties/result/anyOf/{index}");
                    embed(vendor_schema(one, target), &at, &prefix, &mut defs)
                };
                let results: Vec<Value> = contracts.iter().enumerate().map(embed_one).collect();
                let name = contract_name_schema(contracts, "The contract of the result");
                let result = json!({"description": "The result, as the contract describes it", "anyOf": results});
                closed_object(vec![(CONTRACT, name), (RESULT, result)], &[CONTRACT, RESULT], target)
            }
        };
        if !defs.is_empty() {
            schema.insert("$defs".into(), Value::Object(defs));
        }
        schema
    }

    /// Decodes the arguments of a call. The error says what is wrong and how to fix it.
    pub(super) fn decode(
        self,
        contracts: &[Arc<Contract>],
        mut arguments: Map<String, Value>,
    ) -> Result<Arguments<'_>, String> {
        let contract = match self {
            Self::Named => find_contract(contracts, arguments.shift_remove(CONTRACT).as_ref())?,
            Self::Bare | Self::Wrapped => contracts.first().ok_or("there is no contract")?,
        };
        let has_only_result = arguments.len() == 1 && arguments.contains_key(RESULT);
        let value = match self {
            // The agent wrapped a result that needs no wrapping, unless `result` is a field of the
            // contract.
            Self::Bare if has_only_result && !may_have_field(contract, RESULT) => {
                arguments.shift_remove(RESULT)
            }
            Self::Bare => Some(Value::Object(arguments)),
            Self::Wrapped | Self::Named if has_only_result => arguments.shift_remove(RESULT),
            Self::Wrapped | Self::Named if arguments.is_empty() => None,
            // The agent omitted the wrapping; this is accepted if the result can be an object.
            Self::Wrapped if may_be_object(contract) => Some(Value::Object(arguments)),
            Self::Wrapped | Self::Named => {
                let names: Vec<&str> =
                    arguments.keys().map(String::as_str).filter(|name| *name != RESULT).collect();
                return Err(format!(
                    "pass the result as `{RESULT}` and nothing else; unknown arguments: `{}`",
                    names.join("`, `")
                ));
            }
        };
        Ok(Arguments { contract, value: value.map(|value| parse_quoted(contract, value)) })
    }
}

/// The arguments without those that the client added for its own use.
pub(super) fn without_client_arguments(
    contracts: &[Arc<Contract>],
    mut arguments: Map<String, Value>,
) -> Map<String, Value> {
    for name in CLIENT_ARGUMENTS {
        if !contracts.iter().any(|contract| may_have_field(contract, name)) {
            arguments.shift_remove(name);
        }
    }
    arguments
}

/// The contract that a call names. The name is optional if there is only one contract.
pub(super) fn find_contract<'d>(
    contracts: &'d [Arc<Contract>],
    name: Option<&Value>,
) -> Result<&'d Arc<Contract>, String> {
    let all = || contracts.iter().map(|one| one.reference()).collect::<Vec<_>>().join(", ");
    let name = match (name, contracts) {
        (None | Some(Value::Null), [one]) => return Ok(one),
        (Some(Value::String(name)), _) => name,
        (None | Some(Value::Null), _) => {
            return Err(format!("set `{CONTRACT}` to one of: {}", all()));
        }
        (Some(other), _) => {
            return Err(format!(
                "`{CONTRACT}` must be the id of a contract, not {other:.80}; available: {}",
                all()
            ));
        }
    };
    // An id without a version means the newest version.
    let newest = contracts.iter().filter(|one| one.id() == name).max_by_key(|one| one.version());
    contracts.iter().find(|one| one.reference() == name).or(newest).ok_or_else(|| {
        let hint = did_you_mean(name, contracts.iter().map(|one| one.reference()));
        let hint = hint.map(|hint| format!("{hint} ")).unwrap_or_default();
        format!("there is no contract '{name}'; {hint}available: {}", all())
    })
}

/// The schema of the argument that names a contract.
pub(super) fn contract_name_schema(contracts: &[Arc<Contract>], description: &str) -> Value {
    let names: Vec<&str> = contracts.iter().map(|one| one.reference()).collect();
    json!({"type": "string", "enum": names, "description": description})
}

/// The schema of an object with exactly these properties, as far as the dialect can express that.
pub(super) fn closed_object(
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

/// The schema of a contract in a dialect, without `$id` and `$schema`, so that it can be embedded
/// in the schema of a tool.
fn vendor_schema(contract: &Contract, target: Target) -> Value {
    let mut schema = vendor::schema(contract, target).schema;
    if let Value::Object(map) = &mut schema {
        map.shift_remove("$id");
        map.shift_remove("$schema");
    }
    schema
}

/// Whether a schema can be used as the schema of a tool.
pub(super) fn is_tool_schema(schema: &Value) -> bool {
    let alternatives = ["$ref", "anyOf", "oneOf", "allOf", "enum", "const", "not", "if"];
    schema.get("type").is_some_and(|ty| ty == "object")
        && alternatives.iter().all(|keyword| schema.get(keyword).is_none())
}

/// Embeds a schema at a place in a larger one. Its definitions move to the root with a prefix, and
/// its references are rewritten.
fn embed(mut schema: Value, at: &str, prefix: &str, defs: &mut Map<String, Value>) -> Value {
    rewrite_references(&mut schema, at, prefix);
    if let Value::Object(map) = &mut schema
        && let Some(Value::Object(own)) = map.shift_remove("$defs")
    {
        defs.extend(own.into_iter().map(|(name, schema)| (format!("{prefix}{name}"), schema)));
    }
    schema
}

fn rewrite_references(schema: &mut Value, at: &str, prefix: &str) {
    match schema {
        Value::Object(map) => {
            for (keyword, value) in map {
                match (keyword.as_str(), value) {
                    ("$ref", Value::String(reference)) => {
                        let moved = match reference.strip_prefix("#/$defs/") {
                            Some(name) => Some(format!("#/$defs/{prefix}{name}")),
                            None => {
                                reference.strip_prefix('#').map(|inner| format!("#{at}{inner}"))
                            }
                        };
                        if let Some(moved) = moved {
                            *reference = moved;
                        }
                    }
                    // The values of these keywords are data.
                    ("const" | "enum" | "default" | "examples", _) => {}
                    (_, value) => rewrite_references(value, at, prefix),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                rewrite_references(item, at, prefix);
            }
        }
        _ => {}
    }
}

/// Whether an object result can have this field: the contract declares it or allows any key.
pub(super) fn may_have_field(contract: &Contract, name: &str) -> bool {
    contract.ty().alternatives().iter().any(|ty| match ty {
        Type::Object(object) => object.fields.contains_key(name),
        Type::Map(_) | Type::Any => true,
        _ => false,
    })
}

pub(super) fn may_be_object(contract: &Contract) -> bool {
    contract
        .ty()
        .alternatives()
        .iter()
        .any(|ty| matches!(ty, Type::Object(_) | Type::Map(_) | Type::Any))
}

/// Parses a result that was submitted as a JSON string, if the contract does not allow a string.
pub(super) fn parse_quoted(contract: &Contract, value: Value) -> Value {
    let may_be_string =
        contract.ty().alternatives().iter().any(|ty| matches!(ty, Type::String(_) | Type::Any));
    match &value {
        Value::String(text) if !may_be_string => match serde_json::from_str(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => inner,
            _ => value,
        },
        _ => value,
    }
}
