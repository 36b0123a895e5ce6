//! The execution loop with the real command lines.

use crate::agents::project::{CliProject, RUN_TIMEOUT, VendorCli, for_each_cli};
use counterfoil_testkit::testing_dir;
use serde_json::{Value, json};

for_each_cli!(honest_agents_finish_the_execution_loop);

/// A step as its name and what became of it.
fn step(attempt: &Value) -> String {
    format!("{} {}", attempt["path"][0].as_str().unwrap(), attempt["outcome"].as_str().unwrap())
}

#[test]
fn three_command_lines_play_the_execution_loop_together() {
    let script = std::fs::read(testing_dir().join("scripts/execution-loop.json")).unwrap();
    let script: Value = serde_json::from_slice(&script).unwrap();
    let Some(project) = CliProject::open(VendorCli::Gemini, &script) else { return };
    let mut arguments = vec!["run", "execution-loop", "--task", "Greet people", "--format", "json"];
    arguments.extend(["--agent", "implementer=claude", "--agent", "qa=codex", "--agent", "gemini"]);
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
    let mut apis: Vec<String> = project.requests().into_iter().map(|asked| asked.api).collect();
    apis.dedup();
    assert_eq!(apis, ["anthropic", "openai", "gemini", "anthropic", "openai", "gemini"]);
}

/// Five agents that do what their prompts ask for, in a project whose test has to run: no result is
/// asked for again, and nothing that they try is denied.
fn honest_agents_finish_the_execution_loop(cli: VendorCli) {
    let Some(project) = CliProject::open(cli, &honest_script(cli)) else { return };
    project.write("counterfoil.toml", "[checks]\ntest = \"sh greet_test.sh\"\n");
    project.write("greet_test.sh", "[ \"$(sh greet.sh Kim)\" = \"Hello, Kim\" ]\n");
    project.commit_all("base");
    let report = project.play_honestly(&["execution-loop", "--task", "Greet people"]);
    assert_eq!(report["reason"], "Ship it");
}

/// What such agents do.
pub(crate) fn honest_script(cli: VendorCli) -> Value {
    let (implement, qa) = ("You implement a task", "You check whether a piece of work meets");
    let (quality, manage) = ("You look at the quality", "You maintain the documents of a task");
    let dod = "You say whether a whole task is complete";
    let check = json!([{"mcp": "run_check", "input": {"name": "test"}}]);
    json!({"replies": [
        {"when": implement, "calls": [{"write": "greet.sh", "content": "echo \"Hello, $1\"\n"}]},
        {"when": implement, "calls": check},
        cli.hand_in(implement, &json!({
            "status": "success", "summary": "greet.sh greets", "files_changed": [], "files_added": ["greet.sh"]
        })),
        {"when": qa, "calls": check},
        cli.hand_in(qa, &json!({
            "dod_achieved": true, "checks": [{"criterion": "the test passes", "passed": true}]
        })),
        cli.hand_in(quality, &json!({
            "quality_passed": true, "issues": [], "files_analyzed": ["greet.sh"],
            "blocking_issues_count": 0, "ignored_issues_count": 0
        })),
        {"when": manage, "calls": [{"write": "docs/progress.md", "content": "- [x] greet people\n"}]},
        cli.hand_in(manage, &json!({
            "updated": true, "artifacts_modified": ["docs/progress.md"], "summary": "ticked it off"
        })),
        cli.hand_in(dod, &json!({
            "task_complete": true, "confidence": "high", "remaining_items": [], "recommendation": "Ship it",
            "summary": {"user_stories_total": 1, "user_stories_done": 1, "phases_total": 1, "phases_done": 1}
        })),
        {"text": "Done.", "repeat": true},
    ]})
}
