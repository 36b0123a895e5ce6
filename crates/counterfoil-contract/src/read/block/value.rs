//! The value of a line of a block, with the type that the contract gives it.

use super::list::{Unclear, brackets_pair_up, items};
use crate::expr::Type;
use crate::json;
use crate::policy::Limits;
use serde_json::{Number, Value};

/// The value of a line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Typed {
    pub(super) value: Value,
    /// Whether the conversion to the type of the field is recorded.
    pub(super) recorded: bool,
}

impl From<Value> for Typed {
    fn from(value: Value) -> Self {
        Self { value, recorded: false }
    }
}

/// The value that a text has where the contract wants a type; `None` for a field that the contract
/// does not know. A strict reader converts nothing that would be recorded.
pub(super) fn typed(
    text: &str,
    ty: Option<&Type>,
    strict: bool,
    limits: Limits,
) -> Result<Typed, Unclear> {
    let Some(ty) = ty else { return Ok(untyped(text, limits).into()) };
    if is_one_of(ty, text) {
        return Ok(Value::from(text).into());
    }
    if let Some(nothing) = nothing(text)
        && let Some(value) = empty_value(ty, nothing)
    {
        let recorded = nothing == Nothing::OtherWord;
        let kept = recorded && strict;
        return Ok(Typed {
            value: if kept { Value::from(text) } else { value },
            recorded: recorded && !kept,
        });
    }
    let text_fits = ty.alternatives().iter().any(|ty| matches!(ty, Type::String(_)));
    if let Some(item_type) = ty.items() {
        let item = |item: Value| typed_item(item, item_type);
        if text.starts_with('[') {
            return match items(text, limits) {
                Ok(items) => Ok(Value::Array(items.into_iter().map(item).collect()).into()),
                Err(Unclear::AfterList) if text_fits => Ok(Value::from(text).into()),
                Err(why) => Err(why),
            };
        }
        if text_fits {
            return Ok(Value::from(unquoted(text)).into());
        }
        if !brackets_pair_up(text) {
            return Err(Unclear::Brackets);
        }
        if text.ends_with(',') {
            return Err(Unclear::EmptyItem);
        }
        if text.starts_with('"') && unquoted(text) == text {
            return Err(Unclear::Quotes);
        }
        if strict {
            return Ok(untyped(text, limits).into());
        }
        let value = Value::Array(vec![item(Value::from(unquoted(text)))]);
        return Ok(Typed { value, recorded: true });
    }
    if ty.alternatives().contains(&Type::Any) {
        return if text.starts_with('[') && !brackets_pair_up(text) {
            Err(Unclear::Brackets)
        } else {
            Ok(untyped(text, limits).into())
        };
    }
    Ok(scalar(text, ty).unwrap_or_else(|| untyped(text, limits)).into())
}

/// A text that stands for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nothing {
    /// `none`, in any case, with or without quotes.
    None,
    /// `[]`
    EmptyList,
    /// Another word for it, or no text at all.
    OtherWord,
}

fn nothing(text: &str) -> Option<Nothing> {
    let word = |text: &str| {
        matches!(
            unquoted(text).trim().to_ascii_lowercase().as_str(),
            "" | "none" | "none." | "n/a" | "n/a." | "-" | "–" | "—" | "null"
        )
    };
    if unquoted(text).eq_ignore_ascii_case("none") {
        return Some(Nothing::None);
    }
    if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return if inner.trim().is_empty() {
            Some(Nothing::EmptyList)
        } else {
            let quoted_blank = unquoted(inner.trim()).trim().is_empty();
            (word(inner.trim()) && !quoted_blank).then_some(Nothing::OtherWord)
        };
    }
    word(text).then_some(Nothing::OtherWord)
}

