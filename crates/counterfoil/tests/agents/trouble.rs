//! What the network and the vendors do to a run.

use crate::house::until;
use crate::stage::{MOST, Stage, Who, each};
use serde_json::{Value, json};

each!(an_error_of_the_server_is_tried_again);
each!(a_limit_is_waited_for: Claude claude, Gemini gemini);
each!(a_refused_key_ends_the_run);

/// How each attempt ended.
fn outcomes(report: &Value) -> Vec<&str> {
    report["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["outcome"].as_str().unwrap())
        .collect()
}

/// Holds that nothing but this went wrong, and then it went well.
fn went_well_after(trouble: &str, report: &Value, story: impl Fn() -> String) {
    let outcomes = outcomes(report);
    let (last, before) = outcomes.split_last().unwrap();
    assert_eq!(*last, "accepted", "{}", story());
    assert!(
        !before.is_empty() && before.iter().all(|one| *one == trouble),
        "{outcomes:?}: {}",
        story()
    );
}

/// A model that fails in this way before it answers. One of them sometimes tries a second time by
/// itself.
fn failing_first(who: Who, error: &Value) -> Value {
    let mut script = vec![error.clone(); if who == Who::Gemini { 2 } else { 1 }];
    script.extend([json!({"result": {"ok": true}}), json!({"text": "Done.", "repeat": true})]);
    Value::Array(script)
}

fn an_error_of_the_server_is_tried_again(who: Who) {
    let Some(stage) =
        Stage::open(who, &failing_first(who, &json!({"status": 500, "error": "boom"})))
    else {
        return;
    };
    let said = stage.run();
    let report = said.report();
    assert_eq!(report["outcome"], "done", "{}", stage.story(&said));
    went_well_after("transport", &report, || stage.story(&said));
    stage.nothing_is_left(&report);
}

fn a_limit_is_waited_for(who: Who) {
    let error = json!({"status": 429, "error": "Too many requests, try again in 2s.", "reset": 2});
    let Some(stage) = Stage::open(who, &failing_first(who, &error)) else { return };
    let said = stage.run();
    let report = said.report();
    assert_eq!(report["outcome"], "done", "{}", stage.story(&said));
    went_well_after("limit", &report, || stage.story(&said));
    let asked = stage.asked();
    let waited = asked[asked.len() - 1].at - asked[0].at;
    assert!(waited >= 1.9, "asked again after {waited} s");
}

/// Codex says to the minute when its limit is lifted. Nobody waits for that here.
#[test]
fn a_limit_is_known_to_the_minute_by_codex() {
    let error = json!({"status": 429, "error": "The limit is reached", "reset": 90});
    let Some(stage) = Stage::open(Who::Codex, &failing_first(Who::Codex, &error)) else { return };
    let live = stage.start(&[]);
    let (ended, reset) = until(MOST, "the limit is recorded", || {
        if !stage.house.state().join("journal.db").exists() || stage.asked().is_empty() {
            return None;
        }
        stage
            .house
            .events()
            .iter()
            .find_map(|event| Some((event["at"].as_i64()?, event["reset_at"].as_i64()?)))
    });
    let seconds = (reset - ended) / 1000;
    assert!((30..=150).contains(&seconds), "the limit is lifted in {seconds} s");
    live.signal("TERM");
    let said = live.end_within(MOST);
    let report = said.report();
    assert_eq!(
        (report["outcome"].as_str(), outcomes(&report)),
        (Some("cancelled"), vec!["limit"]),
        "{}",
        stage.story(&said)
    );
    assert_eq!(stage.asked().len(), 1, "it was asked again before the time");
    stage.nothing_is_left(&report);
}

fn a_refused_key_ends_the_run(who: Who) {
    let Some(stage) =
        Stage::open(who, &json!([{"status": 401, "error": "this key is no key", "repeat": true}]))
    else {
        return;
    };
    let report = stage.failed("permission", 5);
    assert_eq!(outcomes(&report), ["permission"], "what will not change is not tried again");
    assert!(
        report["reason"].as_str().unwrap().contains("this key is no key"),
        "{}",
        report["reason"]
    );
}
