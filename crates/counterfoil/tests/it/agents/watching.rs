//! What can be seen of an agent while it works, and what `show` tells of it afterwards.

use crate::agents::project::{CliProject, RUN_TIMEOUT, VendorCli, for_each_cli};
use serde_json::{Value, json};

for_each_cli!(work_can_be_told_from_a_hang_on_a_terminal);
for_each_cli!(show_names_the_program_and_quotes_what_it_said);

/// A model that has a short check run and a long one, and then hands in its result. What an answer
/// used is known at the latest when its calls have ended.
fn checking(cli: VendorCli) -> Value {
    let usage = json!({"input": 1_000, "output": 100});
    let check = |name: &str| json!([{"mcp": "run_check", "input": {"name": name}}]);
    json!([
        {"calls": check("short"), "usage": usage},
        {"calls": check("long"), "usage": {"input": 0, "output": 0}},
        cli.hand_in("", &json!({"ok": true})),
        {"text": "Done.", "repeat": true},
    ])
}

fn work_can_be_told_from_a_hang_on_a_terminal(cli: VendorCli) {
    let Some(project) = CliProject::open(cli, &checking(cli)) else { return };
    project.write("counterfoil.toml", "[checks]\nshort = \"true\"\nlong = \"sleep 13\"\n");
    let run = format!("stty cols 160; exec counterfoil run flow.yaml --agent {}", cli.name());
    let mut terminal = project.user_command("script", &["-qec", &run, "/dev/null"]);
    terminal.env("TERM", "xterm-256color");
    let output = project.start_command(&mut terminal).wait_for(RUN_TIMEOUT);
    assert_eq!(output.code, Some(0), "{}", project.describe(&output));
    let screen = &output.stdout;
    let is_line = |line: &&str| line.contains(cli.name()) && line.contains("run_check");
    let lines: Vec<&str> = screen.split(['\r', '\n']).filter(is_line).collect();
    for text in [", 2 calls", " is running for 5 s", ", silent for 1", "1100 tokens"] {
        assert!(lines.iter().any(|line| line.contains(text)), "{text}: {screen:?}");
    }
}

/// Off a terminal, there is a line each minute.
#[test]
fn without_a_terminal_a_line_is_printed_each_minute() {
    let cli = VendorCli::Codex;
    let Some(project) = CliProject::open(cli, &checking(cli)) else { return };
    project.write("counterfoil.toml", "[checks]\nshort = \"true\"\nlong = \"sleep 62\"\n");
    let command = &mut project.command(&["run", "repo/flow.yaml", "--agent", "codex"]);
    let output = project.start_command(command).wait_for(RUN_TIMEOUT);
    assert_eq!(output.code, Some(0), "{}", project.describe(&output));
    let lines = output.stderr.lines().filter(|line| line.contains("is running for"));
    let lines: Vec<&str> = lines.collect();
    let [line] = lines.as_slice() else { panic!("{}", project.describe(&output)) };
    for text in ["codex ", ", 2 calls", "1100 tokens", "$", "run_check", "silent for"] {
        assert!(line.contains(text), "{text}: {line}");
    }
}

fn show_names_the_program_and_quotes_what_it_said(cli: VendorCli) {
    let script = json!([{"text": "All is well:\nok is true.", "repeat": true}]);
    let Some(project) = CliProject::open(cli, &script) else { return };
    project.write_workflow("repairs: 0");
    let report = project.failed("contract", 1);
    let show = project.start_command(&mut project.command(&["show", "last"])).wait_for(RUN_TIMEOUT);
    let conversation = &report["attempts"][0]["replies"][0]["conversation"];
    let conversation = conversation.as_str().unwrap_or_else(|| panic!("{report:#}"));
    let version = format!("{} {}, model ", cli.name(), cli.version());
    let said = "it said: \"All is well:";
    for text in [&version, conversation, "result by ", said] {
        assert!(show.stdout.contains(text), "{text}: {}", show.stdout);
    }
}
