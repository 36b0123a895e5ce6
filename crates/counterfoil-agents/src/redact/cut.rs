//! Finds the beginnings of known values at which a text was shortened. Many texts are shortened where
//! they are made, long before they are redacted, and a part of a secret is a secret too.

use super::{MAX_KNOWN_VALUE_BYTES, Redactor, Span, spellings};
use std::ops::Bound;

/// The mark of a place where a text was shortened.
pub(super) const MARK: char = '…';
/// Shorter beginnings tell too little.
const MIN_BYTES: usize = 4;
/// Shorter beginnings must begin a word: they occur within ordinary words.
const MIN_INSIDE_BYTES: usize = 8;

impl Redactor {
    /// The beginnings of known values before the marks in a text.
    pub(super) fn cut_values(&self, text: &str) -> Vec<Span> {
        if self.known.is_empty() {
            return Vec::new();
        }
        let marks = text.match_indices(MARK).map(|(end, _)| end);
        marks.filter_map(|end| self.cut_value(text, end)).collect()
    }

    /// The longest beginning of a known value that ends there.
    fn cut_value(&self, text: &str, end: usize) -> Option<Span> {
        let first = text.floor_char_boundary(end.saturating_sub(MAX_KNOWN_VALUE_BYTES));
        let before = spellings::unescape(text.get(first..end)?);
        before.starts.iter().find_map(|(at, original)| {
            let (left, rest) = before.text.split_at(*at);
            let begins_word = !left.ends_with(char::is_alphanumeric);
            let least = if begins_word { MIN_BYTES } else { MIN_INSIDE_BYTES };
            if rest.len() < least {
                return None;
            }
            let kind = self.kind_beginning_with(rest)?;
            Some(Span { at: first + original..end, kind })
        })
    }

    /// The kind of a known value that begins with a text.
    fn kind_beginning_with(&self, text: &str) -> Option<&'static str> {
        let from: (Bound<&str>, Bound<&str>) = (Bound::Included(text), Bound::Unbounded);
        let (unescaped, value) = self.unescaped.range::<str, _>(from).next()?;
        if !unescaped.starts_with(text) {
            return None;
        }
        self.known.get(value).copied()
    }
}
