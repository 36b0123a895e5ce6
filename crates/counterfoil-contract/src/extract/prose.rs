//! Skips the prose between values to the next opening bracket, and finds the bounds of thinking
//! sections. Both JSON scanners use it.

use super::strict_scan::ThinkMark;

/// Bytes before an opening bracket that are read to find the prefix of its line.
pub(crate) const LOOK_BACK: usize = 64;
/// The length of the shortest opening tag, `<think>`.
pub(crate) const OPEN_TAG: usize = 7;
/// The length of the longest tag, `</thinking>`.
const MAX_TAG_BYTES: usize = 11;

/// What ends a stretch of prose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProseEvent {
    /// `{` or `[` at this offset.
    Opener(usize),
    /// A thinking section begins at this offset.
    ThinkOpen(usize),
    /// The thinking section ends; the offset is after its closing tag.
    ThinkClose(usize),
    /// A closing tag alone on its line, without an opening tag: everything before it was thinking.
    ThinkOrphan(usize),
    /// Nothing up to this offset; the text may continue there.
    End(usize),
}

/// Skips prose in `bytes`, whose first byte has offset `base`, from offset `from` on.
pub(crate) fn next(
    bytes: &[u8],
    base: usize,
    from: usize,
    thinking: bool,
    eof: bool,
) -> ProseEvent {
    let mut at = from - base;
    while let Some(found) = memchr::memchr3(b'{', b'[', b'<', &bytes[at..]) {
        at += found;
        if bytes[at] != b'<' {
            return ProseEvent::Opener(base + at);
        }
        if !eof && bytes.len() - at < MAX_TAG_BYTES + 1 {
            return ProseEvent::End(base + at);
        }
        if let Some(met) = tag(bytes, base, at, thinking) {
            return met;
        }
        at += 1;
    }
    ProseEvent::End(base + bytes.len())
}

/// Whether a paragraph ends between two offsets: at a blank line, or at a fence.
pub(crate) fn ends_paragraph(bytes: &[u8], base: usize, from: usize, to: usize) -> bool {
    let start = (from - base).saturating_sub(3);
    let range = &bytes[start..to - base];
    memchr::memchr3_iter(b'\n', b'`', b'~', range).any(|at| {
        let rest = &range[at..];
        [&b"\n\n"[..], b"\n\r\n", b"```", b"~~~"].iter().any(|end| rest.starts_with(end))
    })
}

/// Whether the bracket at `at` stands where a value of an object or a list does: after a comma, an
/// opening bracket, a quoted key, or a colon on the same line.
pub(crate) fn is_member_position(bytes: &[u8], base: usize, at: usize) -> bool {
    let head = &bytes[(at - base).saturating_sub(LOOK_BACK)..at - base];
    let text = head.trim_ascii_end();
    let blanks = &head[text.len()..];
    (text.last() == Some(&b':') && !blanks.contains(&b'\n')) || ends_in_json(text)
}

/// Whether a comma, an opening bracket or a quoted key stands before the bracket at `at`.
pub(crate) fn follows_json(bytes: &[u8], base: usize, at: usize) -> bool {
    let head = &bytes[(at - base).saturating_sub(LOOK_BACK)..at - base];
    ends_in_json(head.trim_ascii_end())
}

fn ends_in_json(text: &[u8]) -> bool {
    match text.split_last() {
        Some((b',' | b'[' | b'{', _)) => true,
        Some((b':', key)) => matches!(key.trim_ascii_end().last(), Some(b'"' | b'\'')),
        _ => false,
    }
}

/// Whether a bracket after these bytes is code in a sentence: it selects a part of something, as in
/// `environ['HOME']`, is assigned, or is an argument.
pub(crate) fn is_selecting(before: &[u8]) -> bool {
    let head = &before[before.len().saturating_sub(LOOK_BACK)..];
    if head.trim_ascii_end().last() == Some(&b'=') || head.last() == Some(&b'(') {
        return true;
    }
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b')' | b']');
    // A colour code ends with a letter.
    head.last().is_some_and(is_part) && !ends_in_colour_code(head)
}

