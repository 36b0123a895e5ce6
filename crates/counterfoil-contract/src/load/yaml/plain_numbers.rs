//! JSON values for serializers other than `serde_json`. With `arbitrary_precision`, `serde_json`
//! hands its numbers to another serializer as an object; this wrapper hands them over as numbers.

use serde::{Serialize, Serializer, ser::SerializeMap, ser::SerializeSeq};
use serde_json::Value;

/// A JSON value whose numbers every serializer writes as numbers.
pub(super) struct PlainNumbers<'v>(pub(super) &'v Value);

impl Serialize for PlainNumbers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(flag) => serializer.serialize_bool(*flag),
            Value::String(text) => serializer.serialize_str(text),
            Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(int), _, _) => serializer.serialize_i64(int),
                (_, Some(int), _) => serializer.serialize_u64(int),
                (_, _, Some(float)) => serializer.serialize_f64(float),
                _ => serializer.serialize_str(&number.to_string()),
            },
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(&PlainNumbers(item))?;
                }
                list.end()
            }
            Value::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (key, value) in members {
                    map.serialize_entry(key, &PlainNumbers(value))?;
                }
                map.end()
            }
        }
    }
}
