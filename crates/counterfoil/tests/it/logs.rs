//! The structured log: every step with what is known of it, one object a line, and no secret.

use crate::runs::project::{WorkflowProject, one_step};
use serde_json::{Value, json};

const SECRET: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
const OWN: &str = "zebra-crossing-9";

/// A workflow whose agent first returns a secret in a wrong place, and then a result.
fn project() -> WorkflowProject {
    project_with(&format!("{SECRET} {OWN}"))
}

/// The same with this text in the wrong place.
fn project_with(text: &str) -> WorkflowProject {
    let bad = json!({ "ok": text }).to_string();
    let script = json!({"replies": [
        {"agent": "worker", "text": bad, "usage": {"input_tokens": 7, "output_tokens": 3, "cost_usd": 0.5}},
        {"agent": "worker", "text": "{\"ok\": true}", "usage": {"input_tokens": 2, "output_tokens": 1, "cost_usd": 0.25}},
    ]});
    WorkflowProject::new(&one_step(""), &script.to_string())
}

/// The lines of stderr of a run, with this log.
fn lines(project: &WorkflowProject, filter: Option<&str>, more: &[&str]) -> String {
    let arguments = ["run", "flow.yaml", "--agent", "script:script.yaml"];
    let mut command = project.command(&[&arguments, more].concat());
    command.env("DEPLOY_TOKEN", OWN);
    if let Some(filter) = filter {
        command.env("COUNTERFOIL_LOG", filter);
    }
    let output = command.output();
    assert!(output.is_success(), "{}", output.stderr);
    output.stderr
}

fn parsed(lines: &str) -> Vec<Value> {
    let parse =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    lines.lines().map(parse).collect()
}

#[test]
fn every_step_is_logged_with_who_did_it_and_what_it_used() {
    let project = project();
    let events = parsed(&lines(&project, Some("info"), &[]));
    let of_run: Vec<&Value> =
        events.iter().filter(|event| event["target"] == "counterfoil::run").collect();
    let named = |name: &str| {
        let found = of_run.iter().find(|event| event["fields"]["event"] == name);
        &found.unwrap_or_else(|| panic!("no {name} in {of_run:#?}"))["fields"]
    };
    let run = named("run-attached")["run"].clone();
    assert!(of_run.iter().all(|event| event["fields"]["run"] == run), "{of_run:#?}");
    let ended = named("attempt-ended");
    for (field, value) in [
        ("state", json!("work")),
        ("visit", json!(1)),
        ("attempt", json!(1)),
        ("agent", json!("worker")),
        ("program", json!("script")),
        ("outcome", json!("accepted")),
        ("cost_usd", json!(0.25)),
        ("input_tokens", json!(2)),
        ("output_tokens", json!(1)),
    ] {
        assert_eq!(ended[field], value, "{field}: {ended}");
    }
    assert_eq!(named("repair-asked")["cost_usd"], 0.5);
    assert_eq!(named("moved")["to"], "done");
    assert_eq!(named("run-ended")["outcome"], "done");
    // What the contract does not say of the agent, the attempt does.
    let rejected = events.iter().find(|event| event["target"] == "counterfoil::rejected").unwrap();
    assert_eq!(rejected["fields"]["agent"], "worker", "{rejected}");
    assert_eq!(rejected["span"]["run"], run);
    // What is said to people is part of the log, and nothing else is on stderr.
    assert!(events.iter().any(|event| event["target"] == "counterfoil::message"), "{events:#?}");
}

#[test]
fn no_secret_is_logged() {
    for (filter, more) in [
        (Some("trace"), &[][..]),
        (Some("trace"), &["--log-format", "text"]),
        (None, &["--log-format", "json"]),
    ] {
        let text = lines(&project(), filter, more);
        assert!(text.contains("attempt-ended"), "{more:?}: {text}");
        assert!(!text.contains(SECRET) && !text.contains(OWN), "{more:?}: {text}");
        assert!(text.contains("redacted"), "the rejection is logged: {text}");
    }
}

