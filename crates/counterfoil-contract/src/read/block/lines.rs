//! The lines of an output block, and which of them may continue the line before.

use crate::extract::block::bare;
use crate::extract::fence_lines::fence_run;

/// A line of a block that is neither blank nor a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    /// The blanks before the text.
    pub(super) indent: usize,
    /// Whether a blank line is before it.
    pub(super) after_blank: bool,
    pub(super) entry: Option<Entry<'t>>,
}

/// The key and the value of a line with a colon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry<'t> {
    pub(super) key: &'t str,
    pub(super) key_at: usize,
    pub(super) value: &'t str,
    pub(super) value_at: usize,
}

impl Line<'_> {
    pub(super) fn end(&self) -> usize {
        self.at + self.text.len()
    }

    /// Whether the line looks like an item of a list: `- x`, `* x`, `1. x`.
    pub(super) fn is_item(&self) -> bool {
        let digits = self.text.trim_start_matches(|c: char| c.is_ascii_digit());
        let rest = if digits.len() < self.text.len() {
            digits.strip_prefix(['.', ')'])
        } else {
            self.text.strip_prefix(['-', '*', '+', '•', '–', '—'])
        };
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
    }

    /// Whether the line has the form of an entry whose key is one word, rather than of a sentence
    /// with a colon in it.
    pub(super) fn has_word_key(&self) -> bool {
        self.entry.is_some_and(|entry| {
            !entry.value.starts_with("//")
                && entry.key.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && entry.key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
        })
    }
}

/// The lines of a block's content; `offset` is where the content begins. Fences are ignored.
pub(super) fn lines(content: &str, offset: usize) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    let mut after_blank = false;
    content.split_inclusive('\n').filter_map(move |line| {
        let at = start;
        start += line.len();
        let text = std::str::from_utf8(bare(line.as_bytes())).unwrap_or(line.trim());
        if text.is_empty() {
            after_blank = true;
            return None;
        }
        if fence_run(text.as_bytes()).is_some() {
            return None;
        }
        // `bare` only cuts, so the text is a slice of the line.
        let lead = text.as_ptr() as usize - line.as_ptr() as usize;
        let at = offset + at + lead;
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        let entry = text.split_once(':').map(|(key, value)| {
            let trimmed = value.trim_start();
            Entry {
                key: key.trim(),
                key_at: at + key.len() - key.trim_start().len(),
                value: trimmed.trim_end(),
                value_at: at + text.len() - trimmed.len(),
            }
        });
        Some(Line { text, at, indent, after_blank: std::mem::take(&mut after_blank), entry })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_offsets() {
        let content = "  key one : a: b  \r\n```\n\nno colon\n";
        let found: Vec<_> = lines(content, 100).collect();
        let entry = Entry { key: "key one", key_at: 102, value: "a: b", value_at: 112 };
        assert_eq!(
            found,
            [
                Line {
                    text: "key one : a: b",
                    at: 102,
                    indent: 2,
                    after_blank: false,
                    entry: Some(entry)
                },
                Line { text: "no colon", at: 125, indent: 0, after_blank: true, entry: None }
            ]
        );
    }

    #[test]
    fn items_and_keys_are_recognised() {
        let line = |text| lines(text, 0).next().unwrap();
        for text in ["- a", "* a: b", "1. a", "12) a", "-", "• a"] {
            assert!(line(text).is_item(), "{text}");
        }
        for text in ["-a", "1.5", "a - b", "---", "2024"] {
            assert!(!line(text).is_item(), "{text}");
        }
        for text in ["key: a", "my-key: a", "_k2:"] {
            assert!(line(text).has_word_key(), "{text}");
        }
        for text in ["and then: ship", "src/a.rs:4", "https://a.b", "12:30", "no colon"] {
            assert!(!line(text).has_word_key(), "{text}");
        }
    }
}
