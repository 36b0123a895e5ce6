//! Repairs one value that is nearly JSON: finds the edits that make it JSON.
//!
//! It never builds a value. The edits are applied to the text and the strict parser reads the
//! result, so a repair is exactly what the provenance says. The scan starts at an opening bracket,
//! with a stack and a bounded look-ahead. When it fails, every open bracket fails with it, as in
//! the strict scanner.

use super::closing_quote::{Closers, NeedMoreText, Quote, Role, Window, is_bare};
use super::fence_lines::{FenceLines, fence_run};
use super::prose;
use super::string_edits::{Text, text_edits};
use crate::edit::{Edit, RepairKind, sort_edits};

/// Bytes at the start of a line that are read to find quote markers and fences.
const LINE_HEAD: usize = 64;

/// The outcome of a repair from one opening bracket.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// A value up to `end`, if the edits are applied.
    Done { end: usize, edits: Vec<Edit> },
    /// Not JSON; continue at `resume`. `inner` holds the starts of values that closed inside.
    Failed { at: usize, resume: usize, inner: Vec<usize> },
    /// The window ended first.
    More,
}

enum Stop {
    More,
    Fail(usize),
}

impl From<NeedMoreText> for Stop {
    fn from(_: NeedMoreText) -> Self {
        Self::More
    }
}

#[derive(Debug)]
struct Frame {
    object: bool,
    start: usize,
    /// The comma right before the current position, if there is one.
    comma: Option<usize>,
    empty: bool,
    mark: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before a key or the closing brace.
    Key,
    Colon,
    /// Before a value (or, in a list, its end).
    Value,
    After,
}

enum Blank {
    /// A token begins here.
    Token(usize),
    /// The text, or the block around the value, ends here.
    End(usize),
}

/// Buffers that attempts reuse.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    stack: Vec<Frame>,
    edits: Vec<Edit>,
    texts: Vec<Text>,
    closed: Vec<usize>,
}

pub(crate) struct Repairer<'w> {
    pub(crate) window: Window<'w>,
    pub(crate) closers: &'w mut Closers,
    pub(crate) fences: &'w FenceLines,
    scratch: &'w mut Scratch,
    last_string: Option<usize>,
    quote_depth: u8,
    /// The end of the last token (exclusive).
    last_end: usize,
    /// Whether the last token was a number or a word, which a truncation may have shortened.
    open_ended: bool,
    pub(crate) examined: u64,
}

impl<'w> Repairer<'w> {
    pub(crate) fn new(
        window: Window<'w>,
        closers: &'w mut Closers,
        fences: &'w FenceLines,
        scratch: &'w mut Scratch,
    ) -> Self {
        scratch.stack.clear();
        scratch.edits.clear();
        scratch.texts.clear();
        scratch.closed.clear();
        Self {
            window,
            closers,
            fences,
            scratch,
            last_string: None,
            quote_depth: 0,
            last_end: 0,
            open_ended: false,
            examined: 0,
        }
    }

    /// Tries the bracket at offset `start`.
    pub(crate) fn attempt(mut self, start: usize) -> (Attempt, u64) {
        let base = self.window.base;
        let from = start - base;
        self.quote_depth = prose::quote_depth(self.window.bytes, base, from);
        let attempt = match self.value_from(from) {
            Ok(end) => {
                // Edits of strings come first: a truncated string is closed before its brackets.
                let mut edits = Vec::new();
                for text in &self.scratch.texts {
                    self.examined += (text.end - text.start) as u64;
                    text_edits(text, self.window.bytes, base, &mut edits);
                }
                edits.append(&mut self.scratch.edits);
                sort_edits(&mut edits, base + end);
                Attempt::Done { end: base + end, edits }
            }
            Err(Stop::More) => Attempt::More,
            Err(Stop::Fail(at)) => {
                let resume = self.last_string.map_or(at.max(from + 1), |quote| quote + 1);
                let inner = self.scratch.closed.iter().map(|start| base + start).collect();
                Attempt::Failed { at: base + at, resume: base + resume, inner }
            }
        };
        (attempt, self.examined)
    }

