//! Parses a candidate: strict JSON, repaired JSON, or a block of `key: value` lines whose types the
//! contract gives.

use crate::code::Code;
use crate::contract::Contract;
use crate::edit::{self, Edit, OffsetMap, RepairKind};
use crate::expr::{Field, Type};
use crate::extract::block::{self, Line};
use crate::extract::doubt::Refusal;
use crate::extract::prose;
use crate::json::{self, Children, Fault, Node, ParseFault};
use crate::policy::Policy;
use crate::report::{Coercion, Violation};
use crate::source::Source;
use crate::validate::{Detail, ParsedValue, ValueSpans, bare_violation, excerpt, parse_violation};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The edits that blank out the quote markers on the lines of a range, from its second line on.
pub(crate) fn quote_edits(source: &Source<'_>, start: usize, end: usize, depth: u8) -> Vec<Edit> {
    let mut edits = Vec::new();
    if depth == 0 {
        return edits;
    }
    let range = &source.bytes()[start - source.base()..end - source.base()];
    for newline in memchr::memchr_iter(b'\n', range) {
        edits.extend(quote_edits_on_line(source, start + newline + 1, end, depth));
    }
    edits
}

/// The edits that blank out the quote markers at the head of the line that begins at `at`.
pub(crate) fn quote_edits_on_line(
    source: &Source<'_>,
    at: usize,
    end: usize,
    depth: u8,
) -> Vec<Edit> {
    let mut edits = Vec::new();
    let line = &source.bytes()[at - source.base()..end - source.base()];
    for (offset, byte) in line.iter().enumerate() {
        match byte {
            b' ' | b'\t' => {}
            b'>' if edits.len() < usize::from(depth) => edits.push(Edit {
                kind: RepairKind::QuotePrefix,
                start: at + offset,
                end: at + offset + 1,
                replacement: " ".into(),
            }),
            _ => break,
        }
    }
    edits
}

/// The quote depth of the line of an offset.
pub(crate) fn quote_depth_at(source: &Source<'_>, at: usize) -> u8 {
    prose::quote_depth(source.bytes(), source.base(), at - source.base())
}

/// Parses the JSON between two offsets, with edits applied.
pub(crate) fn json<'t>(
    source: &Source<'t>,
    start: usize,
    end: usize,
    edits: &[Edit],
    policy: &Policy,
    detail: Detail,
) -> Result<ParsedValue<'t>, Option<Box<Violation>>> {
    let raw = source.slice(start, end);
    let (text, map) = if edits.is_empty() {
        (Cow::Borrowed(raw), OffsetMap::identity(start))
    } else {
        (Cow::Owned(edit::apply(raw, start, edits)), OffsetMap::from_edits(start, edits))
    };
    let parsed = match json::parse(&text, policy.max_depth, false) {
        Ok(parsed) => parsed,
        Err(fault) => {
            if detail == Detail::Probe {
                return Err(None);
            }
            let (at, _) = map.range(fault.at, fault.at);
            return Err(Some(Box::new(syntax_violation(
                source,
                &ParseFault { at, ..fault },
                end,
                policy,
            ))));
        }
    };
    let mut reading = ParsedValue {
        value: parsed.value,
        spans: ValueSpans::none(),
        violations: Vec::new(),
        warnings: Vec::new(),
        coercions: Vec::new(),
    };
    if parsed.duplicates {
        note_duplicates(&mut reading, &text, &map, source, policy);
    }
    reading.spans = ValueSpans::from_json(text, map);
    Ok(reading)
}

