//! The normal form of a text, in which copies are equal.

use std::borrow::Cow;

/// A text without whitespace and without the quote markers at the head of its lines.
pub(super) struct Normal {
    pub(super) bytes: Vec<u8>,
    /// The offsets of opening brackets and of the first byte of each line.
    pub(super) starts: Vec<usize>,
}

impl Normal {
    pub(super) fn new(text: &str) -> Self {
        let mut normal = Self { bytes: Vec::with_capacity(text.len()), starts: Vec::new() };
        let mut buffer = [0; 4];
        for (_, c, at_head) in kept(text) {
            if at_head || matches!(c, '{' | '[') {
                normal.starts.push(normal.bytes.len());
            }
            normal.bytes.extend(c.encode_utf8(&mut buffer).as_bytes());
        }
        normal
    }

    /// The beginning of a text of which a number of bytes remain in the normal form.
    pub(super) fn raw_prefix(text: &str, bytes: usize) -> &str {
        let mut length = 0;
        let end = kept(text).find_map(|(at, c, _)| {
            length += c.len_utf8();
            (length > bytes).then_some(at)
        });
        &text[..end.unwrap_or(text.len())]
    }

    /// A text without the quote markers at the head of its lines.
    pub(super) fn dequoted(text: &str) -> Cow<'_, str> {
        let is_quoted = |line: &str| line.trim_start().starts_with('>');
        if !text.lines().any(is_quoted) {
            return Cow::Borrowed(text);
        }
        let head = |c: char| c == '>' || c == ' ' || c == '\t';
        let lines = text.lines().map(|line| line.trim_start_matches(head));
        Cow::Owned(lines.collect::<Vec<_>>().join("\n"))
    }
}

/// The characters that remain in the normal form, with their offsets and whether they begin a line.
fn kept(text: &str) -> impl Iterator<Item = (usize, char, bool)> + '_ {
    let mut at_head = true;
    text.char_indices().filter_map(move |(at, c)| match c {
        '\n' | '\r' => {
            at_head = true;
            None
        }
        '>' if at_head => None,
        c if c.is_whitespace() || c == '\u{feff}' => None,
        c => Some((at, c, std::mem::replace(&mut at_head, false))),
    })
}

/// Whether a part has a text or a number of its own: one that another result would hardly repeat. A
/// word such as `high` may be one of a few allowed values.
pub(super) fn is_distinctive(part: &str) -> bool {
    let is_text =
        |text: &str| text.trim().chars().any(|c| !(c.is_alphanumeric() || c == '_' || c == '-'));
    let pieces: Vec<&str> = part.split('"').collect();
    let quoted = pieces.iter().enumerate().skip(1).step_by(2);
    let mut values = quoted.filter_map(|(at, piece)| {
        let after = pieces.get(at + 1)?;
        (!after.trim_start().starts_with(':')).then_some(*piece)
    });
    if part.trim_start_matches(['>', ' ', '\t', '\r', '\n']).starts_with(['{', '[']) {
        return values.any(is_text);
    }
    // The lines of a block. The last one may be cut off.
    let mut lines = part.lines().rev();
    lines.next();
    lines.any(|line| line.split_once(':').is_some_and(|(_, value)| is_text(value)))
}
