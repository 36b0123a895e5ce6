//! The reverse of lowering: converts a result that follows a lowered schema back to the contract's
//! form. Codex's strict subset has no optional fields, so optional fields were made nullable, and
//! null means absent.

use super::Target;
use crate::contract::Contract;
use serde_json::{Map, Value};

/// The maximum number of references and combinators to follow for one value. A contract whose
/// references form a cycle does not compile.
const MAX_FOLLOWED: usize = 64;

/// Converts a result from the target's dialect back to the form of the contract. Only changes that
/// the dialect caused are reverted; nothing is validated.
pub fn raise(contract: &Contract, target: Target, mut value: Value) -> Value {
    match target {
        Target::Codex => {
            Raiser { root: contract.asked_schema() }.raise(contract.asked_schema(), &mut value, 0);
        }
        Target::Draft2020 | Target::Claude | Target::Gemini => {}
    }
    value
}

struct Raiser<'s> {
    root: &'s Value,
}

impl<'s> Raiser<'s> {
    /// The recursion is bounded, because the parser limits the depth of values.
    fn raise(&self, schema: &'s Value, value: &mut Value, followed: usize) {
        let Value::Object(map) = schema else { return };
        if !matches!(value, Value::Object(_) | Value::Array(_)) || followed > MAX_FOLLOWED {
            return;
        }
        match value {
            Value::Object(fields) => self.raise_fields(map, fields),
            Value::Array(items) => {
                let first =
                    map.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                for (index, item) in items.iter_mut().enumerate() {
                    if let Some(schema) = first.get(index).or_else(|| map.get("items")) {
                        self.raise(schema, item, 0);
                    }
                }
            }
            _ => {}
        }
        if let Some(target) = self.target(map) {
            self.raise(target, value, followed + 1);
        }
        for branch in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.raise(branch, value, followed + 1);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(branches) = map.get(keyword).and_then(Value::as_array)
                && let Some(closest) = branches
                    .iter()
                    .min_by_key(|branch| self.mismatch_score(branch, value, followed + 1))
            {
                self.raise(closest, value, followed + 1);
            }
        }
    }

    fn raise_fields(&self, map: &'s Map<String, Value>, fields: &mut Map<String, Value>) {
        let properties = map.get("properties").and_then(Value::as_object);
        fields.retain(|name, value| {
            let known = properties.and_then(|properties| properties.get(name));
            let is_omitted = value.is_null()
                && known.is_some_and(|schema| !requires(map, name) && !self.admits_null(schema, 0));
            if let Some(schema) = known.or_else(|| map.get("additionalProperties")) {
                self.raise(schema, value, 0);
            }
            !is_omitted
        });
    }

    fn target(&self, map: &'s Map<String, Value>) -> Option<&'s Value> {
        self.root.pointer(map.get("$ref")?.as_str()?.strip_prefix('#')?)
    }

    /// Whether the schema accepts null.
    fn admits_null(&self, schema: &'s Value, followed: usize) -> bool {
        let Value::Object(map) = schema else { return schema != &Value::Bool(false) };
        if followed > MAX_FOLLOWED {
            return true;
        }
        let inner = |branch| self.admits_null(branch, followed + 1);
        let branches = |keyword| map.get(keyword).and_then(Value::as_array);
        map.get("const").is_none_or(Value::is_null)
            && branches("enum").is_none_or(|values| values.contains(&Value::Null))
            && map.get("type").is_none_or(|ty| includes_type(ty, "null"))
            && self.target(map).is_none_or(inner)
            && branches("allOf").is_none_or(|all| all.iter().all(inner))
            && branches("anyOf").is_none_or(|any| any.iter().any(inner))
            && branches("oneOf").is_none_or(|any| any.iter().any(inner))
    }

    /// A score of how badly a value matches this schema. Nested values are not inspected, so that
    /// nested alternatives cost no more than the size of the value.
    fn mismatch_score(&self, schema: &'s Value, value: &Value, followed: usize) -> usize {
        /// The score of a decisive mismatch, larger than any number of fields.
        const DECISIVE: usize = 1 << 20;
        let Value::Object(map) = schema else {
            return usize::from(schema == &Value::Bool(false)) * DECISIVE;
        };
        if followed > MAX_FOLLOWED {
            return 0;
        }
        let mut mismatches =
            self.target(map).map_or(0, |target| self.mismatch_score(target, value, followed + 1));
        for branch in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            mismatches += self.mismatch_score(branch, value, followed + 1);
        }
        for keyword in ["anyOf", "oneOf"] {
            let branches = map.get(keyword).and_then(Value::as_array);
            let least = branches
                .into_iter()
                .flatten()
                .map(|branch| self.mismatch_score(branch, value, followed + 1));
            mismatches += least.min().unwrap_or(0);
        }
        if !self.could_match(schema, value, followed) {
            mismatches += DECISIVE;
        }
        let Value::Object(fields) = value else { return mismatches };
        let properties = map.get("properties").and_then(Value::as_object);
        for (name, value) in fields {
            match properties.and_then(|properties| properties.get(name)) {
                // A different literal outweighs any number of unknown names.
                Some(schema) if !value.is_null() && !self.could_match(schema, value, 0) => {
                    mismatches += DECISIVE;
                }
                Some(schema)
                    if value.is_null() && requires(map, name) && !self.admits_null(schema, 0) =>
                {
                    mismatches += 1;
                }
                Some(_) => {}
                None => mismatches += usize::from(properties.is_some()),
            }
        }
        let required = map.get("required").and_then(Value::as_array).into_iter().flatten();
        mismatches
            + required.filter_map(Value::as_str).filter(|name| !fields.contains_key(*name)).count()
    }

    /// Whether the type and the literals of the schema allow the value.
    fn could_match(&self, schema: &'s Value, value: &Value, followed: usize) -> bool {
        let Value::Object(map) = schema else { return schema != &Value::Bool(false) };
        if followed > MAX_FOLLOWED {
            return true;
        }
        let inner = |branch| self.could_match(branch, value, followed + 1);
        let branches = |keyword| map.get(keyword).and_then(Value::as_array);
        map.get("const").is_none_or(|literal| literal == value)
            && branches("enum").is_none_or(|values| values.contains(value))
            && map
                .get("type")
                .is_none_or(|ty| type_names(value).iter().any(|name| includes_type(ty, name)))
            && self.target(map).is_none_or(inner)
            && branches("allOf").is_none_or(|all| all.iter().all(inner))
            && branches("anyOf").is_none_or(|any| any.iter().any(inner))
            && branches("oneOf").is_none_or(|any| any.iter().any(inner))
    }
}

