//! Fake command lines that misbehave: missing, too old, noisy, endless, truncated. They need no
//! installation, so these tests always run.

use crate::shell_project::ShellProject;
use counterfoil_testkit::{CommandOutput, processes_in_attempts};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// A project with a workflow of one agent, and a program that replaces `claude`.
struct Fake {
    project: ShellProject,
}

impl Fake {
    /// The program runs this line of shell for each prompt, with its arguments in `$1` and on.
    fn new(line: &str) -> Self {
        let fake = Self { project: ShellProject::new() };
        fake.program(&format!(
            "[ \"$1\" = --version ] && echo '2.1.325 (Claude Code)' && exit\n{line}"
        ));
        fake.project.write("prompts/work.md", "Do the work.");
        fake.workflow("");
        fake
    }

    fn program(&self, text: &str) {
        let path = self.project.write("bin/claude", format!("#!/bin/sh\n{text}\n"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        self.settings("");
    }

    fn settings(&self, lines: &str) {
        let program = self.project.repo().join("bin/claude");
        self.project.write(
            "counterfoil.toml",
            format!(
                "[agents.claude]\nprogram = {:?}\nchannels = []\n{lines}\n",
                program.to_str().unwrap()
            ),
        );
    }

    fn workflow(&self, keys: &str) {
        let repairs = if keys.contains("repairs") { "" } else { "repairs: 0, " };
        self.project.write(
            "flow.yaml",
            format!(
                "workflow: one\n\
                 agents: {{ worker: {{ contract: acme/ok, prompt: prompts/work.md, {repairs}{keys} }} }}\n\
                 contracts: [contracts]\n\
                 start: work\n\
                 states:\n\
                 \x20 work: {{ agent: worker, go: end }}\n\
                 \x20 end: {{ end: done }}\n"
            ),
        );
    }

    fn run(&self) -> CommandOutput {
        self.project.run(&["run", "repo/flow.yaml", "--agent", "claude", "--format", "json"])
    }

    /// The only attempt of a run that is done.
    fn accepted(&self) -> Value {
        let output = self.run();
        assert_eq!(output.code, Some(0), "{output:#?}");
        self.nothing_is_left(&output.json());
        output.json()["attempts"][0].clone()
    }

    /// The reason of a run that failed so.
    fn failed(&self, cause: &str) -> String {
        let output = self.run();
        let report = output.json();
        let ended = (report["outcome"].as_str(), report["cause"].as_str());
        assert_eq!(ended, (Some("failed"), Some(cause)), "{output:#?}");
        self.nothing_is_left(&report);
        report["reason"].as_str().unwrap().to_owned()
    }

    fn nothing_is_left(&self, report: &Value) {
        let left = processes_in_attempts(report["run"].as_str().unwrap());
        assert!(left.is_empty(), "left behind: {left:?}");
        let scratch = self.project.state().join("scratch").join(report["run"].as_str().unwrap());
        assert!(!scratch.exists(), "{} is left", scratch.display());
    }

    /// What the program printed, as it was stored.
    fn transcript(&self, attempt: &Value) -> Vec<u8> {
        let path = attempt["replies"][0]["transcript"].as_str().unwrap();
        std::fs::read(self.project.state().join(path)).unwrap()
    }
}

/// The event that ends a reply.
fn result(text: &str) -> String {
    json!({
        "type": "result", "subtype": "success", "is_error": false, "result": text, "session_id": "s-1",
        "total_cost_usd": 0.5, "usage": {"input_tokens": 7, "output_tokens": 3}, "permission_denials": [],
    })
    .to_string()
}

/// A line for `sh` that prints a text.
fn says(text: &str) -> String {
    format!("cat <<'END'\n{text}\nEND")
}

const GOOD: &str = r#"{"ok": true}"#;

#[test]
fn a_program_that_is_not_there_is_said_before_anything_starts_with_how_to_get_it() {
    let project = ShellProject::new();
    project.write("prompts/work.md", "Do the work.");
    let fake = Fake { project };
    fake.workflow("");
    let mut command = fake.project.command(&["run", "repo/flow.yaml", "--agent", "codex"]);
    command.env("PATH", "/usr/bin:/bin");
    let output = fake.project.start_command(&mut command).wait();
    output.expect(
        2,
        &["`codex` is not installed", "not on PATH", "npm install -g @openai/codex", "program = "],
    );
    assert!(!fake.project.state().join("transcripts").exists(), "nothing was started");

    fake.settings("");
    fake.run().expect(2, &["bin/claude is not a program"]);
}

#[test]
fn one_that_is_too_old_is_not_started_and_one_that_is_newer_is() {
    let fake = Fake::new("");
    let good = says(&result(GOOD));
    fake.program(&format!("[ \"$1\" = --version ] && echo 0.2.1 && exit\n{good}"));
    fake.run().expect(2, &["is version 0.2.1", "is needed", "update it with `npm install -g"]);
    fake.program(&format!("[ \"$1\" = --version ] && echo 99.0.0 && exit\n{good}"));
    fake.accepted();
    let started = fake.project.events();
    assert_eq!(started[0]["agents"]["worker"]["version"], "99.0.0");
}

#[test]
fn one_that_does_not_run_is_said_with_the_reason() {
    let fake = Fake::new("");
    fake.program("exit 3");
    fake.run().expect(2, &["cannot be run", "`--version` ended with", "3"]);
}

#[test]
fn banners_garbage_and_unknown_events_are_passed_over_and_kept() {
    let noise = [
        "Welcome to the update! \u{1b}[1mNew\u{1b}[0m",
        r#"{"type":"telemetry.v9","whatever":[1,2,{"x":null}]}"#,
        "{not json",
        r#"{"type":"assistant","message":"a text where an object stood"}"#,
        "[1,2,3]",
        r#"{"type":42}"#,
    ]
    .join("\n");
    let fake = Fake::new(&says(&format!("{noise}\n{}", result(GOOD))));
    let attempt = fake.accepted();
    assert_eq!(attempt["value"], json!({"ok": true}));
    assert_eq!(attempt["usage"]["cost_usd"], 0.5);
    let kept = String::from_utf8(fake.transcript(&attempt)).unwrap();
    assert!(kept.contains("{not json") && kept.contains("Welcome to the update!"), "{kept}");
    assert!(attempt["replies"][0]["notes"][0].as_str().unwrap().contains("line"), "{attempt:#}");
}

#[test]
fn a_line_of_20_megabytes_is_read_or_passed_over_and_nothing_is_lost() {
    let long = "head -c 20000000 /dev/zero | tr '\\0' x";
    let event = format!("printf '{{\"type\":\"user\",\"message\":\"'; {long}; printf '\"}}\\n'");
    let fake = Fake::new(&format!("{event}\n{long}; echo\n{}", says(&result(GOOD))));
    let attempt = fake.accepted();
    assert_eq!(attempt["value"], json!({"ok": true}));
    assert!(fake.transcript(&attempt).len() > 40_000_000);
}

#[test]
fn one_that_never_says_it_is_done_is_no_success_whatever_it_said() {
    let output =
        json!({"type": "assistant", "message": {"content": [{"type": "text", "text": GOOD}]}})
            .to_string();
    let reason = Fake::new(&says(&output)).failed("agent");
    assert!(reason.contains("exit code 0 and never said it was done"), "{reason}");
    let reason =
        Fake::new(&format!("{}\necho 'out of memory' >&2\nexit 9", says(&output))).failed("agent");
    assert!(reason.contains("exit code 9") && reason.contains("out of memory"), "{reason}");
}

#[test]
fn one_that_says_it_is_done_and_fails_is_no_success_either() {
    let reason = Fake::new(&format!("{}\nexit 7", says(&result(GOOD)))).failed("agent");
    assert!(reason.contains("said it was done and ended with exit code 7"), "{reason}");
}

#[test]
fn of_two_ends_the_last_counts_and_it_is_said() {
    let fake = Fake::new(&says(&format!("{}\n{}", result(r#"{"ok": false}"#), result(GOOD))));
    let attempt = fake.accepted();
    assert_eq!(attempt["value"], json!({"ok": true}));
    assert!(!attempt["replies"][0]["notes"].as_array().unwrap().is_empty(), "{attempt:#}");
}

#[test]
fn an_empty_text_or_prose_is_never_a_result() {
    for text in ["", "All done, everything works!"] {
        let output = Fake::new(&says(&result(text))).run();
        assert_eq!(
            (output.code, output.json()["cause"].as_str()),
            (Some(1), Some("contract")),
            "{output:#?}"
        );
    }
}

#[test]
fn a_silent_one_is_ended_by_the_idle_clock_with_all_it_started() {
    let fake = Fake::new(
        "echo '{\"type\":\"system\"}'\nsetsid sh -c 'trap \"\" TERM; sleep 1000' &\nsleep 1000",
    );
    fake.settings("idle = \"300ms\"");
    fake.workflow("retries: { timeout: 0 }");
    let reason = fake.failed("timeout");
    assert!(
        reason.contains("fell silent for 300 ms") && reason.contains("raise `idle`"),
        "{reason}"
    );
}

#[test]
fn it_sees_nothing_of_our_environment_but_what_it_may() {
    let fake = Fake::new(&format!("env > seen.txt\n{}", says(&result(GOOD))));
    fake.settings("pass = [\"ACME_*\"]\nenv = { SET_BY_US = \"1\" }");
    let mut command =
        fake.project.command(&["run", "repo/flow.yaml", "--agent", "claude", "--format", "json"]);
    command.env("OPENAI_API_KEY", "not-yours").env("MY_SECRET", "no").env("CLAUDECODE", "1");
    command.env("ANTHROPIC_API_KEY", "yours").env("ACME_ROOM", "7");
    let output = fake.project.start_command(&mut command).wait();
    assert_eq!(output.code, Some(0), "{output:#?}");
    let seen = fake.project.read_or_empty("seen.txt");
    let has = |name: &str| seen.lines().any(|line| line.starts_with(&format!("{name}=")));
    let shown = ["ANTHROPIC_API_KEY", "ACME_ROOM", "SET_BY_US", "PATH"].map(has);
    assert_eq!(shown, [true; 4], "{seen}");
    assert_eq!(["OPENAI_API_KEY", "MY_SECRET", "CLAUDECODE"].map(has), [false; 3], "{seen}");
}

#[test]
fn a_repair_goes_on_with_the_conversation_and_costs_the_difference() {
    let fake = Fake::new(&format!(
        "printf '%s\\n' \"$@\" > said.args\ncat > said.prompt\nif grep -q -- --resume said.args; then {}\nelse {}\nfi",
        says(&result(GOOD).replace("0.5", "0.75")),
        says(&result("done"))
    ));
    fake.workflow("");
    let flow = fake.project.read_or_empty("flow.yaml").replace("repairs: 0", "repairs: 2");
    fake.project.write("flow.yaml", flow);
    let attempt = fake.accepted();
    let replies = attempt["replies"].as_array().unwrap();
    assert_eq!(replies.len(), 2);
    assert_eq!(replies[1]["conversation"], "s-1");
    assert!(fake.project.read_or_empty("said.args").contains("s-1"));
    assert_eq!(attempt["usage"]["cost_usd"], 0.75);
    assert_eq!(attempt["usage"]["input_tokens"], 14);
}

#[test]
fn unknown_keys_of_the_settings_are_refused_with_their_line() {
    let fake = Fake::new(&says(&result(GOOD)));
    fake.settings("modle = \"opus\"");
    fake.run().expect(2, &["counterfoil.toml", "line 4", "modle", "model"]);
    fake.settings("idle = \"soon\"");
    fake.run().expect(2, &["counterfoil.toml: line 4", "the agent 'claude'", "idle", "\"90s\""]);
    fake.project.write("counterfoil.toml", "[agents.worker]\nspec = \"claud\"\n");
    let output = fake.project.run(&["run", "repo/flow.yaml"]);
    output.expect(2, &["'claud' is not an agent", "did you mean 'claude'"]);
}

/// It does not know its conversation any more, so it is asked anew with what it said.
#[test]
fn one_that_forgot_its_conversation_is_asked_anew_with_its_last_reply() {
    let fake = Fake::new(&format!(
        "case \"$*\" in *--resume*) echo 'No conversation found with session ID: s-1' >&2; exit 1;; esac\n\
         asked=$(cat)\n\
         case \"$asked\" in\n\
         *'You answered this:'*'All is watered.'*) {};;\n\
         *) {};;\n\
         esac",
        format_args!("{}\n", says(&result(GOOD))),
        format_args!("{}\n", says(&result("All is watered."))),
    ));
    fake.workflow("repairs: 1");
    let attempt = fake.accepted();
    assert_eq!(attempt["repairs_asked"], 1);
    let notes = attempt["replies"][1]["notes"].to_string();
    assert!(notes.contains("could not be continued, and it was asked anew"), "{notes}");
}
