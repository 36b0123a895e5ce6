//! Whether something high or critical is open.

mod text;
mod words;

use super::parts::{Part, any_part, leading_number, pattern, says_no, says_yes, snake_case};
use super::verdict::reports_nothing;
use crate::nothing;
use crate::pattern::Pattern;
use regex::Regex;
use serde_json::Value;
use std::sync::LazyLock;
use text::{is_severe_text, is_severe_under_name, says_open};
use words::{HARMLESS, LOWER, SETTLED, THING, severe, severe_value, top};

/// The score of CVSS from which a finding is high.
const HIGH_SCORE: f64 = 7.0;

/// Whether a value says anywhere that something high or critical is open: in a field, a count, a
/// score, or a text.
pub(crate) fn reports_severe(value: &Value) -> bool {
    any_part(value, &|part| {
        let is_settled = is_settled(part);
        (!is_settled && has_severe_member(part)) || has_severe_text(part, is_settled)
    })
}

/// An object with a severity that is fixed or was none, and no word that it is still there.
fn is_settled(part: &Part<'_>) -> bool {
    part.members().any(|(name, _)| WORDS.grade_name.is_match(name) || name == "priority")
        && part.members().any(|(name, value)| says_settled(name, value))
        && !part.texts().any(|text| says_open(text.text))
}

fn says_settled(name: &str, value: &Value) -> bool {
    match name {
        "status" | "state" | "resolution" | "disposition" => value
            .as_str()
            .is_some_and(|text| WORDS.settled.is_match(text) && !WORDS.reserved.is_match(text)),
        "fixed" | "resolved" | "closed" | "is_fixed" | "is_resolved" | "is_closed" => {
            says_yes(value)
        }
        _ => false,
    }
}

fn has_severe_member(part: &Part<'_>) -> bool {
    let has_severity = part.members().any(|(name, _)| WORDS.severity_name.is_match(name));
    part.members().any(|(name, value)| {
        let says = |pattern: &Regex| any_text(value, |text| pattern.is_match(text));
        (WORDS.severity_name.is_match(name) && !is_mild(value))
            || (WORDS.grade_name.is_match(name)
                && !WORDS.limit_name.is_match(name)
                && says(&WORDS.grade))
            || (WORDS.list_name.is_match(name) && has_some(value))
            || (WORDS.no_list_name.is_match(name) && says_no(value))
            || (WORDS.score_name.is_match(name) && has_high_score(value))
            || match name {
                "blocks" | "is_blocker" | "is_blocking" | "is_critical" => says_yes(value),
                "priority" => says(&WORDS.top_grade),
                // These may describe something else, so they count where nothing else grades.
                "label" | "category" | "class" | "classification" | "type" | "kind" | "grade"
                | "importance" | "impact" => !has_severity && says(&WORDS.grade_alone),
                _ => false,
            }
    })
}

/// A severity that is lower than high. A word that nobody knows is not one.
fn is_mild(severity: &Value) -> bool {
    match severity {
        Value::Null => true,
        Value::Bool(_) => false,
        Value::Number(_) => leading_number(severity).is_some_and(is_low_score),
        Value::String(text) => {
            nothing::is_empty(severity)
                || (WORDS.mild.is_match(text)
                    && !WORDS.grade_inside.is_match(&WORDS.no_grade.replace_all(text, "")))
                || leading_number(severity).is_some_and(is_low_score)
        }
        Value::Array(items) => items.iter().all(is_mild),
        // The other members of an object are read as a part of their own.
        Value::Object(members) => members.iter().all(|(name, value)| {
            !matches!(snake_case(name).as_str(), "value" | "score" | "name" | "label" | "text")
                || is_mild(value)
        }),
    }
}

fn is_low_score(score: f64) -> bool {
    (0.0..HIGH_SCORE).contains(&score)
}

/// A high score, also inside: `{"v3": {"score": 9.8}}`.
fn has_high_score(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_high_score),
        Value::Object(members) => members.values().any(has_high_score),
        other => match (leading_number(other), other) {
            (Some(score), _) => (HIGH_SCORE..=10.0).contains(&score),
            // "CVSS:3.1/AV:N 9.8".
            (None, Value::String(text)) => WORDS.high_score.is_match(text),
            _ => false,
        },
    }
}

/// Whether a member that counts or lists severe findings has some that are open.
fn has_some(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(_) => leading_number(value).is_some_and(|number| number > 0.0),
        Value::String(text) => {
            !reports_nothing(value) && !says_no(value) && is_severe_under_name(text)
        }
        Value::Array(items) => items.iter().any(has_some),
        Value::Object(members) => {
            let is_settled =
                members.iter().any(|(name, value)| says_settled(&snake_case(name), value))
                    && !members.values().any(|value| any_text(value, says_open));
            !is_settled
                && members.iter().any(|(name, value)| {
                    !WORDS.settled_name.is_match(&snake_case(name)) && has_some(value)
                })
        }
    }
}

