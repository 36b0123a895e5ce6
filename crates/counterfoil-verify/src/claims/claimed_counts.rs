//! Numbers that a result states, and the counts of a test run among them. Pure.

use super::extract::CommandClaim;
use super::format::display_text;
use super::stated::{self, claim_from_word};
use counterfoil_contract::claim::Figure;
use serde::Serialize;
use serde_json::{Map, Number, Value};
use std::fmt;

/// A number that a result states.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum ClaimedNumber {
    Count(u64),
    /// A negative, fractional or too large number. It equals no count.
    Other(Number),
}

impl ClaimedNumber {
    /// A number, a number as text, or the length of a list. `None` if the value is none of them.
    pub(super) fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Array(items) => u64::try_from(items.len()).ok().map(Self::Count),
            Value::String(text) => {
                let text = text.trim();
                let count = text.parse().ok().map(Self::Count);
                count.or_else(|| text.parse().ok().map(|number: Number| Self::from_number(&number)))
            }
            Value::Number(number) => Some(Self::from_number(number)),
            _ => None,
        }
    }

    fn from_number(number: &Number) -> Self {
        let count = number.as_u64().or_else(|| {
            // 3.0 is a count, 3.5 is not.
            let number = number.as_f64()?;
            let whole = number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Just checked.
            whole.then_some(number as u64)
        });
        count.map_or_else(|| Self::Other(number.clone()), Self::Count)
    }

    /// The sum of numbers. If one of them is no count, neither is the sum.
    pub(super) fn sum(numbers: &[Self]) -> Self {
        let mut sum = 0_u64;
        for number in numbers {
            match number {
                Self::Count(count) => sum = sum.saturating_add(*count),
                Self::Other(_) => return number.clone(),
            }
        }
        Self::Count(sum)
    }

    /// Whether it equals this count.
    pub(super) fn is(&self, count: u64) -> bool {
        *self == Self::Count(count)
    }

    pub(super) fn count(&self) -> Option<u64> {
        match self {
            Self::Count(count) => Some(*count),
            Self::Other(_) => None,
        }
    }
}

impl fmt::Display for ClaimedNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Other(number) => number.fmt(f),
        }
    }
}

/// The members of an object that state a figure of a test run.
const FIGURE_KEYS: [(Figure, &[&str]); 4] = [
    (Figure::Total, &["total", "tests_total"]),
    (Figure::Passed, &["passed", "tests_passed"]),
    (Figure::Failed, &["failed", "tests_failed", "failures"]),
    (Figure::Skipped, &["skipped", "tests_skipped", "ignored"]),
];

/// The counts of a test run that a result states.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ClaimedCounts {
    pub(super) counts: Vec<(Figure, ClaimedNumber)>,
    /// Why other counts that are stated cannot be compared.
    pub(super) incomparable: Vec<String>,
}

impl ClaimedCounts {
    /// The counts in a value: in a text, or in an object itself, its words, and under `details`,
    /// `counts`, `figures` or `tests`.
    pub(super) fn of(value: &Value) -> Self {
        let mut counts = Self::default();
        let object = match value {
            Value::Object(object) => object,
            Value::String(text) => {
                counts.counts = stated::counts(text);
                return counts;
            }
            Value::Array(items) => {
                return match items.as_slice() {
                    [one] => Self::of(one),
                    many if many.iter().any(|one| !Self::of(one).is_empty()) => Self::of_several(),
                    _ => counts,
                };
            }
            _ => return counts,
        };
        for text in STATUS_KEYS.iter().filter_map(|key| object.get(*key)?.as_str()) {
            counts.counts.extend(stated::counts(text));
        }
        let nested = ["details", "counts", "figures", "tests"]
            .iter()
            .filter_map(|key| object.get(*key).and_then(Value::as_object));
        for object in std::iter::once(object).chain(nested) {
            for (figure, keys) in FIGURE_KEYS {
                counts.add(figure, keys, object);
            }
        }
        counts
    }

    /// The counts of several values, which one outcome cannot be compared with.
    pub(super) fn of_several() -> Self {
        let why = "the counts are in several values, and the check has one result".to_owned();
        Self { incomparable: vec![why], ..Self::default() }
    }

    /// Adds a figure of an object. The first of its members that holds a number counts.
    fn add(&mut self, figure: Figure, keys: &[&str], object: &Map<String, Value>) {
        let stated = |key: &&&str| object.get(**key).is_some_and(|value| !value.is_null());
        let mut number = None;
        for key in keys.iter().filter(stated) {
            match ClaimedNumber::from_value(&object[*key]) {
                found @ Some(_) => number = number.or(found),
                None if is_statement(figure, &object[*key]) => {}
                None => {
                    let text = display_text(&object[*key].to_string());
                    self.incomparable.push(format!("`{key}` is not a number: {text}"));
                }
            }
        }
        self.counts.extend(number.map(|number| (figure, number)));
    }

