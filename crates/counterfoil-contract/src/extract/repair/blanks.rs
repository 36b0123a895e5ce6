//! What stands between the tokens of a value: whitespace, comments, colour codes, quote markers.

use super::super::doubt::{self, DoubtKind};
use super::super::fence_lines::fence_run;
use super::super::prose;
use super::{Blank, LINE_HEAD, Repairer, Stop};
use crate::edit::RepairKind;

impl Repairer<'_> {
    /// Skips whitespace, comments, colour codes and quote markers.
    pub(super) fn blanks(&mut self, mut at: usize) -> Result<Blank, Stop> {
        loop {
            let Some(byte) = self.window.get(at)? else { return Ok(Blank::End(at)) };
            if matches!(byte, b'#' | b'/') && at == self.last_end && self.last_scalar.is_some() {
                // The mark may be part of the token before it.
                self.doubt(DoubtKind::Comment, at, at, at + 1);
            }
            match byte {
                b' ' | b'\t' | b'\r' => at += 1,
                b'\n' => {
                    at += 1;
                    if let Some(end) = self.line_head(&mut at)? {
                        return end;
                    }
                }
                b'/' => match self.window.get(at + 1)? {
                    Some(b'/') => at = self.line_comment(at)?,
                    Some(b'*') => {
                        let Some(length) =
                            memchr::memmem::find(&self.window.bytes[at + 2..], b"*/")
                        else {
                            return Err(if self.window.eof { Stop::Fail(at) } else { Stop::More });
                        };
                        let end = at + 2 + length + 2;
                        if doubt::hides_json(&self.window.bytes[at + 2..end - 2]) {
                            self.doubt(DoubtKind::Comment, at, at + 2, end);
                        }
                        self.edit(RepairKind::Comment, at, end, "");
                        self.examined += (end - at) as u64;
                        at = end;
                    }
                    _ => return Ok(Blank::Token(at)),
                },
                b'#' => at = self.line_comment(at)?,
                0x1b => match self.ansi(at)? {
                    Some(end) => {
                        self.edit(RepairKind::AnsiCode, at, end, "");
                        at = end;
                    }
                    None => return Ok(Blank::Token(at)),
                },
                _ => return Ok(Blank::Token(at)),
            }
            self.examined += 1;
        }
    }

    /// Reads the start of a line inside a value: skips quote markers; a fence ends the value.
    fn line_head(&mut self, at: &mut usize) -> Result<Option<Result<Blank, Stop>>, Stop> {
        let mut left = self.quote_depth;
        let mut next = *at;
        while next - *at < LINE_HEAD {
            match self.window.get(next)? {
                Some(b' ' | b'\t') => next += 1,
                Some(b'>') if left > 0 => {
                    left -= 1;
                    self.edit(RepairKind::QuotePrefix, next, next + 1, " ");
                    next += 1;
                }
                _ => break,
            }
        }
        let ahead = self.window.bytes.get(next..).unwrap_or(&[]);
        if !self.window.eof && ahead.len() < 12 {
            return Err(Stop::More);
        }
        *at = next;
        if fence_run(ahead).is_some() {
            return Ok(Some(Ok(Blank::End(next))));
        }
        if prose::closes_thinking(ahead) {
            return Err(Stop::Fail(next));
        }
        Ok(None)
    }

    fn line_comment(&mut self, at: usize) -> Result<usize, Stop> {
        let rest = &self.window.bytes[at..];
        let Some(length) = memchr::memchr(b'\n', rest).or(self.window.eof.then_some(rest.len()))
        else {
            return Err(Stop::More);
        };
        let mark = if self.window.bytes[at] == b'#' { 1 } else { 2 };
        let content = rest.get(mark..length).unwrap_or(&[]);
        if doubt::hides_json(content) {
            self.doubt(DoubtKind::Comment, at, at + mark, at + length);
        }
        self.edit(RepairKind::Comment, at, at + length, "");
        self.examined += length as u64;
        Ok(at + length)
    }

    fn ansi(&self, at: usize) -> Result<Option<usize>, Stop> {
        if self.window.get(at + 1)? != Some(b'[') {
            return Ok(None);
        }
        for end in at + 2..at + 32 {
            match self.window.get(end)? {
                Some(b'0'..=b'9' | b';' | b':' | b'?') => {}
                Some(0x40..=0x7e) => return Ok(Some(end + 1)),
                _ => return Ok(None),
            }
        }
        Ok(None)
    }
}