fn any_text(value: &Value, condition: impl Fn(&str) -> bool + Copy) -> bool {
    match value {
        Value::String(text) => condition(text),
        Value::Array(items) => items.iter().any(|item| any_text(item, condition)),
        _ => false,
    }
}

fn has_severe_text(part: &Part<'_>, is_settled: bool) -> bool {
    part.texts().any(|text| {
        // One word in a member is a value of that member, which has been read.
        let is_word = text.text.chars().all(|character| character.is_ascii_alphanumeric());
        let is_value = text.is_member && !text.name.is_empty() && is_word;
        // What was found may be told with its grade after it is fixed.
        let is_past = is_settled && WORDS.description_name.is_match(text.name);
        let grades_other =
            WORDS.other_grade_name.is_match(text.name) && WORDS.grade.is_match(text.text);
        let is_read = is_value || is_past || grades_other || WORDS.list_name.is_match(text.name);
        !is_read && is_severe_text(text.text)
    })
}

static WORDS: LazyLock<Words> = LazyLock::new(Words::new);

struct Words {
    /// The name of the severity itself. There, an unknown word counts.
    severity_name: Pattern,
    /// The name of a field that holds a grade.
    grade_name: Pattern,
    /// The name of a field that says which grades are meant: `severity_threshold`.
    limit_name: Pattern,
    /// The name of a field that grades something else: `confidence`.
    other_grade_name: Pattern,
    /// A text that begins with a severe grade.
    grade: Pattern,
    /// A text that is nothing but a severe grade.
    grade_alone: Pattern,
    /// "medium/high".
    grade_inside: Pattern,
    /// "low (not high)".
    no_grade: Pattern,
    top_grade: Pattern,
    /// The name of a field that counts or lists severe findings, or is the label of its text.
    list_name: Pattern,
    /// `no_critical_findings`.
    no_list_name: Pattern,
    score_name: Pattern,
    high_score: Pattern,
    mild: Pattern,
    settled: Pattern,
    /// The name of a field that counts or lists what is not open any more.
    settled_name: Pattern,
    /// "fixed, but …".
    reserved: Pattern,
    /// The name of a field that says what was found.
    description_name: Pattern,
}

impl Words {
    fn new() -> Self {
        let severe = severe();
        let value = severe_value();
        let list = format!(
            "{severe}(_?(severity|risk|{THING}|items?|lists?|counts?|open|total|remaining\
             |found|identified|detected|reported|unresolved\
             |before_merge))*"
        );
        Self {
            severity_name: pattern("^(severity|sev)$"),
            grade_name: pattern(
                "^([a-z_]*(severity|criticality)[a-z_]*|sev|risk|risk_level|rating|level)$",
            ),
            limit_name: pattern("(^|_)(threshold|min|minimum|filter|scale|levels|cutoff)(_|$)"),
            other_grade_name: pattern(
                "(^|_)(confidence|effort|complexity|quality|coverage|priority|likelihood)$",
            ),
            grade: pattern(&format!("^[^a-z]*(very |extremely )?{value}([^a-z]|$)")),
            grade_alone: pattern(&format!("^[^a-z]*{value}[^a-z]*$")),
            grade_inside: pattern(&format!("(^|[^a-z]){value}([^a-z0-9]|$)")),
            no_grade: pattern(&format!(
                "(not|no longer|was|were|if|than|from|below|under|non)[ -](an? |as )?{value}"
            )),
            top_grade: pattern(&format!("^[^a-z]*{}([^a-z]|$)", top())),
            list_name: pattern(&format!(
                "^((num|number_of|total|open|count|remaining|unresolved|new|has|have|any)_)*{list}$"
            )),
            no_list_name: pattern(&format!("^no_(open_|remaining_|new_)?{list}$")),
            high_score: pattern("(^| )([789]([.][0-9])?|10([.]0)?)([^0-9.]|$)"),
            score_name: pattern("^(cvss[a-z0-9_]*|severity|sev|severity_score)$"),
            mild: pattern(&format!("^[^a-z0-9]*(very |extremely )?({LOWER}|{HARMLESS})([^a-z]|$)")),
            settled_name: pattern(&format!("(^|_){SETTLED}$")),
            settled: pattern(&format!(
                "^[^a-z]*((verified|confirmed|already|now|is|was|has been|been|all|marked as)\
                 [^a-z]+)*{SETTLED}([^a-z]|$)"
            )),
            reserved: pattern(
                "(^|[^a-z])(not|but|still|partial[a-z]*|except|however|until|unless|pending|later\
                 |yet|todo|remain[a-z]*|open)([^a-z]|$)",
            ),
            description_name: pattern(
                "^(what|title|name|description|summary|message|issue|finding|problem|text|detail\
                 |details|evidence|id)$",
            ),
        }
    }
}
