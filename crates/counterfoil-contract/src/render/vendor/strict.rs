//! The strict subset of Codex's output schema, by `OpenAI`'s published rules: every property is
//! required, other properties are forbidden, every schema has a type, nothing is beside a
//! reference, and the size is limited.

use super::Lowering;
use crate::schema::add_null;
use serde_json::{Map, Value, json};

/// The supported string formats.
const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// The maximum number of properties in total.
const MAX_PROPERTIES: usize = 5000;
/// The maximum nesting depth of objects.
const MAX_DEPTH: usize = 10;
/// The maximum number of enum values in total.
const MAX_ENUM_VALUES: usize = 1000;
/// The maximum number of characters in names and enum values.
const MAX_CHARACTERS: usize = 120_000;
/// An enum with more values than the first number may have at most the second number of characters.
const LONG_ENUM: (usize, usize) = (250, 15_000);

impl Lowering<'_> {
    /// Converts the value of a keyword; `None` if the dialect cannot express it.
    pub(super) fn strict_keyword(
        &mut self,
        keyword: &str,
        value: &Value,
        pointer: &str,
    ) -> Option<Value> {
        let text = value.as_str().unwrap_or_default();
        match keyword {
            "format" if !FORMATS.contains(&text) => {
                self.record_loss(
                    pointer,
                    &format!("the format {text} is only checked by Counterfoil"),
                );
                None
            }
            // Patterns with look-around are rejected.
            "pattern" if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|look| text.contains(look)) => {
                self.record_loss(
                    pointer,
                    "a pattern with look-around is only checked by Counterfoil",
                );
                None
            }
            _ => Some(value.clone()),
        }
    }

    /// Inlines a reference that has annotations beside it, and keeps the annotations.
    pub(super) fn strict_reference(&mut self, map: &Map<String, Value>, at: &str) -> Option<Value> {
        let annotations: Vec<&str> =
            ["description", "title"].into_iter().filter(|name| map.contains_key(*name)).collect();
        if annotations.is_empty() {
            return None;
        }
        let mut written = self.inlined(map.get("$ref")?.as_str()?, at)?;
        for annotation in annotations {
            written.insert(annotation.to_owned(), map.get(annotation)?.clone());
        }
        Some(Value::Object(written))
    }

    /// The lowered target of a reference; `None` if it is being inlined already. References inside
    /// the target are kept.
    fn inlined(&mut self, reference: &str, at: &str) -> Option<Map<String, Value>> {
        if self.path.iter().any(|seen| seen == reference) {
            return None;
        }
        let target = self.root.pointer(reference.strip_prefix('#')?)?.clone();
        self.path.push(reference.to_owned());
        let lowered = self.lower(&target, at);
        self.path.pop();
        lowered.as_object().cloned()
    }

    /// Makes a schema strict that contains only supported keywords.
    pub(super) fn strict(
        &mut self,
        map: &Map<String, Value>,
        at: &str,
        out: &mut Map<String, Value>,
    ) {
        if out.contains_key("$ref") {
            // Nothing is allowed beside a reference, not even annotations.
            out.retain(|keyword, _| keyword == "$ref");
            return;
        }
        self.merge_only_branch(map, at, out);
        self.add_type(at, out);
        if includes_type(out, "array") && !out.contains_key("items") {
            out.insert("items".into(), json!({"type": "string"}));
            self.record_loss(at, "a list of any values is asked for as a list of strings");
        }
        if !includes_type(out, "object") && !out.contains_key("properties") {
            return;
        }
        let required: Vec<&str> = map
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if map.get("additionalProperties").is_none_or(|value| value != &json!(false)) {
            self.record_loss(at, "fields that are not listed are forbidden");
        }
        out.insert("additionalProperties".into(), json!(false));
        let mut listed = Vec::new();
        if let Value::Object(properties) = out.entry("properties").or_insert_with(|| json!({})) {
            for (name, schema) in properties.iter_mut() {
                listed.push(Value::from(name.as_str()));
                let pointer = format!("{at}/properties/{name}");
                if required.contains(&name.as_str()) {
                    if self.becomes_empty_object(map, name) {
                        self.mark_unusable(
                            &pointer,
                            "an object whose keys are data cannot be expressed: it could only be empty",
                        );
                    }
                } else if add_null(schema) {
                    self.record_loss(
                        &pointer,
                        "the optional field must be written; null means that it is absent",
                    );
                }
            }
        }
        out.insert("required".into(), Value::Array(listed));
    }

    /// Replaces an `allOf` that has one branch and only annotations beside it by that branch. Any
    /// other `allOf` cannot be expressed, and without it the schema would mean something else.
    fn merge_only_branch(
        &mut self,
        map: &Map<String, Value>,
        at: &str,
        out: &mut Map<String, Value>,
    ) {
        let alone =
            out.keys().all(|keyword| matches!(keyword.as_str(), "description" | "title" | "type"));
        let merged = match map.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
            None | Some([]) => return,
            Some([branch]) if alone => match branch.get("$ref").and_then(Value::as_str) {
                Some(reference) => self.inlined(reference, at),
                None => self.lower(branch, at).as_object().cloned(),
            },
            Some(_) => None,
        };
        match merged {
            Some(merged) => merged.into_iter().for_each(|(keyword, value)| {
                out.entry(keyword).or_insert(value);
            }),
            None => self.mark_unusable(at, "several schemas must hold at once"),
        }
    }

    /// Adds the type that every schema must have, unless it is a reference or has alternatives.
    fn add_type(&mut self, at: &str, out: &mut Map<String, Value>) {
        if ["type", "anyOf"].iter().any(|keyword| out.contains_key(*keyword)) {
            return;
        }
        let values: Vec<&Value> = match (out.get("enum"), out.get("const")) {
            (Some(Value::Array(values)), _) => values.iter().collect(),
            (_, Some(value)) => vec![value],
            _ => Vec::new(),
        };
        let mut types: Vec<Value> = Vec::new();
        for ty in values.iter().map(|value| Value::from(type_of(value))) {
            if !types.contains(&ty) {
                types.push(ty);
            }
        }
        let ty = match types.as_slice() {
            [] if out.contains_key("properties") => json!("object"),
            [] => {
                self.record_loss(at, "any value is asked for as a string");
                json!("string")
            }
            [one] => one.clone(),
            _ => Value::Array(types),
        };
        out.insert("type".into(), ty);
    }

    /// Whether a property is an object with arbitrary keys and nothing else. The strict form allows
    /// only an empty object there.
    fn becomes_empty_object(&self, map: &Map<String, Value>, name: &str) -> bool {
        let mut schema = map.get("properties").and_then(|properties| properties.get(name));
        for _ in 0..64 {
            let Some(reference) =
                schema.and_then(|schema| schema.get("$ref")).and_then(Value::as_str)
            else {
                break;
            };
            schema = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        }
        schema.is_some_and(|schema| {
            schema.get("type").is_some_and(|ty| ty == "object")
                && schema.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty)
                && schema.get("additionalProperties") != Some(&json!(false))
        })
    }

    /// Marks a schema as unusable if it exceeds the size limits.
    pub(super) fn strict_bounds(&mut self, schema: &Value) {
        let mut size = Size::default();
        size.add(schema);
        let deepest = depth(schema, schema, &mut Vec::new());
        let over = [
            (size.properties, MAX_PROPERTIES, "properties"),
            (deepest, MAX_DEPTH, "nested objects"),
            (size.values, MAX_ENUM_VALUES, "values of enums"),
            (size.characters, MAX_CHARACTERS, "characters of names and values"),
        ];
        for (count, limit, what) in over {
            if count > limit {
                self.mark_unusable("", &format!("{count} {what} exceed the limit of {limit}"));
            }
        }
        if size.long_enum {
            let (values, characters) = LONG_ENUM;
            self.mark_unusable(
                "",
                &format!(
                    "an enum of more than {values} values has more than {characters} characters"
                ),
            );
        }
    }
}

