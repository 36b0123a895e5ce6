//! JSON with exact numbers, for serialisers that are not `serde_json`: there, a number that keeps
//! its digits would look like an object.

use serde::{Serialize, Serializer, ser::SerializeMap, ser::SerializeSeq};
use serde_json::Value;

/// A JSON value that any serialiser writes as people expect.
pub(crate) struct Plain<'v>(pub(crate) &'v Value);

/// The owned form.
pub(crate) struct PlainValue(Value);

/// Anything serialisable, through JSON.
pub(crate) fn plain<T: Serialize>(value: &T) -> Result<PlainValue, String> {
    serde_json::to_value(value).map(PlainValue).map_err(|error| error.to_string())
}

impl Serialize for PlainValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Plain(&self.0).serialize(serializer)
    }
}

impl Serialize for Plain<'_> {
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
                    list.serialize_element(&Plain(item))?;
                }
                list.end()
            }
            Value::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (key, value) in members {
                    map.serialize_entry(key, &Plain(value))?;
                }
                map.end()
            }
        }
    }
}
