//! Types of inputs and variables, and of what the engine itself puts into scope.

use super::Checker;
use crate::draft::{MachineDraft, Name};
use crate::finding::Code;
use crate::tree::{Kind, Node};
use crate::workflow::{Input, Variable};
use counterfoil_contract::{Field, ObjectType, Type, short_type};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Words that mean something else in an expression or a template.
const TAKEN: [&str; 27] = [
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

/// An object with these fields, all present.
pub(crate) fn object<const N: usize>(fields: [(&str, Type); N]) -> Type {
    let fields = fields
        .into_iter()
        .enumerate()
        .map(|(position, (name, ty))| (name.to_owned(), field(ty, Presence::Always, position)));
    Type::Object(Arc::new(ObjectType { fields: fields.collect(), open: false }))
}

/// Whether a field is always there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Always,
    Sometimes,
}

pub(crate) fn field(ty: Type, presence: Presence, position: usize) -> Field {
    Field {
        ty,
        required: presence == Presence::Always,
        default: None,
        placeholder: None,
        description: None,
        position,
    }
}

pub(crate) fn one_of<const N: usize>(values: [&str; N]) -> Type {
    Type::String(Some(Arc::new(values.iter().map(|&value| value.to_owned()).collect())))
}

pub(crate) fn list_of(ty: Type) -> Type {
    Type::List(Arc::new(ty))
}

pub(crate) fn nullable(ty: Type) -> Type {
    Type::union(vec![ty, Type::Null])
}

/// What `run` is in expressions and prompts.
pub(crate) fn run() -> Type {
    object([
        ("id", Type::text()),
        ("workflow", Type::text()),
        ("started", Type::text()),
        ("date", Type::text()),
        ("iteration", Type::Int),
        ("state", Type::text()),
        ("now", Type::text()),
        ("base", Type::text()),
        ("changed", list_of(Type::text())),
    ])
}

/// An object of which nothing is known before the run.
fn open() -> Type {
    Type::Map(Arc::new(Type::Any))
}

/// What `run` is in artifacts: the same, how it stands, and its items.
pub(crate) fn run_seen_by_artifacts() -> Type {
    let item = object([
        ("state", Type::text()),
        ("key", Type::text()),
        ("outcome", Type::text()),
        ("at", Type::text()),
        ("reason", Type::text()),
        ("inputs", open()),
        ("variables", open()),
        ("value", Type::Any),
    ]);
    let question =
        object([("id", Type::text()), ("question", Type::text()), ("state", Type::text())]);
    let Type::Object(plain) = run() else { return Type::Any };
    let mut fields = plain.fields.clone();
    for (name, ty) in [
        ("outcome", Type::text()),
        ("reason", Type::text()),
        ("updated", Type::text()),
        ("from", Type::text()),
        ("items", list_of(item)),
        ("questions", list_of(question)),
    ] {
        let position = fields.len();
        fields.insert(name.to_owned(), field(ty, Presence::Always, position));
    }
    Type::Object(Arc::new(ObjectType { fields, open: false }))
}

/// The first keyword of a JSON Schema that bounds values and that no type of ours keeps.
fn bound(schema: &Value) -> Option<&'static str> {
    const BOUNDS: [&str; 13] = [
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
    // A field may be named like a keyword: only what stands beside a type is one.
    let own = BOUNDS.into_iter().find(|word| map.contains_key("type") && map.contains_key(*word));
    own.or_else(|| {
        let fields = map
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(|fields| fields.values());
        fields.chain(map.get("items")).find_map(bound)
    })
}

impl<'n> Checker<'n> {
    /// The names an expression can read: lower case, so that they are words in every language here.
    pub(super) fn variable_name(&mut self, name: Name<'_>) {
        let good = name.text.len() <= 60
            && name.text.starts_with(|first: char| first.is_ascii_lowercase())
            && name.text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if !good {
            let message = format!("'{}' cannot be the name of a variable", name.text);
            self.report(
                Code::BadName,
                name.node,
                message,
                "use small letters, digits and _, a letter first",
            );
        } else if TAKEN.contains(&name.text) {
            let message = format!("'{}' means something else in expressions", name.text);
            self.report(Code::BadName, name.node, message, "choose another name");
        }
    }