/// Whether a schema includes a type, alone or in a list.
fn includes_type(schema: &Map<String, Value>, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|ty| ty == name),
        Some(ty) => ty == name,
        None => false,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Counts over a whole schema.
#[derive(Default)]
struct Size {
    properties: usize,
    values: usize,
    characters: usize,
    long_enum: bool,
}

impl Size {
    /// The recursion is bounded, because the depth of contract schemas is limited.
    fn add(&mut self, schema: &Value) {
        let Value::Object(map) = schema else { return };
        for keyword in ["properties", "$defs"] {
            for (name, inner) in map.get(keyword).and_then(Value::as_object).into_iter().flatten() {
                self.properties += usize::from(keyword == "properties");
                self.characters += name.chars().count();
                self.add(inner);
            }
        }
        let values = map.get("enum").and_then(Value::as_array).into_iter().flatten();
        let lengths: Vec<usize> = values
            .chain(map.get("const"))
            .map(|value| match value {
                Value::String(text) => text.chars().count(),
                other => other.to_string().len(),
            })
            .collect();
        let characters: usize = lengths.iter().sum();
        self.values += lengths.len();
        self.characters += characters;
        self.long_enum |= lengths.len() > LONG_ENUM.0 && characters > LONG_ENUM.1;
        if let Some(items) = map.get("items") {
            self.add(items);
        }
        for branch in map.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
            self.add(branch);
        }
    }
}

