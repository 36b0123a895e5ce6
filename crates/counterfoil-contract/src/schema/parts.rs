//! Divides a schema whose errors could be countless into parts that are listed one by one.
//!
//! The validator lists the errors of every alternative, and of the alternatives inside of each: by
//! a recursive schema their number doubles with each level of the value. Whether a value is valid is
//! known soon, because it remembers the answers. So each subschema that applies to a member or an
//! item and unfolds to many schemas is replaced by a double negation, which has one error, and is
//! kept as a part of its own.

use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A schema that unfolds to at most this many schemas is listed as a whole.
const WHOLE: usize = 1_000;

/// A subschema that unfolds to more schemas is a part of its own.
const PART: usize = 100;

/// The key that names the part in a double negation.
const MARK: &str = "x-counterfoil-part";

/// The name of the part that is the whole schema.
pub(crate) const ROOT_PART: &str = "root";

/// The keywords whose values are data.
const DATA: [&str; 4] = ["enum", "const", "default", "examples"];

/// How the errors by a schema are listed.
pub(super) enum Division {
    /// All at once.
    Whole,
    /// Part by part: an object with the name of a part is validated by this schema.
    Parts(Value),
    /// Not at all: the references cannot be moved.
    Unlisted,
}

/// Divides a schema, if its errors could be countless.
pub(super) fn divide(schema: &Value) -> Division {
    let sizes = Sizes::of(schema);
    if sizes.get(schema) <= WHOLE {
        return Division::Whole;
    }
    let mut divider = Divider { sizes, parts: Map::new(), known: HashMap::new(), has_id: false };
    let mut root = divider.subschema(schema);
    if let Value::Object(members) = &mut root {
        members.remove("$schema");
        members.remove("$id");
    }
    if divider.has_id {
        return Division::Unlisted;
    }
    let mut parts = divider.parts;
    parts.insert(ROOT_PART.to_owned(), root);
    let properties: Map<String, Value> = parts
        .keys()
        .map(|name| (name.clone(), json!({"$ref": format!("#/$defs/{name}")})))
        .collect();
    Division::Parts(json!({"$defs": parts, "properties": properties}))
}

/// The part that a negated schema stands for.
pub(crate) fn part_of(negated: &Value) -> Option<&str> {
    negated.get(MARK)?.as_str()
}

struct Divider {
    sizes: Sizes,
    parts: Map<String, Value>,
    /// The name of each part, by its text: many members have the same schema.
    known: HashMap<String, String>,
    /// Whether a schema inside has an id, which changes what references mean.
    has_id: bool,
}

impl Divider {
    /// A schema that applies to the same value as the one around it, or a list of such.
    fn subschema(&mut self, node: &Value) -> Value {
        let members = match node {
            Value::Object(members) => members,
            Value::Array(items) => return items.iter().map(|item| self.subschema(item)).collect(),
            other => return other.clone(),
        };
        let mut out = Map::new();
        for (key, member) in members {
            let member = match (key.as_str(), member) {
                (key, _) if DATA.contains(&key) => member.clone(),
                ("$ref" | "$dynamicRef", Value::String(target)) => match target.strip_prefix('#') {
                    Some(pointer) if pointer.is_empty() || pointer.starts_with('/') => {
                        json!(format!("#/$defs/{ROOT_PART}{pointer}"))
                    }
                    _ => member.clone(),
                },
                ("properties" | "patternProperties", Value::Object(children)) => {
                    let child = |(name, schema)| (String::clone(name), self.child(schema));
                    Value::Object(children.iter().map(child).collect())
                }
                ("$defs" | "definitions" | "dependentSchemas", Value::Object(schemas)) => {
                    let inner = |(name, schema)| (String::clone(name), self.subschema(schema));
                    Value::Object(schemas.iter().map(inner).collect())
                }
                ("items" | "prefixItems", Value::Array(children)) => {
                    children.iter().map(|child| self.child(child)).collect()
                }
                (
                    "items"
                    | "additionalItems"
                    | "additionalProperties"
                    | "contains"
                    | "propertyNames"
                    | "unevaluatedItems"
                    | "unevaluatedProperties",
                    child,
                ) => self.child(child),
                ("$id", id) => {
                    self.has_id |= !std::ptr::eq(node, self.sizes.root) && id.is_string();
                    member.clone()
                }
                (_, other) => self.subschema(other),
            };
            out.insert(key.clone(), member);
        }
        Value::Object(out)
    }

