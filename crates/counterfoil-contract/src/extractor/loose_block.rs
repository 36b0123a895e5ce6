//! The lines of an output block without its markers. They are no result, but what can be read of
//! them is reported.

use crate::attempt::AttemptKeys;
use crate::read;
use crate::source::Source;

/// Looks for the first line with a field of the contract. Resumable.
#[derive(Debug, Default)]
pub(crate) struct LooseBlock {
    pos: usize,
    start: Option<usize>,
    pub(crate) examined: u64,
}

impl LooseBlock {
    /// From the first line with a field to the closing marker or the end of the text.
    pub(crate) fn extent(&self, source: &Source<'_>) -> Option<(usize, usize)> {
        let start = self.start?;
        let close = source.slice(start, source.end()).find("\n---END---");
        Some((start, close.map_or(source.end(), |newline| start + newline + 1)))
    }

    /// The first offset that must stay in the window.
    pub(crate) fn keep_from(&self) -> usize {
        self.start.unwrap_or(self.pos)
    }

    /// Reads the complete lines of the window, and at `eof` the last one too.
    pub(crate) fn feed(&mut self, source: &Source<'_>, keys: &AttemptKeys, eof: bool) {
        while self.start.is_none() && self.pos < source.end() {
            let rest = &source.bytes()[self.pos - source.base()..];
            let length = match memchr::memchr(b'\n', rest) {
                Some(newline) => newline + 1,
                None if eof => rest.len(),
                None => return,
            };
            let line = source.slice(self.pos, self.pos + length);
            self.examined += length as u64;
            if read::block_entries(line).any(|(key, _)| keys.knows(key)) {
                self.start = Some(self.pos);
            } else {
                self.pos += length;
            }
        }
    }
}
