//! Envelopes around a result, taken off where the contract asks for it.

use super::places::Places;
use crate::contract::Contract;
use crate::json;
use crate::policy::Policy;
use serde_json::Value;

/// Envelopes inside envelopes deeper than this stay on.
const DEEPEST: usize = 8;

/// Takes envelopes off until the value fits the contract or none is left; says which.
pub(crate) fn unwrap(
    contract: &Contract,
    policy: &Policy,
    value: &mut Value,
    places: &mut Places<'_>,
) -> Vec<String> {
    let mut taken = Vec::new();
    if policy.unwrap.is_empty() {
        return taken;
    }
    while taken.len() < DEEPEST && !contract.validator().is_valid(value) {
        if let Value::String(text) = value {
            let inner = policy
                .unwrap
                .strings
                .then(|| json::parse(text.trim(), policy.max_depth, false).ok())
                .flatten();
            let Some(inner) =
                inner.filter(|inner| !inner.value.is_string() || inner.value != *value)
            else {
                break;
            };
            *value = inner.value;
            places.enter_string();
            taken.push("string".to_owned());
            continue;
        }
        let Value::Object(members) = value else { break };
        let mut keys = policy.unwrap.keys.iter().filter(|key| {
            members
                .get(key.as_str())
                .is_some_and(|member| member.is_object() || member.is_array() || member.is_string())
        });
        let (Some(key), None) = (keys.next(), keys.next()) else { break };
        // An object of the contract may have a field of that name itself.
        if contract.ty().object().is_some_and(|object| object.fields.contains_key(key)) {
            break;
        }
        let Some(inner) = members.get(key).cloned() else { break };
        *value = inner;
        places.descend(key);
        taken.push(key.clone());
    }
    taken
}