/// Reports the keys that appear twice in one object: nobody knows which of two different values is
/// meant, so they are a violation.
fn note_duplicates(
    reading: &mut ParsedValue<'_>,
    text: &str,
    map: &OffsetMap,
    source: &Source<'_>,
    policy: &Policy,
) {
    for duplicate in json::duplicate_keys(text, policy.max_depth) {
        let key = duplicate.pointer.rsplit('/').next().unwrap_or_default();
        let violation = policy.strict || duplicate.differs;
        let code = if violation { Code::DuplicateKey } else { Code::DuplicateKeyNote };
        let values = if duplicate.differs { "different values" } else { "the same value" };
        let message = format!("the key `{key}` appears twice in one object, with {values}");
        let mut note = bare_violation(code, &duplicate.pointer, message);
        let (start, end) = map.range(duplicate.key.0, duplicate.key.1);
        note.span = Some(source.span(start, end));
        note.expected = "each key once".into();
        note.received = format!("`{key}` again");
        note.hint = format!("write `{key}` once, with the value that is meant");
        if violation {
            reading.violations.push(note);
        } else {
            reading.warnings.push(note);
        }
    }
}

/// The violation of a value that could be repaired, but is not.
pub(crate) fn refusal_violation(
    source: &Source<'_>,
    refusal: &Refusal,
    end: usize,
    policy: &Policy,
) -> Violation {
    match refusal {
        Refusal::Truncated { at } => {
            let fault = ParseFault { fault: Fault::Truncated, at: *at };
            syntax_violation(source, &fault, end, policy)
        }
        Refusal::Ambiguous(found) => {
            let [first, second] = &found.readings;
            let message = format!("the result can be read in two ways: {first}; or {second}");
            let mut violation = bare_violation(Code::Ambiguous, "", message);
            violation.span = Some(source.span(found.start, found.end));
            violation.expected = "JSON with one reading".into();
            violation.received = format!("{first}; or {second}");
            violation.hint = found.hint.into();
            violation
        }
    }
}

/// The violation of a text that is not JSON; `fault.at` is an offset of the raw text.
pub(crate) fn syntax_violation(
    source: &Source<'_>,
    fault: &ParseFault,
    end: usize,
    policy: &Policy,
) -> Violation {
    let at = fault.at.min(end);
    let near: String =
        source.slice(at, end.min(at + 120)).chars().take(24).take_while(|c| *c != '\n').collect();
    let length = source.slice(at, end).chars().next().map_or(0, char::len_utf8);
    let near = if near.is_empty() && length > 0 { "a line break" } else { near.trim_end() };
    let template = fault.fault == Fault::Placeholder && !policy.placeholders;
    let syntax = ParseFault { fault: Fault::Syntax("expected a comma or the end".into()), at };
    parse_violation(
        if template { &syntax } else { fault },
        source.span(at, at + length),
        near,
        policy.max_depth,
    )
}

/// A longer block gets a warning.
const MAX_BLOCK_CHARS: usize = 1000;

