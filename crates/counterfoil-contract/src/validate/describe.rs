//! Describes violations: the message, the expected and the received value, and a hint for the fix.

use super::bare_violation;
use super::schema_error::{SchemaError, SchemaErrorKind};
use super::value_spans::ValueSpans;
use super::walk::FilledDefault;
use crate::code::Code;
use crate::expr::Type;
use crate::json::{Fault, ParseFault, escape};
use crate::policy::{Limits, Policy};
use crate::report::Violation;
use crate::source::{Source, Span};
use crate::suggest::nearest;
use crate::text::{article, join_limited, listed_value, pluralize};
use serde_json::Value;
use std::borrow::Cow;

/// Resolves JSON pointers to spans in the raw text.
pub(crate) struct SpanResolver<'a, 't> {
    pub(crate) source: &'a Source<'t>,
    pub(crate) spans: &'a ValueSpans<'t>,
}

impl SpanResolver<'_, '_> {
    pub(crate) fn value(&self, pointer: &str) -> Option<Span> {
        self.spans.value(pointer).map(|(start, end)| self.source.span(start, end))
    }

    pub(crate) fn key(&self, pointer: &str) -> Option<Span> {
        self.spans.key(pointer).map(|(start, end)| self.source.span(start, end))
    }
}

/// The most names that are compared with one that is missing.
const MAX_COMPARED: usize = 100;

/// A value for a message: compact JSON, truncated to a readable length.
pub(crate) fn excerpt(value: &Value) -> String {
    const MAX_CHARS: usize = 80;
    match value {
        Value::Array(items) if items.len() > 8 => {
            return format!("a list of {} items", items.len());
        }
        Value::Object(members) if members.len() > 8 => {
            return format!("an object with {} fields", members.len());
        }
        _ => {}
    }
    let mut head = Head { bytes: Vec::new(), limit: 4 * (MAX_CHARS + 1) };
    // It fails only because it writes no more than the head of the value.
    let _ = serde_json::to_writer(&mut head, value);
    let text = String::from_utf8_lossy(&head.bytes);
    let mut characters = text.chars();
    let mut cut: String = characters.by_ref().take(MAX_CHARS).collect();
    if characters.next().is_some() {
        cut.pop();
        cut.push('…');
    }
    cut
}

/// Takes the first bytes that are written to it and refuses the rest.
struct Head {
    bytes: Vec<u8>,
    limit: usize,
}

