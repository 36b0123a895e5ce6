//! YAML files as values. Keys that stand twice and bombs of aliases are refused, and nothing is made up: what JSON cannot say
//! is an error.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::DuplicateKeyPolicy;
use std::fmt;
use std::path::Path;

/// Whether a file is YAML, by its name.
pub(crate) fn is_yaml(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("yaml") || ending.eq_ignore_ascii_case("yml"))
}

/// What a YAML file says; the error names the line.
pub(crate) fn read(bytes: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let options = serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        duplicate_keys: DuplicateKeyPolicy::Error,
    };
    let read: Result<Plain, _> = serde_saphyr::from_str_with_options(text, options);
    read.map(|Plain(value)| value).map_err(|error| error.to_string())
}

/// A value that stands in JSON as it stands in YAML.
struct Plain(Value);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PlainVisitor)
    }
}

struct PlainVisitor;

impl<'de> Visitor<'de> for PlainVisitor {
    type Value = Plain;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON can say")
    }

    fn visit_unit<E>(self) -> Result<Plain, E> {
        Ok(Plain(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Plain, E> {
        Ok(Plain(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Plain, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Plain, E> {
        Ok(Plain(Value::Bool(flag)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Plain, E> {
        Ok(Plain(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Plain, E> {
        Ok(Plain(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Plain, E> {
        match Number::from_f64(number) {
            Some(number) => Ok(Plain(Value::Number(number))),
            None => Err(E::custom(format!("{number} is not a number that JSON can say"))),
        }
    }

    fn visit_str<E>(self, text: &str) -> Result<Plain, E> {
        Ok(Plain(Value::String(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Plain, A::Error> {
        let mut items = Vec::new();
        while let Some(Plain(item)) = access.next_element()? {
            items.push(item);
        }
        Ok(Plain(Value::Array(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Plain, A::Error> {
        let mut members = Map::new();
        while let Some((key, Plain(value))) = access.next_entry::<String, _>()? {
            members.insert(key, value);
        }
        Ok(Plain(Value::Object(members)))
    }
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
        assert!(read(b"a: .nan").unwrap_err().contains("NaN"));
        assert!(read(b"a: .inf").unwrap_err().contains("inf"));
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
