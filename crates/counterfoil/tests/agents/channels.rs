//! The ways beside the text by which a result comes back: the vendor's schema, and the tool that
//! takes results.

use crate::stage::{Stage, Who, each};
use serde_json::{Value, json};

each!(a_schema_that_the_model_ignores_is_no_promise: Claude claude, Codex codex);
each!(a_wrong_submission_is_mended_within_the_turn);

fn a_schema_that_the_model_ignores_is_no_promise(who: Who) {
    let script = json!([
        {"unless": "Your answer held no result", "text": "It is fine.", "repeat": true},
        {"result": {"ok": true}},
        {"text": "Done.", "repeat": true},
    ]);
    let Some(stage) = Stage::open(who, &script) else { return };
    stage.settings("channels = [\"native\"]");
    let attempt = stage.accepted();
    let replies = attempt["replies"].as_array().unwrap();
    assert_eq!(
        (replies.len(), &replies[0]["status"], &replies[1]["channel"]),
        (2, &json!("absent"), &json!("native"))
    );
    for asked in stage.asked() {
        assert!(
            schema(who, &asked.body)
                .is_some_and(|schema| schema["properties"]["ok"]["type"] == "boolean")
        );
    }
}

/// The schema that a request asks its answer to have.
fn schema(who: Who, body: &Value) -> Option<&Value> {
    match who {
        Who::Claude => {
            let tools = body["tools"].as_array()?;
            Some(&tools.iter().find(|tool| tool["name"] == "StructuredOutput")?["input_schema"])
        }
        Who::Codex => body["text"]["format"].get("schema"),
        Who::Gemini => None,
    }
}

fn a_wrong_submission_is_mended_within_the_turn(who: Who) {
    let script = json!([
        {"calls": [{"mcp": "submit_result", "input": {"ok": "probably"}}]},
        {"calls": [{"mcp": "submit_result", "input": {"ok": true, "note": "submitted"}}]},
        {"text": "I have handed in {\"ok\": false}."},
    ]);
    let Some(stage) = Stage::open(who, &script) else { return };
    stage.settings("channels = [\"submit\"]");
    let attempt = stage.accepted();
    assert_eq!(attempt["value"], json!({"ok": true, "note": "submitted"}));
    assert_eq!(attempt["repairs_asked"], 0);
    assert_eq!(attempt["replies"][0]["channel"], "submitted");
    let notes = attempt["replies"][0]["notes"].to_string();
    assert!(
        notes.contains("the final text contradicts the result that was taken: /ok is false there"),
        "{notes}"
    );
    let asked = stage.asked();
    assert_eq!(asked.len(), 3, "all in one turn");
    assert!(
        asked[1].holds("/ok") && asked[1].holds("boolean"),
        "the model was not told what is wrong: {:#}",
        asked[1].body
    );
}
