//! What both JSON scanners do between values: skip prose to the next opening bracket, and notice
//! where a thinking section begins and ends.

use super::scan::Think;

/// How far back from an opening bracket the prefix of its line is read.
pub(crate) const LOOK_BACK: usize = 64;
/// The length of the shortest opening tag, `<think>`.
pub(crate) const OPEN_TAG: usize = 7;
/// The longest tag we look for, `</thinking>`.
const LONGEST_TAG: usize = 11;

/// A thing met in prose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    /// `{` or `[` at this offset.
    Opener(usize),
    /// A thinking section begins at this offset.
    ThinkOpen(usize),
    /// The thinking section ends; the offset is behind its closing tag.
    ThinkClose(usize),
    /// A closing tag alone on its line, with no opening one: all before it was thinking.
    ThinkOrphan(usize),
    /// Nothing more up to this offset; the text may go on there.
    End(usize),
}

/// Skips prose in `bytes`, whose first byte has offset `base`, from offset `from` on.
pub(crate) fn next(bytes: &[u8], base: usize, from: usize, thinking: bool, eof: bool) -> Met {
    let mut at = from - base;
    while let Some(found) = memchr::memchr3(b'{', b'[', b'<', &bytes[at..]) {
        at += found;
        if bytes[at] != b'<' {
            return Met::Opener(base + at);
        }
        if !eof && bytes.len() - at < LONGEST_TAG + 1 {
            return Met::End(base + at);
        }
        if let Some(met) = tag(bytes, base, at, thinking) {
            return met;
        }
        at += 1;
    }
    Met::End(base + bytes.len())
}

/// Only the bounds of thinking sections, for framings that do not look for brackets. Resumable.
#[derive(Debug, Default)]
pub(crate) struct ThinkScan {
    pos: usize,
    thinking: bool,
    pub(crate) examined: u64,
}

impl ThinkScan {
    /// The first offset that must stay in the window.
    pub(crate) fn keep_from(&self) -> usize {
        self.pos.saturating_sub(LOOK_BACK)
    }

    /// Reads on in the window and returns the bounds found.
    pub(crate) fn feed(&mut self, bytes: &[u8], base: usize, eof: bool) -> Vec<(Think, usize)> {
        let mut found = Vec::new();
        let before = self.pos;
        let mut at = self.pos - base;
        while let Some(next) = bytes.get(at..).and_then(|rest| memchr::memchr(b'<', rest)) {
            at += next;
            if !eof && bytes.len() - at < LONGEST_TAG + 1 {
                self.pos = base + at;
                self.examined += (self.pos - before) as u64;
                return found;
            }
            let met = tag(bytes, base, at, self.thinking);
            at += 1;
            let (think, to) = match met {
                Some(Met::ThinkOpen(from)) => (Think::Open, from + OPEN_TAG),
                Some(Met::ThinkClose(to)) => (Think::Close, to),
                Some(Met::ThinkOrphan(to)) => (Think::Orphan, to),
                _ => continue,
            };
            self.thinking = think == Think::Open;
            found.push((think, to));
            at = to - base;
        }
        self.pos = self.pos.max(base + bytes.len());
        self.examined += (self.pos - before) as u64;
        found
    }
}

fn tag(bytes: &[u8], base: usize, at: usize, thinking: bool) -> Option<Met> {
    let rest = &bytes[at..];
    if thinking {
        let length = tag_length(rest, &[b"</think>", b"</thinking>"])?;
        return Some(Met::ThinkClose(base + at + length));
    }
    if tag_length(rest, &[b"<think>", b"<thinking>"]).is_some() {
        return begins_line(bytes, base, at).then_some(Met::ThinkOpen(base + at));
    }
    let length = tag_length(rest, &[b"</think>", b"</thinking>"])?;
    (begins_line(bytes, base, at) && ends_line(bytes, at + length))
        .then_some(Met::ThinkOrphan(base + at + length))
}

fn tag_length(rest: &[u8], tags: &[&[u8]]) -> Option<usize> {
    tags.iter()
        .find(|tag| rest.get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag)))
        .map(|tag| tag.len())
}

/// Whether a line at `at` closes a thinking section: used where a scanner reads lines inside a
/// value.
pub(crate) fn closes_thinking(rest: &[u8]) -> bool {
    tag_length(rest, &[b"</think>", b"</thinking>"]).is_some()
}

/// Whether only blanks stand between the start of the line and `at`, as far back as we look.
fn begins_line(bytes: &[u8], base: usize, at: usize) -> bool {
    let from = at.saturating_sub(LOOK_BACK);
    for index in (from..at).rev() {
        match bytes[index] {
            b'\n' => return true,
            b' ' | b'\t' | b'\r' => {}
            _ => return false,
        }
    }
    base + from == 0
}

fn ends_line(bytes: &[u8], at: usize) -> bool {
    bytes[at..]
        .iter()
        .find(|byte| !matches!(byte, b' ' | b'\t' | b'\r'))
        .is_none_or(|byte| *byte == b'\n')
}

/// How many Markdown quote markers stand before an opening bracket on its line.
pub(crate) fn quote_depth(bytes: &[u8], base: usize, at: usize) -> u8 {
    let from = at.saturating_sub(LOOK_BACK);
    let line = memchr::memrchr(b'\n', &bytes[from..at]).map_or(from, |newline| from + newline + 1);
    if line == from && base + from != 0 && (from == 0 || bytes[from - 1] != b'\n') {
        return 0;
    }
    let mut depth: u8 = 0;
    for byte in &bytes[line..at] {
        match byte {
            b'>' => depth = depth.saturating_add(1),
            b' ' | b'\t' | b'-' | b'*' | b'+' | b'.' | b')' | b'0'..=b'9' => {}
            _ => return 0,
        }
    }
    depth
}
