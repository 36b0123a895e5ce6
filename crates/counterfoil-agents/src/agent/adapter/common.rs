//! What the adapters share: telling events from other lines, words for whoever watches, what kind a
//! refusal is.

mod refusal;
mod when;

pub(crate) use refusal::{Refusal, advised, status_in};
pub(crate) use when::reset_at;

use crate::wording::{counted, plain};
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// What one line of a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line<'l> {
    /// Nothing stands in it.
    Blank,
    /// An object: what may be an event.
    Object(&'l [u8]),
    /// Something else: a banner, a warning of a library, garbage.
    Other(&'l [u8]),
}

/// Looks at a line. A mark of byte order and colours before an object are passed over.
pub(crate) fn look(line: &[u8]) -> Line<'_> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    let object = uncoloured(line);
    match object.first() {
        None => Line::Blank,
        Some(b'{') => Line::Object(object),
        Some(_) => Line::Other(line),
    }
}

/// A line behind the terminal's sequences that it begins with.
fn uncoloured(mut line: &[u8]) -> &[u8] {
    while let Some(rest) = line.strip_prefix(b"\x1b[") {
        let Some(end) = rest.iter().take(32).position(u8::is_ascii_alphabetic) else { break };
        line = rest[end + 1..].trim_ascii_start();
    }
    line
}

/// Reads an event. Bytes that are no text do not make it unreadable: they are replaced.
pub(crate) fn event<E: DeserializeOwned>(object: &[u8]) -> serde_json::Result<E> {
    match std::str::from_utf8(object) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_str(&String::from_utf8_lossy(object)),
    }
}

/// A field of an event that may have another shape than is known. Whatever it has, the rest of the
/// event can be read.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) enum Field<T> {
    /// It is not there, or null.
    #[default]
    Absent,
    /// As it is known.
    Known(T),
    /// Not as it is known, and why.
    Odd(String),
}

impl<T> Field<T> {
    /// What it holds, if that is known.
    pub(crate) fn known(self) -> Option<T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Odd(_) => None,
        }
    }

    /// The same without taking it.
    pub(crate) fn get(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Odd(_) => None,
        }
    }

    /// Why it cannot be read, if it cannot.
    pub(crate) fn odd(&self) -> Option<&str> {
        match self {
            Self::Odd(why) => Some(why),
            Self::Absent | Self::Known(_) => None,
        }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(match Value::deserialize(from)? {
            Value::Null => Self::Absent,
            value => match serde_json::from_value(value) {
                Ok(known) => Self::Known(known),
                Err(why) => Self::Odd(why.to_string()),
            },
        })
    }
}

/// The longest words for whoever watches, in characters.
const LONGEST_WORDS: usize = 160;

/// The first line of a text that says something, short enough for whoever watches.
pub(crate) fn words(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(cut(line, LONGEST_WORDS))
}

/// A text in one line of at most so many characters.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let mut chars = text.trim().chars();
    let mut short = plain(&chars.by_ref().take(most).collect::<String>());
    if chars.next().is_some() {
        short.push('…');
    }
    short
}

/// The longest reason that is kept, in characters.
const LONGEST_REASON: usize = 600;

/// What a program says of a failure, in one line that is not too long: white space and colours are
/// not its meaning.
pub(crate) fn reason(said: &str) -> String {
    let said: String = said.chars().take(4 * LONGEST_REASON).collect();
    cut(&said.split_whitespace().collect::<Vec<_>>().join(" "), LONGEST_REASON)
}

/// The most remarks that are kept.
const MOST_ODD: usize = 20;

/// What was odd about a stream: each kind once, with the first of it and how many there were.
#[derive(Debug, Default)]
pub(crate) struct Odd {
    noise: usize,
    first_noise: String,
    shapes: BTreeMap<String, (usize, String)>,
    said: Vec<String>,
}

impl Odd {
    /// A line that is no event.
    pub(crate) fn noise(&mut self, line: &[u8]) {
        if self.noise == 0 {
            self.first_noise = cut(&String::from_utf8_lossy(&line[..line.len().min(400)]), 80);
        }
        self.noise += 1;
    }

