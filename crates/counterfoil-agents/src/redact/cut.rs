//! Finds the beginnings of known values at which a text was shortened. Many texts are shortened where
//! they are made, long before they are redacted, and a part of a secret is a secret too.

use super::spellings::{self, Unescaped};
use super::{Redactor, Span};
use std::collections::BTreeSet;
use std::ops::Bound;

/// The mark of a place where a text was shortened.
pub(super) const MARK: char = '…';
/// What is in the mark where it is escaped.
const ESCAPED_MARK: &str = "u2026";
/// Shorter beginnings tell too little.
const MIN_BYTES: usize = 4;
/// Shorter beginnings must begin a word: they occur within ordinary words.
const MIN_INSIDE_BYTES: usize = 8;

/// What is known of all values together, so that most places are passed over quickly.
#[derive(Clone, Default)]
pub(super) struct Beginnings {
    /// The first characters of the values, without escapes.
    first: BTreeSet<char>,
    /// The length of the longest value without escapes, in bytes.
    longest: usize,
    /// Whether a value has the mark in it.
    has_mark: bool,
}

impl Beginnings {
    /// Adds a value without its escapes.
    pub(super) fn add(&mut self, unescaped: &str) {
        self.first.extend(unescaped.chars().next());
        self.longest = self.longest.max(unescaped.len());
        self.has_mark |= unescaped.contains(MARK);
    }
}

impl Redactor {
    /// The beginnings of known values before the marks in a text.
    pub(super) fn cut_values(&self, text: &str) -> Vec<Span> {
        if self.known.is_empty() || !(text.contains(MARK) || text.contains(ESCAPED_MARK)) {
            return Vec::new();
        }
        let unescaped = spellings::unescape(text);
        let mut found = Vec::new();
        let mut after_mark = 0;
        for (index, (end, _)) in unescaped.starts.iter().enumerate() {
            if !unescaped.text[*end..].starts_with(MARK) {
                continue;
            }
            // Between two marks, only a value with a mark in it can begin before the first one.
            let first = if self.beginnings.has_mark { 0 } else { after_mark };
            found.extend(self.cut_value(&unescaped, first, index, text));
            after_mark = index + 1;
        }
        found
    }

    /// The longest beginning of a known value that ends at the mark with this index, and begins at
    /// `first` or later.
    fn cut_value(
        &self,
        unescaped: &Unescaped,
        first: usize,
        mark: usize,
        text: &str,
    ) -> Option<Span> {
        let Unescaped { text: plain, starts } = unescaped;
        let (_, original_end) = starts[mark];
        // Of an escape that was cut, nothing tells what it stands for.
        let left = text[..original_end].trim_end_matches(|char: char| char.is_ascii_hexdigit());
        let is_cut = original_end - left.len() < 4 && left.ends_with("\\u");
        let left = if is_cut { left[..left.len() - 1].trim_end_matches('\\') } else { left };
        let last = if is_cut { left.len() } else { original_end };
        let last = first + starts[first..mark].partition_point(|(_, original)| *original < last);
        let end = starts[last].0;
        let reach = end.saturating_sub(self.beginnings.longest);
        let first = first + starts[first..last].partition_point(|(at, _)| *at < reach);
        // Backslashes belong to the mark after them, unless the mark is an escape itself.
        let after = text[original_end..].trim_start_matches('\\');
        let is_plain = after.starts_with(MARK);
        let end_of_text = if is_plain { text.len() - after.len() } else { original_end };
        (first..last).find_map(|index| {
            let (at, original) = starts[index];
            let rest = &plain[at..end];
            if !rest.chars().next().is_some_and(|char| self.beginnings.first.contains(&char)) {
                return None;
            }
            let begins_word = !plain[..at].ends_with(char::is_alphanumeric);
            let least = if begins_word { MIN_BYTES } else { MIN_INSIDE_BYTES };
            if rest.len() < least {
                return None;
            }
            let kind = self.kind_beginning_with(rest)?;
            Some(Span { at: original..end_of_text, kind })
        })
    }

    /// The kind of a known value that begins with a text.
    fn kind_beginning_with(&self, text: &str) -> Option<&'static str> {
        #[cfg(test)]
        tests::LOOKUPS.with(|lookups| lookups.set(lookups.get() + 1));
        let from: (Bound<&str>, Bound<&str>) = (Bound::Included(text), Bound::Unbounded);
        let (unescaped, value) = self.unescaped.range::<str, _>(from).next()?;
        if !unescaped.starts_with(text) {
            return None;
        }
        self.known.get(value).copied()
    }
}

#[cfg(test)]
mod tests {
    use crate::redact::{RedactionLevel, Redactor};
    use std::cell::Cell;

    thread_local! {
        /// How often the known values were searched for a beginning.
        pub(super) static LOOKUPS: Cell<usize> = const { Cell::new(0) };
    }

    fn lookups(redactor: &mut Redactor, text: &str) -> usize {
        LOOKUPS.set(0);
        redactor.redact_text(text, RedactionLevel::KnownForms);
        LOOKUPS.get()
    }

    #[test]
    fn many_marks_cost_no_more_than_the_length_of_the_text() {
        let mut redactor = Redactor::new(&[]).unwrap();
        let long = format!("aB3-{}", "aB3-".repeat(1000));
        redactor.learn_variables([("A_TOKEN".to_owned(), long)]);
        assert_eq!(lookups(&mut redactor, &"…".repeat(100_000)), 0);
        let text = "aB1 …".repeat(20_000);
        assert!(lookups(&mut redactor, &text) <= text.len());
        let text = format!("{}…", "aB1 ".repeat(20_000));
        assert!(lookups(&mut redactor, &text) <= 4100);
    }

    #[test]
    fn a_long_list_of_marks_is_redacted_with_little_work() {
        let mut redactor = Redactor::new(&[]).unwrap();
        redactor.learn_variables([("A_TOKEN".to_owned(), "zebra-crossing-9".to_owned())]);
        let mut items = vec!["…".repeat(340); 200];
        items[100].push_str("zebra-crossing…");
        let list = serde_json::to_vec(&items).unwrap();
        LOOKUPS.set(0);
        let redacted = redactor.redact_bytes(&list, RedactionLevel::Full).unwrap();
        assert!(LOOKUPS.get() < 1000, "{}", LOOKUPS.get());
        assert!(!String::from_utf8(redacted).unwrap().contains("zebra"));
    }

    #[test]
    fn a_mark_may_be_escaped() {
        let mut redactor = Redactor::new(&[]).unwrap();
        redactor.learn_variables([("A_TOKEN".to_owned(), "zebra-crossing-9".to_owned())]);
        let mut plain = |text: &str| redactor.redact_text(text, RedactionLevel::KnownForms);
        assert_eq!(plain(r"a zebra-cross\u2026, b…"), r"a [redacted:variable#1]\u2026, b…");
        assert_eq!(plain(r"a zebra-cross\…"), r"a [redacted:variable#2]…");
    }
}
