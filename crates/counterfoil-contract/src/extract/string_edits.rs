//! The edits that turn a string of the text into a JSON string.

use super::closing_quote::Quote;
use super::repair::MAX_EDITS;
use crate::edit::{Edit, RepairKind};
use std::borrow::Cow;

/// A string of the text, with its quotes. Offsets are indices of the window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The lengths of the quotes; `close` is 0 if the string is truncated.
    pub(crate) open: usize,
    pub(crate) close: usize,
    pub(crate) quote: Quote,
    pub(crate) cut: bool,
}

/// Appends the edits for one string. Returns the offset of an escape that is valid in a string with
/// escapes that are not: nobody knows whether its backslash was meant as text.
pub(crate) fn text_edits(
    text: &Text,
    bytes: &[u8],
    base: usize,
    edits: &mut Vec<Edit>,
) -> Option<usize> {
    let (mut bad, mut good) = (false, None);
    let mut push = |kind, start: usize, end: usize, replacement: Cow<'static, str>| {
        edits.push(Edit { kind, start: base + start, end: base + end, replacement });
    };
    let quotes = match text.quote {
        Quote::Double => None,
        Quote::Single => Some(RepairKind::SingleQuotes),
        Quote::SmartDouble | Quote::SmartSingle => Some(RepairKind::SmartQuotes),
        Quote::TripleDouble | Quote::TripleSingle => Some(RepairKind::TripleQuotes),
    };
    if let Some(kind) = quotes {
        push(kind, text.start, text.start + text.open, "\"".into());
        if !text.cut {
            push(kind, text.end - text.close, text.end, "\"".into());
        }
    }
    let (mut at, end) = (text.start + text.open, text.end - text.close);
    // One edit more than the limit shows that there are too many.
    while at < end && edits.len() <= MAX_EDITS {
        let mut push = |kind, start: usize, end: usize, replacement: Cow<'static, str>| {
            edits.push(Edit { kind, start: base + start, end: base + end, replacement });
        };
        match bytes[at] {
            b'\\' => {
                let length = escape_length(&bytes[at..end]);
                match length {
                    Some(length) => {
                        if matches!(bytes[at + 1], b'\\' | b'b' | b'f' | b'n' | b'r' | b't') {
                            good = good.or(Some(at));
                        }
                        at += length;
                    }
                    None if bytes.get(at + 1) == Some(&b'\'') && at + 1 < end => {
                        push(quotes.unwrap_or(RepairKind::BadEscape), at, at + 1, "".into());
                        at += 2;
                    }
                    None => {
                        bad = true;
                        push(RepairKind::BadEscape, at, at + 1, "\\\\".into());
                        at += 1;
                    }
                }
            }
            b'"' => {
                push(quotes.unwrap_or(RepairKind::UnescapedQuote), at, at + 1, "\\\"".into());
                at += 1;
            }
            b'\n' => {
                push(
                    quotes.filter(|_| triple(text.quote)).unwrap_or(RepairKind::RawNewline),
                    at,
                    at + 1,
                    "\\n".into(),
                );
                at += 1;
            }
            b'\r' if bytes.get(at + 1) == Some(&b'\n') => {
                push(RepairKind::RawNewline, at, at + 1, "\\r".into());
                at += 1;
            }
            control @ 0..=0x1f => {
                push(RepairKind::RawControl, at, at + 1, format!("\\u{control:04x}").into());
                at += 1;
            }
            _ => at += 1,
        }
    }
    good.filter(|_| bad)
}

fn triple(quote: Quote) -> bool {
    matches!(quote, Quote::TripleDouble | Quote::TripleSingle)
}

/// The length of a JSON escape at the head of `rest`.
fn escape_length(rest: &[u8]) -> Option<usize> {
    match rest.get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => rest.get(2..6).filter(|hex| hex.iter().all(u8::is_ascii_hexdigit)).map(|_| 6),
        _ => None,
    }
}
