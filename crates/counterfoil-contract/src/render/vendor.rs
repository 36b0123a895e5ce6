//! A contract's schema in the dialects of the vendors' structured outputs, with a list of what each
//! dialect cannot express. Nothing is lost in the end: the output is always validated against the
//! contract itself.

mod raise;
mod strict;

pub use raise::raise;

use crate::contract::Contract;
use crate::schema::{closed, is_closable, with_id};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::str::FromStr;
use strum::IntoStaticStr;

/// A schema dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "kebab-case")]
pub enum Target {
    /// Full JSON Schema 2020-12.
    Draft2020,
    /// Claude Code's schema flag and tool schemas.
    Claude,
    /// The strict subset of Codex's output schema.
    Codex,
    /// Gemini's response schema.
    Gemini,
}

impl Target {
    /// All targets.
    pub const ALL: [Self; 4] = [Self::Draft2020, Self::Claude, Self::Codex, Self::Gemini];

    /// The name of the target, as in configuration and arguments.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|target| target.name() == text)
            .ok_or_else(|| UnknownTarget(text.to_owned()))
    }
}

/// The text is not the name of a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown target '{0}'; known: {known}", known = Target::ALL.map(Target::name).join(", "))]
pub struct UnknownTarget(pub String);

/// A schema that was converted to a dialect.
#[derive(Clone, Debug, PartialEq)]
pub struct Lowered {
    /// The schema in the dialect.
    pub schema: Value,
    /// What was changed or lost in the conversion, with the position in the schema.
    pub losses: Vec<Loss>,
    /// Whether the vendor would reject the schema, or it would prevent a valid result.
    unusable: bool,
}

impl Lowered {
    /// Whether the vendor accepts the schema and a result that follows it can still satisfy the
    /// contract: the root is an object without alternatives, and nothing essential was lost.
    pub fn is_usable(&self) -> bool {
        let root = self.schema.as_object();
        !self.unusable
            && root.is_some_and(|root| {
                root.get("type").is_some_and(|ty| ty == "object")
                    && !["anyOf", "oneOf", "allOf", "not", "enum"]
                        .iter()
                        .any(|keyword| root.contains_key(*keyword))
            })
    }
}

/// Something that a dialect cannot express.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The position in the schema, as a JSON pointer.
    pub pointer: String,
    /// What was changed or lost.
    pub what: String,
}

/// Converts the schema of a contract to a dialect.
pub fn schema(contract: &Contract, target: Target) -> Lowered {
    // Codex closes every object anyway, and Gemini has no way to.
    let closes = target == Target::Claude
        && contract.policy().refuses_unknown_fields()
        && is_closable(contract.asked_schema());
    let closed = closes.then(|| closed(contract.asked_schema()));
    let root = closed.as_ref().unwrap_or_else(|| contract.asked_schema());
    let mut lowering =
        Lowering { target, root, losses: Vec::new(), path: Vec::new(), unusable: false };
    if target == Target::Draft2020 {
        let schema = with_id(root, contract.reference());
        return Lowered { schema, losses: Vec::new(), unusable: false };
    }
    let mut schema = lowering.lower(root, "");
    if let (Value::Object(map), Some(defs)) =
        (&mut schema, root.get("$defs").and_then(Value::as_object))
        && target != Target::Gemini
    {
        let lowered: Map<String, Value> = defs
            .iter()
            .map(|(name, def)| (name.clone(), lowering.lower(def, &format!("/$defs/{name}"))))
            .collect();
        map.insert("$defs".into(), Value::Object(lowered));
    }
    if contract.ty().object().is_none() {
        lowering.record_loss("", "the root must be an object: this dialect will refuse the schema");
    }
    for rule in &contract.definition().rules {
        lowering.record_loss("", &format!("the rule '{}' cannot be expressed", rule.id));
    }
    if target == Target::Codex {
        lowering.strict_bounds(&schema);
    }
    Lowered { schema, losses: lowering.losses, unusable: lowering.unusable }
}

struct Lowering<'s> {
    target: Target,
    root: &'s Value,
    losses: Vec<Loss>,
    /// The references that are being inlined.
    path: Vec<String>,
    /// Whether the resulting schema should not be used.
    unusable: bool,
}

/// Formats defined by Counterfoil, which no vendor supports.
const OWN_FORMATS: [&str; 2] = ["repo-path", "n-of-m"];

