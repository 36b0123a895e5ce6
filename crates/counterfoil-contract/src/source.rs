//! A window of the raw text that knows its position in the whole. Every reported span is a byte
//! range of the whole text, even when only a window of it is in memory.

use crate::work;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, OnceCell};
use std::ops::Range;

/// A byte range of the raw text, with the line and column of its start.
///
/// Lines and columns count from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The end of the range (exclusive).
    pub end: usize,
    /// The line of `start`, from 1.
    pub line: usize,
    /// The column of `start` in characters, from 1.
    pub column: usize,
}

impl Span {
    /// The same range in characters of `text`, which is the whole raw text.
    ///
    /// `start` and `end` count bytes. Languages whose strings are indexed by character need this
    /// form.
    ///
    /// ```
    /// use counterfoil_contract::source::Source;
    ///
    /// let text = "\u{e4}\u{f6}: {\"ok\": 1}";
    /// let span = Source::whole(text).span(6, 15);
    /// assert_eq!(&text[span.start..span.end], "{\"ok\": 1}");
    /// assert_eq!(span.char_range(text), 4..13);
    /// ```
    pub fn char_range(&self, text: &str) -> Range<usize> {
        let floor = |offset: usize| {
            let mut offset = offset.min(text.len());
            while !text.is_char_boundary(offset) {
                offset -= 1;
            }
            offset
        };
        let (start, end) = (floor(self.start), floor(self.end.max(self.start)));
        let before = text[..start].chars().count();
        before..before + text[start..end].chars().count()
    }
}

/// A position in the text: offset, line and column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The byte offset in the whole text.
    pub offset: usize,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl Position {
    /// The start of a text.
    pub const START: Self = Self { offset: 0, line: 1, column: 1 };

    /// The position after `text`, if `text` starts here.
    #[must_use]
    pub fn after(self, text: &str) -> Self {
        let bytes = text.as_bytes();
        let offset = self.offset + bytes.len();
        match memchr::memrchr(b'\n', bytes) {
            Some(last) => Self {
                offset,
                line: self.line + memchr::memchr_iter(b'\n', bytes).count(),
                column: 1 + text[last + 1..].chars().count(),
            },
            None => Self { offset, line: self.line, column: self.column + text.chars().count() },
        }
    }
}

/// A window of the raw text. All its offsets are offsets of the whole text.
#[derive(Debug)]
pub struct Source<'t> {
    text: &'t str,
    position: Position,
    lookups: Cell<u8>,
    /// Known positions at short distances. Built after the first few lookups.
    index: OnceCell<Vec<Position>>,
}

/// The largest distance between two known positions.
const INDEX_STRIDE: usize = 4096;
/// The index is built after this many lookups.
const LOOKUPS_BEFORE_INDEX: u8 = 3;

impl<'t> Source<'t> {
    /// The whole text.
    pub fn whole(text: &'t str) -> Self {
        Self::window(text, Position::START)
    }

    /// A window that starts at `position`.
    pub(crate) fn window(text: &'t str, position: Position) -> Self {
        Self { text, position, lookups: Cell::new(0), index: OnceCell::new() }
    }

    /// The bytes of the window.
    pub(crate) fn bytes(&self) -> &'t [u8] {
        self.text.as_bytes()
    }

    /// The offset of the window's first byte.
    pub(crate) fn base(&self) -> usize {
        self.position.offset
    }

    /// The offset of the window's end (exclusive).
    pub(crate) fn end(&self) -> usize {
        self.position.offset + self.text.len()
    }

    /// The text between two offsets, cut down to the window and to character boundaries.
    pub(crate) fn slice(&self, start: usize, end: usize) -> &'t str {
        let from = self.floor(start.saturating_sub(self.base()));
        let to = self.floor(end.saturating_sub(self.base()));
        self.text.get(from..to).unwrap_or("")
    }

    /// The position of an offset.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let at = self.floor(offset.saturating_sub(self.base()));
        if self.lookups.get() < LOOKUPS_BEFORE_INDEX {
            self.lookups.set(self.lookups.get() + 1);
            work::count_text(at);
            return self.position.after(&self.text[..at]);
        }
        work::count_text(INDEX_STRIDE / 2);
        let index = self.index.get_or_init(|| self.build_index());
        let known =
            index.partition_point(|known| known.offset <= self.base() + at).saturating_sub(1);
        let from = index[known];
        from.after(&self.text[from.offset - self.base()..at])
    }

    fn build_index(&self) -> Vec<Position> {
        let mut index = vec![self.position];
        let mut at = 0;
        while at < self.text.len() {
            let next = self.floor(at + INDEX_STRIDE).max(at + 1);
            let next = if self.text.is_char_boundary(next) { next } else { self.text.len() };
            let last = index[index.len() - 1];
            index.push(last.after(&self.text[at..next]));
            at = next;
        }
        index
    }

    /// A span with its line and column.
    pub fn span(&self, start: usize, end: usize) -> Span {
        let place = self.position(start);
        Span { start, end, line: place.line, column: place.column }
    }

    /// A cursor for lookups in the order of the text, from an offset on.
    pub(crate) fn cursor(&self, from: usize) -> Cursor<'_, 't> {
        Cursor { source: self, last: self.position(from) }
    }

    fn floor(&self, mut at: usize) -> usize {
        at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

/// Looks up positions in the order of the text, each from the last one.
pub(crate) struct Cursor<'s, 't> {
    source: &'s Source<'t>,
    last: Position,
}

impl Cursor<'_, '_> {
    /// A span that begins at or after the start of the last one.
    pub(crate) fn span(&mut self, start: usize, end: usize) -> Span {
        let from = self.last.offset - self.source.base();
        let to = self.source.floor(start.saturating_sub(self.source.base())).max(from);
        work::count_text(to - from);
        self.last = self.last.after(&self.source.text[from..to]);
        Span { start, end, line: self.last.line, column: self.last.column }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_offsets_bytes() {
        let source = Source::whole("ab\näöü x");
        let span = source.span(10, 11);
        assert_eq!(span, Span { start: 10, end: 11, line: 2, column: 5 });
    }

    #[test]
    fn a_window_reports_offsets_of_the_whole() {
        let whole = "one\ntwo\nthree four";
        let head = &whole[..9];
        let window = Source::window(&whole[9..], Position::START.after(head));
        assert_eq!(window.span(14, 18), Source::whole(whole).span(14, 18));
        assert_eq!(window.slice(14, 18), "four");
    }

    #[test]
    fn many_questions_get_the_same_answers_as_few() {
        let text = "aé\n".repeat(5000) + &"x".repeat(10_000);
        let asked_often = Source::whole(&text);
        for offset in (0..text.len()).step_by(997) {
            assert_eq!(asked_often.position(offset), Source::whole(&text).position(offset));
        }
    }
}
