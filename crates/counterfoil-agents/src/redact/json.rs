//! Finds the strings in JSON texts with their positions, so that single strings can be replaced and
//! everything else stays unchanged.

use super::kinds::is_plausible;
use super::{Cut, Finders, RedactionLevel, Redactor, lists};
use serde::de::IgnoredAny;
use std::ops::Range;

/// A string in a JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// The position, including the quotes.
    pub(super) at: Range<usize>,
    /// The decoded text, or the raw text if it cannot be decoded.
    pub(super) text: String,
    /// Whether it could be decoded.
    pub(super) decoded: bool,
    /// Whether it is the name of a field.
    pub(super) key: bool,
    /// Whether its field has the name of a secret.
    pub(super) secret: bool,
    /// The path of keys and indices.
    pub(super) path: String,
    /// The list that it is an item of, and its index there.
    pub(super) item: Option<(usize, usize)>,
}

/// Whether a text is a single JSON object or array.
pub(super) fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// The strings of a JSON text.
pub(super) fn tokens(text: &str, finders: &Finders) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut open: Vec<Level> = Vec::new();
    let mut opened = 0;
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' => {
                opened += 1;
                open.push(Level {
                    id: opened,
                    object: true,
                    expects_key: true,
                    key: String::new(),
                    secret: false,
                    index: 0,
                });
            }
            b'[' => {
                // The items of a list with the name of a secret are secrets.
                let secret = open.last().is_some_and(|level| level.secret);
                opened += 1;
                open.push(Level {
                    id: opened,
                    object: false,
                    expects_key: false,
                    key: String::new(),
                    secret,
                    index: 0,
                });
            }
            b'}' | b']' => drop(open.pop()),
            b',' => {
                if let Some(level) = open.last_mut() {
                    level.expects_key = level.object;
                    level.index += 1;
                }
            }
            b'"' => {
                let end = string_end(bytes, at);
                let raw = text.get(at..end).unwrap_or_default();
                let (decoded_text, decoded) = match serde_json::from_str::<String>(raw) {
                    Ok(decoded_text) => (decoded_text, true),
                    Err(_) => (raw.trim_matches('"').to_owned(), false),
                };
                let key = open.last().is_some_and(|level| level.expects_key);
                if let Some(level) = open.last_mut().filter(|_| key) {
                    level.expects_key = false;
                    level.secret = finders.names.is_match(&decoded_text);
                    level.key.clone_from(&decoded_text);
                }
                let secret = !key && open.last().is_some_and(|level| level.secret);
                tokens.push(Token {
                    at: at..end,
                    text: decoded_text,
                    decoded,
                    key,
                    secret,
                    path: path(&open),
                    item: open
                        .last()
                        .filter(|level| !level.object)
                        .map(|level| (level.id, level.index)),
                });
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    lists::mark_secrets(&mut tokens, finders);
    tokens
}

/// An open object or list.
struct Level {
    /// Different for each object and list of a text.
    id: usize,
    object: bool,
    expects_key: bool,
    key: String,
    secret: bool,
    index: usize,
}

fn path(open: &[Level]) -> String {
    let steps = open
        .iter()
        .map(|level| if level.object { level.key.clone() } else { level.index.to_string() });
    steps.collect::<Vec<_>>().join("/")
}

/// The offset after the closing quote of the string that starts at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes.get(at) == Some(&b'"') {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

/// Redacts the strings of a JSON text.
pub(super) fn redact(redactor: &mut Redactor, text: &str, level: RedactionLevel) -> String {
    let tokens = tokens(text, &redactor.finders);
    let cuts = lists::find_cuts(redactor, &tokens, level);
    let edits: Vec<Option<String>> = tokens
        .iter()
        .zip(cuts)
        .map(|(token, cuts)| redactor.redact_cut_token(token, cuts, level))
        .collect();
    replace_strings(text, &tokens, &edits, redactor)
}

/// Replaces some strings of a JSON text.
pub(super) fn replace_strings(
    text: &str,
    tokens: &[Token],
    edits: &[Option<String>],
    redactor: &mut Redactor,
) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (token, edit) in tokens.iter().zip(edits) {
        let Some(edit) = edit else { continue };
        out.push_str(text.get(from..token.at.start).unwrap_or_default());
        from = token.at.end;
        if token.decoded {
            out.push_str(&serde_json::Value::from(edit.as_str()).to_string());
            continue;
        }
        // The raw text is replaced if the result is still a valid string.
        let written = format!("\"{edit}\"");
        if serde_json::from_str::<IgnoredAny>(&written).is_ok() {
            out.push_str(&written);
        } else {
            let label = redactor.placeholder_for(&token.text, "unreadable");
            out.push_str(&format!("\"{label}\""));
        }
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

impl Redactor {
    /// The redacted text of a string; none if it contains no secret.
    pub(super) fn redact_token(&mut self, token: &Token, level: RedactionLevel) -> Option<String> {
        if self.is_secret(token, level) {
            return Some(self.placeholder_for(&token.text, "secret"));
        }
        self.redact(&token.text, level)
    }

    /// The redacted text of a string, some parts of which belong to secrets that other strings
    /// complete; none if it contains no secret.
    pub(super) fn redact_cut_token(
        &mut self,
        token: &Token,
        cuts: Vec<Cut>,
        level: RedactionLevel,
    ) -> Option<String> {
        if cuts.is_empty() || self.is_secret(token, level) {
            return self.redact_token(token, level);
        }
        // What is left may be a secret by the name of its field.
        let text = self.apply_cuts(&token.text, cuts);
        let rest = Token { text, ..token.clone() };
        Some(self.redact_token(&rest, level).unwrap_or(rest.text))
    }

    /// Whether the whole string is a secret, by the name of its field.
    pub(super) fn is_secret(&self, token: &Token, level: RedactionLevel) -> bool {
        level == RedactionLevel::Full
            && token.secret
            && is_plausible(&token.text)
            // A string with a placeholder was redacted before.
            && !self.finders.placeholder.is_match(&token.text)
    }
}

/// Visits the strings of the JSON in a text, with whether their fields have the names of secrets,
/// and the text between.
pub(super) fn visit_texts(text: &str, finders: &Finders, mut visit: impl FnMut(&str, bool)) {
    if is_json(text) {
        for token in tokens(text, finders) {
            visit(&token.text, token.secret);
        }
        return;
    }
    for part in super::lines::parts(text) {
        match part {
            super::lines::Part::Json(line) => {
                for token in tokens(line, finders) {
                    visit(&token.text, token.secret);
                }
            }
            super::lines::Part::Text(text) => visit(text, false),
        }
    }
}
