//! Secrets in everything that a run keeps, and none of them in what is exported or told to others.

use crate::runs::project::{WorkflowProject, one_step};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// One of each kind, and what says what it is where nothing in it does.
const SECRETS: [(&str, &str); 23] = [
    ("", "sk-ant-api03-Zk3vQ9xY_w"),
    ("", "sk-proj-8hG4kQ2pLz0aB"),
    ("", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
    ("", "github_pat_11ABCDEFG0abcdefghijkl_mnop"),
    ("", "AKIAIOSFODNN7EXAMPLE"),
    ("", "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY"),
    ("", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"),
    ("Authorization: Bearer ", "abcDEF1234567890"),
    ("x-api-key: ", "k-123-very-own"),
    ("postgres://me:", "hunter2-and-more@"),
    ("", "zebra-crossing-9"),
    ("", "cust_f00dfeed"),
    ("", "sk_live_4eC39HqLyjWDarjtT1zdp7dc"),
    ("", "npm_aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789"),
    ("", "pypi-AgEIcHlwaS5vcmcCJDZmNzk2ZmQ5LTA2ZWQtNGY"),
    ("", "hf_aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH"),
    ("", "SG.aBcDeFgHiJkLmNoPqRsTuV.aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789-_aBcDe"),
    ("", "dop_v1_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
    ("", "SK0123456789abcdef0123456789abcdef"),
    ("", "7012345678:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1"),
    ("", "abc8Q~defghijklmnopqrstuvwxyzABCDEFGH012"),
    ("AccountKey=", "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq"),
    ("", "AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQQPZRY9X8GF2TVDW0S3JN54KHC"),
];

/// All of them in one line.
fn planted() -> String {
    let all: Vec<String> =
        SECRETS.iter().map(|(before, secret)| format!("{before}{secret} .")).collect();
    all.join(" ")
}

/// Every file below a folder, as one text.
fn everything(folder: &Path) -> String {
    let mut text = String::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        if at.is_dir() {
            open.extend(std::fs::read_dir(&at).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            text += &std::fs::read_to_string(&at).unwrap();
        }
    }
    text
}

fn holds_none(text: &str) {
    for (_, secret) in SECRETS {
        let secret = secret.trim_end_matches('@');
        assert!(!text.contains(secret), "{secret} is left:\n{text}");
    }
}

/// A run in whose prompt, replies and result there are secrets.
fn run() -> WorkflowProject {
    let note = planted();
    let workflow = format!(
        "workflow: one\nagents: {{ worker: {{ contract: scene/step, prompt: {} }} }}\ncontracts: [contracts]\n\
         start: work\nstates:\n  work: {{ agent: worker, go: done }}\n  done: {{ end: done }}\n",
        json!(format!("Do it with {note}"))
    );
    let good = format!("I used {note}.\n{}", json!({"ok": true, "note": note}));
    let script = json!({"replies": [{"agent": "worker", "text": format!("{note} {{\"ok\": false}}")}, {"agent": "worker", "text": good}]});
    let project = WorkflowProject::new(&workflow, &script.to_string());
    project.write("counterfoil.toml", "[redact]\npatterns = [\"cust_[a-z0-9]+\"]\n");
    assert_eq!(project.run_workflow().ended(), ("done", None, 0));
    project
}

#[test]
fn nothing_of_them_is_exported_and_it_replays_the_same() {
    let project = run();
    let mut export = project.command(&["export", "last", "rec"]);
    let output = export.env("DEPLOY_TOKEN", "zebra-crossing-9").output();
    let words = output.stderr.clone();
    assert!(output.is_success(), "{words}");
    holds_none(&words);
    for kind in
        ["key", "github-token", "aws-key", "google-key", "jwt", "password", "variable", "pattern"]
    {
        assert!(words.contains(kind), "{kind}: {words}");
    }
    let text = everything(&project.path("rec"));
    holds_none(&text);
    // Equal secrets are equally numbered in the prompt, in what was said and in the result.
    let recording: Value = serde_json::from_str(&project.read("rec/recording.json")).unwrap();
    let note = recording["attempts"][0]["result"]["value"]["note"].as_str().unwrap();
    assert!(project.read("rec/attempts/001-work/1.prompt").contains(note), "{note}");
    assert!(project.read("rec/attempts/001-work/2.stdout").contains(note), "{note}");
    assert!(note.contains("[redacted:key#1]"), "{note}");
    let replayed = project.run_json(&["replay", "rec", "--format", "json"]);
    assert_eq!(
        (replayed.code, &replayed.report["summary"]["same"]),
        (Some(0), &json!(1)),
        "{}",
        replayed.report
    );
}

#[test]
fn whoever_asks_for_them_gets_them_and_is_told() {
    let project = run();
    let output = project.command(&["export", "last", "rec", "--raw"]).output();
    assert!(output.stderr.contains("secrets were not redacted"));
    let text = everything(&project.path("rec"));
    assert!(SECRETS.iter().all(|(_, secret)| text.contains(secret)));
    project.command(&["replay", "rec"]).output().expect(0, &[]);
}

/// A program that writes what `claude` writes, with secrets in its events, in the file it makes and
/// on standard error.
fn stand_in(project: &WorkflowProject) {
    let note = planted();
    let result = json!({"ok": true, "note": note}).to_string();
    let events = [
        json!({"type": "system", "subtype": "init", "session_id": "7f0c1d8e-0000-4000-8000-000000000001", "model": "m-1", "tools": [], "mcp_servers": []}),
        json!({"type": "assistant", "message": {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Write", "input": {"file_path": "a.env", "content": format!("KEY={note}")}}]}, "session_id": "7f0c1d8e-0000-4000-8000-000000000001"}),
        json!({"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": result}]}, "session_id": "7f0c1d8e-0000-4000-8000-000000000001"}),
        json!({"type": "result", "subtype": "success", "is_error": false, "result": result, "session_id": "7f0c1d8e-0000-4000-8000-000000000001", "num_turns": 1, "total_cost_usd": 0.25, "usage": {"input_tokens": 10, "output_tokens": 5}, "permission_denials": [], "terminal_reason": "completed"}),
    ];
    let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
    project.write("events.jsonl", &lines);
    project.write("errors.txt", format!("warning: {note}\n"));
    let here = project.path("").display().to_string();
    project.write(
        "claude.sh",
        format!(
            "#!/bin/sh\nif [ \"$1\" = --version ]; then echo '2.1.325 (Claude Code)'; exit 0; fi\ncat >/dev/null\ncat '{here}/errors.txt' >&2\ncat '{here}/events.jsonl'\n"
        ),
    );
    std::fs::set_permissions(project.path("claude.sh"), std::fs::Permissions::from_mode(0o755))
        .unwrap();
    project.write(
        "counterfoil.toml",
        "[redact]\npatterns = [\"cust_[a-z0-9]+\"]\n[agents.claude]\nprogram = \"claude.sh\"\nchannels = []\n",
    );
}

#[test]
fn the_events_and_errors_of_a_program_are_exported_without_them() {
    let project = WorkflowProject::new(&one_step(""), "replies: []");
    stand_in(&project);
    let ran = project.run_json(&["run", "flow.yaml", "--format", "json", "--agent", "claude"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{} {}", ran.stderr, ran.report);
    let mut export = project.command(&["export", "last", "rec"]);
    export.env("DEPLOY_TOKEN", "zebra-crossing-9").output().expect(0, &[]);
    holds_none(&everything(&project.path("rec")));
    let recording: Value = serde_json::from_str(&project.read("rec/recording.json")).unwrap();
    let reply = &recording["attempts"][0]["replies"][0];
    assert_eq!((&reply["program"], &reply["exit"]), (&json!("claude"), &json!(0)), "{reply}");
    assert!(project.read("rec/attempts/001-work/1.stderr").starts_with("warning: [redacted:"));
    for line in project.read("rec/attempts/001-work/1.stdout").lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
    let replayed = project.run_json(&["replay", "rec", "--format", "json"]);
    assert_eq!(
        (replayed.code, &replayed.report["summary"]["same"]),
        (Some(0), &json!(1)),
        "{}",
        replayed.report
    );
}

/// A step whose result a question quotes.
const ASKS: &str = "
workflow: asks
agents: { worker: { contract: scene/told, prompt: Do it. } }
contracts: [contracts]
variables: { note: { type: string, initial: \"\" } }
start: work
states:
  work: { agent: worker, next: [{ set: { note: result.note }, go: approve }] }
  approve: { ask: { question: \"Shall it go out? {{ note }}\", choices: [proceed, reject] }, go: done }
  done: { end: done }
";

const TOLD: &str = "
contract: scene/told
version: 1
fields: { ok: boolean, note: string }
examples: [{ ok: true, note: fine }]
";

/// Runs `flow.yaml` with a script that replies once, in this format, and notifies. Returns what was
/// printed to stdout, and what the program was told on its input and in its environment.
fn told(workflow: &str, reply: &Value, format: &str) -> (String, String) {
    let script = json!({ "replies": [reply] }).to_string();
    let project = WorkflowProject::new(workflow, &script);
    project.write("contracts/told.yaml", TOLD);
    project.write("counterfoil.toml", "[redact]\npatterns = [\"cust_[a-z0-9]+\"]\n");
    let notify = "cat >> told; printf '%s\\n' \"$COUNTERFOIL_TEXT\" >> told";
    let base = ["run", "flow.yaml", "--agent", "script:script.yaml", "--notify", notify];
    let mut run = project.command(&[&base[..], &["--format", format]].concat());
    let output = run.env("DEPLOY_TOKEN", "zebra-crossing-9").output();
    assert!(!output.stdout.is_empty(), "{}", output.stderr);
    (output.stdout, project.read("told"))
}

#[test]
fn nobody_is_notified_of_them() {
    let note = planted();
    let result = json!({"ok": true, "note": note}).to_string();
    let question = told(ASKS, &json!({"agent": "worker", "text": result}), "json").1;
    let failure = json!({"agent": "worker", "fail": "permission", "reason": note});
    let end = told(&one_step(""), &failure, "json").1;
    for (told, event, field) in [(&question, "question", "text"), (&end, "end", "reason")] {
        holds_none(told);
        let line: Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
        assert_eq!(line["event"], event, "{told}");
        assert!(line[field].as_str().unwrap().contains("[redacted:key#1]"), "{told}");
        // The variable has the same text.
        assert_eq!(told.matches(line["text"].as_str().unwrap().trim()).count(), 2, "{told}");
    }
}

#[test]
fn the_reports_of_a_run_for_jobs_do_not_have_them() {
    let failure = json!({"agent": "worker", "fail": "permission", "reason": planted()});
    for format in ["github", "junit"] {
        let report = told(&one_step(""), &failure, format).0;
        holds_none(&report);
        assert!(report.contains("[redacted:key#"), "{report}");
    }
}

#[test]
fn the_reports_of_a_check_for_jobs_do_not_have_them() {
    let project = WorkflowProject::new(&one_step(""), "replies: []");
    let secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    // The warning about an unknown field names it.
    project.write("answer.txt", json!({"ok": true, secret: 1}).to_string());
    for format in ["github", "sarif"] {
        let arguments =
            ["check", "answer.txt", "--contract", "contracts/step.yaml", "--format", format];
        let report = project.run(&arguments).stdout;
        assert!(!report.contains(secret), "{report}");
        assert!(report.contains("[redacted:github-token#1]"), "{report}");
    }
}

/// A run that asks, and whose command then prints what a pattern of its project redacts.
const ASK: &str = "
workflow: ask
start: approve
states:
  approve: { ask: { question: \"Go on?\", choices: [yes] }, go: test }
  test: { command: [sh, -c, 'echo cust_f00dfeed; exit 3'], go: over }
  over: { end: blocked }
";

const PATTERNS: &str = "[redact]\npatterns = [\"cust_[a-z0-9]+\"]\n";

#[test]
fn a_run_that_is_resumed_from_another_folder_is_redacted_by_its_own_patterns() {
    for format in ["github", "junit"] {
        let project = WorkflowProject::new(ASK, "");
        project.write("counterfoil.toml", PATTERNS);
        project.run(&["run", "flow.yaml"]).expect(4, &[]);
        let elsewhere = tempfile::tempdir().unwrap();
        let state = project.state().display().to_string();
        let told = elsewhere.path().join("told");
        let notify = format!("cat >> '{}'", told.display());
        let mut command = project.command(&[
            "answer", "last", "approve", "yes", "--resume", "--format", format, "--notify",
            &notify, "--state", &state,
        ]);
        let output = command.current_dir(elsewhere.path()).output();
        output.expect(7, &["exit code 3: [redacted:pattern#1]"]);
        assert!(!output.stdout.contains("cust_f00dfeed"), "{output:?}");
        assert!(!std::fs::read_to_string(told).unwrap().contains("cust_f00dfeed"));
    }
}

/// A contract and a text that it rejects, whose report quotes a secret of the project.
fn checked(config: &str, format: &str) -> counterfoil_testkit::CommandOutput {
    let project = WorkflowProject::new(ASK, "");
    project.init_git();
    project.write(config.split_once(':').unwrap().0, config.split_once(':').unwrap().1);
    project.write(
        "svc/contracts/level.yaml",
        "contract: acme/level\nversion: 1\nfields: { level: 'low | high' }\n",
    );
    project.write("svc/answer.txt", "{\"level\": \"cust_f00dfeed\"}");
    let arguments =
        ["check", "answer.txt", "--contract", "acme/level", "--contracts", "contracts", "--format"];
    let mut command = project.command(&[&arguments[..], &[format]].concat());
    command.current_dir(project.path("svc")).output()
}

#[test]
fn the_patterns_of_the_nearest_project_are_used_below_the_top_of_the_repository() {
    for format in ["sarif", "github", "junit"] {
        let output = checked(&format!("svc/counterfoil.toml:{PATTERNS}"), format);
        output.expect(1, &["[redacted:pattern#1]"]);
        assert!(!output.stdout.contains("cust_f00dfeed"), "{output:?}");
    }
}

#[test]
fn nothing_is_reported_as_it_is_if_the_patterns_cannot_be_read() {
    for name in ["counterfoil.toml", "svc/counterfoil.toml"] {
        for format in ["sarif", "github", "junit"] {
            let output = checked(&format!("{name}:[redact\n"), format);
            output.expect(1, &["[redacted]", "texts that may hold secrets are withheld: "]);
            assert!(!output.stdout.contains("cust_f00dfeed"), "{output:?}");
        }
    }
}
