//! Questions about a result that satisfies its contract. A copy of an earlier result, or a result
//! that differs from what the same reply says elsewhere, may be meant; only the agent knows. The
//! report is rejected with one violation that asks, and the caller asks at most once. A result that
//! leaves out a problem which the agent has reported is refused until it has it.

#[cfg(feature = "rules")]
mod left_out;

#[cfg(feature = "rules")]
pub use left_out::ReportedProblems;

use crate::code::Code;
use crate::contract::Contract;
use crate::json::escape;
use crate::own_words::carries_own_words;
use crate::report::{Report, Stage, Status, Violation};
use crate::validate::{bare_violation, excerpt};
use serde_json::Value;

/// Whether a violation is a question that the agent answers by sending its result again.
pub fn is_question(violation: &Violation) -> bool {
    matches!(violation.code, Code::CopyOfEarlier | Code::ChannelsDiffer)
}

/// Whether a result is a copy of another value, or of an object inside of it. A result without
/// words or numbers of its own can equal another one by chance, and is not taken for a copy.
pub fn is_copy(contract: &Contract, result: &Value, of: &Value) -> bool {
    if !carries_own_words(result, contract.ty()) {
        return false;
    }
    if contains(of, result) {
        return true;
    }
    // The other value may have been written in another form that means the same.
    of.is_object() && contract.check_value_quietly(of).value.as_ref() == Some(result)
}

fn contains(value: &Value, wanted: &Value) -> bool {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        if value == wanted {
            return true;
        }
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => open.extend(fields.values()),
            _ => {}
        }
    }
    false
}

/// Asks whether a result that equals the earlier result `name` of the run is meant.
#[must_use]
pub fn ask_about_copy(report: Report, name: &str) -> Report {
    let message = format!("the result is identical to `{name}`, an earlier result of this run");
    let mut violation = bare_violation(Code::CopyOfEarlier, "", message);
    violation.expected = "the result of this work".into();
    violation.received = format!("a copy of `{name}`");
    violation.hint =
        "if it is your own result, send it again as it is; otherwise send your own".into();
    ask(report, violation)
}

/// A value that two results give differently.
#[derive(Clone, Debug, PartialEq)]
pub struct Contradiction {
    /// The JSON pointer of the value.
    pub pointer: String,
    /// The value in the result that counts.
    pub ours: Value,
    /// The value in the other one.
    pub theirs: Value,
}

/// The first value that another report gives and that differs from the one of a result. What one of
/// them leaves out or leaves to a default is no contradiction.
pub fn contradiction(result: &Report, other: &Report) -> Option<Contradiction> {
    let (ours, theirs) = (given(result)?, given(other)?);
    let pointer = first_difference(&ours, &theirs, String::new())?;
    Some(Contradiction {
        ours: ours.pointer(&pointer).cloned().unwrap_or_default(),
        theirs: theirs.pointer(&pointer).cloned().unwrap_or_default(),
        pointer,
    })
}

/// The value of a report without the defaults that were filled in.
fn given(report: &Report) -> Option<Value> {
    let mut value = report.value.clone()?;
    for pointer in &report.provenance.defaults {
        let Some((parent, key)) = pointer.rsplit_once('/') else { continue };
        let key = key.replace("~1", "/").replace("~0", "~");
        if let Some(Value::Object(fields)) = value.pointer_mut(parent) {
            fields.shift_remove(&key);
        }
    }
    Some(value)
}

/// The JSON pointer of the first value that both give differently.
fn first_difference(ours: &Value, theirs: &Value, at: String) -> Option<String> {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => ours.iter().find_map(|(key, ours)| {
            let theirs = theirs.get(key)?;
            first_difference(ours, theirs, format!("{at}/{}", escape(key)))
        }),
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => ours
            .iter()
            .zip(theirs)
            .enumerate()
            .find_map(|(n, (ours, theirs))| first_difference(ours, theirs, format!("{at}/{n}"))),
        // Null gives no value.
        (Value::Null, _) | (_, Value::Null) => None,
        (Value::Number(ours), Value::Number(theirs)) if ours.as_f64() == theirs.as_f64() => None,
        (ours, theirs) => (ours != theirs).then_some(at),
    }
}

impl Contradiction {
    /// The contradiction as a sentence; `channel` is where the other value is.
    pub fn describe(&self, channel: &str) -> String {
        let place = if self.pointer.is_empty() { "the result" } else { &self.pointer };
        let (ours, theirs) = (excerpt(&self.ours), excerpt(&self.theirs));
        format!("{place} is {ours} in the result, but {theirs} in the {channel}")
    }

    /// Asks which of the two values is meant. `channel` is where the other value is.
    #[must_use]
    pub fn ask(&self, report: Report, channel: &str) -> Report {
        let mut violation =
            bare_violation(Code::ChannelsDiffer, &self.pointer, self.describe(channel));
        violation.expected = "the same value in both".into();
        violation.received = format!("{} and {}", excerpt(&self.ours), excerpt(&self.theirs));
        violation.hint = "send the result again with the right value, once".into();
        ask(report, violation)
    }
}

fn ask(report: Report, violation: Violation) -> Report {
    ask_all(report, vec![violation])
}

fn ask_all(report: Report, violations: Vec<Violation>) -> Report {
    Report {
        status: Status::Rejected,
        stage: Some(Stage::Validation),
        value: None,
        violations,
        ..report
    }
}
