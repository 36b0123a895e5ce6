//! What the network and the vendors do to a run.

use crate::stage::{Stage, Who, each};
use serde_json::{Value, json};

each!(an_error_of_the_server_is_tried_again);
each!(a_limit_is_waited_for);
each!(a_refused_key_ends_the_run);

/// How each attempt ended.
fn outcomes(report: &Value) -> Vec<&str> {
    report["attempts"].as_array().unwrap().iter().map(|one| one["outcome"].as_str().unwrap()).collect()
}

fn an_error_of_the_server_is_tried_again(who: Who) {
    let script = json!([
        {"status": 500, "error": "boom"},
        {"result": {"ok": true}},
        {"text": "Done.", "repeat": true},
    ]);
    let Some(stage) = Stage::open(who, &script) else { return };
    let said = stage.run();
    let report = said.report();
    assert_eq!(report["outcome"], "done", "{}", stage.story(&said));
    assert_eq!(outcomes(&report), ["transport", "accepted"], "{}", stage.story(&said));
    stage.nothing_is_left(&report);
}

fn a_limit_is_waited_for(who: Who) {
    let script = json!([
        {"status": 429, "error": "slow down", "reset": 2},
        {"result": {"ok": true}},
        {"text": "Done.", "repeat": true},
    ]);
    let Some(stage) = Stage::open(who, &script) else { return };
    let said = stage.run();
    let report = said.report();
    assert_eq!(report["outcome"], "done", "{}", stage.story(&said));
    assert_eq!(outcomes(&report), ["limit", "accepted"], "{}", stage.story(&said));
    let asked = stage.asked();
    let waited = asked[1].at - asked[0].at;
    assert!(waited >= 1.9, "asked again after {waited} s");
}

fn a_refused_key_ends_the_run(who: Who) {
    let Some(stage) =
        Stage::open(who, &json!([{"status": 401, "error": "this key is no key", "repeat": true}]))
    else {
        return;
    };
    let said = stage.run();
    let report = said.report();
    assert_eq!((said.code, report["outcome"].as_str()), (Some(5), Some("failed")), "{}", stage.story(&said));
    assert_eq!(report["attempts"].as_array().unwrap().len(), 1, "what will not change is not tried again");
    assert!(
        report["reason"].as_str().unwrap().contains("401") || said.err.contains("no key"),
        "{}",
        stage.story(&said)
    );
    stage.nothing_is_left(&report);
}
