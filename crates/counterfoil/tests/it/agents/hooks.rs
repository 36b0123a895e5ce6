//! Claude Code used directly, with our hooks validating its results: installed by `init`, and
//! called by hand.

use crate::agents::project::{CliProject, VendorCli};
use serde_json::{Value, json};

const GOOD: &str = "{\"ok\": true}";

/// A project that `init` has set up, with a subagent and the main agent under `acme/ok`; none if
/// Claude Code is not there.
fn set_up(script: &Value) -> Option<CliProject> {
    let project = CliProject::open(VendorCli::Claude, script)?;
    project.write(
        "counterfoil.toml",
        "[agents.helper]\ncontract = \"acme/ok\"\n[agents.claude]\ncontract = \"acme/ok\"\n",
    );
    project.write(
        ".claude/agents/helper.md",
        "---\nname: helper\ndescription: Helps\n---\nYou help.\n",
    );
    let done = project.user_command("counterfoil", &["init", "--yes"]).output();
    assert!(done.is_success(), "{}", done.stderr);
    Some(project)
}

/// Asks Claude Code for something; what the hooks answered, one after the other, and what it said
/// in the end.
fn ask(project: &CliProject) -> (Vec<(String, i64)>, String) {
    let flags = [
        "-p",
        "Water the plants.",
        "--output-format",
        "stream-json",
        "--verbose",
        "--include-hook-events",
    ];
    let output = project.user_command("claude", &flags).output();
    assert!(output.is_success(), "{output:?}");
    let events = output.json_lines();
    let hooks = events.iter().filter(|event| event["subtype"] == "hook_response");
    let answers = hooks.map(|event| {
        (event["hook_event"].as_str().unwrap().to_owned(), event["exit_code"].as_i64().unwrap())
    });
    let result = events.iter().find(|event| event["type"] == "result").unwrap();
    (answers.collect(), result["result"].as_str().unwrap().to_owned())
}

fn stops(codes: &[i64]) -> Vec<(String, i64)> {
    codes.iter().map(|code| ("Stop".to_owned(), *code)).collect()
}

#[test]
fn a_bad_result_is_sent_back_and_put_right() {
    let script = json!([
        {"text": "The ferns are watered."},
        {"when": ["The ferns are watered.", "Your answer contained no result"], "text": GOOD},
    ]);
    let Some(project) = set_up(&script) else { return };
    assert_eq!(ask(&project), (stops(&[2, 0]), GOOD.to_owned()));
    assert_eq!(project.requests().len(), 2);
}

#[test]
fn one_who_never_gets_it_right_is_let_through_after_three_times() {
    let Some(project) = set_up(&json!([{"text": "The ferns are watered.", "repeat": true}])) else {
        return;
    };
    assert_eq!(ask(&project), (stops(&[2, 2, 2, 1]), "The ferns are watered.".to_owned()));
    assert_eq!(project.requests().len(), 4);
}

#[test]
fn a_subagent_is_held_to_its_own_contract() {
    let call = json!({"tool": "Agent", "input": {"description": "help", "prompt": "Water the ferns.",
        "subagent_type": "helper", "run_in_background": false}});
    let script = json!([
        {"when": "Water the plants.", "unless": "Water the ferns.", "calls": [call]},
        {"when": "You help.", "unless": "Your answer contained no result", "text": "They are watered."},
        {"when": ["You help.", "Your answer contained no result"], "text": GOOD},
        {"when": "Water the plants.", "text": GOOD},
    ]);
    let Some(project) = set_up(&script) else { return };
    let (answers, output) = ask(&project);
    let expected = [("SubagentStop", 2), ("SubagentStop", 0), ("Stop", 0)];
    assert_eq!(answers, expected.map(|(event, code)| (event.to_owned(), code)));
    assert_eq!(output, GOOD);
}
