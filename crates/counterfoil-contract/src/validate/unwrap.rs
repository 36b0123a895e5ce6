//! Removes envelopes around a result where the contract allows it.

use super::value_spans::ValueSpans;
use super::{SpanResolver, describe};
use crate::capped::Capped;
use crate::contract::Contract;
use crate::json;
use crate::policy::{Policy, UnknownFields};
use crate::report::Violation;
use crate::source::Source;
use serde_json::Value;

/// The maximum number of nested envelopes to remove.
const MAX_ENVELOPES: usize = 8;

/// Removes envelopes until the value satisfies the schema or none is left, and returns the removed
/// ones. What stands beside the result in them is noted in `warnings`.
pub(crate) fn unwrap(
    contract: &Contract,
    policy: &Policy,
    value: &mut Value,
    spans: &mut ValueSpans<'_>,
    source: &Source<'_>,
    warnings: &mut Capped<Violation>,
) -> Vec<String> {
    let mut removed = Vec::new();
    if policy.unwrap.is_empty() {
        return removed;
    }
    while removed.len() < MAX_ENVELOPES && !contract.validator().is_valid(value) {
        if let Value::String(text) = value {
            let inner = policy
                .unwrap
                .strings
                .then(|| json::parse(text.trim(), policy.limits()).ok())
                .flatten()
                // A key with two values: nobody knows which one is meant.
                .filter(|inner| inner.differing.is_empty());
            let Some(inner) =
                inner.filter(|inner| !inner.value.is_string() || inner.value != *value)
            else {
                break;
            };
            *value = inner.value;
            spans.enter_string();
            removed.push("string".to_owned());
            continue;
        }
        let Value::Object(members) = value else { break };
        let mut keys = policy.unwrap.keys.iter().filter(|key| {
            members
                .get(key.as_str())
                .is_some_and(|member| member.is_object() || member.is_array() || member.is_string())
        });
        let (Some(key), None) = (keys.next(), keys.next()) else { break };
        // The contract itself may declare a field with that name.
        if contract.ty().object().is_some_and(|object| object.fields.contains_key(key)) {
            break;
        }
        // What stands beside the result would be lost.
        let beside =
            |(name, member): (&String, &Value)| name != key && policy.refuses_unknown(member);
        if policy.unknown_fields == UnknownFields::Refuse && members.iter().any(beside) {
            break;
        }
        let Some(inner) = members.get(key).cloned() else { break };
        let beside: Vec<&str> =
            members.keys().filter(|name| *name != key).map(String::as_str).collect();
        if !beside.is_empty() {
            let spans = SpanResolver { source, spans };
            warnings.push(|| describe::beside_envelope(&beside, key, &spans));
        }
        *value = inner;
        spans.descend(key);
        removed.push(key.clone());
    }
    removed
}
