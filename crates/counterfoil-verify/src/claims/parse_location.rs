//! Extracts locations in files from a result: `file:line`, ranges, a line next to a file. Pure.

use super::claimed_counts::ClaimedNumber;
use super::extract::{ExtractError, FieldValue, file_in_object};
use serde_json::{Map, Value};

/// A location in a file that a result names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedLocation {
    /// The location as the result writes it.
    pub(super) text: String,
    /// The path of the file as the result writes it.
    pub(super) file: String,
    /// The lines, if the location has any.
    pub(super) lines: Option<Lines>,
}

/// A line or a range of lines, counted from 1, or text that is not a line number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    Range(u64, u64),
    Bad(String),
}

const LINE_KEYS: [&str; 5] = ["line", "lines", "line_number", "start_line", "line_start"];
const END_KEYS: [&str; 2] = ["end_line", "line_end"];

/// The locations in the values of a field.
pub(super) fn locations(found: &[FieldValue<'_>]) -> Result<Vec<NamedLocation>, ExtractError> {
    let mut locations = Vec::new();
    for field in found {
        match field.value {
            Value::Array(items) => {
                for item in items.iter().filter(|item| !item.is_null()) {
                    locations.push(location_from_value(item, None)?);
                }
            }
            one => locations.push(location_from_value(one, field.parent)?),
        }
    }
    Ok(locations)
}

fn location_from_value(
    value: &Value,
    parent: Option<&Map<String, Value>>,
) -> Result<NamedLocation, ExtractError> {
    match value {
        Value::String(text) => {
            let (file, lines) = split_location(text);
            let lines = lines.or_else(|| lines_from_object(parent?));
            let text = match (&lines, file == *text) {
                (Some(Lines::Range(first, last)), true) => {
                    format!("{text}:{}", range_text(*first, *last))
                }
                _ => text.clone(),
            };
            Ok(NamedLocation { text, file, lines })
        }
        Value::Object(object) => {
            let file = file_in_object(object).ok_or(ExtractError::NoFile)?;
            let lines = lines_from_object(object);
            let text = match &lines {
                Some(Lines::Range(first, last)) => format!("{file}:{}", range_text(*first, *last)),
                _ => file.to_owned(),
            };
            Ok(NamedLocation { text, file: file.to_owned(), lines })
        }
        other => Err(ExtractError::NotLocation(other.to_string())),
    }
}

fn range_text(first: u64, last: u64) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

/// Whether lines are named: lines count from 1, and 0 stands for none.
fn names_line(lines: &Lines) -> bool {
    !matches!(lines, Lines::Range(0, 0))
}

fn lines_from_object(object: &Map<String, Value>) -> Option<Lines> {
    let first_of =
        |keys: &[&str]| keys.iter().find_map(|key| object.get(*key).filter(|line| !line.is_null()));
    let lines = match (first_of(&LINE_KEYS), first_of(&END_KEYS)) {
        (None, None) => return None,
        (Some(one), None) | (None, Some(one)) => lines_from_value(one),
        (Some(line), Some(end)) => match (lines_from_value(line), lines_from_value(end)) {
            (Lines::Range(first, last), Lines::Range(_, end)) if first == last => {
                Lines::Range(first, end)
            }
            (Lines::Range(first, last), Lines::Range(_, end)) => Lines::Range(first, last.max(end)),
            (bad @ Lines::Bad(_), _) | (_, bad) => bad,
        },
    };
    Some(lines).filter(names_line)
}

fn lines_from_value(value: &Value) -> Lines {
    let number = |value: &Value| ClaimedNumber::from_value(value)?.count();
    let lines = match value {
        Value::Array(pair) => pair
            .first()
            .and_then(number)
            .zip(pair.last().and_then(number))
            .map(|(first, last)| Lines::Range(first, last)),
        Value::String(text) => {
            return parse_lines(text).unwrap_or_else(|| Lines::Bad(text.clone()));
        }
        other => number(other).map(|line| Lines::Range(line, line)),
    };
    lines.unwrap_or_else(|| Lines::Bad(value.to_string()))
}

/// Parses `12`, `12-20`, `L12-L20`, `12:5`.
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

/// Splits `src/a.rs:31 - a comment` into file and line. Without a line, the whole text is the file.
fn split_location(text: &str) -> (String, Option<Lines>) {
    for (at, mark) in text.match_indices([':', '#']) {
        let rest = &text[at + mark.len()..];
        let end = rest
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '-' | '–' | 'L' | 'l' | ':')))
            .unwrap_or(rest.len());
        let (lines, comment) = rest.split_at(end);
        let lines = lines.trim_end_matches([':', '-', '–']);
        let ends = comment.is_empty() || comment.starts_with([' ', ',', ';', ')', '\t', '\n']);
        if at > 0
            && ends
            && let Some(lines) = parse_lines(lines)
        {
            return (text[..at].to_owned(), Some(lines));
        }
    }
    (text.to_owned(), None)
}