/// The maximum nesting depth of objects. A recursive object counts once.
fn depth<'s>(schema: &'s Value, root: &'s Value, path: &mut Vec<&'s str>) -> usize {
    let Value::Object(map) = schema else { return 0 };
    if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        // Beyond the limit, the exact depth does not matter.
        let Some(target) = target.filter(|_| !path.contains(&reference) && path.len() <= MAX_DEPTH)
        else {
            return 0;
        };
        path.push(reference);
        let inside = depth(target, root, path);
        path.pop();
        return inside;
    }
    let properties = map
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(_, inner)| inner);
    let branches = map.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    let inside = properties.chain(map.get("items")).chain(branches);
    let deepest = inside.map(|inner| depth(inner, root, path)).max().unwrap_or(0);
    deepest + usize::from(includes_type(map, "object"))
}

#[cfg(test)]
mod tests {
    use super::super::{Lowered, Target, schema};
    use super::*;
    use crate::{Contract, Framing, Policy};

    fn lowered(raw: &Value) -> Lowered {
        let contract = Contract::from_schema(raw, Framing::AnyJson, Policy::default()).unwrap();
        schema(&contract, Target::Codex)
    }

    /// A contract with one field.
    fn field(schema: &Value) -> Lowered {
        lowered(&json!({
            "type": "object", "required": ["field"], "properties": {"field": schema},
            "$defs": {"thing": {"type": "object", "description": "A thing", "required": ["name"],
                "properties": {"name": {"type": "string"}, "in": {"$ref": "#/$defs/thing", "description": "Where"}}}},
        }))
    }

    fn loss_text(lowered: &Lowered) -> String {
        lowered.losses.iter().map(|loss| format!("{}: {}\n", loss.pointer, loss.what)).collect()
    }

    #[test]
    fn nothing_is_beside_a_reference() {
        let out = field(&json!({"$ref": "#/$defs/thing", "description": "The thing in question"}));
        let inlined = &out.schema["properties"]["field"];
        assert_eq!(inlined["description"], "The thing in question");
        assert_eq!(inlined["properties"]["name"], json!({"type": "string"}));
        // It is recursive: it is inlined once and then referenced without annotations.
        let inner = &inlined["properties"]["in"];
        assert_eq!(inner, &json!({"anyOf": [{"$ref": "#/$defs/thing"}, {"type": "null"}]}));
        assert!(out.is_usable());
    }

