//! The framing of a result and the policy: how strictly a text is read.

use crate::context::Context;
use crate::nothing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::str::FromStr;
use std::sync::Arc;
use strum::IntoStaticStr;

/// The version of the rules by which a result is found in a text. Version 2: the last attempt
/// decides, what is cut off or ambiguous is rejected, and a key has one value.
pub const READER_VERSION: u32 = 2;

/// Where in the raw text the result is.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    IntoStaticStr,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Framing {
    /// The text is one JSON value with only whitespace around it.
    JsonOnly,
    /// The result is in a fenced code block.
    FencedJson,
    /// The result is any JSON object or list in the text.
    #[default]
    AnyJson,
    /// The result is between `---OUTPUT---` and `---END---`, as `key: value` lines.
    OutputBlock,
}

impl Framing {
    /// Every framing.
    pub const ALL: [Self; 4] = [Self::JsonOnly, Self::FencedJson, Self::AnyJson, Self::OutputBlock];

    /// The name used in files and reports.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl FromStr for Framing {
    type Err = UnknownFraming;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.into_iter().find(|framing| framing.name() == text);
        named.ok_or_else(|| UnknownFraming(text.to_owned()))
    }
}

/// A text that is not the name of a framing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown framing '{0}'; known: {known}", known = Framing::ALL.map(Framing::name).join(", "))]
pub struct UnknownFraming(pub String);

/// Whether the syntax of a result may be repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RepairPolicy {
    /// Only strict JSON is accepted.
    #[default]
    None,
    /// The syntax is repaired. Every repair is recorded.
    Syntax,
}

/// What follows if a text has several valid results that differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Several {
    /// The last one counts, with a warning.
    #[default]
    Last,
    /// The text is rejected, so that the agent is asked which one it means.
    Ask,
}

/// What happens to a result that the text cuts off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Truncated {
    /// It is rejected: nobody knows what is missing.
    #[default]
    Reject,
    /// What is open at its end is closed, as far as only closing marks are missing. Part of the
    /// repairs, so nothing without `repair: syntax`.
    Accept,
}

/// What follows from a field that the contract does not define and that has a value. One that is
/// empty (see [`nothing`]) is only noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnknownFields {
    /// It is kept, with a warning. Nothing reads it.
    #[default]
    Keep,
    /// The result is rejected: what nothing reads may be what matters.
    Refuse,
}

impl UnknownFields {
    /// Whether they are kept.
    #[allow(clippy::trivially_copy_pass_by_ref)] // The form that serde needs.
    pub fn are_kept(&self) -> bool {
        *self == Self::Keep
    }
}

/// Which values may be converted to the type that the schema requires. Each conversion is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coerce {
    /// No values.
    #[default]
    None,
    /// All values.
    All,
    /// The values at these JSON pointers; `*` matches any item or key.
    Fields(Vec<String>),
}

impl Coerce {
    pub(crate) fn allows(&self, pointer: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Fields(patterns) => patterns.iter().any(|pattern| matches(pattern, pointer)),
        }
    }
}

/// Whether a pointer matches a pattern in which `*` matches one token.
pub(crate) fn matches(pattern: &str, pointer: &str) -> bool {
    let mut pattern = pattern.split('/');
    let mut pointer = pointer.split('/');
    loop {
        match (pattern.next(), pointer.next()) {
            (None, None) => return true,
            (Some(wanted), Some(token)) if wanted == token || wanted == "*" => {}
            _ => return false,
        }
    }
}

/// Envelopes that are removed before the contract is applied. Each removal is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Unwrap {
    /// An object is replaced by its member of one of these names, if exactly one such member is an
    /// object, a list or a string, and if the object itself does not satisfy the contract.
    pub keys: Vec<String>,
    /// A string that holds JSON is replaced by that JSON.
    pub strings: bool,
}

impl Unwrap {
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty() && !self.strings
    }
}

/// Another name under which a field is accepted. Each renaming is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rename {
    /// The objects with the field, as a pointer pattern such as `/findings/*`; empty for the result
    /// itself.
    #[serde(default)]
    pub at: String,
    /// The other name.
    pub from: String,
    /// The name that the contract uses.
    pub to: String,
}

