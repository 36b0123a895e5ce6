//! Reads keys, strings and words, and notes what is to be edited in them.

use super::{Repairer, Stop};
use crate::edit::RepairKind;
use crate::extract::closing_quote::{Quote, Role, is_bare, next_mark};
use crate::extract::doubt::{self, DoubtKind};
use crate::extract::string_edits::Text;

impl Repairer<'_> {
    pub(super) fn key(&mut self, at: usize) -> Result<usize, Stop> {
        if let Some(frame) = self.scratch.stack.last_mut() {
            frame.comma = None;
        }
        if let Some((quote, length)) = self.quote(at)? {
            let mut end = at + length;
            // A key ends at its first quote, on its line.
            let close = loop {
                self.examined += 1;
                match self.window.get(end)? {
                    None if self.begun => return Err(Stop::Cut(self.window.bytes.len())),
                    None | Some(b'\n') => {
                        self.last_string = Some(at);
                        return Err(Stop::Fail(end));
                    }
                    Some(b'\\') => end += 2,
                    Some(_) => match quote.closing(&self.window.bytes[end..]) {
                        Some(length) => break end + length,
                        None => end += 1,
                    },
                }
            };
            self.scratch.texts.push(Text {
                start: at,
                end: close,
                open: length,
                close: close - end,
                quote,
                cut: false,
            });
            self.quoted_key |= quote == Quote::Double;
            self.last_string = Some(at);
            self.last_end = close;
            return Ok(close);
        }
        let end = self.bare_end(at)?;
        if end == at || !self.window.key_ahead(at)? {
            return Err(Stop::Fail(end.max(at)));
        }
        if doubt::is_literal(&self.window.bytes[at..end]) {
            self.doubt(DoubtKind::Word, at, at, end);
        }
        if let Some(bare) = self.last_bare.filter(|_| self.quoted_key) {
            // The comma before it may be text.
            self.doubt(DoubtKind::Unquoted, bare, at, end);
        }
        self.edit(RepairKind::BareKey, at, at, "\"");
        self.edit(RepairKind::BareKey, end, end, "\"");
        self.last_end = end;
        Ok(end)
    }

    pub(super) fn quote(&self, at: usize) -> Result<Option<(Quote, usize)>, Stop> {
        if !self.window.eof && self.window.bytes.len() < at + 3 {
            return Err(Stop::More);
        }
        Ok(Quote::opening(&self.window.bytes[at..]))
    }

    pub(super) fn bare_end(&mut self, at: usize) -> Result<usize, Stop> {
        let mut end = at;
        while self.window.get(end)?.is_some_and(|byte| is_bare(byte) || byte == b'.') {
            end += 1;
        }
        self.examined += (end - at) as u64;
        Ok(end)
    }

    pub(super) fn scalar(&mut self, at: usize) -> Result<usize, Stop> {
        let end = match self.quote(at)? {
            Some((quote, length)) => self.string(at, quote, length)?,
            None => self.word(at)?,
        };
        self.last_end = end;
        self.last_scalar = Some(at);
        let bare = self.last_bare == Some(at);
        let quoted_key = self.quoted_key;
        if let Some(frame) = self.scratch.stack.last_mut() {
            let pair = bare && frame.bare && !frame.object && quoted_key;
            frame.comma = None;
            frame.empty = false;
            frame.bare = bare;
            if pair {
                self.doubt(DoubtKind::Unquoted, at, at, end);
            }
        }
        if !bare {
            self.last_bare = None;
        }
        Ok(end)
    }

    /// The end of the first part of a string that nothing closes, if it has a quote inside and a bracket
    /// closes after that: then it is no string that the text cuts off.
    fn inner_end(&mut self, from: usize, end: usize, quote: Quote) -> Option<usize> {
        let bytes = &self.window.bytes[..end];
        let mut at = from;
        let inner = loop {
            let mark = next_mark(bytes, at, quote)?;
            self.examined += (mark + 1 - at) as u64;
            if bytes[mark] == b'\\' {
                at = mark + 2;
                continue;
            }
            match quote.closing(&bytes[mark..]) {
                Some(length) => break mark + length,
                None => at = mark + 1,
            }
        };
        self.examined += (end - inner) as u64;
        memchr::memchr2(b'}', b']', &bytes[inner..]).map(|_| inner)
    }

    fn string(&mut self, at: usize, quote: Quote, length: usize) -> Result<usize, Stop> {
        let role = if self.scratch.stack.last().is_some_and(|frame| frame.object) {
            Role::Member
        } else {
            Role::Item
        };
        self.begun |= self.counts_items && role == Role::Item;
        let from = at + length;
        let closer = self.closers.find(&self.window, from, role, quote)?;
        let base = self.window.base;
        let cut =
            self.fences.cut(base + at, closer.map(|(at, _)| base + at)).map(|line| line - base);
        self.open_ended = false;
        self.last_string = Some(at);
        if let (Some((close, length)), None) = (closer, cut) {
            let end = close + length;
            self.scratch.texts.push(Text {
                start: at,
                end,
                open: end.min(from) - at,
                close: length,
                quote,
                cut: false,
            });
            return Ok(end);
        }
        // The end of the block, or of the text, truncated the string.
        if !self.accept_truncated {
            let end = cut.unwrap_or(self.window.bytes.len());
            if !self.begun {
                return Err(Stop::Fail(end));
            }
            let Some(inner) = self.inner_end(from, end, quote) else { return Err(Stop::Cut(end)) };
            self.doubt(DoubtKind::Quote, at, inner, end);
            let line = memchr::memchr(b'\n', &self.window.bytes[from..end]);
            self.examined += line.unwrap_or(end - from) as u64;
            self.cut_at = line.map(|length| from + length);
            return Err(Stop::Doubt(end));
        }
        let mut end = cut.unwrap_or(self.window.bytes.len());
        while end > from && self.window.bytes[end - 1].is_ascii_whitespace() {
            end -= 1;
        }
        self.scratch.texts.push(Text {
            start: at,
            end,
            open: from - at,
            close: 0,
            quote,
            cut: true,
        });
        self.edit(RepairKind::TruncatedString, end, end, "\"");
        Ok(end)
    }
}
