//! Finds private keys: from their first to their last line, or as far as they go if they are cut off.

use super::{Redactor, Span, cut};
use std::ops::Range;

/// A line that is so long is a part of a key, even if it is not on a line of its own.
const LONG_LINE: usize = 32;
/// The fields that can stand before the Base64 characters of a key.
const FIELDS: [&str; 7] =
    ["Proc-Type:", "DEK-Info:", "Version:", "Comment:", "Hash:", "Charset:", "MessageID:"];

impl Redactor {
    /// The private keys in a text.
    pub(super) fn private_keys(&self, text: &str) -> Vec<Span> {
        let edges: Vec<(bool, Range<usize>)> = self
            .finders
            .edges
            .captures_iter(text)
            .filter_map(|edge| Some((edge.get(1)?.as_str() == "BEGIN", edge.get(0)?.range())))
            .collect();
        let spans = edges.iter().enumerate().filter(|(_, (begins, _))| *begins).map(
            |(index, (_, begin))| {
                let end = match edges.get(index + 1) {
                    // In source code, a quote ends the string that contains the key.
                    Some((false, end)) if !text[begin.end..end.start].contains('"') => end.end,
                    _ => begin.end + key_length(&text[begin.end..]),
                };
                Span { at: begin.start..end, kind: "private-key" }
            },
        );
        spans.collect()
    }
}

/// The length of a key without a last line: all lines of Base64 characters, however short.
fn key_length(text: &str) -> usize {
    let is_base64 = |char: char| char.is_ascii_alphanumeric() || matches!(char, '+' | '/' | '=');
    let mut length = 0;
    loop {
        let rest = &text[length..];
        let (gap, breaks) = gap(rest);
        let rest = &rest[gap..];
        if breaks && FIELDS.iter().any(|field| rest.starts_with(field)) {
            length += gap + field_length(rest);
            continue;
        }
        let line = rest.find(|char| !is_base64(char)).unwrap_or(rest.len());
        let continues = line >= LONG_LINE || (line > 0 && ends_line(&rest[line..], breaks));
        if !continues {
            return length;
        }
        length += gap + line;
    }
}

/// The length of a field, up to the line break. Without one, a quote ends the string that contains it.
fn field_length(text: &str) -> usize {
    // Of several backslashes, the first one tells what they are.
    let is_end = |at: &usize| {
        !text[*at..].starts_with('\\')
            || (!text[..*at].ends_with('\\') && escaped_break(&text[*at..]).is_some())
    };
    let mut ends = text.match_indices(['\n', '\r', '\\']).map(|(at, _)| at);
    let end = ends.find(is_end).or_else(|| text.find(['\\', '"']));
    end.unwrap_or(text.len())
}

/// The length of the whitespace and the line breaks at the beginning of a text, as they are or
/// escaped, and whether there is a line break.
fn gap(text: &str) -> (usize, bool) {
    let mut rest = text;
    let mut breaks = false;
    loop {
        let next = rest.trim_start();
        breaks |= rest[..rest.len() - next.len()].contains(['\n', '\r']);
        match escaped_break(next) {
            Some(after) => {
                rest = after;
                breaks = true;
            }
            None => return (text.len() - next.len(), breaks),
        }
    }
}

/// What is after an escaped line break. Every quotation adds backslashes.
fn escaped_break(text: &str) -> Option<&str> {
    let letters = text.strip_prefix('\\')?.trim_start_matches('\\');
    let forms = ["n", "r", "u000a", "u000A", "u000d", "u000D", "u{a}", "u{d}"];
    forms.into_iter().find_map(|form| letters.strip_prefix(form))
}

/// Whether a line of a key ends before a text: with the text, at a line break, a quote, the next edge,
/// or the mark of a place where a text was shortened. After a line break, words of a sentence can follow
/// the key, so that a blank alone ends no line.
fn ends_line(after: &str, is_own_line: bool) -> bool {
    let blank_trimmed = after.trim_start_matches([' ', '\t']);
    blank_trimmed.is_empty()
        || after.starts_with(cut::MARK)
        || after.trim_start().starts_with("-----")
        || (is_own_line
            && (blank_trimmed.starts_with(['\n', '\r', '\\'])
                || after.starts_with(['"', '\'', '`', ',', ')', ']', '}', '<'])))
}

#[cfg(test)]
mod tests {
    use crate::redact::{RedactionLevel, Redactor};

    fn plain(text: &str) -> String {
        Redactor::new(&[]).unwrap().redact_text(text, RedactionLevel::Full)
    }

    #[test]
    fn a_key_is_redacted_however_short_its_lines_are() {
        let gone = "[redacted:private-key#1]";
        for (text, expected) in [
            (
                "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAz1\n-----END RSA…",
                "K\n-----END RSA…",
            ),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCA", "K"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nowIB\r\nAAKC", "K"),
            (
                r"-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEAz1\n-----END RSA…",
                r"K\n-----END RSA…",
            ),
            (r"-----BEGIN PRIVATE KEY-----\\nMIIEowIB\\nAAKCA\\n-----END", r"K\\n-----END"),
            (r#"{"a":"-----BEGIN EC PRIVATE KEY-----\r\nMIIEowIBAAKCA"}"#, r#"{"a":"K"}"#),
            (r#"("-----BEGIN PRIVATE KEY-----\\\nMIIEowIB\u000aAAKCA\"")"#, r#"("K\"")"#),
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\nbnNz\n", "K\n"),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB\n\nMIIE\nowIB",
                "K",
            ),
            (
                "-----BEGIN PGP PRIVATE KEY BLOCK-----\nComment: Alice \"main\"\n\nlQOYBF\n=aB3d\n-----END PGP PRIVATE KEY BLOCK-----",
                "K\n-----END PGP PRIVATE KEY BLOCK-----",
            ),
            (
                r#"{"a": "-----BEGIN PGP PRIVATE KEY BLOCK-----\\nComment: \\\"main\\\"\\n\\nlQOYBF\\n"}, 1"#,
                r#"{"a": "K\\n"}, 1"#,
            ),
            (
                r#"("-----BEGIN PGP PRIVATE KEY BLOCK-----\nComment: main") + rest"#,
                r#"("K") + rest"#,
            ),
            ("  -----BEGIN PRIVATE KEY-----\n  MIIE\n  owIB\nnext: line", "  K\nnext: line"),
            ("-----BEGIN PRIVATE KEY-----\nMIIEowIB\n\nThe key is bad.", "K\n\nThe key is bad."),
        ] {
            assert_eq!(plain(text), expected.replacen('K', gone, 1), "{text}");
        }
    }

    #[test]
    fn public_keys_and_the_words_after_a_key_stay() {
        for text in [
            "-----BEGIN CERTIFICATE-----\nMIIEowIBAAKCAQEAz1\n-----END CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----\nMIIEowIBAAKCAQEAz1\n-----END PUBLIC KEY-----",
        ] {
            assert_eq!(plain(text), text);
        }
        assert_eq!(
            plain("the line -----BEGIN PRIVATE KEY----- and what follows"),
            "the line [redacted:private-key#1] and what follows"
        );
    }
}