fn requires(map: &Map<String, Value>, name: &str) -> bool {
    map.get("required")
        .and_then(Value::as_array)
        .is_some_and(|names| names.iter().any(|one| one == name))
}

/// Whether the keyword `type` includes a type, alone or in a list.
fn includes_type(ty: &Value, name: &str) -> bool {
    ty == name || ty.as_array().is_some_and(|types| types.iter().any(|ty| ty == name))
}

/// The names that a schema may use for the type of a value.
fn type_names(value: &Value) -> &'static [&'static str] {
    match value {
        Value::Null => &["null"],
        Value::Bool(_) => &["boolean"],
        Value::Number(_) => &["number", "integer"],
        Value::String(_) => &["string"],
        Value::Array(_) => &["array"],
        Value::Object(_) => &["object"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Framing, Policy};
    use serde_json::json;

    #[allow(clippy::needless_pass_by_value, reason = "schemas are written in place")]
    fn contract(schema: Value) -> Contract {
        Contract::from_schema(&schema, Framing::AnyJson, Policy::default()).unwrap()
    }

    fn raised(schema: Value, value: Value) -> Value {
        raise(&contract(schema), Target::Codex, value)
    }

    #[test]
    fn null_is_a_field_left_out_where_the_contract_knows_no_null() {
        let schema = json!({
            "type": "object",
            "required": ["must", "may_be_null"],
            "properties": {
                "must": {"type": "string"},
                "may_be_null": {"type": ["string", "null"]},
                "optional": {"type": "string"},
                "optional_or_null": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "choice": {"enum": ["a", "b"]},
                "choice_or_null": {"enum": ["a", null]},
                "literal": {"const": 1},
                "anything": true,
                "untyped": {"description": "whatever"},
            },
        });
        let all_null = json!({
            "must": null, "may_be_null": null, "optional": null, "optional_or_null": null, "choice": null,
            "choice_or_null": null, "literal": null, "anything": null, "untyped": null, "unknown": null,
        });
        let kept = json!({
            "must": null, "may_be_null": null, "optional_or_null": null, "choice_or_null": null, "anything": null,
            "untyped": null, "unknown": null,
        });
        assert_eq!(raised(schema, all_null), kept);
    }

    #[test]
    fn only_the_dialect_that_made_them_nullable_is_taken_back() {
        let contract = contract(json!({"type": "object", "properties": {"a": {"type": "string"}}}));
        for target in Target::ALL {
            let left = raise(&contract, target, json!({"a": null}));
            assert_eq!(left == json!({}), target == Target::Codex, "{target:?}");
        }
    }

    #[test]
    fn lists_maps_and_references_are_entered() {
        let schema = json!({
            "type": "object",
            "$defs": {
                "node": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"}, "note": {"type": "string"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                }},
                "named": {"$ref": "#/$defs/node"},
                "or_null": {"type": ["object", "null"]},
            },
            "properties": {
                "root": {"$ref": "#/$defs/named"},
                "pair": {"type": "array", "prefixItems": [{"$ref": "#/$defs/node"}], "items": {"type": "integer"}},
                "by_key": {"type": "object", "additionalProperties": {"$ref": "#/$defs/node"}},
                "whole": {"allOf": [{"$ref": "#/$defs/node"}]},
                "referred": {"$ref": "#/$defs/node"},
                "referred_or_null": {"$ref": "#/$defs/or_null"},
            },
        });
        let node = json!({"name": "a", "note": null, "children": [{"name": "b", "note": null, "children": null}]});
        let bare = json!({"name": "a", "children": [{"name": "b"}]});
        assert_eq!(
            raised(
                schema,
                json!({
                    "root": node, "pair": [node, 1], "by_key": {"k": node}, "whole": node, "referred": null,
                    "referred_or_null": null,
                })
            ),
            json!({
                "root": bare, "pair": [bare, 1], "by_key": {"k": bare}, "whole": bare, "referred_or_null": null,
            })
        );
    }

    #[test]
    fn of_alternatives_the_one_that_was_meant_says_what_is_optional() {
        let schema = json!({"oneOf": [
            {"type": "object", "required": ["status", "note"], "additionalProperties": false, "properties": {
                "status": {"const": "success"}, "note": {"type": ["string", "null"]}, "value": {"type": "integer"},
            }},
            {"type": "object", "required": ["status"], "additionalProperties": false, "properties": {
                "status": {"const": "error"}, "note": {"type": "string"}, "error": {"type": "string"},
            }},
        ]});
        assert_eq!(
            raised(schema.clone(), json!({"status": "success", "note": null, "value": null})),
            json!({"status": "success", "note": null})
        );
        assert_eq!(
            raised(schema, json!({"status": "error", "note": null, "error": "x"})),
            json!({"status": "error", "error": "x"})
        );
    }

    #[test]
    fn alternatives_without_a_literal_are_told_apart_by_their_names() {
        let schema = json!({"type": "object", "properties": {"shape": {"anyOf": [
            {"type": "object", "required": ["radius"], "properties": {"radius": {"type": "number"}, "note": {"type": "string"}}},
            {"type": "object", "required": ["side", "note"],
                "properties": {"side": {"type": "number"}, "note": {"type": ["string", "null"]}}},
            {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
            {"type": "null"},
        ]}}});
        for (shape, bare) in [
            (json!({"radius": 1, "note": null}), json!({"radius": 1})),
            (json!({"side": 1, "note": null}), json!({"side": 1, "note": null})),
            (json!([{"a": null}]), json!([{}])),
            (json!(null), json!(null)),
            (json!("unknown"), json!("unknown")),
        ] {
            assert_eq!(raised(schema.clone(), json!({"shape": shape})), json!({"shape": bare}));
        }
    }

    #[test]
    fn alternatives_inside_alternatives_stay_cheap() {
        let schema = json!({"$ref": "#/$defs/tree", "$defs": {"tree": {"anyOf": [
            {"type": "object", "required": ["left"], "properties": {"left": {"$ref": "#/$defs/tree"}, "note": {"type": "string"}}},
            {"type": "object", "required": ["right"], "properties": {"right": {"$ref": "#/$defs/tree"}, "note": {"type": "string"}}},
            {"type": "integer"},
        ]}}});
        let mut deep = json!(1);
        for level in 0..120 {
            deep = json!({if level % 2 == 0 { "left" } else { "right" }: deep, "note": null});
        }
        let raised = raised(schema, deep);
        assert!(!raised.to_string().contains("note"), "{raised}");
    }

    #[test]
    fn what_was_written_to_the_lowered_schema_is_accepted_when_it_is_raised() {
        let schema = json!({
            "type": "object", "required": ["ok"],
            "properties": {"ok": {"type": "boolean"}, "why": {"type": "string"}, "at": {"type": "integer", "minimum": 1}},
        });
        let contract = contract(schema);
        let lowered = super::super::schema(&contract, Target::Codex).schema;
        let value = json!({"ok": true, "why": null, "at": null});
        assert!(jsonschema::is_valid(&lowered, &value));
        assert!(!contract.check_value(&value).is_accepted());
        assert!(contract.check_value(&raise(&contract, Target::Codex, value)).is_accepted());
    }
}
