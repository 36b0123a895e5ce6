//! Types of inputs and variables, and of the variables that the engine provides.

use super::Checker;
use crate::ast::{self, SpannedStr};
use crate::finding::Code;
use crate::variable_types::{Presence, check_type, field, list_of, nullable};
use crate::workflow::{Input, Variable};
use crate::yaml_tree::{Kind, Node};
use counterfoil_contract::expr::{ObjectType, Type};
use counterfoil_contract::fields::short_type;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Words with another meaning in expressions or templates.
const RESERVED: [&str; 27] = [
    "result",
    "run",
    "counts",
    "problem",
    "claims",
    "key",
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The first JSON Schema keyword in a type that restricts values and is not supported there.
fn unsupported_keyword(schema: &Value) -> Option<&'static str> {
    const KEYWORDS: [&str; 13] = [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
    ];
    let Value::Object(map) = schema else { return None };
    // A field may have the name of a keyword: it is a keyword only in a mapping with `type`.
    let keyword =
        KEYWORDS.into_iter().find(|word| map.contains_key("type") && map.contains_key(*word));
    keyword.or_else(|| {
        let fields = map
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(|fields| fields.values());
        fields.chain(map.get("items")).find_map(unsupported_keyword)
    })
}

impl<'n> Checker<'n> {
    /// Checks the name of an input, a variable or an item. It must be an identifier in both
    /// expressions and templates.
    pub(super) fn check_variable_name(&mut self, name: SpannedStr<'_>) {
        let is_valid = name.text.len() <= 60
            && name.text.starts_with(|first: char| first.is_ascii_lowercase())
            && name.text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if !is_valid {
            let message = format!("'{}' is not a valid variable name", name.text);
            self.report(
                Code::BadName,
                name.node,
                message,
                "use lowercase letters, digits and _, starting with a letter",
            );
        } else if RESERVED.contains(&name.text) {
            let message = format!("'{}' is a reserved word", name.text);
            self.report(Code::BadName, name.node, message, "choose another name");
        }
    }

    /// The type that a node declares, and the other settings of its mapping (`optional`, `initial`,
    /// `default`, `summary`).
    pub(super) fn declared_type(
        &mut self,
        node: &'n Node,
    ) -> Option<(Type, BTreeMap<&'n str, &'n Node>)> {
        const SETTINGS: [&str; 4] = ["optional", "initial", "default", "summary"];
        let mut settings = BTreeMap::new();
        let ty = match &node.kind {
            Kind::Map(entries) => {
                let (setting_entries, rest): (Vec<_>, Vec<_>) = entries
                    .iter()
                    .partition(|(key, _)| key.text().is_some_and(|key| SETTINGS.contains(&key)));
                let only = |name: &str| match rest.as_slice() {
                    [(key, value)] if key.text() == Some(name) => Some(value),
                    _ => None,
                };
                let ty = if let Some(inner) = only("contract") {
                    let name = SpannedStr { text: inner.text().unwrap_or_default(), node: inner };
                    self.contract(name)?.ty().clone()
                } else if let Some(inner) = only("type").filter(|inner| is_shorthand(inner)) {
                    self.declared_type(inner)?.0
                } else if is_schema(&rest) {
                    self.shorthand_type(
                        node,
                        &Kind::Map(rest.iter().map(|pair| (*pair).clone()).collect()),
                    )?
                } else {
                    self.fields(&rest)?
                };
                for (key, value) in setting_entries {
                    settings.insert(key.text().unwrap_or_default(), value);
                }
                match settings.get("optional").map(|node| (node, &node.kind)) {
                    Some((_, Kind::Bool(true))) => nullable(ty),
                    Some((_, Kind::Bool(false))) | None => ty,
                    Some((node, _)) => {
                        let message = format!("`optional` is {}, not a boolean", node.describe());
                        self.report(Code::WrongForm, node, message, "write true or false");
                        ty
                    }
                }
            }
            Kind::List(items) => match items.as_slice() {
                [item] => list_of(self.declared_type(item)?.0),
                _ => {
                    self.report(
                        Code::BadType,
                        node,
                        "a list type has exactly one item type",
                        "write [string]",
                    );
                    return None;
                }
            },
            Kind::Text(text) if text == "check" => check_type(),
            Kind::Text(text) if text == "check?" => nullable(check_type()),
            kind => self.shorthand_type(node, kind)?,
        };
        Some((ty, settings))
    }

