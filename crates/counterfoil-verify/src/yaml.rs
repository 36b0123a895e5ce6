//! YAML files as values. Keys that stand twice and bombs of aliases are refused, and nothing is
//! made up: what JSON cannot say is an error.

use serde_json::Value;
use serde_saphyr::DuplicateKeyPolicy;
use std::path::Path;

/// Whether a file is YAML, by its name.
pub fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|ending| {
        ending.eq_ignore_ascii_case("yaml") || ending.eq_ignore_ascii_case("yml")
    })
}

/// What a YAML file says; the error names the line.
pub fn read(bytes: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let options = serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        duplicate_keys: DuplicateKeyPolicy::Error,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_file_is_read_as_json_would_say_it() {
        let text = "a: 1\nb: [x, null, 1.5, true, no]\nc: { d: '2' }\n";
        let value = json!({"a": 1, "b": ["x", null, 1.5, true, "no"], "c": {"d": "2"}});
        assert_eq!(read(text.as_bytes()), Ok(value));
    }

    #[test]
    fn what_json_cannot_say_is_an_error() {
        assert!(read(b"a: .nan").unwrap_err().contains(".nan"));
        assert!(read(b"a: .inf").unwrap_err().contains(".inf"));
        assert!(read(b"a: 1\na: 2").unwrap_err().contains("duplicate"), "a key that stands twice");
        assert!(read(b"a: \xff").unwrap_err().contains("utf-8"));
        assert!(read(b"a: 1\n---\nb: 2").is_err(), "two documents");
        assert!(read(b"a: [").unwrap_err().contains("line"), "the error names its place");
    }

    #[test]
    fn a_bomb_of_aliases_is_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..10 {
            let before = vec![format!("*a{}", n - 1); 10].join(", ");
            text.push_str(&format!("a{n}: &a{n} [{before}]\n"));
        }
        assert!(read(text.as_bytes()).is_err());
    }
}
