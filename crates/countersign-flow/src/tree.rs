//! YAML as a tree that knows where everything stands, so that all findings can be given at once with their places.

use crate::finding::{Code, Finding};
use countersign_contract::{Source, Span};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{DuplicateKeyPolicy, Spanned};
use std::fmt;

/// The largest workflow file read.
pub(crate) const LARGEST_FILE: usize = 8 << 20;

/// A node with its byte range.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: Kind,
}

/// What a node is.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

impl Node {
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn entries(&self) -> Option<&[(Node, Node)]> {
        match &self.kind {
            Kind::Map(entries) => Some(entries),
            _ => None,
        }
    }

    pub(crate) fn items(&self) -> Option<&[Node]> {
        match &self.kind {
            Kind::List(items) => Some(items),
            _ => None,
        }
    }

    /// What it is, in a word.
    pub(crate) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "a boolean",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a text",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
        }
    }

    /// The node as JSON.
    pub(crate) fn json(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(flag) => Value::Bool(*flag),
            Kind::Number(number) => Value::Number(number.clone()),
            Kind::Text(text) => Value::String(text.clone()),
            Kind::List(items) => Value::Array(items.iter().map(Node::json).collect()),
            Kind::Map(entries) => Value::Object(
                entries
                    .iter()
                    .map(|(key, value)| (key.text().unwrap_or_default().to_owned(), value.json()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Kind>::deserialize(deserializer)?;
        let span = spanned.referenced.span();
        let number = |value: Option<u64>| value.and_then(|value| usize::try_from(value).ok()).unwrap_or(0);
        let start = number(span.byte_offset());
        Ok(Self { start, end: start + number(span.byte_len()), kind: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KindVisitor)
    }
}

struct KindVisitor;

impl<'de> Visitor<'de> for KindVisitor {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_none<E>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Kind, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Kind, E> {
        Ok(Kind::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Kind, E> {
        Ok(Kind::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Kind, E> {
        Ok(Kind::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Kind, E> {
        Ok(Number::from_f64(number).map_or(Kind::Null, Kind::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Kind, E> {
        Ok(Kind::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Kind, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Kind::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Kind, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Kind::Map(entries))
    }
}

/// Reads YAML (or JSON, which is YAML) into a tree. Duplicate keys and bombs are refused.
pub(crate) fn read(text: &str, file: &str) -> Result<Node, Finding> {
    if text.len() > LARGEST_FILE {
        return Err(Finding::new(
            Code::Syntax,
            file,
            format!("the file has {} bytes, more than {LARGEST_FILE}", text.len()),
            "split it: sub-workflows and prompts can stand in files of their own",
        ));
    }
    let options = serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        duplicate_keys: DuplicateKeyPolicy::Error,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error: serde_saphyr::Error| {
        let place = error.location().map(|location| {
            let offset = location.span().byte_offset().and_then(|offset| usize::try_from(offset).ok());
            let start = offset.unwrap_or(0).min(text.len());
            (start, (start + 1).min(text.len()))
        });
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or(&message).trim_end_matches(',').to_owned();
        let hint = if message.contains("duplicate") {
            "a key stands once in a mapping: merge the two or rename one"
        } else {
            "see docs/workflows.md for the format; a text with a colon or a brace needs quotes"
        };
        let finding = Finding::new(Code::Syntax, file, message, hint);
        match place {
            Some((start, end)) => finding.at(Source::whole(text).span(start, end)),
            None => finding,
        }
    })
}

/// The span of a part of a scalar (characters `from..to` of its value), or of the whole scalar where the text in the
/// file is not the value itself (escapes, folded lines).
pub(crate) fn inside(source: &Source<'_>, text: &str, node: &Node, from: usize, to: usize) -> Span {
    let raw = text.get(node.start..node.end).unwrap_or_default();
    let value = node.text().unwrap_or_default();
    let lead = match raw.strip_prefix(['"', '\'']) {
        Some(inner) if inner.starts_with(value) => Some(1),
        _ if raw.starts_with(value) => Some(0),
        _ => None,
    };
    let offset = |chars: usize| value.char_indices().nth(chars).map_or(value.len(), |(at, _)| at);
    match lead {
        Some(lead) => {
            let start = node.start + lead + offset(from);
            let end = node.start + lead + offset(to);
            source.span(start, end.max(start + 1).min(node.end.max(start)))
        }
        None => source.span(node.start, node.end),
    }
}
