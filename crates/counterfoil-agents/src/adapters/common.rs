//! Code that the adapters share: parsing event lines, activity lines for progress displays, and
//! classifying failures.

mod api_error;
mod reset_time;
mod turn;

pub(crate) use api_error::{ApiError, find_http_status, with_advice};
pub(crate) use reset_time::parse_reset_time;
pub(crate) use turn::Turn;

use counterfoil_contract::text::{escape_control, pluralize};
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// The kind of a line in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line<'l> {
    /// The line is empty.
    Blank,
    /// A JSON object, which may be an event.
    Object(&'l [u8]),
    /// Anything else, such as a banner or a warning of a library.
    Other(&'l [u8]),
}

/// Classifies a line. A byte order mark and colour sequences before an object are skipped.
pub(crate) fn classify(line: &[u8]) -> Line<'_> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    let object = strip_colors(line);
    match object.first() {
        None => Line::Blank,
        Some(b'{') => Line::Object(object),
        Some(_) => Line::Other(line),
    }
}

/// A line without the terminal escape sequences at its start.
fn strip_colors(mut line: &[u8]) -> &[u8] {
    while let Some(rest) = line.strip_prefix(b"\x1b[") {
        let Some(end) = rest.iter().take(32).position(u8::is_ascii_alphabetic) else { break };
        line = rest[end + 1..].trim_ascii_start();
    }
    line
}

/// Parses an event. Invalid UTF-8 is replaced.
pub(crate) fn parse_event<E: DeserializeOwned>(object: &[u8]) -> serde_json::Result<E> {
    match std::str::from_utf8(object) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_str(&String::from_utf8_lossy(object)),
    }
}

/// A field of an event that tolerates unexpected values, so that the rest of the event can still be
/// read.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) enum Field<T> {
    /// The field is missing or null.
    #[default]
    Absent,
    /// The field has the expected type.
    Known(T),
    /// The field has another type, with the error.
    Mismatched(String),
}

impl<T> Field<T> {
    /// Consumes the field and returns its value if it has the expected type.
    pub(crate) fn known(self) -> Option<T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Mismatched(_) => None,
        }
    }

    /// Borrows the value if it has the expected type.
    pub(crate) fn get(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Mismatched(_) => None,
        }
    }

    /// The error if the field has another type.
    pub(crate) fn mismatch(&self) -> Option<&str> {
        match self {
            Self::Mismatched(why) => Some(why),
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
                Err(why) => Self::Mismatched(why.to_string()),
            },
        })
    }
}

/// The longest activity line, in characters.
const MAX_ACTIVITY_CHARS: usize = 160;

/// The first non-blank line of a text, shortened for progress displays.
pub(crate) fn activity_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(truncate(line, MAX_ACTIVITY_CHARS))
}

/// A text as one line of at most `max_chars` characters.
pub(crate) fn truncate(text: &str, max_chars: usize) -> String {
    let mut chars = text.trim().chars();
    let mut short = escape_control(&chars.by_ref().take(max_chars).collect::<String>());
    if chars.next().is_some() {
        short.push('…');
    }
    short
}

/// The longest failure reason, in characters.
const MAX_REASON_CHARS: usize = 600;

/// The message of a failure as one line of bounded length, with white space collapsed.
pub(crate) fn reason(message: &str) -> String {
    let message: String = message.chars().take(4 * MAX_REASON_CHARS).collect();
    truncate(&message.split_whitespace().collect::<Vec<_>>().join(" "), MAX_REASON_CHARS)
}

/// The most notes of one kind that are kept.
const MAX_ANOMALIES: usize = 20;

/// Collects unexpected input of a stream: each kind once, with a count and the first example.
#[derive(Debug, Default)]
pub(crate) struct StreamAnomalies {
    non_events: usize,
    first_non_event: String,
    shapes: BTreeMap<String, (usize, String)>,
    notes: Vec<String>,
}

