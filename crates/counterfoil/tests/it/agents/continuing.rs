//! An attempt that was interrupted is continued: in its conversation where the program can, and else
//! by an agent that is told what is already there. What it used is counted.

use crate::agents::project::{CliProject, RUN_TIMEOUT, VendorCli, for_each_cli};
use counterfoil_testkit::{CommandOutput, wait_until};
use serde_json::{Value, json};

for_each_cli!(after_errors_of_the_server);
for_each_cli!(after_a_timeout);
for_each_cli!(after_a_stop);
for_each_cli!(after_a_kill);

/// What the model uses for each answer.
const TOKENS: u64 = 1_100;

/// A model that writes a file and then fails as told, until it hears that it was interrupted.
fn failing_after_a_file(cli: VendorCli, failure: &Value) -> Value {
    let usage = json!({"input": 1_000, "output": 100});
    let mut last = cli.hand_in("interrupted (", &json!({"ok": true}));
    last["usage"] = usage.clone();
    let write = json!({"write": "notes.txt", "content": "Half of it.\n"});
    json!([
        {"calls": [write], "usage": usage},
        last,
        {"when": "interrupted (", "text": "Done.", "usage": {"input": 0, "output": 0}, "repeat": true},
        failure,
    ])
}

/// Asserts that the second attempt went on from the first one, and that both are counted.
#[track_caller]
fn went_on(project: &CliProject, cli: VendorCli, first: &str, output: &CommandOutput) {
    let report = output.json();
    let story = || project.describe(output);
    assert_eq!((output.code, report["outcome"].as_str()), (Some(0), Some("done")), "{}", story());
    let attempts = report["attempts"].as_array().unwrap();
    let outcomes: Vec<&str> = attempts.iter().map(|one| one["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, [first, "accepted"], "{}", story());
    let asked = project.requests();
    let told = asked.iter().find(|one| one.contains("interrupted (")).unwrap();
    let is_continued = cli != VendorCli::Gemini;
    assert_eq!(told.contains("You were interrupted"), is_continued, "{}", story());
    // The conversation has the call that wrote the file; a new one is told its name.
    assert!(told.contains("notes.txt") && told.contains("Water the plants."), "{}", story());
    assert_eq!(told.contains("Half of it."), is_continued, "{}", story());
    let usage = &report["usage"];
    let tokens = usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap();
    assert_eq!(tokens, 2 * TOKENS, "{}", story());
    project.assert_nothing_runs(&report);
}

fn after_errors_of_the_server(cli: VendorCli) {
    let failure = json!({"status": 500, "error": "overloaded", "repeat": true});
    let Some(project) = CliProject::open(cli, &failing_after_a_file(cli, &failure)) else { return };
    let output = project.run_workflow();
    went_on(&project, cli, "transport", &output);
}

fn after_a_timeout(cli: VendorCli) {
    let failure = json!({"hang": "start", "repeat": true});
    let Some(project) = CliProject::open(cli, &failing_after_a_file(cli, &failure)) else { return };
    project.write_workflow("idle: 6s, access: workspace-write");
    let output = project.run_workflow();
    went_on(&project, cli, "timeout", &output);
}

fn after_a_stop(cli: VendorCli) {
    interrupted_and_resumed(cli, "TERM");
}

fn after_a_kill(cli: VendorCli) {
    interrupted_and_resumed(cli, "KILL");
}

/// Sends a signal to the engine while the model is silent, and resumes the run.
fn interrupted_and_resumed(cli: VendorCli, signal: &str) {
    let failure = json!({"hang": "start", "repeat": true});
    let Some(project) = CliProject::open(cli, &failing_after_a_file(cli, &failure)) else { return };
    let live = project.start_workflow(&[]);
    wait_until(RUN_TIMEOUT, "the model is silent", || {
        (project.requests().len() >= 2).then_some(())
    });
    live.signal(signal);
    live.wait_for(RUN_TIMEOUT);
    let resume = &mut project.command(&["resume", "last", "--format", "json"]);
    let output = project.start_command(resume).wait_for(RUN_TIMEOUT);
    went_on(&project, cli, "cancelled", &output);
}