    fn value_from(&mut self, from: usize) -> Result<usize, Stop> {
        let mut at = from;
        let mut state = self.open(at);
        at += 1;
        loop {
            match self.blanks(at)? {
                Blank::Token(next) => at = next,
                Blank::End(end) => return self.finish(state, end),
            }
            let Some(byte) = self.window.get(at)? else { return self.finish(state, at) };
            self.examined += 1;
            let in_object = self.scratch.stack.last().is_some_and(|frame| frame.object);
            match (state, byte) {
                // A key without a value.
                (State::Value, b'}' | b']') if in_object => return Err(Stop::Fail(at)),
                (State::Key | State::Value | State::After, b'}' | b']') => {
                    if let Some(end) = self.close(at, byte == b'}')? {
                        return Ok(end);
                    }
                    at += 1;
                    state = State::After;
                }
                (State::Key, b',') => {
                    if self.scratch.stack.last().is_none_or(|frame| frame.comma.is_none()) {
                        return Err(Stop::Fail(at));
                    }
                    self.edit(RepairKind::ExtraComma, at, at + 1, "");
                    at += 1;
                }
                (State::Key, _) => {
                    at = self.key(at)?;
                    state = State::Colon;
                }
                (State::Colon, b':') => {
                    self.last_string = None;
                    at += 1;
                    state = State::Value;
                }
                (State::Colon, _) => return Err(Stop::Fail(at)),
                (State::Value, b'{' | b'[') => {
                    state = self.open(at);
                    at += 1;
                }
                (State::Value, _) => {
                    at = self.scalar(at)?;
                    state = State::After;
                }
                (State::After, b',') => {
                    self.last_string = None;
                    state = self.comma(at);
                    at += 1;
                }
                (State::After, _) => state = self.missing_comma(at, byte)?,
            }
        }
    }

    fn edit(&mut self, kind: RepairKind, start: usize, end: usize, replacement: &'static str) {
        let base = self.window.base;
        self.scratch.edits.push(Edit {
            kind,
            start: base + start,
            end: base + end,
            replacement: replacement.into(),
        });
    }

    fn open(&mut self, at: usize) -> State {
        let object = self.window.bytes[at] == b'{';
        if let Some(parent) = self.scratch.stack.last_mut() {
            parent.comma = None;
        }
        self.scratch.stack.push(Frame {
            object,
            start: at,
            comma: None,
            empty: true,
            mark: self.scratch.closed.len(),
        });
        self.last_string = None;
        self.open_ended = false;
        self.last_end = at + 1;
        if object { State::Key } else { State::Value }
    }

    /// A closing bracket; the end of the value if it was the last.
    fn close(&mut self, at: usize, object: bool) -> Result<Option<usize>, Stop> {
        if !self.scratch.stack.iter().any(|frame| frame.object == object) {
            return Err(Stop::Fail(at));
        }
        loop {
            let Some(frame) = self.scratch.stack.last() else { return Err(Stop::Fail(at)) };
            if let Some(comma) = frame.comma {
                self.edit(RepairKind::TrailingComma, comma, comma + 1, "");
            }
            let Some(frame) = self.scratch.stack.pop() else { return Err(Stop::Fail(at)) };
            self.scratch.closed.truncate(frame.mark);
            self.scratch.closed.push(frame.start);
            if frame.object == object {
                break;
            }
            self.edit(
                RepairKind::MissingCloser,
                self.last_end,
                self.last_end,
                if frame.object { "}" } else { "]" },
            );
        }
        self.last_string = None;
        self.open_ended = false;
        self.last_end = at + 1;
        match self.scratch.stack.last_mut() {
            None => Ok(Some(at + 1)),
            Some(parent) => {
                parent.comma = None;
                parent.empty = false;
                Ok(None)
            }
        }
    }

    fn comma(&mut self, at: usize) -> State {
        self.open_ended = false;
        match self.scratch.stack.last_mut() {
            Some(frame) => {
                frame.comma = Some(at);
                if frame.object { State::Key } else { State::Value }
            }
            None => State::After,
        }
    }

    /// Inserts a comma where the next element begins without one.
    fn missing_comma(&mut self, at: usize, byte: u8) -> Result<State, Stop> {
        let object = self.scratch.stack.last().is_some_and(|frame| frame.object);
        let good = if object {
            self.window.key_ahead(at)?
        } else {
            matches!(byte, b'"' | b'\'' | b'{' | b'[' | b'-' | b'0'..=b'9' | 0xe2)
                || matches!(byte, b't' | b'f' | b'n' | b'T' | b'F' | b'N')
        };
        // Text right after the last token belongs to that token.
        if !good || at == self.last_end {
            return Err(Stop::Fail(at));
        }
        self.edit(RepairKind::MissingComma, self.last_end, self.last_end, ",");
        self.last_string = None;
        Ok(if object { State::Key } else { State::Value })
    }

