//! Values without quotes: numbers, literals, words.

use super::super::closing_quote::is_bare;
use super::super::doubt::{self, DoubtKind};
use super::{Repairer, Stop};
use crate::edit::RepairKind;

impl Repairer<'_> {
    /// A number, a literal, or a word without quotes.
    pub(super) fn word(&mut self, at: usize) -> Result<usize, Stop> {
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
                None if self.begun => return Err(Stop::Cut(stop)),
                _ => return Err(Stop::Fail(end)),
            }
            self.examined += 1;
        }
        while matches!(self.window.bytes[stop - 1], b' ' | b'\t') {
            stop -= 1;
        }
        let words = &self.window.bytes[at..stop];
        if doubt::mistyped(words) {
            self.doubt(DoubtKind::Word, at, at, stop);
        }
        if memchr::memmem::find(words, b"//").is_some() {
            self.doubt(DoubtKind::Comment, at, at, stop);
        }
        self.last_bare = Some(at);
        self.edit(RepairKind::BareValue, at, at, "\"");
        self.edit(RepairKind::BareValue, stop, stop, "\"");
        Ok(stop)
    }
}
