//! The parts of a value of free form: its objects, and in each of them its members and texts.

use regex::Regex;
use serde_json::{Map, Value};

/// Compiles a pattern of this module, which ignores case.
#[expect(clippy::expect_used, reason = "a wrong pattern fails every test of this module")]
pub(super) fn pattern(source: &str) -> Regex {
    Regex::new(&format!("(?i){source}")).expect("a pattern of this module compiles")
}

/// What stands for one object: its members, or a single value without a name where no object is
/// around it. Objects inside are parts of their own.
pub(super) struct Part<'a> {
    members: Vec<(String, &'a Value)>,
}

impl<'a> Part<'a> {
    fn of_object(object: &'a Map<String, Value>) -> Self {
        Self { members: object.iter().map(|(name, value)| (snake_case(name), value)).collect() }
    }

    fn of_value(value: &'a Value) -> Self {
        Self { members: vec![(String::new(), value)] }
    }

    /// The members, with their names in lower case and with underscores between the words.
    pub(super) fn members(&self) -> impl Iterator<Item = (&str, &'a Value)> {
        self.members.iter().map(|(name, value)| (name.as_str(), *value))
    }

    pub(super) fn member(&self, name: &str) -> Option<&'a Value> {
        self.members().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// The texts of the part with the name of their member, also those in lists.
    pub(super) fn texts(&self) -> impl Iterator<Item = Text<'_>> {
        self.members().flat_map(|(name, value)| {
            let mut texts = Vec::new();
            collect_texts(value, &mut texts);
            let is_member = value.is_string();
            texts.into_iter().map(move |text| Text { name, is_member, text })
        })
    }
}

/// A text of a part.
pub(super) struct Text<'a> {
    /// The name of the member, empty where there is none.
    pub(super) name: &'a str,
    /// Whether the text is the member itself and not an item of a list.
    pub(super) is_member: bool,
    pub(super) text: &'a str,
}

/// Whether any part of a value fulfils a condition.
pub(super) fn any_part(value: &Value, condition: &impl Fn(&Part<'_>) -> bool) -> bool {
    let is_object = value.is_object();
    (!is_object && condition(&Part::of_value(value))) || any_object(value, condition)
}

fn any_object(value: &Value, condition: &impl Fn(&Part<'_>) -> bool) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| any_object(item, condition)),
        Value::Object(object) => {
            condition(&Part::of_object(object))
                || object.values().any(|value| any_object(value, condition))
        }
        _ => false,
    }
}

/// The texts of a value that are not inside an object.
fn collect_texts<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        _ => {}
    }
}

/// `criticalFindings`, `critical-findings` and `Critical findings` are `critical_findings`.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut follows_lower = false;
    for character in name.trim().chars() {
        if matches!(character, '-' | ' ' | '.') {
            snake.push('_');
        } else {
            if character.is_uppercase() && follows_lower {
                snake.push('_');
            }
            snake.extend(character.to_lowercase());
        }
        follows_lower = character.is_lowercase() || character.is_ascii_digit();
    }
    snake
}

/// A number, or a text that begins with one.
pub(super) fn leading_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => {
            let text = text.trim();
            let end = text
                .char_indices()
                .find(|(at, character)| {
                    !(character.is_ascii_digit()
                        || *character == '.'
                        || (*at == 0 && *character == '-'))
                })
                .map_or(text.len(), |(at, _)| at);
            text[..end].trim_end_matches('.').parse().ok()
        }
        _ => None,
    }
}

/// Whether a value is true, or a text that says so.
pub(super) fn says_yes(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => *flag,
        Value::String(text) => matches!(text.trim().to_lowercase().as_str(), "true" | "yes"),
        _ => false,
    }
}

/// Whether a value is false, or a text that says so.
pub(super) fn says_no(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => !*flag,
        Value::String(text) => matches!(text.trim().to_lowercase().as_str(), "false" | "no"),
        _ => false,
    }
}

/// The lines of a text. A text that was escaped twice has its line breaks as `\n`.
pub(super) fn lines(text: &str) -> impl Iterator<Item = String> {
    let text = text.replace("\\n", "\n").replace("\\t", " ").replace('\t', " ");
    let lines: Vec<String> =
        text.split(['\n', '\r', '\u{2028}', '\u{2029}']).map(str::to_owned).collect();
    lines.into_iter()
}