/// The value of nothing for a type; none if the type has no such value and the text is read as any
/// other.
fn empty_value(ty: &Type, nothing: Nothing) -> Option<Value> {
    let alternatives = ty.alternatives();
    if nothing == Nothing::None && is_one_of(ty, "none") {
        return Some(Value::from("none"));
    }
    let list = ty.items().is_some();
    if list && nothing == Nothing::EmptyList {
        return Some(Value::Array(Vec::new()));
    }
    if alternatives.contains(&Type::Null) {
        return Some(Value::Null);
    }
    if list {
        return Some(Value::Array(Vec::new()));
    }
    // A text may be the word itself. For other types null gives the clearest violation.
    let any = |ty: &Type| matches!(ty, Type::String(_) | Type::Any);
    (nothing == Nothing::None && !alternatives.iter().any(any)).then_some(Value::Null)
}

fn is_one_of(ty: &Type, text: &str) -> bool {
    ty.alternatives().iter().any(
        |ty| matches!(ty, Type::String(Some(values)) if values.iter().any(|value| value == text)),
    )
}

/// A text as the first of boolean, number and string that the type allows.
fn scalar(text: &str, ty: &Type) -> Option<Value> {
    let fits = |wanted: fn(&Type) -> bool| ty.alternatives().iter().any(wanted);
    let flag = boolean(text).filter(|_| fits(|ty| matches!(ty, Type::Bool)));
    let digits =
        || number(unquoted(text)).filter(|_| fits(|ty| matches!(ty, Type::Int | Type::Double)));
    let words = || fits(|ty| matches!(ty, Type::String(_))).then(|| words(text));
    flag.map(Value::Bool).or_else(|| digits().map(Value::Number)).or_else(words)
}

fn typed_item(item: Value, ty: &Type) -> Value {
    let Value::String(text) = &item else { return item };
    let converted = |ty: &Type| matches!(ty, Type::Bool | Type::Int | Type::Double);
    if !ty.alternatives().iter().any(converted) {
        return item;
    }
    scalar(text, ty).unwrap_or(item)
}

/// A text as a value of its own: a boolean, nothing, an integer, a list, or the text.
fn untyped(text: &str, limits: Limits) -> Value {
    if text.starts_with('[')
        && let Ok(items) = items(text, limits)
    {
        return Value::Array(items);
    }
    if let Some(flag) = boolean(text) {
        return Value::Bool(flag);
    }
    let bare = unquoted(text);
    if bare.eq_ignore_ascii_case("none") {
        return Value::Null;
    }
    match text.parse::<i64>() {
        Ok(number) => Value::from(number),
        Err(_) => Value::from(bare),
    }
}

