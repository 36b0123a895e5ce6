//! Results that do not come as text: through the vendor's schema, and through the submission tool.

use crate::agents::project::{CliProject, VendorCli, for_each_cli};
use serde_json::{Value, json};

for_each_cli!(a_schema_that_the_model_ignores_is_no_promise: Claude claude, Codex codex);
for_each_cli!(a_wrong_submission_is_mended_within_the_turn);

fn a_schema_that_the_model_ignores_is_no_promise(cli: VendorCli) {
    let script = json!([
        {"unless": "Your answer contained no result", "text": "It is fine.", "repeat": true},
        {"result": {"ok": true}},
        {"text": "Done.", "repeat": true},
    ]);
    let Some(project) = CliProject::open(cli, &script) else { return };
    project.write_settings("channels = [\"native\"]");
    let attempt = project.accepted();
    let replies = attempt["replies"].as_array().unwrap();
    assert_eq!(
        (replies.len(), &replies[0]["status"], &replies[1]["channel"]),
        (2, &json!("absent"), &json!("native"))
    );
    for asked in project.requests() {
        assert!(
            schema(cli, &asked.body)
                .is_some_and(|schema| schema["properties"]["ok"]["type"] == "boolean")
        );
    }
}

/// The schema that a request asks its answer to have.
fn schema(cli: VendorCli, body: &Value) -> Option<&Value> {
    match cli {
        VendorCli::Claude => {
            let tools = body["tools"].as_array()?;
            Some(&tools.iter().find(|tool| tool["name"] == "StructuredOutput")?["input_schema"])
        }
        VendorCli::Codex => body["text"]["format"].get("schema"),
        VendorCli::Gemini => None,
    }
}

fn a_wrong_submission_is_mended_within_the_turn(cli: VendorCli) {
    let script = json!([
        {"calls": [{"mcp": "submit_result", "input": {"ok": "probably"}}]},
        {"calls": [{"mcp": "submit_result", "input": {"ok": true, "note": "submitted"}}]},
        {"text": "I have handed in {\"ok\": false}."},
    ]);
    let Some(project) = CliProject::open(cli, &script) else { return };
    project.write_settings("channels = [\"submit\"]");
    let attempt = project.accepted();
    assert_eq!(attempt["value"], json!({"ok": true, "note": "submitted"}));
    assert_eq!(attempt["repairs_asked"], 0);
    assert_eq!(attempt["replies"][0]["channel"], "submitted");
    let notes = attempt["replies"][0]["notes"].to_string();
    assert!(
        notes.contains("the final text contradicts the selected result: /ok is false there"),
        "{notes}"
    );
    let asked = project.requests();
    assert_eq!(asked.len(), 3, "all in one turn");
    assert!(
        asked[1].contains("/ok") && asked[1].contains("boolean"),
        "the model was not told what is wrong: {:#}",
        asked[1].body
    );
}
