//! Claude Code as people use it, without our engine, held to contracts by its hooks: set up by
//! `init`, and asked by hand.

use crate::stage::{Stage, Who};
use serde_json::{Value, json};

const GOOD: &str = "{\"ok\": true}";

/// A project that `init` has set up, with a subagent and the main agent under `acme/ok`; none if
/// Claude Code is not there.
fn set_up(script: &Value) -> Option<Stage> {
    let stage = Stage::open(Who::Claude, script)?;
    stage.house.file(
        "counterfoil.toml",
        "[agents.helper]\ncontract = \"acme/ok\"\n[agents.claude]\ncontract = \"acme/ok\"\n",
    );
    stage.house.file(
        ".claude/agents/helper.md",
        "---\nname: helper\ndescription: Helps\n---\nYou help.\n",
    );
    let done = stage.by_hand("counterfoil", &["init", "--yes"]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(stage)
}

/// Asks Claude Code for something; what the hooks answered, one after the other, and what it said
/// in the end.
fn ask(stage: &Stage) -> (Vec<(String, i64)>, String) {
    let flags = [
        "-p",
        "Water the plants.",
        "--output-format",
        "stream-json",
        "--verbose",
        "--include-hook-events",
    ];
    let output = stage.by_hand("claude", &flags).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
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
        {"when": ["The ferns are watered.", "Your answer held no result"], "text": GOOD},
    ]);
    let Some(stage) = set_up(&script) else { return };
    assert_eq!(ask(&stage), (stops(&[2, 0]), GOOD.to_owned()));
    assert_eq!(stage.asked().len(), 2);
}

#[test]
fn one_who_never_gets_it_right_is_let_through_after_three_times() {
    let Some(stage) = set_up(&json!([{"text": "The ferns are watered.", "repeat": true}])) else {
        return;
    };
    assert_eq!(ask(&stage), (stops(&[2, 2, 2, 1]), "The ferns are watered.".to_owned()));
    assert_eq!(stage.asked().len(), 4);
}

#[test]
fn a_subagent_is_held_to_its_own_contract() {
    let call = json!({"tool": "Agent", "input": {"description": "help", "prompt": "Water the ferns.",
        "subagent_type": "helper", "run_in_background": false}});
    let script = json!([
        {"when": "Water the plants.", "unless": "Water the ferns.", "calls": [call]},
        {"when": "You help.", "unless": "Your answer held no result", "text": "They are watered."},
        {"when": ["You help.", "Your answer held no result"], "text": GOOD},
        {"when": "Water the plants.", "text": GOOD},
    ]);
    let Some(stage) = set_up(&script) else { return };
    let (answers, said) = ask(&stage);
    let expected = [("SubagentStop", 2), ("SubagentStop", 0), ("Stop", 0)];
    assert_eq!(answers, expected.map(|(event, code)| (event.to_owned(), code)));
    assert_eq!(said, GOOD);
}