fn boolean(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

/// A number with all its digits; a plus sign before it means nothing.
fn number(text: &str) -> Option<Number> {
    if let Ok(number) = text.parse::<i64>() {
        return Some(number.into());
    }
    let digits =
        text.strip_prefix('+').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    digits.unwrap_or(text).parse().ok()
}

/// A text as a string: without the quotes around it, which may be those of JSON.
fn words(text: &str) -> Value {
    let bare = unquoted(text);
    if bare == text
        && text.starts_with('"')
        && let Ok(parsed) = json::parse(text, Limits::of_depth(1))
    {
        return parsed.value;
    }
    Value::from(bare)
}

/// A text without the quotes around it, if they are a pair of its own.
fn unquoted(text: &str) -> &str {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.filter(|inner| !inner.contains('"')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(schema: &Value, text: &str, strict: bool) -> Result<(Value, bool), Unclear> {
        let ty = Type::from_schema(schema);
        typed(text, Some(&ty), strict, Limits::of_depth(8))
            .map(|typed| (typed.value, typed.recorded))
    }

    #[test]
    fn values_without_a_type() {
        for (text, value) in [
            ("true", json!(true)),
            ("FALSE", json!(false)),
            ("none", Value::Null),
            ("\"None\"", Value::Null),
            ("42", json!(42)),
            ("-7", json!(-7)),
            ("+5", json!(5)),
            ("4.5", json!("4.5")),
            ("[a, b]", json!(["a", "b"])),
            ("2/3", json!("2/3")),
            ("\"quoted\"", json!("quoted")),
            ("\"a\" and \"b\"", json!("\"a\" and \"b\"")),
            ("99999999999999999999", json!("99999999999999999999")),
            ("[open", json!("[open")),
        ] {
            assert_eq!(untyped(text, Limits::of_depth(8)), value, "{text}");
        }
    }

    #[test]
    fn words_for_nothing() {
        let list = json!({"type": "array", "items": {"type": "string"}});
        let list_or_null = json!({"type": ["array", "null"], "items": {"type": "string"}});
        let text_or_null = json!({"type": ["string", "null"]});
        for (text, recorded) in [
            ("none", false),
            ("NONE", false),
            ("\"none\"", false),
            ("none.", true),
            ("[none]", true),
            ("[None.]", true),
            ("[\"none\"]", true),
            ("N/A", true),
            ("n/a", true),
            ("-", true),
            ("null", true),
            ("", true),
        ] {
            assert_eq!(read(&list, text, false), Ok((json!([]), recorded)), "{text}");
            assert_eq!(read(&list_or_null, text, false), Ok((Value::Null, recorded)), "{text}");
            assert_eq!(read(&text_or_null, text, false), Ok((Value::Null, recorded)), "{text}");
            if recorded {
                assert_eq!(read(&list, text, true), Ok((json!(text), false)), "strict: {text}");
            }
        }
        for text in ["[]", "[ ]"] {
            assert_eq!(read(&list, text, false), Ok((json!([]), false)));
            assert_eq!(read(&list_or_null, text, true), Ok((json!([]), false)));
            assert_eq!(read(&text_or_null, text, false), Ok((Value::Null, false)));
        }
        let level = json!({"enum": ["none", "low"]});
        assert_eq!(read(&level, "None", false), Ok((json!("none"), false)));
        let word = json!({"type": "string"});
        for text in ["none", "-", "N/A", "[none]"] {
            assert_eq!(read(&word, text, false), Ok((json!(text), false)), "{text}");
        }
        let count = json!({"type": "integer"});
        assert_eq!(read(&count, "none", false), Ok((Value::Null, false)));
    }

    #[test]
    fn numbers_with_a_sign() {
        for (ty, text, value) in [
            ("integer", "+5", json!(5)),
            ("integer", "-5", json!(-5)),
            ("integer", "\"5\"", json!(5)),
            ("integer", "+-5", json!("+-5")),
            ("integer", "+", json!("+")),
            ("string", "+5", json!("+5")),
            ("integer", "18446744073709551615", json!(18_446_744_073_709_551_615_u64)),
        ] {
            assert_eq!(read(&json!({"type": ty}), text, false), Ok((value, false)), "{text}");
        }
        let read = read(&json!({"type": "number"}), "+4.50", false).unwrap().0;
        assert_eq!(read.to_string(), "4.50");
    }

    #[test]
    fn a_list_is_clear_or_refused() {
        let list = json!({"type": "array", "items": {"type": "string"}});
        for (text, why) in [
            ("[a, b", Unclear::Brackets),
            ("a, b]", Unclear::Brackets),
            ("see a[0", Unclear::Brackets),
            ("[a, b] or so", Unclear::AfterList),
            ("a, b,", Unclear::EmptyItem),
            ("\"a\", \"b\"", Unclear::Quotes),
            ("\"a", Unclear::Quotes),
        ] {
            assert_eq!(read(&list, text, false), Err(why), "{text}");
            assert_eq!(read(&list, text, true), Err(why), "{text}");
        }
        assert_eq!(read(&list, "\"a, b\"", false), Ok((json!(["a, b"]), true)));
        assert_eq!(read(&list, "see a[0]", false), Ok((json!(["see a[0]"]), true)));
        let text = json!({"type": "string"});
        assert_eq!(read(&text, "[WIP] fix a[0", false), Ok((json!("[WIP] fix a[0"), false)));
    }
}
