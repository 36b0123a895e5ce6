//! What stands between the tokens of a value: whitespace, comments, colour codes, quote markers.

use super::super::blank_run::RunEnd;
use super::super::doubt::{self, DoubtKind};
use super::super::fence_lines::fence_run;
use super::super::prose;
use super::{Blank, LINE_HEAD, Repairer, Stop};
use crate::edit::RepairKind;

impl Repairer<'_> {
    /// Skips whitespace, comments, colour codes and quote markers. Lines that were read before are
    /// passed over.
    pub(super) fn blanks(&mut self, at: usize) -> Result<Blank, Stop> {
        let (base, depth) = (self.window.base, self.quote_depth);
        if let Some((end, how)) = self.closers.blanks.end_from(base + at, depth) {
            self.doubt_glued_comment(at);
            self.scratch.skipped.push(at);
            return end_of_run(end - base, how);
        }
        self.scratch.lines.clear();
        let blank = self.read_blanks(at, true);
        let (end, how) = match &blank {
            Ok(Blank::Token(end)) => (*end, RunEnd::Token),
            Ok(Blank::End(end)) => (*end, RunEnd::End),
            Err(Stop::Fail(end)) => (*end, RunEnd::Fail),
            Err(_) => return blank,
        };
        let lines = &mut self.scratch.lines;
        self.closers.blanks.remember(base + at, lines, depth, base + end, how);
        blank
    }

    /// Notes a doubt if a comment begins right behind a token: its mark may be part of the token.
    fn doubt_glued_comment(&mut self, at: usize) {
        let is_mark = matches!(self.window.bytes.get(at), Some(b'#' | b'/'));
        if is_mark && at == self.last_end && self.last_scalar.is_some() {
            self.doubt(DoubtKind::Comment, at, at, at + 1);
        }
    }

    /// Records the edits and doubts of stretches that were passed over. The first doubt is the same as
    /// if they had been read at their place.
    pub(super) fn read_skipped(&mut self) {
        let noted = self.doubt.take();
        let before = self.skipped_before_doubt;
        for (index, start) in std::mem::take(&mut self.scratch.skipped).into_iter().enumerate() {
            if index >= before {
                self.doubt = self.doubt.or(noted);
            }
            let _ = self.read_blanks(start, false);
        }
        self.doubt = self.doubt.or(noted);
    }

    fn read_blanks(&mut self, mut at: usize, may_skip: bool) -> Result<Blank, Stop> {
        loop {
            let Some(byte) = self.window.get(at)? else { return Ok(Blank::End(at)) };
            if may_skip {
                self.doubt_glued_comment(at);
            }
            match byte {
                b' ' | b'\t' | b'\r' => at += 1,
                b'\n' => {
                    at += 1;
                    let line = self.window.base + at;
                    if may_skip
                        && let Some((end, how)) =
                            self.closers.blanks.end_from_line(line, self.quote_depth)
                    {
                        // From the line break before it.
                        self.scratch.skipped.push(at - 1);
                        return end_of_run(end - self.window.base, how);
                    }
                    if may_skip {
                        self.scratch.lines.push(line);
                    }
                    if let Some(end) = self.line_head(&mut at)? {
                        return end;
                    }
                }
                b'/' => match self.window.get(at + 1)? {
                    Some(b'/') => at = self.line_comment(at)?,
                    Some(b'*') => {
                        let closer = self.closers.block_comment_end(&self.window, at + 2)?;
                        let Some(closer) = closer else { return Err(Stop::Fail(at)) };
                        at = self.comment(at, 2, closer, closer + 2);
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
        let mark = if self.window.bytes[at] == b'#' { 1 } else { 2 };
        let end = self.closers.line_end(&self.window, at + mark)?;
        Ok(self.comment(at, mark, end, end))
    }

    /// Skips a comment: its mark of a length, its content up to an offset, and what closes it.
    fn comment(&mut self, at: usize, mark: usize, content_end: usize, end: usize) -> usize {
        let content = self.window.bytes.get(at + mark..content_end).unwrap_or(&[]);
        if doubt::hides_json(content) {
            self.doubt(DoubtKind::Comment, at, at + mark, end);
        }
        self.edit(RepairKind::Comment, at, end, "");
        end
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

/// The result of a stretch that was passed over.
fn end_of_run(end: usize, how: RunEnd) -> Result<Blank, Stop> {
    match how {
        RunEnd::Token => Ok(Blank::Token(end)),
        RunEnd::End => Ok(Blank::End(end)),
        RunEnd::Fail => Err(Stop::Fail(end)),
    }
}