/// How strictly a text is read. The default is strict about syntax and types, and fills in missing
/// fields that have a default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Whether to repair the syntax.
    pub repair: RepairPolicy,
    /// Whether to repair a result that is cut off.
    #[serde(skip_serializing_if = "is_default")]
    pub truncated: Truncated,
    /// Which values to convert.
    pub coerce: Coerce,
    /// Which envelopes to remove.
    pub unwrap: Unwrap,
    /// Fields that are accepted under other names.
    pub rename: Vec<Rename>,
    /// Lists (JSON pointers) whose valid items are reported as `partial` when the result is rejected.
    /// The empty pointer means the fields of the result itself.
    pub salvage: Vec<String>,
    /// What follows from several valid results that differ.
    #[serde(skip_serializing_if = "is_default")]
    pub several: Several,
    /// Reject fields that the contract does not define.
    pub closed: bool,
    /// What follows from fields that the contract does not define and that have a value.
    #[serde(skip_serializing_if = "is_default")]
    pub unknown_fields: UnknownFields,
    /// Reject placeholders of a template such as `<path>`.
    pub placeholders: bool,
    /// Allow no defaults, repairs, coercions or duplicate keys.
    pub strict: bool,
    /// Larger texts are rejected.
    pub max_bytes: usize,
    /// Values nested deeper than this are rejected.
    pub max_depth: usize,
    /// Results with more values than this are rejected. Every list, object and scalar counts.
    #[serde(skip_serializing_if = "is_max_values")]
    pub max_values: usize,
    /// What is known of the attempt whose result is read. It is not part of the contract.
    #[serde(skip)]
    pub context: Option<Arc<Context>>,
}

/// The highest depth limit that a policy can set, so that no input exhausts the validator's stack.
pub const MAX_DEPTH: usize = 512;

/// The highest limit on values that a policy can set, so that no text takes much memory.
pub const MAX_VALUES: usize = 1_000_000;

/// How large a value may be. It is refused while it is parsed, before memory is spent on the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The deepest nesting of lists and objects.
    pub(crate) depth: usize,
    /// The highest number of values, the containers among them.
    pub(crate) values: usize,
}

impl Limits {
    /// A limit on the depth, with as many values as any result may have.
    pub(crate) const fn of_depth(depth: usize) -> Self {
        Self { depth, values: MAX_VALUES }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // Required by serde.
fn is_max_values(limit: &usize) -> bool {
    *limit == MAX_VALUES
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            repair: RepairPolicy::None,
            truncated: Truncated::Reject,
            coerce: Coerce::None,
            unwrap: Unwrap::default(),
            rename: Vec::new(),
            salvage: Vec::new(),
            several: Several::Last,
            closed: false,
            unknown_fields: UnknownFields::Keep,
            placeholders: true,
            strict: false,
            max_bytes: 64 * 1024 * 1024,
            max_depth: 128,
            max_values: MAX_VALUES,
            context: None,
        }
    }
}

impl Policy {
    /// The same policy without defaults, repairs, coercions, renames or duplicate keys.
    #[must_use]
    pub fn strictly(&self) -> Self {
        Self {
            repair: RepairPolicy::None,
            truncated: Truncated::Reject,
            coerce: Coerce::None,
            rename: Vec::new(),
            strict: true,
            ..self.clone()
        }
    }

    /// The same policy for a result of a known attempt.
    #[must_use]
    pub fn with_context(&self, context: &Arc<Context>) -> Self {
        Self { context: Some(Arc::clone(context)), ..self.clone() }
    }

    /// The same policy with another answer to unknown fields.
    #[must_use]
    pub fn with_unknown_fields(&self, unknown_fields: UnknownFields) -> Self {
        Self { unknown_fields, ..self.clone() }
    }

    /// How large a result may be.
    pub(crate) fn limits(&self) -> Limits {
        Limits { depth: self.max_depth, values: self.max_values }
    }

    /// Whether unknown fields are refused, at least those that have a value.
    pub(crate) fn refuses_unknown_fields(&self) -> bool {
        self.closed || self.unknown_fields == UnknownFields::Refuse
    }

    /// Whether an unknown field with this value is refused.
    pub(crate) fn refuses_unknown(&self, value: &Value) -> bool {
        self.closed || (self.unknown_fields == UnknownFields::Refuse && !nothing::is_empty(value))
    }

    pub(crate) fn repairs(&self) -> bool {
        self.repair == RepairPolicy::Syntax && !self.strict
    }

    pub(crate) fn accepts_truncated(&self) -> bool {
        self.truncated == Truncated::Accept && self.repairs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_one_token() {
        assert!(matches("/findings/*/line", "/findings/3/line"));
        assert!(!matches("/findings/*/line", "/findings/line"));
        assert!(!matches("/a", "/a/b"));
    }
}