/// Parses the lines of an output block.
pub(crate) fn block<'t>(
    contract: &Contract,
    source: &Source<'t>,
    start: usize,
    end: usize,
    policy: &Policy,
) -> ParsedValue<'t> {
    let content = source.slice(start, end);
    let mut map = Map::new();
    let mut members: Vec<(String, Node)> = Vec::new();
    let mut reading = ParsedValue {
        value: Value::Null,
        spans: ValueSpans::none(),
        violations: Vec::new(),
        warnings: Vec::new(),
        coercions: Vec::new(),
    };
    let object = contract.ty().object();
    for line in block::lines(content, start) {
        match line {
            Line::Note { text, at } => {
                let mut note = bare_violation(
                    Code::LineWithoutColon,
                    "",
                    "a line of the block has no colon; it was left out".into(),
                );
                note.span = Some(source.span(at, at + text.len()));
                note.expected = "key: value".into();
                note.received = text.chars().take(80).collect();
                note.hint = "put each value on the line of its key".into();
                reading.warnings.push(note);
            }
            Line::Entry { key, key_at, value: text, value_at } => {
                let pointer = format!("/{}", json::escape(key));
                let field = object.and_then(|object| object.fields.get(key));
                let value =
                    if field.is_some_and(|field| is_template(text, field, policy.placeholders)) {
                        // Kept unchanged: the placeholder check reports it.
                        Value::from(text)
                    } else {
                        parse_typed(
                            text,
                            field.map(|field| &field.ty),
                            &pointer,
                            policy,
                            &mut reading.coercions,
                        )
                    };
                let extent = (value_at, value_at + text.len());
                let node = Node {
                    start: extent.0,
                    end: extent.1,
                    key: Some((key_at, key_at + key.len())),
                    children: Children::None,
                };
                if is_template_text(text) && field.is_some() && policy.placeholders {
                    reading.violations.push(placeholder(&pointer, text, source, extent));
                }
                if map.insert(key.to_owned(), value).is_some() {
                    let code =
                        if policy.strict { Code::DuplicateKey } else { Code::DuplicateKeyNote };
                    let mut note = bare_violation(
                        code,
                        &pointer,
                        format!(
                            "the key `{key}` appears twice in the block{}",
                            if policy.strict { "" } else { "; the last one counts" }
                        ),
                    );
                    note.span = Some(source.span(key_at, key_at + key.len()));
                    note.expected = "each key once".into();
                    note.received = format!("`{key}` again");
                    note.hint = format!("write `{key}` once");
                    if policy.strict {
                        reading.violations.push(note);
                    } else {
                        reading.warnings.push(note);
                    }
                    reading.violations.retain(|violation| {
                        violation.code != Code::Placeholder
                            || violation.pointer != pointer
                            || violation.span.is_some_and(|span| span.start == value_at)
                    });
                    members.retain(|(name, _)| name != key);
                }
                members.push((key.to_owned(), node));
            }
        }
    }
    if content.trim().chars().count() > MAX_BLOCK_CHARS {
        let mut note = bare_violation(
            Code::LongBlock,
            "",
            format!(
                "the block has {} characters; the format is meant for short values",
                content.trim().chars().count()
            ),
        );
        note.span = Some(source.span(start, end));
        note.expected = format!("at most {MAX_BLOCK_CHARS} characters");
        note.received = format!("{} characters", content.trim().chars().count());
        note.hint = "shorten the values".into();
        reading.warnings.push(note);
    }
    reading.value = Value::Object(map);
    reading.spans =
        ValueSpans::from_node(Node { start, end, key: None, children: Children::Members(members) });
    reading
}

fn placeholder(
    pointer: &str,
    text: &str,
    source: &Source<'_>,
    (start, end): (usize, usize),
) -> Violation {
    Violation {
        code: Code::Placeholder,
        pointer: pointer.to_owned(),
        span: Some(source.span(start, end)),
        message: format!(
            "`{}` still holds the placeholder {} of the template",
            pointer.trim_start_matches('/'),
            excerpt(&Value::from(text))
        ),
        expected: "the real value".into(),
        received: excerpt(&Value::from(text)),
        hint: "replace the placeholder with the real value".into(),
        rule: None,
    }
}

/// Whether a value is a placeholder of a template: `[a/b]`, `[list] or "none"`, `[n]/[m]`.
pub(crate) fn is_template_text(text: &str) -> bool {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if text.starts_with('[')
        && (text.ends_with("or \"none\"") || text.ends_with("or none") || text.contains("]/["))
    {
        return true;
    }
    // Alternatives in brackets: words joined by slashes, without spaces.
    inner.is_some_and(|inner| {
        let parts: Vec<&str> = inner.split('/').collect();
        parts.len() > 1
            && parts.iter().all(|part| {
                !part.is_empty()
                    && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
            })
    })
}

fn is_template(text: &str, field: &Field, wanted: bool) -> bool {
    wanted
        && (is_template_text(text)
            || field.placeholder.as_deref().is_some_and(|template| template == text))
}

