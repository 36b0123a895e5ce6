//! Types of values, derived from a JSON Schema.

use crate::text::listed_value;
use crate::work;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

/// The type of a value in an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// A value of unknown type.
    Any,
    /// The null value.
    Null,
    /// A boolean.
    Bool,
    /// An integer.
    Int,
    /// A number, not necessarily an integer.
    Double,
    /// A string. For an enum, the allowed values.
    String(Option<Arc<Vec<String>>>),
    /// A list with items of a type.
    List(Arc<Type>),
    /// An object with known fields.
    Object(Arc<ObjectType>),
    /// An object with arbitrary keys and values of one type.
    Map(Arc<Type>),
    /// One of several types; a union without members has no values.
    Union(Arc<Vec<Type>>),
}

/// The fields of an object type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectType {
    /// The declared fields, by name.
    pub fields: BTreeMap<String, Field>,
    /// Whether the schema explicitly allows other fields.
    pub open: bool,
}

/// A field of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The type of the field.
    pub ty: Type,
    /// Whether the schema requires it.
    pub required: bool,
    /// The value to use when the field is missing.
    pub default: Option<Value>,
    /// The placeholder that a prompt template shows for its value.
    pub placeholder: Option<String>,
    /// The description from the schema.
    pub description: Option<String>,
    /// The position among the fields of the schema.
    pub position: usize,
}

impl ObjectType {
    /// The fields in the order of the schema.
    pub fn in_order(&self) -> Vec<(&String, &Field)> {
        let mut fields: Vec<_> = self.fields.iter().collect();
        fields.sort_by_key(|(_, field)| field.position);
        fields
    }

    /// The type of an object that has one of two forms: the fields of both, of which only those
    /// required by both are required.
    fn merged(&self, other: &Self) -> Self {
        if self == other {
            return self.clone();
        }
        let mut fields = self.fields.clone();
        for (name, field) in &mut fields {
            match other.fields.get(name) {
                Some(counterpart) => {
                    field.ty = Type::union(vec![field.ty.clone(), counterpart.ty.clone()]);
                    field.required &= counterpart.required;
                    field.default = None;
                }
                None => (field.required, field.default) = (false, None),
            }
        }
        for (name, field) in &other.fields {
            fields.entry(name.clone()).or_insert_with(|| Field {
                required: false,
                default: None,
                ..field.clone()
            });
        }
        Self { fields, open: self.open || other.open }
    }
}

impl Field {
    /// Whether the field is present in every accepted result.
    pub fn is_present(&self) -> bool {
        self.required || self.default.is_some()
    }
}

impl Type {
    /// The type that a schema describes. References inside the schema are followed; a recursive
    /// reference has the type `Any`.
    pub fn from_schema(schema: &Value) -> Self {
        Self::within_limits(schema).0
    }

    /// The type that a schema describes, and whether the schema is so large, with what it refers to,
    /// that parts of it became `Any`.
    pub(crate) fn within_limits(schema: &Value) -> (Self, bool) {
        let mut builder = Builder { root: schema, path: Vec::new(), parts: 0 };
        let ty = builder.build(schema);
        (ty, builder.parts > MAX_SCHEMA_PARTS)
    }

    /// A string of any content.
    pub fn text() -> Self {
        Self::String(None)
    }

    /// The type without values: the item type of an always-empty list.
    pub(super) fn nothing() -> Self {
        Self::Union(Arc::default())
    }

    /// An object type with these fields, all of them required.
    pub(super) fn object_of(fields: Vec<(String, Type)>) -> Self {
        let field = |(position, (name, ty)): (usize, (String, Type))| {
            let field = Field {
                ty,
                required: true,
                default: None,
                placeholder: None,
                description: None,
                position,
            };
            (name, field)
        };
        let fields = fields.into_iter().enumerate().map(field).collect();
        Self::Object(Arc::new(ObjectType { fields, open: false }))
    }

    /// A short name, for prompts: without the fields of an object.
    pub(crate) fn short_name(&self) -> String {
        match self {
            Self::Object(_) => "object".into(),
            Self::List(items) => format!("list of {}", items.short_name()),
            Self::Union(types) => {
                types.iter().map(Self::short_name).collect::<Vec<_>>().join(" or ")
            }
            other => other.to_string(),
        }
    }

