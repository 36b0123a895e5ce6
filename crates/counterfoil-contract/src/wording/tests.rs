//! Values as agents write them, with what they say.

mod failures;
mod passes;
mod severe_fields;
mod severe_texts;
mod verdicts;

use serde_json::{Value, json};

/// Applies a reading to all values, and lists those with another outcome than expected.
#[track_caller]
fn all_read(reading: fn(&Value) -> bool, expected: bool, values: &[Value]) {
    let wrong: Vec<_> = values.iter().filter(|value| reading(value) != expected).collect();
    assert!(wrong.is_empty(), "expected {expected}: {wrong:#?}");
}

fn texts(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| json!(text)).collect()
}

#[test]
fn flags_that_are_named_after_a_success() {
    let other = [
        "not_done",
        "passed_with_errors",
        "tests_failed",
        "needs_approved",
        "merge_conflicts",
        "partially_complete",
        "strict",
        "document",
        "passenger",
    ];
    let success = ["done", "success", "tests_passing", "all-tests-pass", "isApproved", "Completed"];
    assert!(success.into_iter().all(super::names_success));
    for name in other {
        assert!(!super::names_success(name), "{name}");
    }
}