impl StreamAnomalies {
    /// Counts a line that is not an event.
    pub(crate) fn non_event(&mut self, line: &[u8]) {
        if self.non_events == 0 {
            self.first_non_event =
                truncate(&String::from_utf8_lossy(&line[..line.len().min(400)]), 80);
        }
        self.non_events += 1;
    }

    /// Counts an event of a known kind that cannot be parsed.
    pub(crate) fn unexpected_shape(&mut self, kind: &str, why: &impl ToString) {
        if let Some((count, _)) = self.shapes.get_mut(kind) {
            *count += 1;
        } else if self.shapes.len() < MAX_ANOMALIES {
            self.shapes.insert(truncate(kind, 60), (1, truncate(&why.to_string(), 200)));
        }
    }

    /// Adds a note unless it was added before.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        push_note(&mut self.notes, note.into());
    }

    /// All anomalies as text.
    pub(crate) fn into_notes(self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.non_events > 0 {
            let lines = pluralize(self.non_events, "line");
            let verb =
                if self.non_events == 1 { "is not an event" } else { "are not events, the first" };
            notes.push(format!("{lines} {verb}: {}", self.first_non_event));
        }
        for (kind, (count, why)) in self.shapes {
            notes.push(format!(
                "{} `{kind}` with an unexpected structure: {why}",
                pluralize(count, "event")
            ));
        }
        notes.extend(self.notes);
        notes
    }
}

/// Adds a note to a list unless it is in the list or the list is full.
pub(crate) fn push_note(list: &mut Vec<String>, note: String) {
    if list.len() < MAX_ANOMALIES && !list.contains(&note) {
        list.push(note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_distinguished_from_other_lines() {
        assert_eq!(classify(b"{\"a\":1}"), Line::Object(b"{\"a\":1}"));
        assert_eq!(classify(b"\xef\xbb\xbf  {} \r"), Line::Object(b"{}"));
        assert_eq!(classify(b"\x1b[0m\x1b[38;5;1m {}"), Line::Object(b"{}"));
        assert_eq!(classify(b" \t"), Line::Blank);
        assert_eq!(classify(b"Welcome {}"), Line::Other(b"Welcome {}"));
        assert_eq!(classify(b"[1]"), Line::Other(b"[1]"));
        assert_eq!(classify(b"\x1b[;;;"), Line::Other(b"\x1b[;;;"));
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
            parse_event(b"{\"cost\":0.25,\"text\":\"a\xffb\",\"turns\":\"two\",\"id\":null}")
                .unwrap();
        assert_eq!(read.cost, Field::Known(0.25));
        assert_eq!(read.text.known().unwrap(), "a\u{fffd}b");
        assert!(read.turns.mismatch().unwrap().contains("expected u64"), "{:?}", read.turns);
        assert_eq!(read.id, Field::Absent);
    }

    #[test]
    fn an_activity_line_is_the_first_line_cut_at_a_character() {
        assert_eq!(activity_line("\n  Looking at it.\nMore"), Some("Looking at it.".to_owned()));
        assert_eq!(activity_line(" \n "), None);
        assert_eq!(truncate("äöü", 2), "äö…");
        assert_eq!(truncate("a\u{1b}[2Jb", 90), "a\\u{1b}[2Jb");
        assert_eq!(reason("API  Error:\n 500"), "API Error: 500");
    }

    #[test]
    fn anomalies_are_counted_and_bounded() {
        let mut anomalies = StreamAnomalies::default();
        anomalies.non_event(b"Welcome");
        anomalies.non_event(b"again");
        for n in 0..1000 {
            anomalies.note(format!("remark {n}"));
            anomalies.unexpected_shape("result", &"expected a number");
        }
        let notes = anomalies.into_notes();
        assert_eq!(notes.len(), 22);
        assert_eq!(notes[0], "2 lines are not events, the first: Welcome");
        assert_eq!(
            notes[1],
            "1000 events `result` with an unexpected structure: expected a number"
        );
    }
}
