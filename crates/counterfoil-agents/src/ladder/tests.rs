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

fn handed_in(value: Value) -> Submission {
    let report = contract().check_value(&value);
    Submission::now(value, &report)
}

fn weighed(text: &str, structured: Option<&Value>, submissions: &[Submission]) -> Weighed {
    weigh(&contract(), &[], Offered { text: text.as_bytes(), structured, submissions })
}

#[test]
fn the_last_good_submission_wins_over_everything() {
    let submissions = [
        handed_in(json!({"ok": true, "n": 1})),
        handed_in(json!({"ok": true, "n": 2})),
        handed_in(json!({"n": 3})),
    ];
    let found =
        weighed(r#"{"ok": true, "n": 2}"#, Some(&json!({"ok": true, "n": 2})), &submissions);
    assert_eq!(found.channel, Channel::Submitted);
    assert_eq!(found.report.value, Some(json!({"ok": true, "n": 2})));
    assert_eq!(found.notes, ["1 later submissions were refused; the last good one counts"]);
}

#[test]
fn a_text_that_says_otherwise_is_reported_with_the_place() {
    let found = weighed(r#"done: {"ok": false}"#, None, &[handed_in(json!({"ok": true}))]);
    assert_eq!(found.report.value, Some(json!({"ok": true})));
    assert_eq!(
        found.notes,
        ["the final text contradicts the result that was taken: /ok is false there, not true"]
    );
}

#[test]
fn structured_output_wins_over_text_and_is_held_to_the_contract() {
    let found = weighed(r#"{"ok": false}"#, Some(&json!({"ok": true})), &[]);
    assert_eq!((found.channel, found.report.value), (Channel::Native, Some(json!({"ok": true}))));
    let found = weighed(r#"{"ok": false}"#, Some(&json!({"ok": "yes"})), &[]);
    assert_eq!((found.channel, found.report.value), (Channel::Text, Some(json!({"ok": false}))));
}

#[test]
fn without_a_good_one_the_report_is_on_what_came_nearest() {
    let found = weighed("all done", None, &[handed_in(json!({"ok": "yes"}))]);
    assert_eq!(found.channel, Channel::Submitted);
    assert_eq!(found.report.violations[0].pointer, "/ok");
    let found = weighed(r#"{"ok": 7}"#, None, &[handed_in(json!({"n": 1}))]);
    assert_eq!((found.channel, found.report.status), (Channel::Text, Status::Rejected));
    assert_eq!(weighed("all done", None, &[]).report.status, Status::Absent);
    assert_eq!(weighed("", Some(&json!({})), &[]).report.value, None);
}
