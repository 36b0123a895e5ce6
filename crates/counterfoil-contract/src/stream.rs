//! The extractor for a text that arrives in pieces.

use crate::report::Report;
use crate::session::Session;
use crate::source::Origin;

/// What is known of a text that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// No result that satisfies the contract has been seen.
    Searching,
    /// One has. A later one may still replace it.
    Complete,
}

/// Takes a text in pieces and gives exactly the answer of the whole text. It holds only what can
/// still matter: the value it is in, not the prose before it.
#[derive(Debug)]
pub struct Stream<'c> {
    session: Session<'c>,
    window: String,
    origin: Origin,
    length: usize,
}

impl<'c> Stream<'c> {
    pub(crate) fn new(session: Session<'c>) -> Self {
        Self { session: session.eager(), window: String::new(), origin: Origin::START, length: 0 }
    }

    /// Takes the next piece.
    pub fn push(&mut self, piece: &str) -> Progress {
        self.length += piece.len();
        if self.length > self.session.max_bytes() {
            // The text is refused as a whole; nothing of it is needed.
            self.window = String::new();
            return Progress::Searching;
        }
        self.window.push_str(piece);
        self.session.feed(&self.window, self.origin, false);
        self.trim();
        self.session.progress()
    }

    /// Bytes held in memory for the text.
    pub fn held(&self) -> usize {
        self.window.capacity()
    }

    /// Ends the text.
    pub fn finish(mut self) -> Report {
        if self.length > self.session.max_bytes() {
            return self.session.too_large(self.length);
        }
        self.session.feed(&self.window, self.origin, true);
        let report = self.session.conclude(&self.window, self.origin);
        self.session.log(&report);
        report
    }

    /// Forgets what can no longer matter, a good deal at a time.
    fn trim(&mut self) {
        let keep = self.session.keep_from().min(self.origin.offset + self.window.len());
        let mut gone = keep.saturating_sub(self.origin.offset);
        if gone < 4096 || gone < self.window.len() / 2 {
            return;
        }
        while !self.window.is_char_boundary(gone) {
            gone -= 1;
        }
        self.origin = self.origin.after(&self.window[..gone]);
        self.window.drain(..gone);
        self.window.shrink_to(self.window.len() * 2 + 65_536);
    }
}
