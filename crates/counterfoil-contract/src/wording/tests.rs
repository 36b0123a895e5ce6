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
