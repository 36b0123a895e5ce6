//! How strictly a text is read.

use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// Where in the raw text the result stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    /// Nothing but blanks around one JSON value.
    JsonOnly,
    /// In a fenced code block.
    FencedJson,
    /// Any JSON object or list in the text.
    #[default]
    AnyJson,
    /// Between `---OUTPUT---` and `---END---`, as `key: value` lines.
    OutputBlock,
}

impl Framing {
    /// Every framing.
    pub const ALL: [Self; 4] = [Self::JsonOnly, Self::FencedJson, Self::AnyJson, Self::OutputBlock];

    /// The name used in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::JsonOnly => "json-only",
            Self::FencedJson => "fenced-json",
            Self::AnyJson => "any-json",
            Self::OutputBlock => "output-block",
        }
    }
}

impl FromStr for Framing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|framing| framing.name() == text).ok_or_else(|| {
            format!("unknown framing '{text}'; known: {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

/// Whether text that is not quite JSON may be mended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RepairPolicy {
    /// Strict JSON or nothing.
    #[default]
    None,
    /// Mend the syntax; every repair is recorded.
    Syntax,
}

/// Which values may be changed to the type the contract asks for. Each change is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coerce {
    /// None.
    #[default]
    None,
    /// All.
    All,
    /// Those at these JSON pointers; `*` stands for any item or key.
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

/// Whether a pointer matches a pattern in which `*` stands for one token.
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

/// Envelopes that are taken off before the contract is applied. Each one taken off is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Unwrap {
    /// An object is replaced by its member of one of these names, if it has only one that matters:
    /// the member is an object, a list or a string, and the object itself does not satisfy the
    /// contract.
    pub keys: Vec<String>,
    /// A string that holds JSON is replaced by that JSON.
    pub strings: bool,
}

impl Unwrap {
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty() && !self.strings
    }
}

/// A field that some writers call by another name. Each renaming is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rename {
    /// The objects concerned, as a pointer pattern such as `/findings/*`; empty for the result
    /// itself.
    #[serde(default)]
    pub at: String,
    /// The other name.
    pub from: String,
    /// The name in the contract.
    pub to: String,
}

/// How strictly a text is read. The default is strict in syntax and types and lenient in what may
/// be missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Mend syntax?
    pub repair: RepairPolicy,
    /// Change types?
    pub coerce: Coerce,
    /// Take off envelopes?
    pub unwrap: Unwrap,
    /// Fields that go by other names too.
    pub rename: Vec<Rename>,
    /// Lists (JSON pointers) whose good items survive a rejection as `partial`; the empty pointer
    /// stands for the fields of the result itself.
    pub salvage: Vec<String>,
    /// Refuse fields that the contract does not know.
    pub closed: bool,
    /// Refuse placeholders such as `<path>` that a template left behind.
    pub placeholders: bool,
    /// No defaults, repairs, coercions or duplicate keys.
    pub strict: bool,
    /// Texts larger than this are refused.
    pub max_bytes: usize,
    /// Values nested deeper than this are refused.
    pub max_depth: usize,
}

/// The depth limit can not be set higher than this, so that no input can exhaust the stack of a
/// validator.
pub const DEEPEST: usize = 512;

impl Default for Policy {
    fn default() -> Self {
        Self {
            repair: RepairPolicy::None,
            coerce: Coerce::None,
            unwrap: Unwrap::default(),
            rename: Vec::new(),
            salvage: Vec::new(),
            closed: false,
            placeholders: true,
            strict: false,
            max_bytes: 64 * 1024 * 1024,
            max_depth: 128,
        }
    }
}

impl Policy {
    /// The same with nothing forgiven.
    #[must_use]
    pub fn strictly(&self) -> Self {
        Self {
            repair: RepairPolicy::None,
            coerce: Coerce::None,
            rename: Vec::new(),
            strict: true,
            ..self.clone()
        }
    }

    pub(crate) fn repairs(&self) -> bool {
        self.repair == RepairPolicy::Syntax && !self.strict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_one_token() {
        assert!(matches("/findings/*/line", "/findings/3/line"));
        assert!(!matches("/findings/*/line", "/findings/line"));
        assert!(!matches("/a", "/a/b"));
    }
}