impl std::io::Write for Head {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let taken = bytes.len().min(self.limit - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..taken]);
        if taken < bytes.len() { Err(std::io::Error::other("enough")) } else { Ok(taken) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The type of a value, for messages.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

fn display_type(name: &str) -> &str {
    if name == "array" { "list" } else { name }
}

/// The name of a field for messages: `` `a/0/b` `` for the pointer `/a/0/b`.
pub(crate) fn field_name(pointer: &str) -> String {
    if pointer.is_empty() {
        return "the result".to_owned();
    }
    format!("`{}`", pointer.trim_start_matches('/').replace("~1", "/").replace("~0", "~"))
}

fn join_values(values: &[Value]) -> String {
    values
        .iter()
        .map(|value| value.as_str().map_or_else(|| value.to_string(), |it| listed_value(it).into()))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The pointer of the violation of a schema error.
pub(crate) fn pointer_of(error: &SchemaError) -> Cow<'_, str> {
    match &error.kind {
        SchemaErrorKind::Missing(property) => {
            Cow::Owned(format!("{}/{}", error.pointer, escape(property)))
        }
        _ => Cow::Borrowed(&error.pointer),
    }
}

/// The violation of a result that its defaults would make too large.
pub(crate) fn too_many_defaults(max_values: usize, spans: &SpanResolver<'_, '_>) -> Violation {
    let values = pluralize(max_values, "value");
    let message = format!("the defaults of the contract would add more than {values}");
    let mut violation = bare_violation(Code::TooManyValues, "", message);
    violation.span = spans.value("");
    violation.expected = format!("at most {values}");
    violation.received = "more".into();
    violation.hint = "send fewer items".into();
    violation
}

/// Converts a schema error to a violation.
pub(crate) fn describe(
    error: &SchemaError,
    root: &Value,
    policy: &Policy,
    spans: &SpanResolver<'_, '_>,
) -> Violation {
    let at = root.pointer(&error.pointer).unwrap_or(&Value::Null);
    let name = field_name(&error.pointer);
    let mut violation = bare_violation(Code::Forbidden, &error.pointer, String::new());
    violation.span = spans.value(&error.pointer);
    violation.received = excerpt(at);
    match &error.kind {
        SchemaErrorKind::Missing(property) => {
            violation.code = Code::Missing;
            violation.pointer = pointer_of(error).into_owned();
            violation.message = format!("the required field `{property}` is missing");
            violation.expected = format!("a field `{property}`");
            let names: Vec<&str> = at
                .as_object()
                .map(|map| map.keys().take(MAX_COMPARED).map(String::as_str).collect())
                .unwrap_or_default();
            violation.received = if names.is_empty() {
                "an empty object".into()
            } else {
                format!(
                    "an object with {}",
                    names.iter().take(12).copied().collect::<Vec<_>>().join(", ")
                )
            };
            violation.hint = match nearest(property, names.iter().copied()) {
                Some(near) if near.eq_ignore_ascii_case(property) => {
                    format!("`{near}` differs from it only in case")
                }
                Some(near) => format!("is `{near}` meant to be `{property}`?"),
                None => format!("add `{property}`"),
            };
        }
        SchemaErrorKind::Type(types) => {
            violation.code = Code::WrongType;
            let wanted =
                types.iter().map(|name| display_type(name)).collect::<Vec<_>>().join(" or ");
            violation.message =
                format!("{name} must be {}, not {}", article(&wanted), article(type_name(at)));
            violation.expected.clone_from(&wanted);
            violation.received = format!("{} {}", type_name(at), excerpt(at));
            violation.hint = type_hint(at, &wanted);
        }
        SchemaErrorKind::Enum(values) => {
            violation.code = Code::NotAllowed;
            violation.message = format!("{name} is {}, which is not allowed", excerpt(at));
            violation.expected = if values.len() == 1 {
                join_values(values)
            } else {
                format!("one of {}", join_values(values))
            };
            if policy.placeholders && is_alternatives(at, values) {
                return placeholder(&error.pointer, root, spans);
            }
            violation.hint = at
                .as_str()
                .and_then(|text| nearest(text, values.iter().filter_map(Value::as_str)))
                .map_or_else(
                    || {
                        format!(
                            "use {}{}",
                            if values.len() == 1 { "" } else { "one of " },
                            join_values(values)
                        )
                    },
                    |near| format!("did you mean \"{near}\"?"),
                );
        }
        SchemaErrorKind::Range(bound) => {
            violation.code = Code::OutOfRange;
            violation.message = format!("{name} is {}, but must be {bound}", excerpt(at));
            violation.expected.clone_from(bound);
            violation.hint = format!("give a number that is {bound}");
        }
        SchemaErrorKind::Length(bound) => {
            violation.code = Code::WrongLength;
            let length = at.as_str().map_or(0, |text| text.chars().count());
            violation.message = format!("{name} has {length} characters, but must have {bound}");
            violation.expected.clone_from(bound);
            violation.hint = format!("write {bound}");
        }
        SchemaErrorKind::Pattern(pattern) => {
            violation.code = Code::WrongPattern;
            violation.message = format!("{name} does not match the required pattern");
            violation.expected = format!("text that matches {pattern}");
            violation.hint = format!("write it so that it matches {pattern}");
        }
        SchemaErrorKind::Size(bound) => {
            violation.code = Code::WrongSize;
            violation.message = format!("{name} must have {bound}");
            violation.expected.clone_from(bound);
            violation.hint = format!("give it {bound}");
        }
        SchemaErrorKind::NotUnique => {
            violation.code = Code::NotUnique;
            violation.message = format!("the items of {name} must differ from one another");
            violation.expected = "items that all differ".into();
            violation.hint = "leave out the repeated ones".into();
        }
        SchemaErrorKind::Unexpected(field) => {
            violation.code = Code::UnknownField;
            violation.span = spans.key(&error.pointer);
            violation.message = format!("the field `{field}` is not part of the contract");
            violation.expected = "no such field".into();
            violation.hint = format!("leave out `{field}`");
        }
        SchemaErrorKind::Format(format) if format == "repo-path" => {
            violation.code = Code::NotRelativePath;
            violation.message = format!("{name} is not a path inside the repository");
            violation.expected = "a relative path without `..`".into();
            violation.hint =
                "write the path relative to the repository's root, as in src/main.rs".into();
        }
        SchemaErrorKind::Format(format) => {
            violation.code = Code::WrongFormat;
            violation.message = format!("{name} is not a valid {format}");
            violation.expected = format_example(format);
            violation.hint = format!("write {}", format_example(format));
        }
        SchemaErrorKind::TwoAlternatives => {
            violation.code = Code::NoAlternative;
            violation.message = format!("{name} matches more than one of the alternatives");
            violation.expected = "exactly one of the alternatives of the contract".into();
            violation.hint = "leave out what belongs to the other alternative".into();
        }
        SchemaErrorKind::NoAlternative => {
            violation.code = Code::NoAlternative;
            violation.message = format!("{name} matches none of the alternatives");
            violation.expected = "one of the alternatives of the contract".into();
            violation.hint = "compare it with the contract's examples".into();
        }
        SchemaErrorKind::Other(keyword) => {
            violation.message = format!("{name} is not allowed by `{keyword}`");
            violation.expected = format!("a value that satisfies `{keyword}`");
            violation.hint = "compare it with the contract's schema".into();
        }
        SchemaErrorKind::Part(_) => {
            violation.message =
                format!("{name} does not satisfy the schema, which has too many errors to list");
            violation.expected = "a value that satisfies the schema".into();
            violation.hint = "compare it with the contract's schema".into();
        }
    }
    violation
}

fn type_hint(value: &Value, wanted: &str) -> String {
    match value {
        Value::String(text)
            if wanted.contains("boolean")
                && matches!(text.to_lowercase().as_str(), "true" | "false") =>
        {
            format!("write {} without quotes", text.to_lowercase())
        }
        Value::String(text) if wanted.contains("integer") || wanted.contains("number") => {
            if text.trim().parse::<f64>().is_ok() {
                format!("write {} without quotes", text.trim())
            } else {
                "write a number".into()
            }
        }
        _ if wanted == "list" => "put it in a list".into(),
        Value::Null => {
            format!("give {}, or leave the field out if it is optional", article(wanted))
        }
        _ => format!("give {}", article(wanted)),
    }
}

fn format_example(format: &str) -> String {
    match format {
        "date-time" => "a timestamp such as 2026-01-31T12:00:00Z".into(),
        "date" => "a date such as 2026-01-31".into(),
        "uuid" => "a UUID".into(),
        "email" => "an e-mail address".into(),
        "uri" => "a URI".into(),
        other => format!("a {other}"),
    }
}

/// Whether a text lists all the alternatives instead of one of them, as in `success|error`.
fn is_alternatives(value: &Value, allowed: &[Value]) -> bool {
    let Some(text) = value.as_str() else { return false };
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    ['|', '/'].iter().any(|separator| {
        let parts: Vec<&str> = inner.split(*separator).map(str::trim).collect();
        parts.len() > 1
            && parts.iter().all(|part| allowed.iter().any(|value| value.as_str() == Some(part)))
    })
}

/// The violation for a placeholder that was left in.
pub(crate) fn placeholder(pointer: &str, root: &Value, spans: &SpanResolver<'_, '_>) -> Violation {
    let value = root.pointer(pointer).unwrap_or(&Value::Null);
    let mut hint = "replace the placeholder with what it stands for".to_owned();
    if value.as_str().is_some_and(|text| text.starts_with('<')) {
        hint.push_str("; if it is meant literally, put it between backticks");
    }
    Violation {
        code: Code::Placeholder,
        pointer: pointer.to_owned(),
        span: spans.value(pointer),
        message: format!(
            "{} still contains the placeholder {} from the template",
            field_name(pointer),
            excerpt(value)
        ),
        expected: "the real value".into(),
        received: excerpt(value),
        hint,
        rule: None,
    }
}

/// The violation or warning for a field that the contract does not declare.
pub(crate) fn unknown_field(
    pointer: &str,
    root: &Type,
    refused: bool,
    spans: &SpanResolver<'_, '_>,
) -> Violation {
    let (parent, name) = pointer.rsplit_once('/').unwrap_or(("", pointer));
    let name = &name.replace("~1", "/").replace("~0", "~");
    let known = root.at(parent.split('/').skip(1)).and_then(|ty| ty.object().cloned());
    let near = known.and_then(|object| {
        nearest(name, object.fields.keys().map(String::as_str)).map(str::to_owned)
    });
    let mut violation = bare_violation(
        if refused { Code::UnknownField } else { Code::UnknownFieldNote },
        pointer,
        if refused {
            format!("the field `{name}` is not part of the contract")
        } else {
            format!("the field `{name}` is not part of the contract; it was kept")
        },
    );
    violation.span = spans.key(pointer);
    violation.expected = "a field of the contract".into();
    violation.received = format!("`{name}`");
    violation.hint = match near {
        Some(near) => format!("is `{near}` meant?"),
        None if refused => {
            format!("say in fields of the contract what matters, and leave out `{name}`")
        }
        None => format!("leave out `{name}`"),
    };
    violation
}

/// The warning for the fields that stand beside the result in an envelope.
pub(crate) fn beside_envelope(
    names: &[&str],
    envelope: &str,
    spans: &SpanResolver<'_, '_>,
) -> Violation {
    const MAX_NAMED: usize = 5;
    let named = join_limited(names.iter().map(|name| format!("`{name}`")), MAX_NAMED);
    let message = format!("what stands beside `{envelope}` in its object was left out: {named}");
    let mut note = bare_violation(Code::BesideEnvelope, "", message);
    note.span = names.first().and_then(|name| spans.key(&format!("/{}", escape(name))));
    note.expected = "the result alone".into();
    note.received = named;
    note.hint = "send the result without an object around it".into();
    note
}

/// The warning for a required field that was filled with its default; `None` for an optional one.
pub(crate) fn default_used(
    filled: &FilledDefault,
    root: &Type,
    spans: &SpanResolver<'_, '_>,
) -> Option<Violation> {
    let FilledDefault { pointer, was_null } = filled;
    let (parent, name) = pointer.rsplit_once('/')?;
    let object = root.at(parent.split('/').skip(1)).and_then(|ty| ty.object().cloned())?;
    let field = object.fields.get(name).filter(|field| field.required)?;
    let default = field.default.as_ref()?;
    let what = if *was_null { "null" } else { "missing" };
    let mut violation = bare_violation(
        Code::DefaultUsed,
        pointer,
        format!("the field `{name}` is {what}; its default {} was used", excerpt(default)),
    );
    violation.span = spans.value(pointer);
    violation.expected = format!("a field `{name}`");
    violation.received = if *was_null { "null" } else { "nothing" }.into();
    violation.hint = format!("add `{name}`; a strict reader refuses a result without it");
    Some(violation)
}

/// The violation for a text that is not valid JSON.
pub(crate) fn parse_violation(
    fault: &ParseFault,
    span: Span,
    near: &str,
    limits: Limits,
) -> Violation {
    let Limits { depth: max_depth, values: max_values } = limits;
    let (code, message, expected, hint) = match &fault.fault {
        Fault::Syntax(what) => (
            Code::Syntax,
            format!("the result is not JSON: {what}"),
            "strict JSON".to_owned(),
            "write strict JSON: double quotes, no trailing commas, no comments",
        ),
        Fault::Truncated => (
            Code::Truncated,
            "the result is cut off".to_owned(),
            "a complete JSON value".to_owned(),
            "write the result again, complete, or make it shorter",
        ),
        Fault::NotANumber => (
            Code::NotANumber,
            "NaN and infinities are not JSON".to_owned(),
            "a finite number or null".to_owned(),
            "use null, or leave the field out",
        ),
        Fault::LoneSurrogate => (
            Code::LoneSurrogate,
            "an escape contains half of a surrogate pair".to_owned(),
            "a whole character".to_owned(),
            "write the character itself instead of \\u escapes",
        ),
        Fault::Placeholder => (
            Code::Placeholder,
            "the alternatives of the template were left in".to_owned(),
            "one of the alternatives".to_owned(),
            "choose one of the alternatives",
        ),
        Fault::TooDeep => (
            Code::TooDeep,
            format!("the result is nested deeper than {}", pluralize(max_depth, "level")),
            format!("at most {}", pluralize(max_depth, "level")),
            "flatten the result",
        ),
        Fault::TooManyValues => (
            Code::TooManyValues,
            format!("the result has more than {}", pluralize(max_values, "value")),
            format!("at most {}", pluralize(max_values, "value")),
            "send fewer items, or write long lists to a file and name it",
        ),
        Fault::Trailing => (
            Code::Trailing,
            "there is extra content after the result in its block".to_owned(),
            "nothing but the result".to_owned(),
            "put only one JSON value into the block",
        ),
    };
    Violation {
        code,
        pointer: String::new(),
        span: Some(span),
        message,
        expected,
        received: if near.is_empty() { "the end of the text".to_owned() } else { near.to_owned() },
        hint: hint.to_owned(),
        rule: None,
    }
}