    fn key(&mut self, at: usize) -> Result<usize, Stop> {
        if let Some(frame) = self.scratch.stack.last_mut() {
            frame.comma = None;
        }
        if let Some((quote, length)) = self.quote(at)? {
            let mut end = at + length;
            // A key ends at its first quote, on its line.
            let close = loop {
                self.examined += 1;
                match self.window.get(end)? {
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
            self.last_string = Some(at);
            self.last_end = close;
            return Ok(close);
        }
        let end = self.bare_end(at)?;
        if end == at || !self.window.key_ahead(at)? {
            return Err(Stop::Fail(end.max(at)));
        }
        self.edit(RepairKind::BareKey, at, at, "\"");
        self.edit(RepairKind::BareKey, end, end, "\"");
        self.last_end = end;
        Ok(end)
    }

    fn quote(&self, at: usize) -> Result<Option<(Quote, usize)>, Stop> {
        if !self.window.eof && self.window.bytes.len() < at + 3 {
            return Err(Stop::More);
        }
        Ok(Quote::opening(&self.window.bytes[at..]))
    }

    fn bare_end(&mut self, at: usize) -> Result<usize, Stop> {
        let mut end = at;
        while self.window.get(end)?.is_some_and(|byte| is_bare(byte) || byte == b'.') {
            end += 1;
        }
        self.examined += (end - at) as u64;
        Ok(end)
    }

    fn scalar(&mut self, at: usize) -> Result<usize, Stop> {
        let end = match self.quote(at)? {
            Some((quote, length)) => self.string(at, quote, length)?,
            None => self.word(at)?,
        };
        self.last_end = end;
        if let Some(frame) = self.scratch.stack.last_mut() {
            frame.comma = None;
            frame.empty = false;
        }
        Ok(end)
    }

    fn string(&mut self, at: usize, quote: Quote, length: usize) -> Result<usize, Stop> {
        let role = if self.scratch.stack.last().is_some_and(|frame| frame.object) {
            Role::Member
        } else {
            Role::Item
        };
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

    /// A number, a literal, or a word without quotes.
    fn word(&mut self, at: usize) -> Result<usize, Stop> {
        let mut end = at;
        while self.window.get(end)?.is_some_and(|byte| is_bare(byte) || matches!(byte, b'.' | b'+'))
        {
            end += 1;
        }
        self.examined += (end - at) as u64;
        let word = &self.window.bytes[at..end];
        self.last_string = None;
        self.open_ended = true;
        let replacement = match word {
            b"true" | b"false" | b"null" => {
                self.open_ended = false;
                return Ok(end);
            }
            b"True" => "true",
            b"False" => "false",
            b"None" => "null",
            _ => return self.number_or_words(at, end),
        };
        self.open_ended = false;
        self.edit(RepairKind::PythonLiteral, at, end, replacement);
        Ok(end)
    }

    fn number_or_words(&mut self, at: usize, end: usize) -> Result<usize, Stop> {
        let word = &self.window.bytes[at..end];
        let Some(first) = word.first() else { return Err(Stop::Fail(at)) };
        if first.is_ascii_digit() || matches!(first, b'-' | b'+' | b'.') {
            let number = std::str::from_utf8(word)
                .ok()
                .and_then(|text| text.parse::<serde_json::Number>().ok());
            return if number.is_some() { Ok(end) } else { Err(Stop::Fail(at)) };
        }
        let invented = [b"nan".as_slice(), b"inf", b"infinity", b"undefined"];
        let in_object = self.scratch.stack.iter().any(|frame| frame.object);
        if !in_object || invented.iter().any(|bad| word.eq_ignore_ascii_case(bad)) {
            return Err(Stop::Fail(at));
        }
        // Words on one line, up to the comma, bracket or line end that closes them.
        let mut stop = end;
        loop {
            match self.window.get(stop)? {
                Some(b' ' | b'\t') => stop += 1,
                Some(byte) if is_bare(byte) || matches!(byte, b'.' | b'/' | b'+' | b'!' | b'?') => {
                    stop += 1;
                }
                Some(b',' | b'}' | b']' | b'\n' | b'\r') => break,
                _ => return Err(Stop::Fail(end)),
            }
            self.examined += 1;
        }
        while matches!(self.window.bytes[stop - 1], b' ' | b'\t') {
            stop -= 1;
        }
        self.edit(RepairKind::BareValue, at, at, "\"");
        self.edit(RepairKind::BareValue, stop, stop, "\"");
        Ok(stop)
    }

    /// Closes what is open at the end of the text or block, if only closing marks are missing.
    fn finish(&mut self, state: State, met: usize) -> Result<usize, Stop> {
        let end = self.last_end;
        let (object, empty) =
            self.scratch.stack.last().map_or((false, true), |frame| (frame.object, frame.empty));
        // A number or word may be truncated, a key may lack its value, an empty bracket may lack
        // its content: none of these can be guessed.
        let lost = match state {
            State::Colon => true,
            State::Value => object || empty,
            State::Key => empty,
            State::After => self.open_ended,
        };
        if lost {
            return Err(Stop::Fail(met));
        }
        while let Some(frame) = self.scratch.stack.pop() {
            if let Some(comma) = frame.comma {
                self.edit(RepairKind::TrailingComma, comma, comma + 1, "");
            }
            self.edit(RepairKind::MissingCloser, end, end, if frame.object { "}" } else { "]" });
        }
        Ok(end)
    }

    /// Skips whitespace, comments, colour codes and quote markers.
    fn blanks(&mut self, mut at: usize) -> Result<Blank, Stop> {
        loop {
            let Some(byte) = self.window.get(at)? else { return Ok(Blank::End(at)) };
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