    /// Whether nothing is stated.
    pub(super) fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.incomparable.is_empty()
    }

    /// A figure, as it is stated first.
    fn get(&self, figure: Figure) -> Option<&ClaimedNumber> {
        self.counts.iter().find(|(of, _)| *of == figure).map(|(_, number)| number)
    }

    /// The number of failed tests, if it is not 0.
    pub(super) fn failed(&self) -> Option<&ClaimedNumber> {
        let failed =
            |(of, number): &&(Figure, ClaimedNumber)| *of == Figure::Failed && !number.is(0);
        self.counts.iter().find(failed).map(|(_, number)| number)
    }

    /// Whether a test is said to have passed or failed.
    pub(super) fn say_that_tests_ran(&self) -> bool {
        let ran = |(of, number): &(Figure, ClaimedNumber)| {
            matches!(of, Figure::Passed | Figure::Failed) && !number.is(0)
        };
        self.counts.iter().any(ran)
    }

    /// What the counts alone say about the command.
    pub(super) fn command_claim(&self) -> CommandClaim {
        let [failed, passed, total, skipped] =
            [Figure::Failed, Figure::Passed, Figure::Total, Figure::Skipped]
                .map(|figure| self.get(figure));
        if self.failed().is_some() {
            return CommandClaim::Fails;
        }
        let is_zero = |number: Option<&ClaimedNumber>| number.is_some_and(|number| number.is(0));
        if self.incomparable.is_empty() && self.counts.iter().all(|(_, number)| number.is(0)) {
            // Nothing ran, or nothing is said but that nothing failed.
            let is_good = failed.is_some() && passed.is_none() && total.is_none();
            return if is_good { CommandClaim::Succeeds } else { CommandClaim::Unstated };
        }
        if failed.is_some() {
            let nothing_ran = is_zero(passed) || is_zero(total);
            return if nothing_ran { CommandClaim::Counts } else { CommandClaim::Succeeds };
        }
        let counts =
            passed.and_then(ClaimedNumber::count).zip(total.and_then(ClaimedNumber::count));
        match counts {
            Some((passed, total)) if total > 0 => {
                let skipped = skipped.and_then(ClaimedNumber::count).unwrap_or(0);
                let all = passed.saturating_add(skipped) >= total;
                if all { CommandClaim::Succeeds } else { CommandClaim::Fails }
            }
            _ => CommandClaim::Counts,
        }
    }
}

/// Whether a member of a figure says that tests pass or fail, and not how many.
fn is_statement(figure: Figure, value: &Value) -> bool {
    match (figure, value) {
        (Figure::Passed | Figure::Failed, Value::Bool(_)) => true,
        (Figure::Passed, Value::String(word)) => {
            matches!(claim_from_word(word), CommandClaim::Succeeds | CommandClaim::Fails)
        }
        _ => false,
    }
}

/// The members of an object that say whether a command succeeds, by precedence.
const STATUS_KEYS: [&str; 11] = [
    "status",
    "result",
    "outcome",
    "success",
    "ok",
    "passed",
    "passing",
    "pass",
    "state",
    "verdict",
    "conclusion",
];

/// What an object says about a command in words. `None` if it has no word.
pub(super) fn stated_status(object: &Map<String, Value>) -> Option<CommandClaim> {
    let stated = |key: &&str| match (*key, said(object, key)) {
        // A text there may be a count.
        ("passed", Some(CommandClaim::Unstated | CommandClaim::Unclear)) => None,
        (_, claim) => claim,
    };
    STATUS_KEYS.iter().find_map(stated).or_else(|| said(object, "failed"))
}

/// What one member says in words.
fn said(object: &Map<String, Value>, key: &str) -> Option<CommandClaim> {
    match object.get(key)? {
        Value::Bool(is_so) if *is_so != key.ends_with("failed") => Some(CommandClaim::Succeeds),
        Value::Bool(_) => Some(CommandClaim::Fails),
        Value::String(word) if !key.ends_with("failed") => Some(claim_from_word(word)),
        _ => None,
    }
}

/// Two members of a value that contradict each other.
pub(super) fn contradiction(value: &Value) -> Option<String> {
    if let Value::Array(items) = value {
        return items.iter().find_map(contradiction);
    }
    let object = value.as_object()?;
    let keys = || STATUS_KEYS.iter().chain(&["tests_passed", "failed", "tests_failed"]);
    let says = |wanted| keys().find(|key| said(object, key) == Some(wanted));
    let (good, bad) = (says(CommandClaim::Succeeds)?, says(CommandClaim::Fails)?);
    Some(format!("`{good}` says that it succeeds, `{bad}` that it fails"))
}
