//! Results that do not come as text: through the vendor's schema, and through the submission tool.

use crate::agents::project::{CliProject, RUN_TIMEOUT, VendorCli, for_each_cli};
use counterfoil_testkit::read_tree;
use serde_json::{Value, json};

for_each_cli!(a_schema_that_the_model_ignores_is_no_promise: Claude claude, Codex codex);
for_each_cli!(a_wrong_submission_is_corrected_within_the_turn);
// Gemini CLI does not forward a call that breaks the schema of the tool.
for_each_cli!(a_refused_submission_does_not_yield_to_the_text: Claude claude, Codex codex);
for_each_cli!(a_check_runs_through_the_tool);
for_each_cli!(there_is_one_way_to_return_the_result);
for_each_cli!(a_tool_that_is_not_used_is_not_asked_for_again);
for_each_cli!(the_tool_may_be_preferred_to_the_schema: Claude claude, Codex codex);

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

fn a_wrong_submission_is_corrected_within_the_turn(cli: VendorCli) {
    let script = json!([
        {"calls": [{"mcp": "submit_result", "input": {"ok": "probably"}}]},
        {"calls": [{"mcp": "submit_result", "input": {"ok": true, "note": "submitted"}}]},
        {"text": "I have handed in {\"ok\": true}."},
    ]);
    let Some(project) = CliProject::open(cli, &script) else { return };
    project.write_settings("channels = [\"submit\"]");
    let attempt = project.accepted();
    assert_eq!(attempt["value"], json!({"ok": true, "note": "submitted"}));
    assert_eq!(attempt["repairs_asked"], 0);
    assert_eq!(attempt["replies"][0]["channel"], "submitted");
    // The text leaves the note out, which is no contradiction.
    let notes = attempt["replies"][0]["notes"].to_string();
    assert!(!notes.contains("contradiction"), "{notes}");
    let asked = project.requests();
    // The program is ended when the result is accepted, before it asks again or just after.
    assert!((2..=3).contains(&asked.len()), "all in one turn");
    assert!(
        asked[1].contains("/ok") && asked[1].contains("boolean"),
        "the model was not told what is wrong: {:#}",
        asked[1].body
    );
}

fn a_refused_submission_does_not_yield_to_the_text(cli: VendorCli) {
    let script = json!([
        {"calls": [{"mcp": "submit_result", "input": {"ok": "no: one is dry"}}]},
        {"text": "Then simply: {\"ok\": true}"},
        {"when": "Your result was not accepted", "calls": [{"mcp": "submit_result", "input": {"ok": false, "note": "one is dry"}}]},
        {"text": "Done."},
    ]);
    let Some(project) = CliProject::open(cli, &script) else { return };
    project.write_settings("channels = [\"submit\"]");
    let attempt = project.accepted();
    assert_eq!(attempt["value"], json!({"ok": false, "note": "one is dry"}), "{attempt:#}");
    let first = &attempt["replies"][0];
    assert_eq!((&first["status"], &first["channel"]), (&json!("rejected"), &json!("submitted")));
    assert!(first["notes"].to_string().contains("the final text is valid"), "{first:#}");
}

#[test]
fn only_a_refused_submission_is_a_rejection_in_the_log() {
    let cli = VendorCli::Claude;
    let script = json!([
        {"calls": [{"mcp": "submit_result", "input": {"ok": "probably"}}]},
        {"calls": [{"mcp": "submit_result", "input": {"ok": true}}]},
        {"text": "Done."},
    ]);
    let Some(project) = CliProject::open(cli, &script) else { return };
    project.write_settings("channels = [\"submit\"]");
    let run = ["run", "repo/flow.yaml", "--agent", cli.name(), "--format", "json"];
    let mut command = project.command(&run);
    let output =
        project.start_command(command.env("COUNTERFOIL_LOG", "warn")).wait_for(RUN_TIMEOUT);
    assert_eq!(output.code, Some(0), "{}", project.describe(&output));
    // The text without a result is none: it does not count beside the tool.
    let rejected = output.stderr.lines().filter(|line| line.contains("counterfoil::rejected"));
    assert_eq!(rejected.count(), 1, "{}", project.describe(&output));
}

/// With the settings that nobody changed: what the model is told and given, and that nothing is
/// asked of it twice.
fn there_is_one_way_to_return_the_result(cli: VendorCli) {
    let script = json!([cli.hand_in("Do the work", &json!({"ok": true})), {"text": "Done."}]);
    let Some(project) = CliProject::open(cli, &script) else { return };
    project.write("counterfoil.toml", "[checks]\ntest = \"true\"\n");
    let attempt = project.accepted();
    let (channel, requests, ways) = match cli {
        VendorCli::Claude => ("native", 1, ["StructuredOutput"].as_slice()),
        VendorCli::Codex => ("native", 1, ["one JSON object"].as_slice()),
        VendorCli::Gemini => ("submitted", 2, ["submit_result"].as_slice()),
    };
    assert_eq!(attempt["replies"][0]["channel"], channel);
    let asked = project.requests();
    assert_eq!(asked.len(), requests);
    let all = ["StructuredOutput", "submit_result", "one JSON object", "get_contract"];
    let told: Vec<&str> = all.into_iter().filter(|way| asked[0].contains(way)).collect();
    assert_eq!(told, ways, "{:#}", asked[0].body);
    assert!(asked[0].contains("run_check"), "{:#}", asked[0].body);
}

