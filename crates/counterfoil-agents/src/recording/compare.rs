//! Compares two results of the same attempt, field by field.

use super::{Attempt, RecordedOutcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The most differences of a value that are listed; the rest is counted.
const MAX_DIFFERENCES: usize = 50;

/// A difference between a recorded and a replayed attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// What differs: outcome, contract, value, violations or usage; status, codes, channel, denied
    /// or text of a reply.
    pub what: String,
    /// The number of the reply, from 1, if one reply differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<usize>,
    /// The location in the value, as a JSON pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The recorded value, if there was one.
    pub before: Option<Value>,
    /// The replayed value, if there is one.
    pub after: Option<Value>,
}

impl Difference {
    fn new(what: &str, before: Option<Value>, after: Option<Value>) -> Self {
        Self { what: what.to_owned(), reply: None, pointer: None, before, after }
    }

    fn for_reply(self, reply: usize) -> Self {
        Self { reply: Some(reply), ..self }
    }
}

/// The differences between a recorded attempt and its replay. `texts` has the recorded and the
/// replayed final text of each reply whose output contains events.
pub fn differences(
    before: &Attempt,
    after: &Attempt,
    texts: &[Option<(String, String)>],
) -> Vec<Difference> {
    let mut found = outcome_differences(&before.result, &after.result);
    for (index, (old, new)) in before.replies.iter().zip(&after.replies).enumerate() {
        let number = index + 1;
        if old.status != new.status {
            found.push(
                Difference::new("status", text_value(&old.status), text_value(&new.status))
                    .for_reply(number),
            );
        }
        if old.codes != new.codes {
            found.push(
                Difference::new("codes", list_value(&old.codes), list_value(&new.codes))
                    .for_reply(number),
            );
        }
        if old.channel != new.channel {
            let text = |channel: &Option<String>| channel.as_ref().map(|channel| json!(channel));
            found.push(
                Difference::new("channel", text(&old.channel), text(&new.channel))
                    .for_reply(number),
            );
        }
        if old.denied != new.denied {
            found.push(
                Difference::new("denied", list_value(&old.denied), list_value(&new.denied))
                    .for_reply(number),
            );
        }
        if let Some(Some((was, is))) = texts.get(index)
            && was != is
        {
            found.push(Difference::new("text", text_value(was), text_value(is)).for_reply(number));
        }
    }
    found
}

fn outcome_differences(before: &RecordedOutcome, after: &RecordedOutcome) -> Vec<Difference> {
    let mut found = Vec::new();
    if before.outcome != after.outcome {
        let text = |outcome: &Option<String>| outcome.as_ref().map(|outcome| json!(outcome));
        found.push(Difference::new("outcome", text(&before.outcome), text(&after.outcome)));
    }
    found.extend(value_differences(before.value.as_ref(), after.value.as_ref()));
    // A changed message alone is not a different violation.
    let violations = |outcome: &RecordedOutcome| -> Vec<String> {
        let summary = |violated: &super::RecordedViolation| {
            format!("{} {}", violated.code, violated.pointer).trim_end().to_owned()
        };
        outcome.violations.iter().map(summary).collect()
    };
    let (old, new) = (violations(before), violations(after));
    if old != new {
        found.push(Difference::new("violations", list_value(&old), list_value(&new)));
    }
    let (old, new) = (&before.usage, &after.usage);
    let pairs = [
        ("usage.input_tokens", json!(old.input_tokens), json!(new.input_tokens)),
        ("usage.output_tokens", json!(old.output_tokens), json!(new.output_tokens)),
        ("usage.cost_usd", cost(old.cost_usd), cost(new.cost_usd)),
    ];
    found.extend(
        pairs
            .into_iter()
            .filter(|(_, old, new)| old != new)
            .map(|(what, old, new)| Difference::new(what, Some(old), Some(new))),
    );
    found
}

/// A cost, rounded to hide floating-point errors of sums.
fn cost(usd: f64) -> Value {
    json!((usd * 1e8).round() / 1e8)
}