/// Whether a bracket after these bytes stands inside of a line: there is more before it than blanks and
/// markers of a quote. `begins_text` says that they are the beginning of the text.
pub(crate) fn is_inline(before: &[u8], begins_text: bool) -> bool {
    let from = before.len().saturating_sub(LOOK_BACK);
    let head = &before[from..];
    let line = memchr::memrchr(b'\n', head).map(|newline| &head[newline + 1..]);
    let is_whole = line.is_some() || (from == 0 && begins_text);
    !is_whole
        || line.unwrap_or(head).iter().any(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'>'))
}

fn ends_in_colour_code(head: &[u8]) -> bool {
    let Some(escape) = memchr::memrchr(0x1b, head) else { return false };
    let code = head[escape + 1..].strip_prefix(b"[").and_then(|code| code.split_last());
    code.is_some_and(|(last, numbers)| {
        last.is_ascii_alphabetic()
            && numbers.iter().all(|byte| byte.is_ascii_digit() || *byte == b';')
    })
}

/// Scans only for the bounds of thinking sections, for framings without brackets. Resumable.
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

    /// Scans the new part of the window and returns the bounds found.
    pub(crate) fn feed(&mut self, bytes: &[u8], base: usize, eof: bool) -> Vec<(ThinkMark, usize)> {
        let mut found = Vec::new();
        let before = self.pos;
        let mut at = self.pos - base;
        while let Some(next) = bytes.get(at..).and_then(|rest| memchr::memchr(b'<', rest)) {
            at += next;
            if !eof && bytes.len() - at < MAX_TAG_BYTES + 1 {
                self.pos = base + at;
                self.examined += (self.pos - before) as u64;
                return found;
            }
            let met = tag(bytes, base, at, self.thinking);
            at += 1;
            let (think, to) = match met {
                Some(ProseEvent::ThinkOpen(from)) => (ThinkMark::Open, from + OPEN_TAG),
                Some(ProseEvent::ThinkClose(to)) => (ThinkMark::Close, to),
                Some(ProseEvent::ThinkOrphan(to)) => (ThinkMark::Orphan, to),
                _ => continue,
            };
            self.thinking = think == ThinkMark::Open;
            found.push((think, to));
            at = to - base;
        }
        self.pos = self.pos.max(base + bytes.len());
        self.examined += (self.pos - before) as u64;
        found
    }
}

fn tag(bytes: &[u8], base: usize, at: usize, thinking: bool) -> Option<ProseEvent> {
    let rest = &bytes[at..];
    if thinking {
        let length = tag_length(rest, &[b"</think>", b"</thinking>"])?;
        return Some(ProseEvent::ThinkClose(base + at + length));
    }
    if tag_length(rest, &[b"<think>", b"<thinking>"]).is_some() {
        return begins_line(bytes, base, at).then_some(ProseEvent::ThinkOpen(base + at));
    }
    let length = tag_length(rest, &[b"</think>", b"</thinking>"])?;
    (begins_line(bytes, base, at) && ends_line(bytes, at + length))
        .then_some(ProseEvent::ThinkOrphan(base + at + length))
}

fn tag_length(rest: &[u8], tags: &[&[u8]]) -> Option<usize> {
    tags.iter()
        .find(|tag| rest.get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag)))
        .map(|tag| tag.len())
}

/// Whether a line inside of a value begins with the closing tag of a thinking section.
pub(crate) fn closes_thinking(rest: &[u8]) -> bool {
    tag_length(rest, &[b"</think>", b"</thinking>"]).is_some()
}

/// Whether there is only whitespace between the start of the line and `at`, within `LOOK_BACK`.
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

/// The number of Markdown quote markers before an opening bracket on its line.
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
