//! What an agent may do to the workspace, and what becomes of one that may not do what it wants.

use crate::stage::{Stage, Who, each};
use serde_json::{Value, json};

each!(an_implementer_edits_and_a_reviewer_does_not);
each!(work_that_was_denied_and_gave_no_result_is_no_success);

/// A model that writes a file, and says that all is well.
fn writing(then: &Value) -> Value {
    json!([
        {"calls": [{"write": "hello.txt", "content": "hi\n"}]},
        {"calls": [{"shell": "echo hi > shell.txt"}]},
        then,
        {"text": "Done.", "repeat": true},
    ])
}

fn an_implementer_edits_and_a_reviewer_does_not(who: Who) {
    let Some(stage) = Stage::open(who, &writing(&json!({"result": {"ok": true}}))) else { return };
    stage.workflow("access: workspace-write");
    stage.accepted();
    assert_eq!(stage.house.read("hello.txt"), "hi\n");

    let Some(stage) = Stage::open(who, &writing(&json!({"result": {"ok": true}}))) else { return };
    stage.workflow("access: read-only");
    let attempt = stage.accepted();
    assert_eq!(
        (stage.house.read("hello.txt"), stage.house.read("shell.txt")),
        (String::new(), String::new())
    );
    assert!(!attempt["replies"][0]["denied"].as_array().unwrap().is_empty(), "{attempt:#}");
}

fn work_that_was_denied_and_gave_no_result_is_no_success(who: Who) {
    let Some(stage) =
        Stage::open(who, &writing(&json!({"text": "I could not write it.", "repeat": true})))
    else {
        return;
    };
    stage.workflow("access: read-only, repairs: 0");
    let report = stage.failed("permission", 5);
    assert_eq!(report["attempts"][0]["outcome"], "permission");
}
