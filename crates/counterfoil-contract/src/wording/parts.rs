//! The parts of a value of free form: its objects, and in each of them its members and texts.

use crate::pattern::Pattern;
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// A pattern of this module, which ignores case.
pub(super) fn pattern(source: &str) -> Pattern {
    Pattern::ignoring_case(source)
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

    /// The texts of the part with the name of their member, also those in lists.
    pub(super) fn texts(&self) -> impl Iterator<Item = Text<'_>> {
        self.members().flat_map(|(name, value)| {
            let is_member = value.is_string();
            texts_of(value).into_iter().map(move |text| Text { name, is_member, text })
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
    any_part_outside(value, &|_| false, condition)
}

/// Whether any part of a value fulfils a condition that is not inside a member with such a name.
pub(super) fn any_part_outside(
    value: &Value,
    skipped: &impl Fn(&str) -> bool,
    condition: &impl Fn(&Part<'_>) -> bool,
) -> bool {
    let is_object = value.is_object();
    (!is_object && condition(&Part::of_value(value))) || any_object(value, skipped, condition)
}

fn any_object(
    value: &Value,
    skipped: &impl Fn(&str) -> bool,
    condition: &impl Fn(&Part<'_>) -> bool,
) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| any_object(item, skipped, condition)),
        Value::Object(object) => {
            let part = Part::of_object(object);
            condition(&part)
                || part.members().any(|(name, value)| {
                    !value.is_string() && !skipped(name) && any_object(value, skipped, condition)
                })
        }
        _ => false,
    }
}

/// The texts of a value that are not inside an object.
pub(super) fn texts_of(value: &Value) -> Vec<&str> {
    let mut texts = Vec::new();
    collect_texts(value, &mut texts);
    texts
}

fn collect_texts<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        _ => {}
    }
}

/// `criticalFindings`, `critical-findings` and `Critical findings` are `critical_findings`.
pub(super) fn snake_case(name: &str) -> String {
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

static YES: LazyLock<Pattern> = LazyLock::new(|| answer("yes|true"));
static NO: LazyLock<Pattern> = LazyLock::new(|| answer("no|false"));

/// A text that is an answer or begins with one: "No.", "no, the key is logged". "No issues" is not.
fn answer(words: &str) -> Pattern {
    pattern(&format!("^[^a-z0-9]*({words})([^a-z0-9]*$| *[^a-z0-9 ])"))
}

/// Whether a value is true, or a text that says so.
pub(super) fn says_yes(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => *flag,
        Value::String(text) => YES.is_match(text),
        _ => false,
    }
}

/// Whether a value is false, or a text that says so.
pub(super) fn says_no(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => !*flag,
        Value::String(text) => NO.is_match(text),
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
