//! A piece of raw text that knows where it stands in the whole, so that every span we report is a
//! byte range of the text as it was given, also when only a window of it is held in memory.

use serde::{Deserialize, Serialize};
use std::cell::{Cell, OnceCell};

/// A byte range of the raw text, with the line and column of its start.
///
/// Lines and columns count from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// One behind the last byte.
    pub end: usize,
    /// The line of `start`, from 1.
    pub line: usize,
    /// The column of `start` in characters, from 1.
    pub column: usize,
}

/// A place in the text: offset, line and column together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Byte offset in the whole text.
    pub offset: usize,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl Origin {
    /// The start of a text.
    pub const START: Self = Self { offset: 0, line: 1, column: 1 };

    /// The place behind `text`, if `text` starts here.
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

/// A window of the raw text. Offsets handed to it and returned by it are offsets of the whole text.
#[derive(Debug)]
pub struct Source<'t> {
    text: &'t str,
    origin: Origin,
    asked: Cell<u8>,
    /// Known places, close enough together to count on from; made when many are asked for.
    index: OnceCell<Vec<Origin>>,
}

/// How far apart the known places are at most.
const STRIDE: usize = 4096;
/// After this many questions the index pays.
const FEW: u8 = 3;

impl<'t> Source<'t> {
    /// The whole text.
    pub fn whole(text: &'t str) -> Self {
        Self::window(text, Origin::START)
    }

    /// A window that starts at `origin`.
    pub(crate) fn window(text: &'t str, origin: Origin) -> Self {
        Self { text, origin, asked: Cell::new(0), index: OnceCell::new() }
    }

    /// The bytes of the window.
    pub(crate) fn bytes(&self) -> &'t [u8] {
        self.text.as_bytes()
    }

    /// The offset of the window's first byte.
    pub(crate) fn base(&self) -> usize {
        self.origin.offset
    }

    /// The offset one behind the window's last byte.
    pub(crate) fn end(&self) -> usize {
        self.origin.offset + self.text.len()
    }

    /// The text between two offsets, cut down to the window and to character boundaries.
    pub(crate) fn slice(&self, start: usize, end: usize) -> &'t str {
        let from = self.floor(start.saturating_sub(self.base()));
        let to = self.floor(end.saturating_sub(self.base()));
        self.text.get(from..to).unwrap_or("")
    }

    /// The place of an offset.
    pub(crate) fn place(&self, offset: usize) -> Origin {
        let at = self.floor(offset.saturating_sub(self.base()));
        if self.asked.get() < FEW {
            self.asked.set(self.asked.get() + 1);
            return self.origin.after(&self.text[..at]);
        }
        let index = self.index.get_or_init(|| self.build_index());
        let known =
            index.partition_point(|known| known.offset <= self.base() + at).saturating_sub(1);
        let from = index[known];
        from.after(&self.text[from.offset - self.base()..at])
    }

    fn build_index(&self) -> Vec<Origin> {
        let mut index = vec![self.origin];
        let mut at = 0;
        while at < self.text.len() {
            let next = self.floor(at + STRIDE).max(at + 1);
            let next = if self.text.is_char_boundary(next) { next } else { self.text.len() };
            let last = index[index.len() - 1];
            index.push(last.after(&self.text[at..next]));
            at = next;
        }
        index
    }

    /// A span with its line and column.
    pub fn span(&self, start: usize, end: usize) -> Span {
        let place = self.place(start);
        Span { start, end, line: place.line, column: place.column }
    }

    /// Places asked for in the order of the text, each counted on from the last.
    pub(crate) fn cursor(&self) -> Cursor<'_, 't> {
        Cursor { source: self, last: self.origin }
    }

    fn floor(&self, mut at: usize) -> usize {
        at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

/// Places in the order of the text.
pub(crate) struct Cursor<'s, 't> {
    source: &'s Source<'t>,
    last: Origin,
}

impl Cursor<'_, '_> {
    /// A span that begins where the last one did or behind it.
    pub(crate) fn span(&mut self, start: usize, end: usize) -> Span {
        let from = self.last.offset - self.source.base();
        let to = self.source.floor(start.saturating_sub(self.source.base())).max(from);
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
        let window = Source::window(&whole[9..], Origin::START.after(head));
        assert_eq!(window.span(14, 18), Source::whole(whole).span(14, 18));
        assert_eq!(window.slice(14, 18), "four");
    }

    #[test]
    fn many_questions_get_the_same_answers_as_few() {
        let text = "aé\n".repeat(5000) + &"x".repeat(10_000);
        let asked_often = Source::whole(&text);
        for offset in (0..text.len()).step_by(997) {
            assert_eq!(asked_often.place(offset), Source::whole(&text).place(offset));
        }
    }
}