    /// The members of a union; for any other type, the type itself.
    pub fn alternatives(&self) -> &[Type] {
        match self {
            Self::Union(types) => types,
            other => std::slice::from_ref(other),
        }
    }

    /// The type without null.
    #[must_use]
    pub fn non_null(&self) -> Self {
        let rest: Vec<Type> =
            self.alternatives().iter().filter(|ty| **ty != Type::Null).cloned().collect();
        Self::union(rest)
    }

    /// Whether null is one of its values.
    pub fn is_nullable(&self) -> bool {
        self.alternatives().iter().any(|ty| matches!(ty, Type::Null | Type::Any))
    }

    /// The simplified union of types.
    #[allow(clippy::needless_pass_by_value)] // Callers build the list for this call.
    pub fn union(types: Vec<Type>) -> Self {
        /// The clock is read after so many alternatives.
        const BETWEEN_LOOKS: usize = 64;
        let mut flat: Vec<Type> = Vec::new();
        // The values of the first string, if it has some.
        let mut known_values: HashSet<&str> = HashSet::new();
        for (index, ty) in types.iter().flat_map(Type::alternatives).enumerate() {
            let is_late = index % BETWEEN_LOOKS == BETWEEN_LOOKS - 1 && work::is_over();
            if *ty == Type::Any || is_late {
                return Type::Any;
            }
            if let Type::String(Some(values)) = ty {
                let first = flat.iter_mut().find(|ty| matches!(ty, Type::String(_)));
                let is_first = first.is_none();
                if let Some(Type::String(Some(known))) = first {
                    let new = values.iter().filter(|value| !known_values.contains(value.as_str()));
                    Arc::make_mut(known).extend(new.cloned());
                }
                known_values.extend(values.iter().map(String::as_str));
                if !is_first {
                    continue;
                }
            }
            let known = flat.iter_mut().find_map(|other| match (other, ty) {
                (Type::Object(known), Type::Object(other)) => Some((known, other)),
                _ => None,
            });
            if let Some((known, other)) = known {
                if !Arc::ptr_eq(known, other) {
                    *known = Arc::new(known.merged(other));
                }
            } else if !flat.contains(ty) {
                flat.push(ty.clone());
            }
        }
        match flat.len() {
            0 => Type::Any,
            1 => flat.remove(0),
            _ => Type::Union(Arc::new(flat)),
        }
    }

    /// The object type, if the type is an object with declared fields or a union that includes one.
    pub fn object(&self) -> Option<&Arc<ObjectType>> {
        self.alternatives().iter().find_map(|ty| match ty {
            Type::Object(object) => Some(object),
            _ => None,
        })
    }

    /// The item type, if the type is a list or a union that includes one.
    pub fn items(&self) -> Option<&Type> {
        self.alternatives().iter().find_map(|ty| match ty {
            Type::List(items) => Some(items.as_ref()),
            _ => None,
        })
    }

    /// The type at a path of fields; `None` if there is no such path.
    pub fn at<'a>(&self, path: impl IntoIterator<Item = &'a str>) -> Option<Type> {
        let mut ty = self.clone();
        for token in path {
            ty = ty.alternatives().iter().find_map(|ty| match ty {
                Type::Object(object) => object.fields.get(token).map(|field| field.ty.clone()),
                Type::List(items) if token == "*" || token.parse::<usize>().is_ok() => {
                    Some(items.as_ref().clone())
                }
                Type::Map(values) => Some(values.as_ref().clone()),
                Type::Any => Some(Type::Any),
                _ => None,
            })?;
        }
        Some(ty)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any value"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("boolean"),
            Self::Int => f.write_str("integer"),
            Self::Double => f.write_str("number"),
            Self::String(None) => f.write_str("string"),
            Self::String(Some(values)) => {
                let values: Vec<_> = values.iter().map(|value| listed_value(value)).collect();
                f.write_str(&values.join(" | "))
            }
            Self::List(items) => write!(f, "list of {items}"),
            Self::Object(_) => f.write_str("object"),
            Self::Map(values) => write!(f, "object of {values}"),
            Self::Union(types) if types.is_empty() => f.write_str("nothing"),
            Self::Union(types) => {
                for (index, ty) in types.iter().enumerate() {
                    if index > 0 {
                        f.write_str(" or ")?;
                    }
                    write!(f, "{ty}")?;
                }
                Ok(())
            }
        }
    }
}

