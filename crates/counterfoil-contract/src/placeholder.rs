//! Placeholders: what a template shows in the place of a value. Prompts show them, and no result may
//! have one left in, so both use these definitions.

use crate::contract::Contract;
use crate::expr::{Field, Type};
use crate::json::escape;
use crate::policy::Framing;
use serde_json::Value;
use std::collections::HashMap;

/// What the template of an output block shows for the value of a field.
pub(crate) fn shown(field: &Field) -> String {
    field.placeholder.clone().unwrap_or_else(|| format!("[{}]", field.ty.short_name()))
}

/// What the template of a contract shows for each field.
pub(crate) fn all_shown(contract: &Contract) -> HashMap<&str, String> {
    let object = contract.asked_type().object();
    let fields = object.into_iter().flat_map(|object| &object.fields);
    fields.map(|(name, field)| (name.as_str(), shown(field))).collect()
}

/// The pointers of the values of a result that are what the template of an output block shows for
/// them: also an agent that sends its result in another form may have read the template. Placeholders
/// that the contract gives are not among them.
pub(crate) fn left_in(contract: &Contract, result: &Value) -> Vec<String> {
    let asked = contract.asked_type().object();
    let asked = asked.filter(|_| contract.framing() == Framing::OutputBlock);
    let (Some(asked), Value::Object(members)) = (asked, result) else { return Vec::new() };
    let is_left_in = |name: &str, value: &Value| {
        // A text may have become a list of one.
        let text = match value {
            Value::Array(items) if items.len() == 1 => items[0].as_str(),
            value => value.as_str(),
        };
        let Some(text) = text.filter(|text| text.starts_with('[')) else { return false };
        let Some(field) = asked.fields.get(name) else { return false };
        field.placeholder.is_none() && text == shown(field) && !is_in_example(contract, name, value)
    };
    let found = members.iter().filter(|(name, value)| is_left_in(name, value));
    found.map(|(name, _)| format!("/{}", escape(name))).collect()
}

/// Whether an example of a contract has a value for a field.
pub(crate) fn is_in_example(contract: &Contract, name: &str, value: &Value) -> bool {
    contract.definition().examples.iter().any(|example| example.get(name) == Some(value))
}

/// Whether a type allows exactly this text, so that it is a value and no placeholder.
pub(crate) fn is_allowed(text: &str, ty: &Type) -> bool {
    ty.alternatives().iter().any(|ty| match ty {
        Type::String(Some(values)) => values.iter().any(|value| value == text),
        _ => false,
    })
}

/// Whether a text is the placeholder that the contract gives for a field, with or without brackets.
pub(crate) fn is_given(text: &str, field: &Field) -> bool {
    let bare = |text: &str| text.trim().trim_matches(['[', ']']).to_lowercase();
    field.placeholder.as_deref().is_some_and(|given| bare(text) == bare(given))
}

/// Whether a text is a placeholder such as `<path>` or `...`.
pub(crate) fn is_placeholder(text: &str) -> bool {
    const MAX_CHARS: usize = 64;
    match text.as_bytes().first() {
        Some(b'<') => {
            let inner = text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
            text.len() <= MAX_CHARS
                && inner.is_some_and(|inner| {
                    !inner.is_empty() && !inner.contains(['<', '>', '/', '=']) && !is_markup(inner)
                })
        }
        Some(b'.' | 0xe2) => is_ellipsis(text),
        _ => false,
    }
}

pub(crate) fn is_ellipsis(text: &str) -> bool {
    matches!(text, "..." | "…")
}

/// Whether the text between `<` and `>` is markup: a declaration, an instruction, or an element
/// whose name describes no value. Elements such as `title` do, so they are placeholders.
fn is_markup(inner: &str) -> bool {
    const ELEMENTS: &str = "abbr blockquote br colgroup dfn div em fieldset figcaption h1 h2 h3 h4 \
        h5 h6 hgroup hr html iframe img kbd li nav noscript ol optgroup samp span svg tbody td \
        textarea tfoot th thead tr ul wbr";
    let is_instruction =
        inner.starts_with(['!', '?', '%']) && inner.contains(char::is_alphanumeric);
    is_instruction || ELEMENTS.split(' ').any(|element| inner.eq_ignore_ascii_case(element))
}

/// Whether the value of a line is a placeholder in brackets, whatever the contract: `[a/b]`,
/// `[list] or "none"`, `[n]/[m]`.
pub(crate) fn is_bracketed(text: &str) -> bool {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if inner == Some("n/a") {
        return false;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_distinguished_from_text() {
        for text in ["<path>", "<what is wrong>", "...", "…", "<ISO8601>", "<title>", "<?>"] {
            assert!(is_placeholder(text), "{text}");
        }
        for text in ["Vec<T>", "<b>bold</b>", "", "a < b", "<", "<>", "wait...", "</div>"] {
            assert!(!is_placeholder(text), "{text}");
        }
        for text in ["<div>", "<BR>", "<!DOCTYPE html>", "<?php echo 1 ?>", "`<path>`"] {
            assert!(!is_placeholder(text), "{text}");
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
            assert!(is_bracketed(text), "{text}");
        }
        for text in [
            "[src/auth/service.ts]",
            "[a, b]",
            "2/3",
            "none",
            "[]",
            "[src/a.ts, src/b.ts]",
            "[n/a]",
        ] {
            assert!(!is_bracketed(text), "{text}");
        }
    }
}
