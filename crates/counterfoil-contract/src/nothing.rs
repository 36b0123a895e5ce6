//! When a value says nothing. Rules, unknown fields, claims and comparisons use this one
//! definition, so that none of them takes for an answer what another one takes for nothing.

use serde_json::Value;

/// Whether a value is null or a text of nothing but whitespace, so that it is no answer where one is
/// required. A list without items is one: it says that there are none.
pub fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        _ => false,
    }
}

/// Whether a value is empty: blank, a list without items or an object without members. `false` and 0
/// are not.
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        other => is_blank(other),
    }
}

/// Whether a value is empty, or a list or an object of nothing but such values. This is for values
/// of free form, which may say something at any depth.
pub fn is_empty_throughout(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(is_empty_throughout),
        Value::Object(members) => members.values().all(is_empty_throughout),
        other => is_empty(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_says_nothing_is_empty() {
        for value in [json!(null), json!(""), json!(" \t\n\u{a0}"), json!([]), json!({})] {
            assert!(is_empty(&value) && is_empty_throughout(&value), "{value}");
            assert_eq!(is_blank(&value), value.is_null() || value.is_string(), "{value}");
        }
        for value in
            [json!(false), json!(0), json!("0"), json!("none"), json!([0]), json!({"a": 0})]
        {
            assert!(!is_empty(&value) && !is_empty_throughout(&value), "{value}");
        }
        for value in [json!([""]), json!([null, []]), json!({"a": {"b": " "}})] {
            assert!(!is_empty(&value) && is_empty_throughout(&value), "{value}");
        }
    }
}