    fn fields(&mut self, entries: &[&'n (Node, Node)]) -> Option<Type> {
        let mut fields = BTreeMap::new();
        for (position, (key, value)) in entries.iter().enumerate() {
            let name = key.text().unwrap_or_default();
            let (name, presence) = match name.strip_suffix('?') {
                Some(name) => (name, Presence::Optional),
                None => (name, Presence::Required),
            };
            fields.insert(name.to_owned(), field(self.declared_type(value)?.0, presence, position));
        }
        Some(Type::Object(Arc::new(ObjectType { fields, open: false })))
    }

    fn shorthand_type(&mut self, node: &Node, kind: &Kind) -> Option<Type> {
        let form = Node { start: node.start, end: node.end, kind: kind.clone() }.to_json();
        if let Some(keyword) = unsupported_keyword(&form).filter(|_| !self.is_stored) {
            let message =
                format!("`{keyword}` is not supported here: types do not restrict values");
            let hint = "remove it, and check the value with a guard in the first state";
            self.report(Code::BadType, node, message, hint);
        }
        match short_type(&form) {
            Ok(schema) => Some(Type::from_schema(&schema)),
            Err(message) => {
                self.report(
                    Code::BadType,
                    node,
                    message.to_string(),
                    "write string, integer?, [path], low | high, or { contract: id }",
                );
                None
            }
        }
    }

    /// The inputs of a machine, and their types.
    pub(super) fn inputs(
        &mut self,
        decl: &ast::Machine<'n>,
    ) -> (BTreeMap<String, Input>, BTreeMap<String, Type>) {
        let mut inputs = BTreeMap::new();
        let mut types = BTreeMap::new();
        for (name, node) in &decl.inputs {
            self.check_variable_name(*name);
            let Some((ty, settings)) = self.declared_type(node) else {
                types.insert(name.text.to_owned(), Type::Any);
                continue;
            };
            let default = match settings.get("default").or(settings.get("initial")) {
                Some(node) => self.literal(node, &ty),
                None if ty.is_nullable() && ty != Type::Any => Some(Value::Null),
                None => None,
            };
            let summary =
                settings.get("summary").and_then(|node| node.text()).unwrap_or_default().to_owned();
            types.insert(name.text.to_owned(), ty.clone());
            inputs.insert(name.text.to_owned(), Input { ty, default, summary });
        }
        (inputs, types)
    }

    pub(super) fn variables(
        &mut self,
        decl: &ast::Machine<'n>,
        types: &mut BTreeMap<String, Type>,
    ) -> BTreeMap<String, Variable> {
        let mut variables = BTreeMap::new();
        for (name, node) in &decl.variables {
            self.check_variable_name(*name);
            if types.contains_key(name.text) {
                let message = format!("'{}' is both an input and a variable", name.text);
                self.report(Code::BadName, name.node, message, "rename one of them");
            }
            let Some((ty, settings)) = self.declared_type(node) else {
                types.insert(name.text.to_owned(), Type::Any);
                continue;
            };
            let initial = match settings.get("initial").or(settings.get("default")) {
                Some(node) => self.literal(node, &ty),
                None if ty.is_nullable() => Some(Value::Null),
                None => {
                    let message = format!("variable '{}' has no initial value", name.text);
                    let hint = format!(
                        "add `initial: …`, or make it optional: {}: {{ …, optional: true }}",
                        name.text
                    );
                    self.report(Code::MissingKey, name.node, message, hint);
                    None
                }
            };
            types.insert(name.text.to_owned(), ty.clone());
            variables.insert(
                name.text.to_owned(),
                Variable { ty, initial: initial.unwrap_or(Value::Null) },
            );
        }
        variables
    }

    /// A literal of a type.
    pub(super) fn literal(&mut self, node: &Node, ty: &Type) -> Option<Value> {
        let value = node.to_json();
        match crate::value::fits(&value, ty) {
            Ok(()) => Some(value),
            Err(why) => {
                self.report(Code::WrongType, node, why.reason, format!("expected {ty}"));
                None
            }
        }
    }
}

/// Whether the `type` of a mapping is the shorthand rather than a JSON Schema list of names.
fn is_shorthand(node: &Node) -> bool {
    match &node.kind {
        Kind::List(items) => items.len() == 1,
        _ => true,
    }
}

/// Whether a mapping is a JSON Schema.
fn is_schema(entries: &[&(Node, Node)]) -> bool {
    entries.iter().any(|(key, _)| {
        key.text().is_some_and(|key| {
            matches!(key, "type" | "enum" | "$ref" | "const" | "anyOf" | "oneOf")
        })
    })
}
