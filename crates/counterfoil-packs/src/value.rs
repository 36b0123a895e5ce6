//! Value types that several packs share.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;

/// Defines an enum of strings. Its variants have no descriptions, since these would become part of
/// every prompt.
macro_rules! string_enum {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[allow(missing_docs)] // The strings are self-explanatory.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[schemars(inline)]
        pub enum $name { $(#[serde(rename = $text)] $variant),+ }
    };
}
pub(crate) use string_enum;

/// A value that must be given but may be null: a block's `none`, an answer that is still open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nullable<T>(pub Option<T>);

impl<T: JsonSchema> JsonSchema for Nullable<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Nullable_{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        <Option<T>>::json_schema(generator)
    }
}

impl<T> Nullable<Vec<T>> {
    /// The items of the list, or an empty slice if it is null.
    pub fn items(&self) -> &[T] {
        self.0.as_deref().unwrap_or_default()
    }
}

/// A line or a range of lines: `42` and `"42"` are the same, `"10-20"` is a range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct LineRef(pub String);

impl JsonSchema for LineRef {
    fn schema_name() -> Cow<'static, str> {
        "LineRef".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": ["string", "integer"]})
    }
}

impl<'de> Deserialize<'de> for LineRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        match value {
            serde_json::Value::String(text) => Ok(Self(text)),
            // An integer written as 42.0 is line 42 too.
            serde_json::Value::Number(number) => {
                let digits = number.to_string();
                Ok(Self(digits.strip_suffix(".0").map(str::to_owned).unwrap_or(digits)))
            }
            other => Err(serde::de::Error::custom(format!(
                "a line is a string or an integer, not {other}"
            ))),
        }
    }
}
