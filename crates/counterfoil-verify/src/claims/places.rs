//! Places in files that a result names: `file:line`, ranges, a line beside a file. Pure.

use super::read::{Found, file_of, number};
use serde_json::{Map, Value};

/// A place in a file that a result names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedPlace {
    /// As it is written.
    pub(super) text: String,
    /// The file.
    pub(super) file: String,
    /// The lines, if it names any.
    pub(super) lines: Option<Lines>,
}

/// A line or a range of lines, from 1; or something that is no line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    Range(u64, u64),
    Bad(String),
}

const LINE_KEYS: [&str; 5] = ["line", "lines", "line_number", "start_line", "line_start"];
const END_KEYS: [&str; 2] = ["end_line", "line_end"];

/// The places that a field names.
pub(super) fn places(found: &[Found<'_>]) -> Result<Vec<NamedPlace>, String> {
    let mut places = Vec::new();
    for place in found {
        match place.value {
            Value::Array(items) => {
                for item in items.iter().filter(|item| !item.is_null()) {
                    places.push(place_of(item, None)?);
                }
            }
            one => places.push(place_of(one, place.parent)?),
        }
    }
    Ok(places)
}

fn place_of(value: &Value, parent: Option<&Map<String, Value>>) -> Result<NamedPlace, String> {
    match value {
        Value::String(text) => {
            let (file, lines) = split_place(text);
            let lines = lines.or_else(|| lines_of(parent?));
            let text = match (&lines, file == *text) {
                (Some(Lines::Range(first, last)), true) => {
                    format!("{text}:{}", range(*first, *last))
                }
                _ => text.clone(),
            };
            Ok(NamedPlace { text, file, lines })
        }
        Value::Object(object) => {
            let file = file_of(object).ok_or("an object of the list names no file")?;
            let lines = lines_of(object);
            let text = match &lines {
                Some(Lines::Range(first, last)) => format!("{file}:{}", range(*first, *last)),
                _ => file.to_owned(),
            };
            Ok(NamedPlace { text, file: file.to_owned(), lines })
        }
        other => Err(format!("{other} is no place in a file")),
    }
}

fn range(first: u64, last: u64) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

fn lines_of(object: &Map<String, Value>) -> Option<Lines> {
    let line = LINE_KEYS.iter().find_map(|key| object.get(*key).filter(|line| !line.is_null()))?;
    let end = END_KEYS.iter().find_map(|key| number(object.get(*key)?));
    Some(match line {
        Value::Array(pair) => match (pair.first().and_then(number), pair.last().and_then(number)) {
            (Some(first), Some(last)) => Lines::Range(first, last),
            _ => Lines::Bad(line.to_string()),
        },
        Value::String(text) => parse_lines(text).unwrap_or_else(|| Lines::Bad(text.clone())),
        other => match number(other) {
            Some(first) => Lines::Range(first, end.unwrap_or(first)),
            None => Lines::Bad(other.to_string()),
        },
    })
}

/// `12`, `12-20`, `L12-L20`, `12:5`.
fn parse_lines(text: &str) -> Option<Lines> {
    let text = text.trim().trim_start_matches(['L', 'l']);
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let end = digits(text);
    let first: u64 = text[..end].parse().ok()?;
    let rest = &text[end..];
    if let Some(rest) = rest.strip_prefix(['-', '–']) {
        let rest = rest.trim_start_matches(['L', 'l']);
        let last: u64 = rest[..digits(rest)].parse().ok()?;
        return rest[digits(rest)..].trim().is_empty().then_some(Lines::Range(first, last));
    }
    (rest.is_empty() || rest.starts_with(':')).then_some(Lines::Range(first, first))
}

/// `src/a.rs:31 - what is there` is a file, a line and words. Without a line, the file is all of
/// the text.
fn split_place(text: &str) -> (String, Option<Lines>) {
    for (at, mark) in text.match_indices([':', '#']) {
        let rest = &text[at + mark.len()..];
        let end = rest
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '-' | '–' | 'L' | 'l' | ':')))
            .unwrap_or(rest.len());
        let (lines, words) = rest.split_at(end);
        let lines = lines.trim_end_matches([':', '-', '–']);
        let ends = words.is_empty() || words.starts_with([' ', ',', ';', ')', '\t', '\n']);
        if at > 0
            && ends
            && let Some(lines) = parse_lines(lines)
        {
            return (text[..at].to_owned(), Some(lines));
        }
    }
    (text.to_owned(), None)
}