/// The value of a block's line, with the type that the contract gives it.
fn parse_typed(
    text: &str,
    ty: Option<&Type>,
    pointer: &str,
    policy: &Policy,
    coercions: &mut Vec<Coercion>,
) -> Value {
    let plain = parse_bare(text);
    let Some(ty) = ty else { return plain };
    let fits = |wanted: fn(&Type) -> bool| ty.alternatives().iter().any(wanted);
    let names_none = ty.alternatives().iter().any(
        |ty| matches!(ty, Type::String(Some(values)) if values.iter().any(|value| value == "none")),
    );
    match plain {
        Value::Null if names_none => Value::from("none"),
        Value::Array(items) => match ty.items() {
            Some(item_type) => Value::Array(
                items.into_iter().map(|item| parse_typed_item(item, item_type)).collect(),
            ),
            // `[x]` where a string is expected is just that string.
            None if fits(|ty| matches!(ty, Type::String(_))) => Value::from(text),
            None => Value::Array(items),
        },
        Value::Bool(_) | Value::Number(_)
            if fits(|ty| matches!(ty, Type::String(_)))
                && !fits(|ty| matches!(ty, Type::Bool | Type::Int | Type::Double)) =>
        {
            Value::from(unquoted(text))
        }
        Value::String(_) if fits(|ty| matches!(ty, Type::Double | Type::Int)) => {
            unquoted(text).parse().map_or_else(|_| Value::from(unquoted(text)), Value::Number)
        }
        other if ty.items().is_some() && !other.is_null() && !policy.strict => {
            let list = Value::Array(vec![parse_typed_item(
                Value::from(unquoted(text)),
                ty.items().unwrap_or(&Type::Any),
            )]);
            coercions.push(Coercion {
                pointer: pointer.to_owned(),
                from: other.to_string(),
                to: list.to_string(),
            });
            list
        }
        other => other,
    }
}

fn parse_typed_item(item: Value, ty: &Type) -> Value {
    let Value::String(text) = &item else { return item };
    if ty.alternatives().iter().any(|ty| matches!(ty, Type::Int | Type::Double)) {
        return text.parse().map_or(item, Value::Number);
    }
    if ty.alternatives().contains(&Type::Bool) {
        return text.to_lowercase().parse().map_or(item, Value::Bool);
    }
    item
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

/// The value of a block's line, from its text alone.
fn parse_bare(text: &str) -> Value {
    if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        if inner.trim_start().starts_with('"')
            && let Ok(parsed) = json::parse(text, 2, false)
        {
            return parsed.value;
        }
        if inner.trim().is_empty() {
            return Value::Array(Vec::new());
        }
        return Value::Array(inner.split(", ").map(|item| Value::from(item.trim())).collect());
    }
    let bare = unquoted(text);
    match bare.to_ascii_lowercase().as_str() {
        "true" if bare == text => Value::Bool(true),
        "false" if bare == text => Value::Bool(false),
        "none" => Value::Null,
        _ => match bare.parse::<i64>() {
            Ok(number) if bare == text && !bare.starts_with('+') => Value::from(number),
            _ => Value::from(bare),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_of_a_block() {
        for (text, value) in [
            ("true", json!(true)),
            ("FALSE", json!(false)),
            ("none", Value::Null),
            ("\"None\"", Value::Null),
            ("42", json!(42)),
            ("-7", json!(-7)),
            ("4.5", json!("4.5")),
            ("[]", json!([])),
            ("[ ]", json!([])),
            ("[a, b]", json!(["a", "b"])),
            ("[a,b]", json!(["a,b"])),
            ("[\"a, b\", \"c\"]", json!(["a, b", "c"])),
            ("[1, 2]", json!(["1", "2"])),
            ("2/3", json!("2/3")),
            ("\"quoted\"", json!("quoted")),
            ("99999999999999999999", json!("99999999999999999999")),
        ] {
            assert_eq!(parse_bare(text), value, "{text}");
        }
    }

    #[test]
    fn templates_are_distinguished_from_values() {
        for text in [
            "[true/false]",
            "[low/medium/high]",
            "[a, b] or \"none\"",
            "[phase number]/[total phases]",
        ] {
            assert!(is_template_text(text), "{text}");
        }
        for text in ["[src/auth/service.ts]", "[a, b]", "2/3", "none", "[]", "[src/a.ts, src/b.ts]"]
        {
            assert!(!is_template_text(text), "{text}");
        }
    }
}