struct Builder<'s> {
    root: &'s Value,
    /// The references and keywords on the way to the current schema.
    path: Vec<&'s str>,
    /// The number of schemas so far. One that is referred to counts each time.
    parts: usize,
}

/// The most schemas that a schema has, with what it refers to.
pub(crate) const MAX_SCHEMA_PARTS: usize = 20_000;

/// The maximum nesting depth of a schema; deeper parts have the type `Any`.
const MAX_SCHEMA_DEPTH: usize = 64;

impl<'s> Builder<'s> {
    fn build(&mut self, schema: &'s Value) -> Type {
        let Value::Object(map) = schema else { return Type::Any };
        self.parts += 1;
        if self.path.len() >= MAX_SCHEMA_DEPTH || self.parts > MAX_SCHEMA_PARTS {
            return Type::Any;
        }
        if let Some(Value::String(reference)) = map.get("$ref") {
            let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            let Some(target) = target.filter(|_| !self.path.contains(&reference.as_str())) else {
                return Type::Any;
            };
            self.path.push(reference);
            let ty = self.build(target);
            self.path.pop();
            return ty;
        }
        if let Some(value) = map.get("const") {
            return literal(std::slice::from_ref(value));
        }
        if let Some(Value::Array(values)) = map.get("enum") {
            return literal(values);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = map.get(keyword) {
                self.path.push(keyword);
                let ty = Type::union(branches.iter().map(|branch| self.build(branch)).collect());
                self.path.pop();
                return ty;
            }
        }
        match map.get("type") {
            Some(Value::String(name)) => self.named(name, map),
            Some(Value::Array(names)) => Type::union(
                names.iter().filter_map(Value::as_str).map(|name| self.named(name, map)).collect(),
            ),
            _ if map.contains_key("properties") => self.named("object", map),
            _ => Type::Any,
        }
    }

    fn named(&mut self, name: &str, map: &'s Map<String, Value>) -> Type {
        match name {
            "null" => Type::Null,
            "boolean" => Type::Bool,
            "integer" => Type::Int,
            "number" => Type::Double,
            "string" => Type::text(),
            "array" => {
                self.path.push("items");
                let items = map.get("items").map_or(Type::Any, |items| self.build(items));
                self.path.pop();
                Type::List(Arc::new(items))
            }
            "object" => self.object(map),
            _ => Type::Any,
        }
    }

    fn object(&mut self, map: &'s Map<String, Value>) -> Type {
        let additional = map.get("additionalProperties");
        let Some(Value::Object(properties)) = map.get("properties") else {
            return match additional {
                Some(schema @ Value::Object(_)) => {
                    self.path.push("additionalProperties");
                    let values = self.build(schema);
                    self.path.pop();
                    Type::Map(Arc::new(values))
                }
                _ => Type::Map(Arc::new(Type::Any)),
            };
        };
        let required: Vec<&str> = match map.get("required") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let mut object = ObjectType {
            fields: BTreeMap::new(),
            open: matches!(additional, Some(Value::Bool(true) | Value::Object(_)))
                || map.contains_key("patternProperties"),
        };
        for (position, (name, schema)) in properties.iter().enumerate() {
            self.path.push("properties");
            let ty = self.build(schema);
            self.path.pop();
            let text =
                |keyword: &str| schema.get(keyword).and_then(Value::as_str).map(str::to_owned);
            object.fields.insert(
                name.clone(),
                Field {
                    ty,
                    required: required.contains(&name.as_str()),
                    default: schema.get("default").filter(|value| !value.is_null()).cloned(),
                    placeholder: text("x-placeholder"),
                    description: text("description"),
                    position,
                },
            );
        }
        Type::Object(Arc::new(object))
    }
}

fn literal(values: &[Value]) -> Type {
    let texts: Vec<String> = values.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let mut types = Vec::new();
    if !texts.is_empty() {
        types.push(Type::String(Some(Arc::new(texts))));
    }
    for value in values {
        types.push(match value {
            Value::String(_) => continue,
            Value::Null => Type::Null,
            Value::Bool(_) => Type::Bool,
            Value::Number(number) if number.is_i64() => Type::Int,
            Value::Number(_) => Type::Double,
            _ => Type::Any,
        });
    }
    Type::union(types)
}
