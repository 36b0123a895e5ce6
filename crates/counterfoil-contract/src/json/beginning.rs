//! Reads JSON that breaks off, up to there.

use super::{Open, Reader, Wanted};
use crate::policy::Limits;
use serde_json::Value;

/// What comes before the place where a text stops to be JSON.
#[derive(Debug, PartialEq)]
pub(crate) struct Beginning {
    /// The values that are complete there, in the containers that are not.
    pub(crate) value: Value,
    /// The keys and indexes from the root to the innermost container that is not complete.
    pub(crate) open: Vec<String>,
    /// Whether all of it is JSON.
    pub(crate) is_whole: bool,
}

/// Parses one JSON value, or the beginning of one. None if not even a bracket is there.
pub(crate) fn parse_beginning(text: &str, limits: Limits) -> Option<Beginning> {
    let mut stack: Vec<Open> = Vec::new();
    if let Ok(parsed) = Reader::new(text, limits, Wanted::Value).read(&mut stack) {
        return Some(Beginning { value: parsed.value, open: Vec::new(), is_whole: true });
    }
    let inner = stack.len().saturating_sub(1);
    let token = |open: &Open| match &open.container {
        Value::Array(items) => items.len().to_string(),
        _ => open.key.clone().unwrap_or_default(),
    };
    let open = stack[..inner].iter().map(token).collect();
    let mut value = stack.pop()?.container;
    while let Some(mut around) = stack.pop() {
        Reader::attach(&mut around, (value, super::Node::default()), Wanted::Value);
        value = around.container;
    }
    Some(Beginning { value, open, is_whole: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_complete_is_kept_with_the_path_to_what_is_not() {
        for (text, value, open) in [
            (r#"{"a": [1, 2]}"#, json!({"a": [1, 2]}), ""),
            (r#"{"a": [1, 2"#, json!({"a": [1, 2]}), "a"),
            (
                r#"{"a": [{"b": "x"}, {"b": "y", "c": "z"#,
                json!({"a": [{"b": "x"}, {"b": "y"}]}),
                "a/1",
            ),
            (r#"{"a": [{"b": "the "lock""}, {"b": 1}]}"#, json!({"a": [{"b": "the "}]}), "a/0"),
            (r#"{"a": 1, "b"#, json!({"a": 1}), ""),
            (r#"{"a": {"b": [[]], "c": {"#, json!({"a": {"b": [[]]}}), "a"),
        ] {
            let open = open.split_terminator('/').map(str::to_owned).collect();
            let is_whole = text == "{\"a\": [1, 2]}";
            assert_eq!(
                parse_beginning(text, Limits::of_depth(9)),
                Some(Beginning { value, open, is_whole }),
                "{text}"
            );
        }
        assert_eq!(parse_beginning("nothing", Limits::of_depth(9)), None);
    }
}