/// A report quotes what it received, and a line of the log quotes the report.
#[test]
fn no_secret_with_escapes_is_logged_or_passed_on() {
    for (secret, part) in [
        ("Tr0ub4dor\"3xq\\77zz", "Tr0ub4dor"),
        ("zebra\tcolumns\nstripes-9", "columns"),
        ("caf\u{e9}-cr\u{e8}me-77", "me-77"),
    ] {
        let project = project_with(&format!("a {secret} b"));
        for format in ["json", "text"] {
            let arguments = ["run", "flow.yaml", "--agent", "script:script.yaml"];
            let mut run = project.command(&[&arguments[..], &["--log-format", format]].concat());
            let output = run.env("DEPLOY_TOKEN", secret).env("COUNTERFOIL_LOG", "trace").output();
            assert!(output.is_success(), "{}", output.stderr);
            assert!(!output.stderr.contains(part), "{format}: {}", output.stderr);
            assert!(output.stderr.contains("[redacted:variable#1]"), "{}", output.stderr);
        }
        let mut receipt = project.command(&["receipt", "last", "--format", "json"]);
        let receipt = receipt.env("DEPLOY_TOKEN", secret).output();
        assert!(receipt.is_success() && !receipt.stdout.contains(part), "{receipt:?}");
        let mut export = project.command(&["export", "last", "rec"]);
        export.env("DEPLOY_TOKEN", secret).output().expect(0, &[]);
        for file in ["rec/recording.json", "rec/attempts/001-work/1.stdout"] {
            assert!(!project.read_or_empty(file).contains(part), "{file}");
        }
        // A message to people quotes the text.
        project.write("result.txt", json!({ "ok": format!("a {secret} b") }).to_string());
        let arguments = ["check", "result.txt", "--contract", "contracts/step.yaml"];
        let mut check = project.command(&[&arguments[..], &["--log-format", "json"]].concat());
        let output = check.env("DEPLOY_TOKEN", secret).env("COUNTERFOIL_LOG", "warn").output();
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(!output.stderr.contains(part), "{}", output.stderr);
        for line in parsed(&output.stderr) {
            assert!(line["timestamp"].is_string(), "{line}");
        }
    }
}

/// The log shows the beginning of a value: 79 characters and a mark.
#[test]
fn no_part_of_a_secret_is_logged_where_a_value_is_cut() {
    for (secret, left) in [(SECRET, 10), (SECRET, 15), (SECRET, 25), (OWN, 8), (OWN, 14)] {
        let before = format!("{} ", "a b ".repeat(30));
        let text = format!("{}{secret} and more", &before[before.len() - (78 - left)..]);
        for format in ["json", "text"] {
            let logged = lines(&project_with(&text), None, &["--log-format", format]);
            assert!(
                logged.contains("a b [redacted:") || logged.contains("b  [redacted:"),
                "{logged}"
            );
            assert!(!logged.contains(&secret[..left]), "{left}: {logged}");
        }
    }
}

#[test]
fn a_format_alone_logs_and_nothing_is_logged_without_being_asked() {
    let text = lines(&project(), None, &["--log-format", "text"]);
    assert!(text.contains(" INFO ") && text.contains("event=\"attempt-ended\""), "{text}");
    let quiet = lines(&project(), None, &[]);
    assert!(!quiet.contains("attempt-ended"), "{quiet}");
    let warnings = parsed(&lines(&project(), Some("warn"), &["--format", "json"]));
    assert!(warnings.iter().all(|event| event["level"] == "WARN"), "{warnings:#?}");
    assert_eq!(warnings.len(), 1);
}

#[test]
fn what_is_not_understood_of_the_filter_is_a_line_of_the_log() {
    let logged = parsed(&lines(&project(), Some("warn,bogus==="), &[]));
    let said = |event: &Value| {
        event["fields"]["message"].as_str().is_some_and(|text| text.contains("'bogus==='"))
    };
    assert!(logged.iter().any(said), "{logged:#?}");
}
