//! Runs that are stopped: by a clock, or by somebody.

use crate::house::until;
use crate::stage::{MOST, Stage, Who, each};
use serde_json::json;

each!(a_silent_one_is_ended_by_the_clock_and_leaves_nothing);
each!(a_stopped_run_is_taken_up_again);

fn a_silent_one_is_ended_by_the_clock_and_leaves_nothing(who: Who) {
    let Some(stage) =
        Stage::open(who, &json!([{"text": "Let me see …", "hang": "middle", "repeat": true}]))
    else {
        return;
    };
    stage.workflow("idle: 3s, retries: { timeout: 0 }");
    let report = stage.failed("timeout", 124);
    assert_eq!(report["attempts"][0]["outcome"], "timeout");
    assert_eq!(stage.asked().len(), 1);
}

fn a_stopped_run_is_taken_up_again(who: Who) {
    let script = json!([
        {"hang": "start"},
        {"when": "Water the plants.", "result": {"ok": true}},
        {"text": "Done.", "repeat": true},
    ]);
    let Some(stage) = Stage::open(who, &script) else { return };
    let live = stage.start(&[]);
    until(MOST, "the model is asked", || (!stage.asked().is_empty()).then_some(()));
    live.signal("TERM");
    let said = live.end_within(MOST);
    let report = said.report();
    assert_eq!(
        (said.code, report["outcome"].as_str()),
        (Some(130), Some("cancelled")),
        "{}",
        stage.story(&said)
    );
    stage.nothing_is_left(&report);

    let said = stage
        .house
        .start_as(stage.command(&["resume", "last", "--format", "json"]))
        .end_within(MOST);
    let report = said.report();
    assert_eq!(
        (said.code, report["outcome"].as_str()),
        (Some(0), Some("done")),
        "{}",
        stage.story(&said)
    );
    let outcomes: Vec<_> =
        report["attempts"].as_array().unwrap().iter().map(|one| &one["outcome"]).collect();
    assert_eq!(outcomes, ["cancelled", "accepted"]);
    stage.nothing_is_left(&report);
}