impl Lowering<'_> {
    fn record_loss(&mut self, pointer: &str, what: &str) {
        let loss = Loss { pointer: pointer.to_owned(), what: what.to_owned() };
        if !self.losses.contains(&loss) {
            self.losses.push(loss);
        }
    }

    /// Records a loss that makes the schema unusable.
    fn mark_unusable(&mut self, pointer: &str, what: &str) {
        self.unusable = true;
        self.record_loss(pointer, &format!("{what}: do not use this schema"));
    }

    /// Whether the dialect supports a keyword.
    fn supports(&self, keyword: &str) -> bool {
        let shared =
            ["type", "enum", "description", "title", "properties", "required", "items", "anyOf"];
        let more: &[&str] = match self.target {
            Target::Draft2020 => return true,
            Target::Claude => {
                return !matches!(keyword, "$defs" | "$schema" | "$id")
                    && !keyword.starts_with("x-");
            }
            Target::Codex => &[
                "$ref",
                "const",
                "pattern",
                "format",
                "minimum",
                "maximum",
                "exclusiveMinimum",
                "exclusiveMaximum",
                "multipleOf",
                "minItems",
                "maxItems",
                "additionalProperties",
            ],
            Target::Gemini => &[
                "format",
                "minimum",
                "maximum",
                "minItems",
                "maxItems",
                "nullable",
                "propertyOrdering",
            ],
        };
        shared.contains(&keyword) || more.contains(&keyword)
    }

    fn lower(&mut self, schema: &Value, at: &str) -> Value {
        let Value::Object(map) = schema else {
            if self.target != Target::Claude {
                self.record_loss(at, "a schema that is only true or false cannot be expressed");
            }
            return if self.target == Target::Claude {
                schema.clone()
            } else {
                json!({"type": "string"})
            };
        };
        if self.target == Target::Gemini
            && let Some(Value::String(reference)) = map.get("$ref")
        {
            return self.inline(reference, map, at);
        }
        if self.target == Target::Codex
            && let Some(inlined) = self.strict_reference(map, at)
        {
            return inlined;
        }
        let mut out = Map::new();
        for (keyword, value) in map {
            self.keyword(keyword, value, at, &mut out);
        }
        match self.target {
            Target::Codex => self.strict(map, at, &mut out),
            Target::Gemini => nullable(&mut out),
            Target::Draft2020 | Target::Claude => {}
        }
        Value::Object(out)
    }

    fn keyword(&mut self, keyword: &str, value: &Value, at: &str, out: &mut Map<String, Value>) {
        let pointer = format!("{at}/{keyword}");
        match (keyword, value) {
            (
                "$defs" | "$schema" | "$id" | "default" | "examples" | "deprecated" | "$comment",
                _,
            ) => {}
            (keyword, _) if keyword.starts_with("x-") => {}
            ("format" | "pattern", _) if self.target == Target::Codex => {
                if let Some(value) = self.strict_keyword(keyword, value, &pointer) {
                    out.insert(keyword.into(), value);
                }
            }
            // Handled with the rest of the schema.
            ("allOf", Value::Array(_)) if self.target == Target::Codex => {}
            ("format", Value::String(format)) if OWN_FORMATS.contains(&format.as_str()) => {
                self.record_loss(
                    &pointer,
                    &format!("the format {format} is only checked by Counterfoil"),
                );
            }
            ("oneOf", Value::Array(branches)) if self.target != Target::Claude => {
                self.record_loss(&pointer, "oneOf became anyOf");
                let lowered = branches
                    .iter()
                    .enumerate()
                    .map(|(i, branch)| self.lower(branch, &format!("{pointer}/{i}")))
                    .collect();
                out.insert("anyOf".into(), Value::Array(lowered));
            }
            ("const", value) if self.target == Target::Gemini => {
                out.insert("enum".into(), json!([value]));
                self.record_loss(&pointer, "const became an enum of one");
            }
            ("additionalProperties", Value::Object(_)) if self.target != Target::Claude => {
                self.record_loss(&pointer, "an object whose keys are data cannot be expressed");
            }
            ("properties", Value::Object(properties)) => {
                let lowered: Map<String, Value> = properties
                    .iter()
                    .map(|(name, schema)| {
                        (name.clone(), self.lower(schema, &format!("{pointer}/{name}")))
                    })
                    .collect();
                out.insert(keyword.into(), Value::Object(lowered));
            }
            (
                "items" | "additionalProperties" | "not" | "contains" | "propertyNames",
                Value::Object(_),
            ) if self.supports(keyword) => {
                let lowered = self.lower(value, &pointer);
                out.insert(keyword.into(), lowered);
            }
            ("anyOf" | "allOf" | "oneOf", Value::Array(branches)) if self.supports(keyword) => {
                let lowered = branches
                    .iter()
                    .enumerate()
                    .map(|(i, branch)| self.lower(branch, &format!("{pointer}/{i}")))
                    .collect();
                out.insert(keyword.into(), Value::Array(lowered));
            }
            (keyword, value) if self.supports(keyword) => {
                out.insert(keyword.into(), value.clone());
            }
            (keyword, _) => self.record_loss(&pointer, &format!("`{keyword}` cannot be expressed")),
        }
    }

    /// Gemini has no references: replaces a reference by its target.
    fn inline(&mut self, reference: &str, map: &Map<String, Value>, at: &str) -> Value {
        let target =
            reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)).cloned();
        let Some(target) = target.filter(|_| !self.path.iter().any(|seen| seen == reference))
        else {
            self.record_loss(at, "a recursive type cannot be expressed");
            return json!({"type": "object"});
        };
        self.path.push(reference.to_owned());
        let mut lowered = self.lower(&target, at);
        self.path.pop();
        if let (Value::Object(lowered), Some(description)) = (&mut lowered, map.get("description"))
        {
            lowered.insert("description".into(), description.clone());
        }
        lowered
    }
}

