//! JSON in which no object has a key twice. Of two values of one key, people may see the one and a
//! program may read the other.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::collections::HashSet;
use std::fmt;

/// Under this key `serde_json` reads a text as JSON, so keys would stand where nobody looks for them.
const RAW: &str = "$serde_json::private::RawValue";

/// Reads a JSON value. A key that occurs twice in one object is an error, which names its place.
pub(crate) fn read(bytes: &[u8]) -> serde_json::Result<Value> {
    check(bytes)?;
    serde_json::from_slice(bytes)
}

/// Checks that no object of a JSON value has a key twice.
pub(crate) fn check(bytes: &[u8]) -> serde_json::Result<()> {
    serde_json::from_slice::<UniqueKeys>(bytes).map(|_| ())
}

/// A JSON value of which only the keys are examined.
struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for UniqueKeys {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    // Numbers come this way, too: serde_json passes their digits on as an object of one key.
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = members.next_key::<String>()? {
            if let Some(key) = seen.replace(key) {
                let why = format!("the key {key:?} occurs twice in one object");
                return Err(A::Error::custom(why));
            }
            if seen.contains(RAW) {
                return Err(A::Error::custom(format!("the key {RAW:?} is not allowed")));
            }
            members.next_value::<Self>()?;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_is_read_as_it_is() {
        let text = r#"{"a": [1, -2, 0.50, 1e400, 12345678901234567890123, true, null, "x"], "b": {"a": {}}}"#;
        assert_eq!(read(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        // The same key may stand in several objects.
        let text = r#"[{"a": 1}, {"a": {"a": 2}}]"#;
        assert_eq!(read(text.as_bytes()).unwrap(), json!([{"a": 1}, {"a": {"a": 2}}]));
        assert!(read(b"{").is_err() && read(b"{} {}").is_err() && read(b"").is_err());
    }

    #[test]
    fn a_key_that_occurs_twice_is_refused_with_its_place() {
        for text in [
            "{\"a\": 1,\n\"a\": 1}",
            "{\"b\": [{\"a\": 1,\n\"a\": 2}]}",
            // Written in another way, it is the same key.
            "{\"c\": {\"a\": {},\n\"\\u0061\": [], \"d\": 1}}",
        ] {
            let error = read(text.as_bytes()).unwrap_err().to_string();
            let says = "the key \"a\" occurs twice in one object at line 2 column ";
            assert!(error.starts_with(says), "{text}: {error}");
        }
        // Nor can it stand in a text that would be read as JSON.
        let raw = json!({"a": {RAW: r#"{"a": 1, "a": 2}"#}}).to_string();
        assert!(read(raw.as_bytes()).unwrap_err().to_string().contains("is not allowed"));
        // A key cannot say another place.
        let error = read(br#"{"x at line 9 column 9": 1, "x at line 9 column 9": 2}"#).unwrap_err();
        assert_eq!(error.line(), 1);
    }
}
