//! The strings of JSON texts, each with its place, so that one can be changed and everything around
//! it stays as it was written.

use super::kinds::plausible;
use super::{Care, Redactor};
use regex::Regex;
use serde::de::IgnoredAny;
use std::ops::Range;

/// A string in a JSON text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// Where it stands, with its quotes.
    pub(super) at: Range<usize>,
    /// What it says; as it is written, if that cannot be read.
    pub(super) text: String,
    /// Whether it could be read.
    pub(super) read: bool,
    /// Whether it is the name of a field.
    pub(super) key: bool,
    /// Whether the field it is in is called a secret.
    pub(super) secret: bool,
    /// Its place among the fields and lists.
    pub(super) path: String,
}

/// Whether a text is one JSON object or list.
pub(super) fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// The strings of a text that is JSON.
pub(super) fn tokens(text: &str, names: &Regex) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut open: Vec<Level> = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' => open.push(Level {
                object: true,
                expects_key: true,
                key: String::new(),
                secret: false,
                index: 0,
            }),
            b'[' => {
                // A list of secrets is called as one is.
                let secret = open.last().is_some_and(|level| level.secret);
                open.push(Level {
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
                let end = closing(bytes, at);
                let raw = text.get(at..end).unwrap_or_default();
                let (said, read) = match serde_json::from_str::<String>(raw) {
                    Ok(said) => (said, true),
                    Err(_) => (raw.trim_matches('"').to_owned(), false),
                };
                let key = open.last().is_some_and(|level| level.expects_key);
                if let Some(level) = open.last_mut().filter(|_| key) {
                    level.expects_key = false;
                    level.secret = names.is_match(&said);
                    level.key.clone_from(&said);
                }
                let secret = !key && open.last().is_some_and(|level| level.secret);
                tokens.push(Token {
                    at: at..end,
                    text: said,
                    read,
                    key,
                    secret,
                    path: path(&open),
                });
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    tokens
}

/// An object or a list that is not closed yet.
struct Level {
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

/// Behind the quote that closes the string that begins here.
fn closing(bytes: &[u8], start: usize) -> usize {
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

/// A JSON text whose strings are without secrets.
pub(super) fn redacted(redactor: &mut Redactor, text: &str, care: Care) -> String {
    let tokens = tokens(text, &redactor.names);
    let edits: Vec<Option<String>> =
        tokens.iter().map(|token| redactor.inside(token, care)).collect();
    rewritten(text, &tokens, &edits, redactor)
}

/// The text with some of its strings replaced.
pub(super) fn rewritten(
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
        if token.read {
            out.push_str(&serde_json::Value::from(edit.as_str()).to_string());
            continue;
        }
        // What cannot be read is changed as it is written, if it is a string then.
        let written = format!("\"{edit}\"");
        if serde_json::from_str::<IgnoredAny>(&written).is_ok() {
            out.push_str(&written);
        } else {
            let label = redactor.taken(&token.text, "unreadable");
            out.push_str(&format!("\"{label}\""));
        }
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

impl Redactor {
    /// What a string says without its secrets; none if it has none.
    pub(super) fn inside(&mut self, token: &Token, care: Care) -> Option<String> {
        if self.is_secret(token, care) {
            return Some(self.taken(&token.text, "secret"));
        }
        self.within(&token.text, care)
    }

    /// Whether all that a string says is secret, by the name of its field.
    pub(super) fn is_secret(&self, token: &Token, care: Care) -> bool {
        care == Care::Full
            && token.secret
            && plausible(&token.text)
            // Part of it was taken out before, and what is left says what it was.
            && !self.placeholder.is_match(&token.text)
    }
}

/// Shows the texts in a text: the strings of what is JSON, with whether they are called secrets,
/// and the rest as it is.
pub(super) fn each_text(text: &str, names: &Regex, mut look: impl FnMut(&str, bool)) {
    let mut look_at = |json: &str| {
        for token in tokens(json, names) {
            look(&token.text, token.secret);
        }
    };
    if is_json(text) {
        return look_at(text);
    }
    for part in super::pieces::parts(text) {
        match part {
            super::pieces::Part::Json(line) => {
                for token in tokens(line, names) {
                    look(&token.text, token.secret);
                }
            }
            super::pieces::Part::Text(text) => look(text, false),
        }
    }
}
