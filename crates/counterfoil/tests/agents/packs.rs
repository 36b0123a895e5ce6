//! A whole pack, played by the real command lines.

use crate::mock::testing;
use crate::stage::{MOST, Stage, Who, each};
use serde_json::Value;

each!(one_command_line_plays_the_execution_loop);

/// Plays the execution loop, with these agents.
fn play(stage: &Stage, agents: &[&str]) -> Value {
    let mut arguments = vec!["run", "execution-loop", "--task", "Greet people", "--format", "json"];
    for agent in agents {
        arguments.extend(["--agent", agent]);
    }
    let said = stage.house.start_as(stage.command(&arguments)).end_within(MOST);
    let report = said.report();
    assert_eq!(
        (said.code, report["outcome"].as_str()),
        (Some(0), Some("done")),
        "{}",
        stage.story(&said)
    );
    let played: Vec<String> = report["attempts"].as_array().unwrap().iter().map(step).collect();
    let steps = [
        "implement accepted",
        "qa accepted",
        "manager accepted",
        "implement accepted",
        "qa accepted",
        "code-quality accepted",
        "manager accepted",
        "dod accepted",
    ];
    assert_eq!(played, steps, "{}", stage.story(&said));
    assert_eq!(stage.house.read("greet.sh"), "echo \"Hello, $1\"\n");
    assert_eq!(stage.house.read("docs/progress.md"), "- [x] greet people\n");
    stage.nothing_is_left(&report);
    report
}

/// A step as its name and what became of it.
fn step(attempt: &Value) -> String {
    format!("{} {}", attempt["path"][0].as_str().unwrap(), attempt["outcome"].as_str().unwrap())
}

fn script() -> Value {
    serde_json::from_slice(&std::fs::read(testing().join("scripts/execution-loop.json")).unwrap())
        .unwrap()
}

fn one_command_line_plays_the_execution_loop(who: Who) {
    let Some(stage) = Stage::open(who, &script()) else { return };
    play(&stage, &[who.name()]);
}

#[test]
fn three_command_lines_play_the_execution_loop_together() {
    let Some(stage) = Stage::open(Who::Gemini, &script()) else { return };
    play(&stage, &["implementer=claude", "qa=codex", "gemini"]);
    let mut apis: Vec<String> = stage.asked().into_iter().map(|asked| asked.api).collect();
    apis.dedup();
    assert_eq!(apis, ["anthropic", "openai", "gemini", "anthropic", "openai", "gemini"]);
}
