use super::*;
use counterfoil_contract::{Definition, Framing};
use serde_json::json;

fn contract() -> Contract {
    let schema = json!({
        "type": "object",
        "properties": {"ok": {"type": "boolean"}, "n": {"type": "integer"}},
        "required": ["ok"]
    });
    Contract::compile(Definition::new("acme/check", 1, Framing::AnyJson, schema)).unwrap()
}

fn submitted(value: Value) -> Submission {
    let report = contract().check_value(&value);
    Submission::now(value, &report)
}

fn selected(text: &str, structured: Option<&Value>, submissions: &[Submission]) -> SelectedResult {
    select_result(
        &contract(),
        &[],
        ResultCandidates { text: text.as_bytes(), structured, submissions, context: None },
    )
}

#[test]
fn the_last_valid_submission_wins_over_everything() {
    let submissions = [
        submitted(json!({"ok": true, "n": 1})),
        submitted(json!({"ok": true, "n": 2})),
        submitted(json!({"n": 3})),
    ];
    let found =
        selected(r#"{"ok": true, "n": 2}"#, Some(&json!({"ok": true, "n": 2})), &submissions);
    assert_eq!(found.channel, Channel::Submitted);
    assert_eq!(found.report.value, Some(json!({"ok": true, "n": 2})));
    assert_eq!(found.notes, ["1 later submission rejected; the last valid one counts"]);
}

#[test]
fn a_text_that_says_otherwise_is_reported_with_the_place() {
    let found = selected(r#"done: {"ok": false}"#, None, &[submitted(json!({"ok": true}))]);
    assert_eq!(found.report.value, Some(json!({"ok": true})));
    assert_eq!(
        found.notes,
        ["the final text contradicts the selected result: /ok is false there, not true"]
    );
}

#[test]
fn structured_output_wins_over_text_and_is_validated_against_the_contract() {
    let found = selected(r#"{"ok": false}"#, Some(&json!({"ok": true})), &[]);
    assert_eq!((found.channel, found.report.value), (Channel::Native, Some(json!({"ok": true}))));
    let found = selected(r#"{"ok": false}"#, Some(&json!({"ok": "yes"})), &[]);
    assert_eq!((found.channel, found.report.value), (Channel::Text, Some(json!({"ok": false}))));
}

#[test]
fn without_a_valid_result_the_report_is_on_the_closest_candidate() {
    let found = selected("all done", None, &[submitted(json!({"ok": "yes"}))]);
    assert_eq!(found.channel, Channel::Submitted);
    assert_eq!(found.report.violations[0].pointer, "/ok");
    let found = selected(r#"{"ok": 7}"#, None, &[submitted(json!({"n": 1}))]);
    assert_eq!((found.channel, found.report.status), (Channel::Text, Status::Rejected));
    assert_eq!(selected("all done", None, &[]).report.status, Status::Absent);
    assert_eq!(selected("", Some(&json!({})), &[]).report.value, None);
}