fn text_value(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!(text))
}

fn list_value(list: &[String]) -> Option<Value> {
    (!list.is_empty()).then(|| json!(list))
}

/// The differences between two values, in the order of the first value, then what only the second
/// has.
fn value_differences(before: Option<&Value>, after: Option<&Value>) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut more = 0usize;
    // Not recursive, because a value may be deeply nested.
    let mut open = vec![(String::new(), before, after)];
    while let Some((pointer, before, after)) = open.pop() {
        match (before, after) {
            (Some(old), Some(new)) if old == new => {}
            (None, None) => {}
            (Some(Value::Object(old)), Some(Value::Object(new))) => {
                let step = |name: &str| {
                    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
                };
                let mut inner: Vec<_> = old
                    .iter()
                    .map(|(name, value)| (step(name), Some(value), new.get(name)))
                    .collect();
                let added = new.iter().filter(|(name, _)| !old.contains_key(*name));
                inner.extend(added.map(|(name, value)| (step(name), None, Some(value))));
                open.extend(inner.into_iter().rev());
            }
            (Some(Value::Array(old)), Some(Value::Array(new))) => {
                let length = old.len().max(new.len());
                let inner = (0..length)
                    .rev()
                    .map(|at| (format!("{pointer}/{at}"), old.get(at), new.get(at)));
                open.extend(inner);
            }
            (before, after) if found.len() < MAX_DIFFERENCES => {
                let mut one = Difference::new("value", before.cloned(), after.cloned());
                one.pointer = Some(pointer);
                found.push(one);
            }
            _ => more += 1,
        }
    }
    if more > 0 {
        found.push(Difference::new(
            "value",
            None,
            Some(json!(format!("{more} further places differ"))),
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(before: &Value, after: &Value) -> Vec<String> {
        let text = |value: Option<Value>| value.map_or("-".to_owned(), |value| value.to_string());
        let line = |one: Difference| {
            format!("{} {} {}", one.pointer.unwrap_or_default(), text(one.before), text(one.after))
        };
        value_differences(Some(before), Some(after)).into_iter().map(line).collect()
    }

    #[test]
    fn values_differ_by_places() {
        let before = json!({"a": 1, "b": {"c/d": [1, 2, 3], "e": "x"}, "gone": null});
        let after = json!({"b": {"c/d": [1, 5], "e": "x"}, "a": "1", "new": {"f": 1}});
        assert_eq!(
            lines(&before, &after),
            ["/a 1 \"1\"", "/b/c~1d/1 2 5", "/b/c~1d/2 3 -", "/gone null -", "/new - {\"f\":1}"]
        );
        assert_eq!(lines(&before, &before), Vec::<String>::new());
        assert_eq!(lines(&json!([]), &json!({})), [" [] {}"]);
    }

    #[test]
    fn many_places_are_counted() {
        let list = |n: u32| json!((0..1000).map(|at| at * n).collect::<Vec<_>>());
        let lines = lines(&list(1), &list(2));
        assert_eq!(lines.len(), MAX_DIFFERENCES + 1);
        assert_eq!(lines.last().map(String::as_str), Some(" - \"949 further places differ\""));
    }

    #[test]
    fn another_message_for_the_same_violation_is_no_difference() {
        let with = |message: &str, pointer: &str| Attempt {
            result: RecordedOutcome {
                outcome: Some("contract".to_owned()),
                violations: vec![super::super::RecordedViolation {
                    code: "C0201".to_owned(),
                    pointer: pointer.to_owned(),
                    message: message.to_owned(),
                }],
                ..RecordedOutcome::default()
            },
            ..Attempt::default()
        };
        assert_eq!(differences(&with("a", "/x"), &with("b", "/x"), &[]), []);
        let found = differences(&with("a", "/x"), &with("a", "/y"), &[]);
        assert_eq!(
            found,
            [Difference::new("violations", Some(json!(["C0201 /x"])), Some(json!(["C0201 /y"])))]
        );
    }
}