/// Gemini expresses null as a flag, not as a type.
fn nullable(out: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = out.get("type").cloned() {
        let rest: Vec<Value> = types.iter().filter(|ty| **ty != json!("null")).cloned().collect();
        if rest.len() < types.len() {
            out.insert("nullable".into(), json!(true));
        }
        match rest.as_slice() {
            [one] => out.insert("type".into(), one.clone()),
            many => {
                let branches = many.iter().map(|ty| json!({"type": ty})).collect();
                out.remove("type");
                out.insert("anyOf".into(), Value::Array(branches))
            }
        };
    }
    if let Some(Value::Array(branches)) = out.get("anyOf").cloned() {
        let rest: Vec<Value> = branches
            .iter()
            .filter(|branch| branch.get("type") != Some(&json!("null")))
            .cloned()
            .collect();
        if rest.len() < branches.len() {
            out.insert("nullable".into(), json!(true));
            out.insert("anyOf".into(), Value::Array(rest.clone()));
        }
        if let [Value::Object(one)] = rest.as_slice() {
            out.remove("anyOf");
            for (key, value) in one {
                out.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
    }
    // An enum takes precedence over the flag and cannot contain null, so null becomes a separate
    // alternative.
    if out.get("enum").and_then(Value::as_array).is_some_and(|values| values.contains(&Value::Null))
    {
        let mut listed: Map<String, Value> =
            ["type", "enum"].iter().filter_map(|key| out.shift_remove_entry(*key)).collect();
        if let Some(Value::Array(values)) = listed.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
        out.shift_remove("nullable");
        out.insert("anyOf".into(), json!([listed, {"type": "null"}]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::UnknownFields;
    use crate::{Framing, Policy};

    #[test]
    fn a_list_of_values_with_null_admits_null_in_every_dialect() {
        let schema = json!({"type": "object", "required": ["level"], "properties": {
            "level": {"type": ["string", "null"], "enum": ["low", "high", null], "description": "How bad"},
        }});
        let contract = Contract::from_schema(&schema, Framing::AnyJson, Policy::default()).unwrap();
        for target in Target::ALL {
            let lowered = super::schema(&contract, target).schema;
            for (level, good) in [(json!("low"), true), (Value::Null, true), (json!("mid"), false)]
            {
                assert_eq!(
                    jsonschema::is_valid(&lowered, &json!({"level": level})),
                    good,
                    "{target:?}: {level}"
                );
            }
            assert_eq!(lowered["properties"]["level"]["description"], "How bad");
        }
    }

    #[test]
    fn a_contract_that_refuses_unknown_fields_says_so_in_its_schema() {
        let schema = json!({"type": "object", "properties": {
            "items": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
            "any": {"type": "object", "additionalProperties": true},
        }});
        let composed = json!({"type": "object", "properties": {"a": {"type": "integer"}},
            "anyOf": [{"properties": {"b": {"type": "integer"}}}, {"properties": {"c": {}}}]});
        let accepts = |schema: &Value, unknown_fields, value: &Value| {
            let policy = Policy { unknown_fields, ..Policy::default() };
            let contract = Contract::from_schema(schema, Framing::AnyJson, policy).unwrap();
            jsonschema::is_valid(&super::schema(&contract, Target::Claude).schema, value)
        };
        for (value, known) in [
            (json!({"items": [{"n": 1}], "any": {"x": 1}}), true),
            (json!({"findings": ["x"]}), false),
            (json!({"items": [{"n": 1, "x": 1}]}), false),
        ] {
            assert!(accepts(&schema, UnknownFields::Keep, &value), "{value}");
            assert_eq!(accepts(&schema, UnknownFields::Refuse, &value), known, "{value}");
        }
        // Fields from several places: only the contract itself can tell.
        assert!(accepts(&composed, UnknownFields::Refuse, &json!({"a": 1, "b": 2})));
    }

    #[test]
    fn a_lowered_schema_is_a_schema() {
        let schema = json!({
            "type": "object", "required": ["ok"], "$defs": {"note": {"type": "string", "minLength": 1}},
            "properties": {
                "ok": {"type": "boolean"}, "why": {"type": "string"}, "at": {"type": ["integer", "null"]},
                "level": {"enum": ["low", "high"]}, "note": {"$ref": "#/$defs/note"},
                "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            },
        });
        let contract = Contract::from_schema(&schema, Framing::AnyJson, Policy::default()).unwrap();
        for target in Target::ALL {
            let lowered = super::schema(&contract, target).schema;
            assert!(jsonschema::meta::is_valid(&lowered), "{target:?}: {lowered:#}");
        }
    }
}
