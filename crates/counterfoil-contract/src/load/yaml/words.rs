//! What is wrong with YAML, in words for people: those of the parser are for who programs with it.

use serde_saphyr::{DefaultMessageFormatter, Error, MessageFormatter};
use std::borrow::Cow;

/// What is wrong with a YAML text, with the place.
pub fn yaml_error(error: &Error) -> String {
    error.without_snippet().render_with_formatter(&PlainWords)
}

/// The words for an error, without its place.
struct PlainWords;

impl MessageFormatter for PlainWords {
    fn format_message<'a>(&self, error: &'a Error) -> Cow<'a, str> {
        match error {
            Error::DuplicateMappingKey { key: Some(key), .. } => {
                format!("the key `{key}` occurs twice").into()
            }
            Error::DuplicateMappingKey { key: None, .. } => "a key occurs twice".into(),
            Error::MultipleDocuments { .. } => {
                "there is more than one document in the file; keep one".into()
            }
            Error::InvalidScalar { ty, .. } => match *ty {
                "boolean" => "expected true or false".into(),
                "floating point" => "expected a number".into(),
                ty if is_integer(ty) => "expected a whole number".into(),
                _ => DefaultMessageFormatter.format_message(error),
            },
            Error::SerdeInvalidType { expected, .. }
            | Error::SerdeInvalidValue { expected, .. }
                if is_integer(expected) =>
            {
                "expected a whole number".into()
            }
            Error::InvalidBooleanStrict { .. } => "expected true or false".into(),
            Error::NullIntoString { .. } => "expected a text, not nothing".into(),
            Error::Unexpected { expected: "map", .. } => "expected a mapping".into(),
            Error::Unexpected { expected: "seq", .. } => "expected a list".into(),
            Error::Unexpected { expected: "string", .. } => "expected a text".into(),
            Error::NonFiniteFloat { value, .. } => {
                format!("`{value}` is not a number that JSON can hold").into()
            }
            Error::BinaryNotUtf8 { .. } => "a !!binary text is not UTF-8".into(),
            Error::MergeKeyNotAllowed { .. } => "merge keys (<<) are not allowed".into(),
            _ => DefaultMessageFormatter.format_message(error),
        }
    }
}

/// Whether a type of the parser is one of Rust's integers, such as `u32`.
fn is_integer(ty: &str) -> bool {
    ty.strip_prefix(['u', 'i'])
        .is_some_and(|bits| !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use crate::Definition;

    #[test]
    fn the_words_are_those_of_people() {
        for (text, expected) in [
            ("contract: a/b\nversion: 1\nversion: 2\n", "the key `version` occurs twice"),
            (
                "contract: a/b\nversion: 1\n---\ncontract: a/c\n",
                "there is more than one document in the file; keep one",
            ),
            ("contract: a/b\nversion: 1.5\n", "expected a whole number"),
            ("contract: a/b\nversion: one\n", "expected a whole number"),
            ("contract: a/b\nversion: -1\n", "expected a whole number"),
        ] {
            let error = Definition::from_yaml(text, "a.yaml").unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
            for internal in ["DuplicateKeyPolicy", "from_str", "Options", "u32"] {
                assert!(!error.contains(internal), "{text}: {error}");
            }
        }
    }

    #[test]
    fn integers_of_rust_are_known() {
        for ty in ["u8", "u32", "i64", "i128"] {
            assert!(super::is_integer(ty), "{ty}");
        }
        for ty in ["u", "i", "unit", "identifier", "boolean"] {
            assert!(!super::is_integer(ty), "{ty}");
        }
    }
}
