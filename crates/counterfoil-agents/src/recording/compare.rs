//! What changed: two results of the same attempt, field by field.

use super::{Attempt, Came};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How many places of a value are told; the rest is counted.
const MOST_PLACES: usize = 50;

/// Something that is not what it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// What: outcome, contract, value, violations, usage; status, codes, channel, text of a reply.
    pub what: String,
    /// The reply, from 1, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<usize>,
    /// The place in the value, as a JSON pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// What was recorded; none if there was nothing.
    pub before: Option<Value>,
    /// What it is now; none if there is nothing.
    pub after: Option<Value>,
}

impl Difference {
    fn new(what: &str, before: Option<Value>, after: Option<Value>) -> Self {
        Self { what: what.to_owned(), reply: None, pointer: None, before, after }
    }

    fn of_reply(self, reply: usize) -> Self {
        Self { reply: Some(reply), ..self }
    }
}

/// What changed between an attempt as it was recorded and as it is judged now. `texts` says, for
/// each reply, what its final text was and is, where the output holds events.
pub fn differences(
    before: &Attempt,
    after: &Attempt,
    texts: &[Option<(String, String)>],
) -> Vec<Difference> {
    let mut found = came(&before.came, &after.came);
    for (index, (old, new)) in before.replies.iter().zip(&after.replies).enumerate() {
        let number = index + 1;
        if old.status != new.status {
            found.push(
                Difference::new("status", said(&old.status), said(&new.status)).of_reply(number),
            );
        }
        if old.codes != new.codes {
            found.push(
                Difference::new("codes", some(&old.codes), some(&new.codes)).of_reply(number),
            );
        }
        if old.channel != new.channel {
            let text = |channel: &Option<String>| channel.as_ref().map(|channel| json!(channel));
            found.push(
                Difference::new("channel", text(&old.channel), text(&new.channel)).of_reply(number),
            );
        }
        if old.denied != new.denied {
            found.push(
                Difference::new("denied", some(&old.denied), some(&new.denied)).of_reply(number),
            );
        }
        if let Some(Some((was, is))) = texts.get(index)
            && was != is
        {
            found.push(Difference::new("text", said(was), said(is)).of_reply(number));
        }
    }
    found
}

fn came(before: &Came, after: &Came) -> Vec<Difference> {
    let mut found = Vec::new();
    if before.outcome != after.outcome {
        let text = |outcome: &Option<String>| outcome.as_ref().map(|outcome| json!(outcome));
        found.push(Difference::new("outcome", text(&before.outcome), text(&after.outcome)));
    }
    found.extend(places(before.value.as_ref(), after.value.as_ref()));
    // Words may be put better without anything being another fault.
    let faults = |came: &Came| -> Vec<String> {
        let fault = |violated: &super::Violated| {
            format!("{} {}", violated.code, violated.pointer).trim_end().to_owned()
        };
        came.violations.iter().map(fault).collect()
    };
    let (old, new) = (faults(before), faults(after));
    if old != new {
        found.push(Difference::new("violations", some(&old), some(&new)));
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

/// Money, without the last digits of a sum of floating-point numbers.
fn cost(usd: f64) -> Value {
    json!((usd * 1e8).round() / 1e8)
}

fn said(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!(text))
}

fn some(list: &[String]) -> Option<Value> {
    (!list.is_empty()).then(|| json!(list))
}

/// The places at which two values differ, outermost first in the order of the first, then what only
/// the second has.
fn places(before: Option<&Value>, after: Option<&Value>) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut more = 0usize;
    // Without recursion: a value may be as deep as its contract allows.
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
            (before, after) if found.len() < MOST_PLACES => {
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

    fn shown(before: &Value, after: &Value) -> Vec<String> {
        let text = |value: Option<Value>| value.map_or("-".to_owned(), |value| value.to_string());
        let line = |one: Difference| {
            format!("{} {} {}", one.pointer.unwrap_or_default(), text(one.before), text(one.after))
        };
        places(Some(before), Some(after)).into_iter().map(line).collect()
    }

    #[test]
    fn values_differ_by_places() {
        let before = json!({"a": 1, "b": {"c/d": [1, 2, 3], "e": "x"}, "gone": null});
        let after = json!({"b": {"c/d": [1, 5], "e": "x"}, "a": "1", "new": {"f": 1}});
        assert_eq!(
            shown(&before, &after),
            ["/a 1 \"1\"", "/b/c~1d/1 2 5", "/b/c~1d/2 3 -", "/gone null -", "/new - {\"f\":1}"]
        );
        assert_eq!(shown(&before, &before), Vec::<String>::new());
        assert_eq!(shown(&json!([]), &json!({})), [" [] {}"]);
    }

    #[test]
    fn many_places_are_counted() {
        let list = |n: u32| json!((0..1000).map(|at| at * n).collect::<Vec<_>>());
        let lines = shown(&list(1), &list(2));
        assert_eq!(lines.len(), MOST_PLACES + 1);
        assert_eq!(lines.last().map(String::as_str), Some(" - \"949 further places differ\""));
    }

    #[test]
    fn other_words_for_the_same_fault_are_no_change() {
        let with = |message: &str, pointer: &str| Attempt {
            came: Came {
                outcome: Some("contract".to_owned()),
                violations: vec![super::super::Violated {
                    code: "C0201".to_owned(),
                    pointer: pointer.to_owned(),
                    message: message.to_owned(),
                }],
                ..Came::default()
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