/// The prompt is sent again, with the other way, and both are kept.
#[test]
fn after_a_rejected_schema_the_tool_is_named() {
    let cli = VendorCli::Codex;
    let script = json!([
        {"status": 400, "error": "Invalid schema for response_format 'codex_output_schema'"},
        {"calls": [{"mcp": "submit_result", "input": {"ok": true}}]},
        {"text": "Done."},
    ]);
    let Some(project) = CliProject::open(cli, &script) else { return };
    let attempt = project.accepted();
    let reply = &attempt["replies"][0];
    assert_eq!(reply["channel"], "submitted", "{reply:#}");
    assert!(reply["notes"].to_string().contains("the schema was rejected"), "{reply:#}");
    let asked = project.requests();
    assert!(schema(cli, &asked[0].body).is_some() && !asked[0].contains("submit_result"));
    assert!(schema(cli, &asked[1].body).is_none() && asked[1].contains("submit_result"));
    let prompts: Vec<String> = read_tree(project.state())
        .into_iter()
        .filter(|(path, _)| path.to_string_lossy().contains(".prompt"))
        .map(|(_, (_, bytes))| String::from_utf8(bytes).unwrap())
        .collect();
    assert_eq!(prompts.len(), 2);
    assert_eq!(prompts.iter().filter(|prompt| prompt.contains("submit_result")).count(), 1);
}

/// The tool may be missing, so the result is asked for as text.
fn a_tool_that_is_not_used_is_not_asked_for_again(cli: VendorCli) {
    let script = json!([
        {"text": "I am done."},
        {"when": "Your answer contained no result", "text": "```json\n{\"ok\": true}\n```"},
    ]);
    let Some(project) = CliProject::open(cli, &script) else { return };
    project.write_settings("channels = [\"submit\"]");
    let attempt = project.accepted();
    let replies = attempt["replies"].as_array().unwrap();
    // A result in the text has no channel of its own.
    assert_eq!((replies.len(), replies[1].get("channel")), (2, None));
    let asked = project.requests();
    let repair = asked[1].body.to_string();
    let repair = repair.rsplit_once("Your answer contained no result").unwrap().1;
    assert!(repair.contains("one JSON object"), "{repair}");
    assert!(!repair.contains("call the tool"), "{repair}");
}

fn the_tool_may_be_preferred_to_the_schema(cli: VendorCli) {
    let script = json!([
        {"calls": [{"mcp": "submit_result", "input": {"ok": true}}]},
        {"text": "Done."},
    ]);
    let Some(project) = CliProject::open(cli, &script) else { return };
    project.write_settings("channels = [\"submit\", \"native\"]");
    assert_eq!(project.accepted()["replies"][0]["channel"], "submitted");
    for asked in project.requests() {
        assert_eq!(schema(cli, &asked.body), None);
    }
}

/// The tool `run_check` with the real command lines, for an agent that may edit and for one that may
/// only read.
fn a_check_runs_through_the_tool(cli: VendorCli) {
    for access in ["workspace-write", "read-only"] {
        let script = json!([
            {"calls": [{"mcp": "run_check", "input": {"name": "test"}}]},
            {"calls": [{"mcp": "submit_result", "input": {"ok": true, "note": "3 passed"}}]},
            {"text": "Done."},
        ]);
        let Some(project) = CliProject::open(cli, &script) else { return };
        project.write_workflow(&format!("access: {access}"));
        project.write_settings(
            "channels = [\"submit\"]\n[checks]\ntest = \"echo checked by $0; echo 3 passed\"",
        );
        let attempt = project.accepted();
        assert_eq!(attempt["value"], json!({"ok": true, "note": "3 passed"}), "{access}");
        assert_eq!(attempt["repairs_asked"], 0);
        let asked = project.requests();
        assert!((2..=3).contains(&asked.len()), "all in one turn");
        assert!(asked[0].contains("these checks: `test`"), "{access}: {:#}", asked[0].body);
        // Some hand the text of the answer to the model, others its structured content.
        assert!(asked[1].contains("checked by sh"), "{access}: {:#}", asked[1].body);
        assert!(asked[1].contains("passed"), "{access}: {:#}", asked[1].body);
    }
}