    #[test]
    fn every_schema_has_a_type() {
        for (raw, expected) in [
            (json!({"enum": ["a", "b"]}), json!({"enum": ["a", "b"], "type": "string"})),
            (json!({"enum": [1, null]}), json!({"enum": [1, null], "type": ["integer", "null"]})),
            (json!({"const": 1.5}), json!({"const": 1.5, "type": "number"})),
            (json!({"description": "x"}), json!({"description": "x", "type": "string"})),
            (json!({"type": "array"}), json!({"type": "array", "items": {"type": "string"}})),
        ] {
            assert_eq!(field(&raw).schema["properties"]["field"], expected);
        }
        assert!(
            loss_text(&field(&json!({})))
                .contains("/properties/field: any value is asked for as a string")
        );
    }

    #[test]
    fn formats_and_patterns_are_kept_where_they_are_known() {
        let out = field(&json!({"type": "string", "format": "uuid", "pattern": "^[a-z]+$"}));
        assert_eq!(
            out.schema["properties"]["field"],
            json!({"type": "string", "format": "uuid", "pattern": "^[a-z]+$"})
        );
        let out = field(&json!({"type": "integer", "format": "uint32", "minimum": 0}));
        assert_eq!(out.schema["properties"]["field"], json!({"type": "integer", "minimum": 0}));
        assert!(
            loss_text(&out).contains("the format uint32 is only checked by Counterfoil"),
            "{}",
            loss_text(&out)
        );
    }

    #[test]
    fn an_only_branch_is_that_branch() {
        let out = field(&json!({"description": "Words", "allOf": [{"$ref": "#/$defs/thing"}]}));
        let merged = &out.schema["properties"]["field"];
        assert_eq!((&merged["description"], &merged["type"]), (&json!("Words"), &json!("object")));
        assert_eq!(merged.get("title"), None);
        assert!(out.is_usable(), "{}", loss_text(&out));
        let out = field(&json!({"allOf": [{"$ref": "#/$defs/thing"}, {"required": ["in"]}]}));
        assert!(!out.is_usable());
        assert!(
            loss_text(&out).contains("/properties/field: several schemas must hold at once"),
            "{}",
            loss_text(&out)
        );
    }

    #[test]
    fn a_schema_that_only_allows_an_empty_object_is_unusable() {
        let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let out = field(&map);
        assert!(!out.is_usable());
        assert!(
            loss_text(&out).contains(
                "an object whose keys are data cannot be expressed: it could only be empty"
            ),
            "{}",
            loss_text(&out)
        );
        // The schema stays usable if the field is optional or has another alternative.
        let optional = json!({"type": "object", "properties": {"field": map}});
        assert!(lowered(&optional).is_usable());
        assert!(field(&json!({"anyOf": [{"type": "string"}, map]})).is_usable());
    }

    #[test]
    fn an_optional_literal_can_be_null() {
        let out = lowered(
            &json!({"type": "object", "properties": {"v": {"type": "integer", "const": 1}}}),
        );
        assert_eq!(
            out.schema["properties"]["v"],
            json!({"type": ["integer", "null"], "enum": [1, null]})
        );
    }

    #[test]
    fn a_schema_that_is_too_large_is_unusable_with_a_reason() {
        let nested = |levels: usize| {
            (1..levels).fold(json!({"type": "object", "properties": {}, "additionalProperties": false}), |inner, _| {
                json!({"type": "object", "required": ["in"], "properties": {"in": inner}, "additionalProperties": false})
            })
        };
        assert!(lowered(&nested(10)).is_usable(), "{}", loss_text(&lowered(&nested(10))));
        let out = lowered(&nested(11));
        assert!(!out.is_usable());
        assert!(
            loss_text(&out).contains("11 nested objects exceed the limit of 10"),
            "{}",
            loss_text(&out)
        );
        let values = |count: usize, length: usize| -> Vec<String> {
            (0..count).map(|n| format!("{n:0length$}")).collect()
        };
        assert!(field(&json!({"enum": values(1000, 4)})).is_usable());
        assert!(!field(&json!({"enum": values(1001, 4)})).is_usable());
        assert!(!field(&json!({"enum": values(251, 60)})).is_usable());
        assert!(!field(&json!({"enum": values(200, 601)})).is_usable());
    }
}
