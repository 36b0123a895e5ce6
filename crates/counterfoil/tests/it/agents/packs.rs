//! A whole pack with the real command lines.

use crate::agents::project::{CliProject, RUN_TIMEOUT, VendorCli, for_each_cli};
use counterfoil_testkit::testing_dir;
use serde_json::Value;

for_each_cli!(one_command_line_plays_the_execution_loop);

/// Plays the execution loop, with these agents.
fn play(project: &CliProject, agents: &[&str]) -> Value {
    let mut arguments = vec!["run", "execution-loop", "--task", "Greet people", "--format", "json"];
    for agent in agents {
        arguments.extend(["--agent", agent]);
    }
    let output = project.start_command(&mut project.command(&arguments)).wait_for(RUN_TIMEOUT);
    let report = output.json();
    assert_eq!(
        (output.code, report["outcome"].as_str()),
        (Some(0), Some("done")),
        "{}",
        project.describe(&output)
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
    assert_eq!(played, steps, "{}", project.describe(&output));
    assert_eq!(project.read_or_empty("greet.sh"), "echo \"Hello, $1\"\n");
    assert_eq!(project.read_or_empty("docs/progress.md"), "- [x] greet people\n");
    project.assert_nothing_runs(&report);
    report
}

/// A step as its name and what became of it.
fn step(attempt: &Value) -> String {
    format!("{} {}", attempt["path"][0].as_str().unwrap(), attempt["outcome"].as_str().unwrap())
}

fn script() -> Value {
    serde_json::from_slice(
        &std::fs::read(testing_dir().join("scripts/execution-loop.json")).unwrap(),
    )
    .unwrap()
}

fn one_command_line_plays_the_execution_loop(cli: VendorCli) {
    let Some(project) = CliProject::open(cli, &script()) else { return };
    play(&project, &[cli.name()]);
}

#[test]
fn three_command_lines_play_the_execution_loop_together() {
    let Some(project) = CliProject::open(VendorCli::Gemini, &script()) else { return };
    play(&project, &["implementer=claude", "qa=codex", "gemini"]);
    let mut apis: Vec<String> = project.requests().into_iter().map(|asked| asked.api).collect();
    apis.dedup();
    assert_eq!(apis, ["anthropic", "openai", "gemini", "anthropic", "openai", "gemini"]);
}
