//! YAML as a tree of nodes with byte positions, so that one pass can report all findings with their
//! positions.

use crate::finding::{Code, Finding};
use counterfoil_contract::Span;
use counterfoil_contract::load::yaml_error;
use counterfoil_contract::source::Source;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{DuplicateKeyPolicy, Spanned};
use std::fmt;

/// The maximum size of a workflow file.
pub(crate) const MAX_FILE_BYTES: usize = 8 << 20;

/// The maximum nesting of a workflow file. Reading is recursive; this much fits into the stack of a
/// thread also without optimisation.
const MAX_DEPTH: usize = 48;

/// A YAML node with its byte range in the file.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: Kind,
}

/// The value of a node.
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

    /// The kind of value, for messages.
    pub(crate) fn describe(&self) -> &'static str {
        match self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "a boolean",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a string",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
        }
    }

    /// Converts the node to JSON.
    pub(crate) fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(flag) => Value::Bool(*flag),
            Kind::Number(number) => Value::Number(number.clone()),
            Kind::Text(text) => Value::String(text.clone()),
            Kind::List(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            Kind::Map(entries) => Value::Object(
                entries
                    .iter()
                    .map(|(key, value)| {
                        (key.text().unwrap_or_default().to_owned(), value.to_json())
                    })
                    .collect::<Map<_, _>>(),
            ),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Kind>::deserialize(deserializer)?;
        let span = spanned.referenced.span();
        let number =
            |value: Option<u64>| value.and_then(|value| usize::try_from(value).ok()).unwrap_or(0);
        let start = number(span.byte_offset());
        // For a list or mapping, the parser gives only the first character. The node extends to the
        // end of its last item.
        let inner = match &spanned.value {
            Kind::List(items) => items.last().map(|item| item.end),
            Kind::Map(entries) => entries.last().map(|(_, value)| value.end),
            _ => None,
        };
        let end = (start + number(span.byte_len())).max(inner.unwrap_or(0));
        Ok(Self { start, end, kind: spanned.value })
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

/// Parses YAML (which includes JSON). Duplicate keys and alias bombs are errors.
pub(crate) fn parse(text: &str, file: &str) -> Result<Node, Finding> {
    if text.len() > MAX_FILE_BYTES {
        return Err(Finding::new(
            Code::Syntax,
            file,
            format!("the file has {} bytes, more than {MAX_FILE_BYTES}", text.len()),
            "move prompts and other long texts to separate files",
        ));
    }
    let options = serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        duplicate_keys: DuplicateKeyPolicy::Error,
        budget: serde_saphyr::budget! { max_depth: MAX_DEPTH },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error: serde_saphyr::Error| {
        let detail = yaml_error(&error);
        let detail = detail.split(" at line ").next().unwrap_or(&detail).trim_end_matches(',');
        let duplicate = match &error {
            serde_saphyr::Error::DuplicateMappingKey { key, .. } => key.as_deref(),
            _ => None,
        };
        let (message, hint) = match duplicate {
            Some(key) => (
                format!("duplicate key '{key}'"),
                "merge the two entries, or rename one of them",
            ),
            None if detail.starts_with("budget breached") || detail.starts_with("recursion limit") => (
                too_much(detail),
                "write less, or move texts and sub-workflows to files of their own; an alias counts as what it repeats",
            ),
            None => (
                detail.to_owned(),
                "see docs/workflows.md for the format; a string that contains a colon or a brace needs quotes",
            ),
        };
        let finding = Finding::new(Code::Syntax, file, message, hint);
        let Some(location) = error.location() else { return finding };
        let start = byte_offset(text, &location);
        let length = duplicate.filter(|key| text[start..].starts_with(key)).map_or(1, str::len);
        finding.at(Source::whole(text).span(start, (start + length).min(text.len())))
    })
}

/// What of a file exceeds a limit of the parser, by the parser's words.
fn too_much(detail: &str) -> String {
    let what = if detail.contains("Depth") || detail.starts_with("recursion") {
        return format!("the file is nested more than {MAX_DEPTH} deep");
    } else if detail.contains("MergeKeys") {
        "merge keys"
    } else if detail.contains("Nodes") || detail.contains("Events") {
        "values"
    } else if detail.contains("Alias") || detail.contains("Anchor") {
        "anchors and aliases"
    } else {
        "parts"
    };
    let limit = detail
        .split(|c: char| !c.is_ascii_digit())
        .find_map(|digits| digits.parse::<u64>().ok())
        .map_or_else(|| "it may".to_owned(), |found| found.saturating_sub(1).to_string());
    format!("the file has more than {limit} {what}")
}

/// The byte offset of a location of the parser, computed from its line and column: some locations
/// have no offset.
fn byte_offset(text: &str, location: &serde_saphyr::Location) -> usize {
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let line = number(location.line()).saturating_sub(1);
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let column = number(location.column()).saturating_sub(1);
    let within = text[start..].split('\n').next().unwrap_or_default();
    start + within.char_indices().nth(column).map_or(within.len(), |(at, _)| at)
}

/// The span of a part of a scalar, given as the characters `from..to` of its value. Returns the span
/// of the whole scalar if its text in the file differs from its value (escapes, folded lines).
pub(crate) fn part_span(
    source: &Source<'_>,
    text: &str,
    node: &Node,
    from: usize,
    to: usize,
) -> Span {
    let raw = text.get(node.start..node.end).unwrap_or_default();
    let value = node.text().unwrap_or_default();
    let lead = match raw.strip_prefix(['"', '\'']) {
        Some(inner) if inner.starts_with(value) => Some(1),
        _ if raw.starts_with(value) => Some(0),
        _ => None,
    };
    let offset = |chars: usize| value.char_indices().nth(chars).map_or(value.len(), |(at, _)| at);
    if let Some(start) =
        value.contains('\n').then(|| offset_in_block(text, node, value, offset(from))).flatten()
    {
        let line = text[start..].split('\n').next().unwrap_or_default();
        let length = offset(to).saturating_sub(offset(from)).clamp(1, line.len().max(1));
        return source.span(start, start + length);
    }
    match lead {
        Some(lead) => {
            let start = node.start + lead + offset(from);
            let end = node.start + lead + offset(to);
            source.span(start, end.max(start + 1).min(node.end.max(start)))
        }
        None => source.span(node.start, node.end),
    }
}

/// The position in the file of a byte of a literal block's (`|`) value: each line of the value is a
/// line of the file without its indentation. `None` for other block styles, whose lines are folded.
fn offset_in_block(text: &str, node: &Node, value: &str, byte: usize) -> Option<usize> {
    let line = text.get(..node.start)?.rfind('\n').map_or(0, |at| at + 1);
    let indent = node.start - line;
    let (mut raw, mut seen) = (node.start, 0);
    for part in value.split('\n') {
        let rest = text.get(raw..)?;
        if !rest.starts_with(part) {
            return None;
        }
        if byte <= seen + part.len() {
            return Some(raw + (byte - seen));
        }
        seen += part.len() + 1;
        raw += rest.find('\n')? + 1;
        let lead = text.get(raw..)?.bytes().take(indent).take_while(|byte| *byte == b' ').count();
        raw += lead;
    }
    None
}
