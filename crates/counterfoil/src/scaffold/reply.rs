//! A reply for the script of a scaffold: a result that the contract accepts and that does not repeat
//! the examples that agents are shown, since a copy is no answer.

use super::success::Success;
use counterfoil_contract::shown::Shown;
use counterfoil_contract::{Contract, Framing, Status};
use serde_json::{Number, Value};

/// The most values of an example that are changed, one after the other, to find a reply.
const MAX_VARIANTS: usize = 200;

/// The text of a reply that the contract accepts as an answer to a prompt: the preferred one, or an
/// example of the contract with a value changed. It claims a success if one is given. None if none
/// of them can be turned into one.
pub(super) fn text_for(
    contract: &Contract,
    prompt: &str,
    preferred: Option<&Value>,
    success: Option<&Success>,
) -> Option<String> {
    let shown = Shown::with_prompts(contract, &[prompt]);
    let examples = contract.definition().examples.iter();
    let variants = examples.flat_map(|example| {
        let changed = (0..MAX_VARIANTS).map_while(|leaf| changed_at(example, leaf));
        changed.chain([example.clone()])
    });
    let all = preferred.cloned().into_iter().chain(variants);
    let claimed = all.map(|value| match success {
        Some(success) => success.claimed_in(value),
        None => value,
    });
    let mut texts = claimed.filter_map(|value| text(contract.framing(), &value));
    texts.find(|text| {
        let report = contract.check_bytes_shown(text.as_bytes(), contract.policy(), &shown);
        report.status == Status::Accepted
    })
}

/// A result as an agent writes it. Output blocks have no general form for nested values.
fn text(framing: Framing, value: &Value) -> Option<String> {
    let json = serde_json::to_string_pretty(value).ok()?;
    match framing {
        Framing::AnyJson | Framing::FencedJson => Some(format!("```json\n{json}\n```\n")),
        Framing::JsonOnly => Some(format!("{json}\n")),
        Framing::OutputBlock => None,
    }
}

/// The example with a text in place of each of its own, which may be placeholders.
pub(super) fn with_texts(example: &Value) -> Value {
    match example {
        Value::String(_) => Value::from("A text"),
        Value::Array(items) => Value::Array(items.iter().map(with_texts).collect()),
        Value::Object(fields) => {
            let filled = fields.iter().map(|(name, value)| (name.clone(), with_texts(value)));
            Value::Object(filled.collect())
        }
        other => other.clone(),
    }
}

/// The example with its nth text or number changed; none if it has fewer.
pub(super) fn changed_at(example: &Value, leaf: usize) -> Option<Value> {
    let mut changed = example.clone();
    let mut left = leaf;
    change(&mut changed, &mut left).then_some(changed)
}

fn change(value: &mut Value, left: &mut usize) -> bool {
    match value {
        Value::Object(fields) => fields.values_mut().any(|value| change(value, left)),
        Value::Array(items) => items.iter_mut().any(|item| change(item, left)),
        Value::String(_) | Value::Number(_) if *left > 0 => {
            *left -= 1;
            false
        }
        Value::String(text) => {
            text.push_str(" (from the script)");
            true
        }
        Value::Number(number) => {
            let Some(next) = number.as_u64().and_then(|number| number.checked_add(1)) else {
                return false;
            };
            *number = Number::from(next);
            true
        }
        Value::Null | Value::Bool(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reply_is_not_a_copy_of_the_example() {
        let contract = |fields: &str, example: &str| {
            let text =
                format!("contract: a/b\nversion: 1\nfields: {fields}\nexamples: [{example}]\n");
            Contract::from_yaml(&text).unwrap()
        };
        let one = contract("{ kind: low | high, note: string }", "{ kind: low, note: A word. }");
        let text = text_for(&one, "Do it.", None, None).unwrap();
        assert!(text.contains("A word. (from the script)") && text.contains("\"low\""), "{text}");
        // What has only booleans may equal the example by chance.
        let plain = contract("{ ok: boolean }", "{ ok: false }");
        assert!(text_for(&plain, "Do it.", None, None).unwrap().contains("false"));
        let none = contract("{ kind: low | high }", "{ kind: low }");
        assert!(text_for(&none, "Do it.", None, None).is_some());
        assert_eq!(changed_at(&json!({"a": [true, 1]}), 0), Some(json!({"a": [true, 2]})));
        assert_eq!(changed_at(&json!({"a": [true, 1]}), 1), None);
    }
}
