//! A failure says what went wrong: in a contract with `success` and a field for errors,
//! `success: false` without an error is a violation, also if no rule of the contract says so.

use super::bare_violation;
use super::describe::SpanResolver;
use crate::code::Code;
use crate::contract::Contract;
use crate::expr::Type;
use crate::nothing::is_empty_throughout;
use crate::report::Violation;
use serde_json::Value;

/// The names of fields that say what went wrong.
const ERROR_FIELDS: [&str; 4] = ["errors", "error", "error_details", "error_message"];

/// The fields of which a failure needs one; empty if the contract has no such fields, or a rule of
/// its own about them.
pub(crate) fn error_fields(contract: &Contract) -> Vec<&str> {
    let Some(object) = contract.ty().object() else { return Vec::new() };
    if object.fields.get("success").is_none_or(|field| field.ty != Type::Bool) {
        return Vec::new();
    }
    let fields: Vec<&str> = ERROR_FIELDS
        .into_iter()
        .filter_map(|name| object.fields.get_key_value(name).map(|(name, _)| name.as_str()))
        .collect();
    let has_rule = contract.definition().rules.iter().filter(|rule| !rule.warn).any(|rule| {
        let texts = [&rule.when, &rule.check];
        let reads = |name: &str| {
            let path = format!("result.{name}");
            texts.iter().any(|text| text.as_ref().is_some_and(|text| text.contains(&path)))
        };
        let about_errors =
            fields.iter().any(|name| reads(name) || rule.require.iter().any(|field| field == name));
        reads("success") && about_errors
    });
    if has_rule { Vec::new() } else { fields }
}

/// The violation of a failure without an error.
pub(super) fn unexplained(
    contract: &Contract,
    value: &Value,
    spans: &SpanResolver<'_, '_>,
) -> Option<Violation> {
    if value.get("success") != Some(&Value::Bool(false)) {
        return None;
    }
    let fields = error_fields(contract);
    let first = fields.first()?;
    if fields.iter().any(|name| value.get(name).is_some_and(|value| !is_empty_throughout(value))) {
        return None;
    }
    let names = fields.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ");
    let pointer = format!("/{first}");
    let message = format!("`success` is false, but {names} does not say what went wrong");
    let mut violation = bare_violation(Code::MissingWhen, &pointer, message);
    violation.span = spans.value(&pointer);
    violation.expected = format!("{names} when `success` is false");
    violation.received = value.get(first).map_or_else(|| "nothing".into(), Value::to_string);
    violation.hint = format!("say in {names} what went wrong");
    Some(violation)
}