    /// The type that a node describes, and the settings beside it (`optional`, `initial`,
    /// `default`, `summary`).
    pub(super) fn type_of(
        &mut self,
        node: &'n Node,
    ) -> Option<(Type, BTreeMap<&'n str, &'n Node>)> {
        const BESIDE: [&str; 4] = ["optional", "initial", "default", "summary"];
        let mut beside = BTreeMap::new();
        let ty = match &node.kind {
            Kind::Map(entries) => {
                let (settings, rest): (Vec<_>, Vec<_>) = entries
                    .iter()
                    .partition(|(key, _)| key.text().is_some_and(|key| BESIDE.contains(&key)));
                let only = |name: &str| match rest.as_slice() {
                    [(key, value)] if key.text() == Some(name) => Some(value),
                    _ => None,
                };
                let ty = if let Some(inner) = only("contract") {
                    let name = Name { text: inner.text().unwrap_or_default(), node: inner };
                    self.contract(name)?.ty().clone()
                } else if let Some(inner) = only("type").filter(|inner| is_short(inner)) {
                    self.type_of(inner)?.0
                } else if is_schema(&rest) {
                    self.short(node, &Kind::Map(rest.iter().map(|pair| (*pair).clone()).collect()))?
                } else {
                    self.fields(&rest)?
                };
                for (key, value) in settings {
                    beside.insert(key.text().unwrap_or_default(), value);
                }
                match beside.get("optional").map(|node| (node, &node.kind)) {
                    Some((_, Kind::Bool(true))) => nullable(ty),
                    Some((_, Kind::Bool(false))) | None => ty,
                    Some((node, _)) => {
                        let message = format!("`optional` is {}, not a boolean", node.name());
                        self.report(Code::WrongForm, node, message, "write true or false");
                        ty
                    }
                }
            }
            Kind::List(items) => match items.as_slice() {
                [item] => list_of(self.type_of(item)?.0),
                _ => {
                    self.report(
                        Code::BadType,
                        node,
                        "a list has one type for all its items",
                        "write [string]",
                    );
                    return None;
                }
            },
            kind => self.short(node, kind)?,
        };
        Some((ty, beside))
    }

    fn fields(&mut self, entries: &[&'n (Node, Node)]) -> Option<Type> {
        let mut fields = BTreeMap::new();
        for (position, (key, value)) in entries.iter().enumerate() {
            let name = key.text().unwrap_or_default();
            let (name, presence) = match name.strip_suffix('?') {
                Some(name) => (name, Presence::Sometimes),
                None => (name, Presence::Always),
            };
            fields.insert(name.to_owned(), field(self.type_of(value)?.0, presence, position));
        }
        Some(Type::Object(Arc::new(ObjectType { fields, open: false })))
    }

    fn short(&mut self, node: &Node, kind: &Kind) -> Option<Type> {
        let form = Node { start: node.start, end: node.end, kind: kind.clone() }.json();
        if let Some(bound) = bound(&form).filter(|_| !self.kept) {
            let message =
                format!("`{bound}` is not held here: a type says only what kind of value it is");
            let hint =
                "take it out, and refuse what is out of bounds by a guard in the first state";
            self.report(Code::BadType, node, message, hint);
        }
        match short_type(&form) {
            Ok(schema) => Some(Type::of_schema(&schema)),
            Err(message) => {
                self.report(
                    Code::BadType,
                    node,
                    message,
                    "write string, integer?, [path], low | high, or { contract: id }",
                );
                None
            }
        }
    }

    /// The inputs of a machine, and the names they take.
    pub(super) fn inputs(
        &mut self,
        draft: &MachineDraft<'n>,
    ) -> (BTreeMap<String, Input>, BTreeMap<String, Type>) {
        let mut inputs = BTreeMap::new();
        let mut types = BTreeMap::new();
        for (name, node) in &draft.inputs {
            self.variable_name(*name);
            let Some((ty, beside)) = self.type_of(node) else {
                types.insert(name.text.to_owned(), Type::Any);
                continue;
            };
            let default = match beside.get("default").or(beside.get("initial")) {
                Some(node) => self.literal(node, &ty),
                None if ty.is_nullable() && ty != Type::Any => Some(Value::Null),
                None => None,
            };
            let summary =
                beside.get("summary").and_then(|node| node.text()).unwrap_or_default().to_owned();
            types.insert(name.text.to_owned(), ty.clone());
            inputs.insert(name.text.to_owned(), Input { ty, default, summary });
        }
        (inputs, types)
    }

    pub(super) fn variables(
        &mut self,
        draft: &MachineDraft<'n>,
        types: &mut BTreeMap<String, Type>,
    ) -> BTreeMap<String, Variable> {
        let mut variables = BTreeMap::new();
        for (name, node) in &draft.variables {
            self.variable_name(*name);
            if types.contains_key(name.text) {
                let message = format!("'{}' is an input and a variable", name.text);
                self.report(
                    Code::BadName,
                    name.node,
                    message,
                    "rename one: both are read by their bare name",
                );
            }
            let Some((ty, beside)) = self.type_of(node) else {
                types.insert(name.text.to_owned(), Type::Any);
                continue;
            };
            let initial = match beside.get("initial").or(beside.get("default")) {
                Some(node) => self.literal(node, &ty),
                None if ty.is_nullable() => Some(Value::Null),
                None => {
                    let message = format!("'{}' has no value at the start", name.text);
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

    /// A value written down, held to a type.
    pub(super) fn literal(&mut self, node: &Node, ty: &Type) -> Option<Value> {
        let value = node.json();
        match crate::value::fits(&value, ty) {
            Ok(()) => Some(value),
            Err(why) => {
                self.report(Code::WrongType, node, why, format!("expected {ty}"));
                None
            }
        }
    }
}

/// Whether the `type` of a mapping is in the short form rather than JSON Schema's list of names.
fn is_short(node: &Node) -> bool {
    match &node.kind {
        Kind::List(items) => items.len() == 1,
        _ => true,
    }
}

fn is_schema(entries: &[&(Node, Node)]) -> bool {
    entries.iter().any(|(key, _)| {
        key.text().is_some_and(|key| {
            matches!(key, "type" | "enum" | "$ref" | "const" | "anyOf" | "oneOf")
        })
    })
}