    /// An event of a kind that is known, in a shape that is not.
    pub(crate) fn shape(&mut self, kind: &str, why: &impl ToString) {
        if let Some((count, _)) = self.shapes.get_mut(kind) {
            *count += 1;
        } else if self.shapes.len() < MOST_ODD {
            self.shapes.insert(cut(kind, 60), (1, cut(&why.to_string(), 200)));
        }
    }

    /// Anything else, once.
    pub(crate) fn say(&mut self, what: impl Into<String>) {
        let what = what.into();
        if self.said.len() < MOST_ODD && !self.said.contains(&what) {
            self.said.push(what);
        }
    }

    /// All of it in words.
    pub(crate) fn told(self) -> Vec<String> {
        let mut told = Vec::new();
        if self.noise > 0 {
            let lines = counted(self.noise, "line");
            let verb = if self.noise == 1 { "is no event" } else { "are no events, the first" };
            told.push(format!("{lines} {verb}: {}", self.first_noise));
        }
        for (kind, (count, why)) in self.shapes {
            told.push(format!(
                "{} `{kind}` in a shape that is not known: {why}",
                counted(count, "event")
            ));
        }
        told.extend(self.said);
        told
    }
}

/// Adds a remark to a list of them, once, as long as there is room.
pub(crate) fn remark(list: &mut Vec<String>, what: String) {
    if list.len() < MOST_ODD && !list.contains(&what) {
        list.push(what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_told_from_everything_else() {
        assert_eq!(look(b"{\"a\":1}"), Line::Object(b"{\"a\":1}"));
        assert_eq!(look(b"\xef\xbb\xbf  {} \r"), Line::Object(b"{}"));
        assert_eq!(look(b"\x1b[0m\x1b[38;5;1m {}"), Line::Object(b"{}"));
        assert_eq!(look(b" \t"), Line::Blank);
        assert_eq!(look(b"Welcome {}"), Line::Other(b"Welcome {}"));
        assert_eq!(look(b"[1]"), Line::Other(b"[1]"));
        assert_eq!(look(b"\x1b[;;;"), Line::Other(b"\x1b[;;;"));
    }

    #[test]
    fn a_field_of_another_shape_does_not_spoil_the_event() {
        #[derive(serde::Deserialize)]
        struct Event {
            #[serde(default)]
            cost: Field<f64>,
            #[serde(default)]
            text: Field<String>,
            #[serde(default)]
            turns: Field<u64>,
            #[serde(default)]
            id: Field<String>,
        }
        let read: Event =
            event(b"{\"cost\":0.25,\"text\":\"a\xffb\",\"turns\":\"two\",\"id\":null}").unwrap();
        assert_eq!(read.cost, Field::Known(0.25));
        assert_eq!(read.text.known().unwrap(), "a\u{fffd}b");
        assert!(read.turns.odd().unwrap().contains("expected u64"), "{:?}", read.turns);
        assert_eq!(read.id, Field::Absent);
    }

    #[test]
    fn words_are_the_first_line_cut_at_a_character() {
        assert_eq!(words("\n  Looking at it.\nMore"), Some("Looking at it.".to_owned()));
        assert_eq!(words(" \n "), None);
        assert_eq!(cut("äöü", 2), "äö…");
        assert_eq!(cut("a\u{1b}[2Jb", 90), "a\\u{1b}[2Jb");
        assert_eq!(reason("API  Error:\n 500"), "API Error: 500");
    }

    #[test]
    fn what_is_odd_is_counted_and_bounded() {
        let mut odd = Odd::default();
        odd.noise(b"Welcome");
        odd.noise(b"again");
        for n in 0..1000 {
            odd.say(format!("remark {n}"));
            odd.shape("result", &"expected a number");
        }
        let told = odd.told();
        assert_eq!(told.len(), 22);
        assert_eq!(told[0], "2 lines are no events, the first: Welcome");
        assert_eq!(told[1], "1000 events `result` in a shape that is not known: expected a number");
    }
}
