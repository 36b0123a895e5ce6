//! Formats paths, lists and counts for reports. Long values are truncated with a count of what is
//! left out, and control characters are escaped.

use counterfoil_contract::text::{Form, neutralize};
use serde_json::Value;
use std::borrow::Cow;
use std::path::Path;

/// The maximum number of items in a list of a report.
pub(super) const MAX_ITEMS: usize = 50;
/// The maximum number of items in a sentence.
const MAX_JOINED: usize = 10;
/// The maximum number of characters of one item.
const MAX_CHARS: usize = 240;

/// A JSON array of strings, limited to [`MAX_ITEMS`].
pub(super) fn json_list(items: impl IntoIterator<Item = String>) -> Value {
    let mut items = items.into_iter();
    let mut displayed: Vec<Value> = items.by_ref().take(MAX_ITEMS).map(Value::String).collect();
    let left = items.count();
    if left > 0 {
        displayed.push(format!("… and {left} more").into());
    }
    Value::Array(displayed)
}

/// Items separated by commas, limited to [`MAX_JOINED`].
pub(super) fn join_limited<S: AsRef<str>>(items: &[S]) -> String {
    let items = items.iter().map(|item| display_text(item.as_ref()));
    counterfoil_contract::text::join_limited(items, MAX_JOINED)
}

/// A path as text for people.
pub(super) fn display_path(path: &Path) -> String {
    if path.as_os_str().is_empty() { ".".to_owned() } else { display_text(&path.to_string_lossy()) }
}

/// A text that is safe in a terminal or a table: control characters are escaped, and text with
/// leading or trailing white space is quoted.
pub(super) fn display_text(text: &str) -> String {
    let needs_quotes = text.is_empty() || text.trim() != text;
    let truncated = truncate(text, MAX_CHARS);
    match neutralize(&truncated, Form::Line) {
        Cow::Borrowed(safe) if !needs_quotes => safe.to_owned(),
        escaped => format!("\"{escaped}\""),
    }
}

/// The first `max` characters of a text, with an ellipsis if it is longer.
pub(super) fn truncate(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_cut_and_what_is_left_out_is_counted() {
        let displayed = json_list((0..53).map(|n| n.to_string()));
        assert_eq!(displayed.as_array().unwrap().len(), 51);
        assert_eq!(displayed[50], "… and 3 more");
        assert_eq!(join_limited(&["a"; 12]), format!("{} and 2 more", ["a"; 10].join(", ")));
    }

    #[test]
    fn a_terminal_obeys_nothing_that_is_shown() {
        assert_eq!(display_text("a\u{1b}[31m\nb"), "\"a\\u{1b}[31m\\nb\"");
        assert_eq!(display_text("a\u{202e}cod.exe"), "\"a\\u{202e}cod.exe\"");
        assert_eq!(display_text(" a"), "\" a\"");
        assert_eq!(display_text("naïve name.rs"), "naïve name.rs");
        assert_eq!(display_text(&"é".repeat(300)).chars().count(), MAX_CHARS + 1);
    }
}
