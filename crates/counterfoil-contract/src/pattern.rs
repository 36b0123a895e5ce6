//! The regular expressions of this crate.

use regex::Regex;
use std::ops::Deref;
use std::sync::OnceLock;

/// A regular expression that is compiled when it is first used: they are declared in groups, and a
/// text rarely needs all of a group.
pub(crate) struct Pattern {
    source: String,
    compiled: OnceLock<Regex>,
}

impl Pattern {
    pub(crate) fn new(source: impl Into<String>) -> Self {
        Self { source: source.into(), compiled: OnceLock::new() }
    }

    pub(crate) fn ignoring_case(source: &str) -> Self {
        Self::new(format!("(?i){source}"))
    }
}

impl Deref for Pattern {
    type Target = Regex;

    #[expect(clippy::expect_used, reason = "a wrong pattern fails the tests of its module")]
    fn deref(&self) -> &Regex {
        self.compiled.get_or_init(|| Regex::new(&self.source).expect("a pattern of this crate"))
    }
}
