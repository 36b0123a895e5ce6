//! Whether a verdict rejects, and whether a text says that there is nothing.

use super::parts::{any_part, pattern, says_no};
use regex::Regex;
use serde_json::Value;
use std::sync::LazyLock;

static REJECTION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        "^[^a-z]*(reject|rejected|request[ _-]?changes|changes[ _-]?(requested|required|needed)\
         |block|blocked|fail|failed|not[ _-](approved|ok)|no[ _-]go)[^a-z]*$",
    )
});

static NOTHING: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        "^[^a-z0-9]*(none|no|nil|null|nothing|n/?a|not (blocked|applicable)|nothing to report\
         |(no|none|nothing)( [a-z]+)? (concerns?|issues?|risks?|findings?|problems?|blockers?|fix(es)?\
         |vulnerabilit(y|ies)))?( (found|identified|known|open|remaining|left|detected|noted\
         |reported|needed|required|necessary|so far|at this time))?[^a-z0-9]*$",
    )
});

/// Whether a field of its own holds a verdict that is not an approval, anywhere in a value.
pub(crate) fn reports_rejection(value: &Value) -> bool {
    any_part(value, &|part| {
        part.members().any(|(name, value)| match name {
            "approved" | "approve" | "approves" | "mergeable" | "can_merge" => says_no(value),
            "verdict" | "decision" | "review_result" | "review_decision" => {
                value.as_str().is_some_and(|text| REJECTION.is_match(text))
            }
            _ => false,
        })
    })
}

/// Whether a value says that there is nothing: "none", "No concerns found.", or an object whose
/// severity is none and that has no other member.
pub(crate) fn reports_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => NOTHING.is_match(text),
        Value::Array(items) => items.iter().all(reports_nothing),
        Value::Object(members) => members.iter().all(|(name, value)| {
            matches!(name.to_lowercase().as_str(), "severity" | "level")
                && value.as_str().is_some_and(|text| {
                    matches!(text.trim().to_lowercase().as_str(), "none" | "n/a")
                })
        }),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
