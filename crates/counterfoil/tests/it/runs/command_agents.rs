//! Runs with `command:` agents that write events.

use crate::PROGRAM;
use crate::shell_project::{ShellProject, run_arguments};
use counterfoil_testkit::CommandOutput;

/// What opencode is recorded to write, for a first prompt and for one that continues it.
const AGENT: &str = "cat > prompt-$#
echo \"{\\\"id\\\": \\\"ses-1\\\", \\\"say\\\": \\\"Let me look.\\\", \\\"m\\\": 1}\"
if [ \"$1\" = again ]; then say='{\\\"ok\\\": true}'; else say='It is done.'; fi
echo \"{\\\"id\\\": \\\"ses-1\\\", \\\"say\\\": \\\"$say\\\", \\\"m\\\": 2}\"
echo '{\"end\": true, \"in\": 100, \"out\": 10, \"usd\": 0.25}'
";

const SETTINGS: &str = "[agents.worker.command]
output = \"jsonl\"
resume = \"sh agent.sh again {conversation}\"
conversation = \"/id\"
text = { at = \"/say\", message = \"/m\" }
done = { \"/end\" = true }
usage = { take = \"sum\", input = \"/in\", output = \"/out\", cost = \"/usd\" }
";

#[test]
fn a_repair_continues_the_conversation_and_everything_is_counted_shown_and_replayed() {
    let project = ShellProject::with_agent("", AGENT);
    project.write("counterfoil.toml", SETTINGS);
    let output = project.run_workflow("flow.yaml", "command:sh agent.sh");
    output.expect(0, &[]);
    let report = output.json();
    assert_eq!(report["outcome"], "done", "{report:#}");
    let attempt = &report["attempts"][0];
    assert_eq!(attempt["replies"].as_array().unwrap().len(), 2, "{attempt:#}");
    for reply in attempt["replies"].as_array().unwrap() {
        assert_eq!(reply["conversation"], "ses-1", "{reply:#}");
    }
    assert_eq!(attempt["usage"]["input_tokens"], 200, "{attempt:#}");
    assert_eq!(attempt["usage"]["output_tokens"], 20);
    assert_eq!(attempt["usage"]["cost_usd"], 0.5);
    // The repair is told what is wrong, and not the task again.
    let (first, repair) = (project.read_or_empty("prompt-0"), project.read_or_empty("prompt-2"));
    assert!(first.starts_with("Do the work."), "{first}");
    assert!(repair.contains("no result") && !repair.contains("Do the work."), "{repair}");

    // A recording has the text beside the events, and is replayed with the same outcome.
    project.run(&["export", "last", "recording"]).expect(0, &[]);
    let replayed = project.command_of(PROGRAM, &["replay", "recording"]).output();
    replayed.expect(0, &[]);
}

/// A result in plain text is not guessed at; an event with a broken byte is still an event.
#[test]
fn bytes_that_are_not_utf_8_are_refused_in_text_and_replaced_in_events() {
    let text = r#"cat > /dev/null; printf '{"ok": true, "note": "a\377b"}\n'"#;
    let project = ShellProject::with_agent("", text);
    let output = project.run_workflow("flow.yaml", "command:sh agent.sh");
    output.expect(1, &["the text is not UTF-8"]);
    let report = output.json();
    let attempt = &report["attempts"][0];
    assert_eq!(attempt["repairs_asked"], 2, "{attempt:#}");
    assert_eq!(attempt["violations"][0]["code"], "C0110", "{attempt:#}");

    let events = r#"cat > /dev/null
printf '{"id": "ses-1", "say": "{\\"ok\\": true, \\"note\\": \\"a\377b\\"}", "m": 1}\n'
echo '{"end": true, "in": 1, "out": 1, "usd": 0.25}'
"#;
    let project = ShellProject::with_agent("", events);
    project.write("counterfoil.toml", SETTINGS);
    let output = project.run_workflow("flow.yaml", "command:sh agent.sh");
    output.expect(0, &[]);
    assert_eq!(output.json()["attempts"][0]["value"]["note"], "a\u{fffd}b");
}

#[test]
fn settings_that_do_not_fit_are_told_before_the_run_begins() {
    let project = ShellProject::with_agent("", AGENT);
    project.write("counterfoil.toml", SETTINGS.replace("conversation = \"/id\"\n", ""));
    let output = project.run(&run_arguments("flow.yaml", "command:sh agent.sh"));
    output.expect(2, &["the agent 'worker' cannot be run", "conversation = \"/…\""]);
    assert_eq!(project.read_or_empty("prompt-0"), "");
}

#[test]
fn a_command_sees_no_key_of_ours_unless_it_is_passed_on() {
    for (settings, expected) in [("", "ok-"), ("[agents.sh]\npass = [\"ACME_*\"]\n", "ok-k")] {
        let project = ShellProject::with_agent(
            "",
            "echo \"ok-$ACME_API_KEY\" > seen; echo '{\"ok\": true}'\n",
        );
        project.write("counterfoil.toml", settings);
        let mut command = project.command(&run_arguments("flow.yaml", "command:sh agent.sh"));
        let output = command.env("ACME_API_KEY", "k").output();
        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!(project.read_or_empty("seen").trim(), expected, "{settings}");
    }
}

#[test]
fn a_limit_that_does_not_hold_is_said_and_strict_refuses_it() {
    let agent = "echo '{\"ok\": true}'\n";
    let tokens = "the tokens of agent 'worker' cannot be known";
    let cost = "the cost of agent 'worker' cannot be known";
    for (options, said) in [
        (&[][..], &[][..]),
        (&["--max-time", "1h"], &[]),
        (&["--max-tokens", "100"], &[tokens]),
        (&["--max-cost", "1"], &[cost]),
        (&["--max-cost", "1", "--max-tokens", "100"], &[cost, tokens]),
    ] {
        let project = ShellProject::with_agent("", agent);
        let run = |more: &[&str]| run_with(&project, &[options, more].concat());
        let output = run(&[]);
        output.expect(0, said);
        for other in [tokens, cost].iter().filter(|other| !said.contains(other)) {
            assert!(!output.stderr.contains(*other), "{options:?}: {}", output.stderr);
        }
        run(&["--strict"]).expect(if said.is_empty() { 0 } else { 2 }, said);
    }
    // What a program reports can be limited.
    let project = ShellProject::with_agent("", AGENT);
    project.write("counterfoil.toml", SETTINGS);
    let limits = ["--max-tokens", "1000", "--max-cost", "9", "--strict"];
    run_with(&project, &limits).expect(0, &[]);
}

fn run_with(project: &ShellProject, options: &[&str]) -> CommandOutput {
    let arguments = run_arguments("flow.yaml", "command:sh agent.sh");
    let options = options.iter().map(|option| (*option).to_owned());
    project.run(&arguments.into_iter().chain(options).collect::<Vec<String>>())
}

#[test]
fn a_limit_of_single_attempts_is_a_limit_too() {
    let agent = "echo '{\"ok\": true}'\n";
    let project = ShellProject::with_agent("budget: { tokens: 9 }", agent);
    run_with(&project, &["--strict"]).expect(
        2,
        &["the tokens of agent 'worker' cannot be known, so the limit of tokens does not hold"],
    );
}
