//! Reads YAML as JSON values. Duplicate keys, exponential aliases and values without a JSON form
//! are errors.

use counterfoil_contract::load::yaml_error;
use serde_json::Value;
use serde_saphyr::DuplicateKeyPolicy;
use std::path::Path;

/// The text is not YAML that can be represented as JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum YamlError {
    /// The bytes are not UTF-8.
    #[error(transparent)]
    NotUtf8(#[from] std::str::Utf8Error),
    /// The text is not valid. The message names the line.
    #[error("{0}")]
    Invalid(String),
}

/// Whether a file is YAML, by its name.
pub fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|ending| {
        ending.eq_ignore_ascii_case("yaml") || ending.eq_ignore_ascii_case("yml")
    })
}

/// Reads a YAML document.
///
/// # Errors
///
/// The bytes are not UTF-8, or the text is not valid. The error names the line.
pub fn read(bytes: &[u8]) -> Result<Value, YamlError> {
    let text = std::str::from_utf8(bytes)?;
    let options = serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        duplicate_keys: DuplicateKeyPolicy::Error,
    };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| YamlError::Invalid(yaml_error(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn yaml_is_read_as_json() {
        let text = "a: 1\nb: [x, null, 1.5, true, no]\nc: { d: '2' }\n";
        let value = json!({"a": 1, "b": ["x", null, 1.5, true, "no"], "c": {"d": "2"}});
        assert_eq!(read(text.as_bytes()), Ok(value));
    }

    #[test]
    fn values_without_a_json_form_are_errors() {
        assert!(read(b"a: .nan").unwrap_err().to_string().contains(".nan"));
        assert!(read(b"a: .inf").unwrap_err().to_string().contains(".inf"));
        assert!(
            read(b"a: 1\na: 2").unwrap_err().to_string().contains("`a` occurs twice"),
            "a duplicate key"
        );
        assert!(read(b"a: \xff").unwrap_err().to_string().contains("utf-8"));
        assert!(read(b"a: 1\n---\nb: 2").is_err(), "two documents");
        assert!(
            read(b"a: [").unwrap_err().to_string().contains("line"),
            "the error names the line"
        );
    }

    #[test]
    fn exponential_aliases_are_rejected() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..10 {
            let before = vec![format!("*a{}", n - 1); 10].join(", ");
            text.push_str(&format!("a{n}: &a{n} [{before}]\n"));
        }
        assert!(read(text.as_bytes()).is_err());
    }
}
