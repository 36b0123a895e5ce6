//! A result that was accepted counts whatever the program does afterwards, and one that was written
//! before the work was done does not.

use crate::agents::project::{CliProject, VendorCli, for_each_cli};
use serde_json::{Value, json};

for_each_cli!(a_submission_counts_before_errors_of_the_server);
for_each_cli!(a_submission_counts_before_silence);
for_each_cli!(a_submission_is_no_reason_to_go_on);
for_each_cli!(a_submission_that_is_taken_back_does_not_count);

const SUBMIT: &str = "channels = [\"submit\"]";

fn submitted(ok: &Value) -> Value {
    json!({"calls": [{"mcp": "submit_result", "input": {"ok": ok}}]})
}

fn a_submission_counts_before_errors_of_the_server(cli: VendorCli) {
    let failure = json!({"status": 500, "error": "boom", "repeat": true});
    let Some(project) = CliProject::open(cli, &json!([submitted(&true.into()), failure])) else {
        return;
    };
    project.write_settings(SUBMIT);
    let attempt = project.accepted();
    assert_eq!(attempt["value"], json!({"ok": true}), "{attempt:#}");
}

fn a_submission_counts_before_silence(cli: VendorCli) {
    let silence = json!({"text": "Let me see …", "hang": "middle", "repeat": true});
    let Some(project) = CliProject::open(cli, &json!([submitted(&true.into()), silence])) else {
        return;
    };
    project.write_settings(SUBMIT);
    project.write_workflow("idle: 60s, timeout: 2m");
    let attempt = project.accepted();
    assert_eq!(attempt["value"], json!({"ok": true}), "{attempt:#}");
    // It was ended as soon as the result was accepted.
    let wall_ms = attempt["usage"]["wall_ms"].as_u64().unwrap();
    assert!(wall_ms < 50_000, "{attempt:#}");
}

fn a_submission_is_no_reason_to_go_on(cli: VendorCli) {
    let more = json!({
        "calls": [{"write": "more.txt", "content": "And more.\n"}], "delay": 1, "repeat": true
    });
    let Some(project) = CliProject::open(cli, &json!([submitted(&true.into()), more])) else {
        return;
    };
    project.write_settings(SUBMIT);
    project.accepted();
    let asked = project.requests().len();
    assert!(asked <= 3, "{asked} requests");
}

/// The last submission decides, also of several in one message.
fn a_submission_that_is_taken_back_does_not_count(cli: VendorCli) {
    let both = json!({"calls": [
        {"mcp": "submit_result", "input": {"ok": true}},
        {"mcp": "submit_result", "input": {"ok": false}},
    ]});
    let failure = json!({"status": 500, "error": "boom", "repeat": true});
    let Some(project) = CliProject::open(cli, &json!([both, failure])) else { return };
    project.write_settings(SUBMIT);
    let attempt = project.accepted();
    assert_eq!(attempt["value"], json!({"ok": false}), "{attempt:#}");
}

/// A fenced result, after which Claude Code asks its model for structured output and hears "Done.".
#[test]
fn a_result_before_the_last_message_is_read() {
    let script = json!([
        {"text": "Here it is:\n\n```json\n{\"ok\": true}\n```\n"},
        {"text": "Done.", "repeat": true},
    ]);
    let Some(project) = CliProject::open(VendorCli::Claude, &script) else { return };
    let attempt = project.accepted();
    assert_eq!(attempt["value"], json!({"ok": true}), "{attempt:#}");
    let notes = attempt["replies"][0]["notes"].to_string();
    assert!(notes.contains("the messages before it were read"), "{notes}");
}

/// It was written before the work was done.
#[test]
fn a_result_before_a_tool_call_is_none() {
    let script = json!([
        {
            "text": "All is well:\n\n```json\n{\"ok\": true}\n```\n",
            "calls": [{"write": "notes.txt", "content": "Not so well.\n"}],
        },
        {"text": "Done.", "repeat": true},
    ]);
    let Some(project) = CliProject::open(VendorCli::Claude, &script) else { return };
    project.write_workflow("repairs: 0");
    let report = project.failed("contract", 1);
    let reason = report["attempts"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("no result was found"), "{report:#}");
}