    /// A schema that applies to a member or an item.
    fn child(&mut self, node: &Value) -> Value {
        let whole = self.subschema(node);
        if self.sizes.get(node) <= PART {
            return whole;
        }
        let next = self.parts.len().to_string();
        let name = self.known.entry(whole.to_string()).or_insert(next).clone();
        let reference = format!("#/$defs/{name}");
        self.parts.entry(name.clone()).or_insert(whole);
        json!({"not": {"not": {"$ref": reference}, MARK: name}})
    }
}

/// How many schemas each part of a schema unfolds to, with its references. Without end is
/// `usize::MAX`.
struct Sizes {
    root: *const Value,
    by_node: HashMap<*const Value, usize>,
}

impl Sizes {
    fn get(&self, node: &Value) -> usize {
        self.by_node.get(&std::ptr::from_ref(node)).copied().unwrap_or(1)
    }

    fn of(root: &Value) -> Self {
        let mut sizes = Self { root: std::ptr::from_ref(root), by_node: HashMap::new() };
        // Depth first, with a stack: a node is done when its exit entry is popped. Until then its
        // size is endless, so that what leads back to it is endless.
        let mut stack = vec![(root, false)];
        while let Some((node, exit)) = stack.pop() {
            let key = std::ptr::from_ref(node);
            if exit {
                let inner = inner(root, node);
                let size = inner.iter().fold(1_usize, |sum, next| {
                    sum.saturating_add(next.map_or(usize::MAX, |next| sizes.get(next)))
                });
                sizes.by_node.insert(key, size);
            } else if let Entry::Vacant(entry) = sizes.by_node.entry(key) {
                entry.insert(usize::MAX);
                stack.push((node, true));
                stack.extend(inner(root, node).into_iter().flatten().map(|next| (next, false)));
            }
        }
        sizes
    }
}

/// The objects and lists in a schema, and what it refers to; `None` for a reference whose target is
/// not known.
fn inner<'s>(root: &'s Value, node: &'s Value) -> Vec<Option<&'s Value>> {
    let is_nested = |value: &&Value| value.is_object() || value.is_array();
    match node {
        Value::Object(members) => members
            .iter()
            .filter(|(key, _)| !DATA.contains(&key.as_str()))
            .filter_map(|(key, member)| match (key.as_str(), member) {
                ("$ref", Value::String(target)) => {
                    Some(target.strip_prefix('#').and_then(|pointer| root.pointer(pointer)))
                }
                ("$dynamicRef", Value::String(_)) => Some(None),
                (_, member) => Some(member).filter(is_nested).map(Some),
            })
            .collect(),
        Value::Array(items) => items.iter().filter(is_nested).map(Some).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(schema: &Value) -> Option<usize> {
        match divide(schema) {
            Division::Parts(schema) => schema["$defs"].as_object().map(Map::len),
            Division::Whole => Some(0),
            Division::Unlisted => None,
        }
    }

    #[test]
    fn only_a_schema_that_unfolds_to_many_is_divided() {
        assert_eq!(
            parts(&json!({"type": "object", "properties": {"a": {"type": "string"}}})),
            Some(0)
        );
        // The tree and its two kinds of children, of which the first two have the same schema.
        let tree = json!({"properties": {"l": {"$ref": "#"}, "r": {"$ref": "#"}, "m": {"items": {"$ref": "#"}}}});
        assert_eq!(parts(&tree), Some(3));
        assert_eq!(
            parts(&json!({"properties": {"a": {"$ref": "#/properties/a/properties/b"}}})),
            Some(2)
        );
        let with_id = json!({"properties": {"a": {"$id": "urn:a", "properties": {"b": {"$ref": "#"}}}, "c": {"$ref": "#"}}});
        assert_eq!(parts(&with_id), None);
    }

    #[test]
    fn a_long_chain_of_references_needs_no_stack() {
        let defs: Map<String, Value> = (0..20_000)
            .map(|level| (format!("a{level}"), json!({"$ref": format!("#/$defs/a{}", level + 1)})))
            .collect();
        let schema = json!({"properties": {"x": {"$ref": "#/$defs/a0"}}, "$defs": defs});
        assert!(parts(&schema).is_some());
    }
}
