//! Checks a text that arrives in pieces.

use crate::extractor::{Extractor, Progress};
use crate::report::Report;
use crate::source::Position;

/// Checks a text that arrives in pieces and gives the same report as for the whole text. It buffers
/// only the part that can still matter: the current value, not the prose before it.
#[derive(Debug)]
pub struct Stream<'c> {
    extractor: Extractor<'c>,
    window: String,
    position: Position,
    length: usize,
}

impl<'c> Stream<'c> {
    pub(crate) fn new(extractor: Extractor<'c>) -> Self {
        Self {
            extractor: extractor.eager(),
            window: String::new(),
            position: Position::START,
            length: 0,
        }
    }

    /// Adds the next piece.
    pub fn push(&mut self, piece: &str) -> Progress {
        self.length += piece.len();
        if self.length > self.extractor.max_bytes() {
            // The text is rejected as a whole; none of it is needed.
            self.window = String::new();
            return Progress::Searching;
        }
        self.window.push_str(piece);
        self.extractor.feed(&self.window, self.position, false);
        self.trim();
        self.extractor.progress()
    }

    /// The number of bytes buffered for the text.
    pub fn buffered_bytes(&self) -> usize {
        self.window.capacity()
    }

    /// Ends the text and returns the report.
    pub fn finish(mut self) -> Report {
        if self.length > self.extractor.max_bytes() {
            return self.extractor.too_large(self.length);
        }
        self.extractor.feed(&self.window, self.position, true);
        let report = self.extractor.conclude(&self.window, self.position);
        self.extractor.log(&report);
        report
    }

    /// Drops the part of the window that can no longer matter, in large steps.
    fn trim(&mut self) {
        let keep = self.extractor.keep_from().min(self.position.offset + self.window.len());
        let mut gone = keep.saturating_sub(self.position.offset);
        if gone < 4096 || gone < self.window.len() / 2 {
            return;
        }
        while !self.window.is_char_boundary(gone) {
            gone -= 1;
        }
        self.position = self.position.after(&self.window[..gone]);
        self.window.drain(..gone);
        self.window.shrink_to(self.window.len() * 2 + 65_536);
    }
}
