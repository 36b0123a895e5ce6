//! Errors of the network and of the vendors.

use crate::agents::project::{CliProject, RUN_TIMEOUT, VendorCli, for_each_cli};
use counterfoil_testkit::wait_until;
use serde_json::{Value, json};

for_each_cli!(an_error_of_the_server_is_tried_again);
for_each_cli!(a_limit_is_waited_for: Claude claude, Gemini gemini);
for_each_cli!(a_refused_key_ends_the_run);

/// How each attempt ended.
fn outcomes(report: &Value) -> Vec<&str> {
    report["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["outcome"].as_str().unwrap())
        .collect()
}

/// Asserts that all attempts failed in this way, except the last, which was accepted.
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
fn failing_first(cli: VendorCli, error: &Value) -> Value {
    let mut script = vec![error.clone(); if cli == VendorCli::Gemini { 2 } else { 1 }];
    script.extend([json!({"result": {"ok": true}}), json!({"text": "Done.", "repeat": true})]);
    Value::Array(script)
}

fn an_error_of_the_server_is_tried_again(cli: VendorCli) {
    let Some(project) =
        CliProject::open(cli, &failing_first(cli, &json!({"status": 500, "error": "boom"})))
    else {
        return;
    };
    let output = project.run_workflow();
    let report = output.json();
    assert_eq!(report["outcome"], "done", "{}", project.describe(&output));
    went_well_after("transport", &report, || project.describe(&output));
    project.assert_nothing_runs(&report);
}

fn a_limit_is_waited_for(cli: VendorCli) {
    let error = json!({"status": 429, "error": "Too many requests, try again in 2s.", "reset": 2});
    let Some(project) = CliProject::open(cli, &failing_first(cli, &error)) else { return };
    let output = project.run_workflow();
    let report = output.json();
    assert_eq!(report["outcome"], "done", "{}", project.describe(&output));
    went_well_after("limit", &report, || project.describe(&output));
    let asked = project.requests();
    let waited = asked[asked.len() - 1].at - asked[0].at;
    assert!(waited >= 1.9, "asked again after {waited} s");
}

/// Codex says to the minute when its limit is lifted. Nobody waits for that here.
#[test]
fn a_limit_is_known_to_the_minute_by_codex() {
    let error = json!({"status": 429, "error": "The limit is reached", "reset": 90});
    let Some(project) =
        CliProject::open(VendorCli::Codex, &failing_first(VendorCli::Codex, &error))
    else {
        return;
    };
    let live = project.start_workflow(&[]);
    let (ended, reset) = wait_until(RUN_TIMEOUT, "the limit is recorded", || {
        if !project.state().join("journal.db").exists() || project.requests().is_empty() {
            return None;
        }
        project
            .events()
            .iter()
            .find_map(|event| Some((event["at"].as_i64()?, event["reset_at"].as_i64()?)))
    });
    let seconds = (reset - ended) / 1000;
    assert!((30..=150).contains(&seconds), "the limit is lifted in {seconds} s");
    live.signal("TERM");
    let output = live.wait_for(RUN_TIMEOUT);
    let report = output.json();
    assert_eq!(
        (report["outcome"].as_str(), outcomes(&report)),
        (Some("cancelled"), vec!["limit"]),
        "{}",
        project.describe(&output)
    );
    assert_eq!(project.requests().len(), 1, "it was asked again before the time");
    project.assert_nothing_runs(&report);
}

fn a_refused_key_ends_the_run(cli: VendorCli) {
    let Some(project) = CliProject::open(
        cli,
        &json!([{"status": 401, "error": "this key is no key", "repeat": true}]),
    ) else {
        return;
    };
    let report = project.failed("permission", 5);
    assert_eq!(outcomes(&report), ["permission"], "what will not change is not tried again");
    assert!(
        report["reason"].as_str().unwrap().contains("this key is no key"),
        "{}",
        report["reason"]
    );
}
