//! Servers that users start for their own agents.

use crate::mcp::client::{Client, packed, words};
use counterfoil_agents::submissions::read;
use counterfoil_contract::Status;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};

fn refused(arguments: &[&str], folder: &Path) -> String {
    let Output { status, stdout, stderr } = Command::new(crate::PROGRAM)
        .arg("mcp")
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("COUNTERFOIL_STATE", ".counterfoil")
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    assert_eq!(status.code(), Some(2));
    assert!(stdout.is_empty(), "only the protocol may be written there");
    String::from_utf8(stderr).unwrap()
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn good() -> Value {
    json!({"dod_achieved": true, "checks": [{"criterion": "tests", "passed": true}]})
}

#[test]
fn results_are_kept_in_the_state_folder_which_stays_out_of_commits() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join(".counterfoil");
    let mut client = Client::greet(&["--contract", "execution-loop/qa"], folder.path());
    assert!(!state.exists(), "nothing is made before there is something to keep");
    assert_eq!(client.submit(&good())["isError"], false);
    let kept = read(&state.join("submissions.jsonl"), 0).unwrap().0;
    assert_eq!((kept[0].contract.as_str(), &kept[0].value), ("execution-loop/qa@1", &good()));
    assert_eq!(std::fs::read_to_string(state.join(".gitignore")).unwrap(), "*\n");
}

#[test]
fn with_several_contracts_each_result_names_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--contract", "execution-loop/qa", "--contract", "execution-loop/dod"];
    let mut client = Client::greet(&arguments, folder.path());
    let listed = client.call("get_contract", &json!({}));
    let names: Vec<&str> = listed["structuredContent"]["contracts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["contract"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["execution-loop/dod@1", "execution-loop/qa@1"]);
    for (arguments, words_of_it) in [
        (good(), "set `contract` to one of"),
        (
            json!({"contract": "execution-loop/xx", "result": good()}),
            "there is no contract 'execution-loop/xx'",
        ),
        (
            json!({"contract": "execution-loop/qa", "dod_achieved": true}),
            "pass the result as `result`",
        ),
    ] {
        let answer = client.submit(&arguments);
        assert_eq!(answer["isError"], true);
        assert!(words(&answer).contains(words_of_it), "{}", words(&answer));
    }
    // By id or by reference.
    for name in ["execution-loop/qa", "execution-loop/qa@1"] {
        let answer = client.submit(&json!({"contract": name, "result": good()}));
        assert_eq!(answer["isError"], false, "{}", words(&answer));
    }
    let example = client.call("get_contract", &json!({"contract": "execution-loop/dod"}))["structuredContent"]["example"].clone();
    assert_eq!(example["contract"], "execution-loop/dod@1");
    // The example has the form of a result, but is none. One's own in that form is.
    let refused = client.submit(&example);
    assert_eq!(refused["isError"], true);
    assert!(words(&refused).contains("C0116"), "{}", words(&refused));
    let mut own = example;
    own["result"]["recommendation"] = json!("Go on with the search");
    let answer = client.submit(&own);
    assert_eq!(answer["isError"], false, "{}", words(&answer));
    let kept = read(&folder.path().join(".counterfoil/submissions.jsonl"), 0).unwrap().0;
    let contracts: Vec<(&str, Status)> =
        kept.iter().map(|one| (one.contract.as_str(), one.status)).collect();
    assert_eq!(
        contracts,
        [
            ("execution-loop/qa@1", Status::Accepted),
            ("execution-loop/qa@1", Status::Accepted),
            ("execution-loop/dod@1", Status::Absent),
            ("execution-loop/dod@1", Status::Accepted),
        ]
    );
}

#[test]
fn a_project_binds_contracts_to_its_agents() {
    let folder = tempfile::tempdir().unwrap();
    let own = "contract: acme/check\nversion: 3\nfields: { ok: boolean }";
    write(folder.path(), "contracts/check.yaml", own);
    write(
        folder.path(),
        "counterfoil.toml",
        "[agents.tester]\ncontract = \"acme/check\"\n[agents.other]\ncontract = \"acme/check@3\"\n[agents.claude]\nmodel = \"m\"\n",
    );
    let mut client = Client::greet(&["--contracts", "contracts"], folder.path());
    // The same contract twice is one.
    assert_eq!(
        client.submit(&json!({"ok": true}))["structuredContent"]["contract"],
        "acme/check@3"
    );
}

#[test]
fn what_cannot_be_served_is_said_before_the_protocol_begins() {
    let folder = tempfile::tempdir().unwrap();
    let words = refused(&[], folder.path());
    assert!(
        words.contains("name one with --contract ID, or bind one to an agent in counterfoil.toml"),
        "{words}"
    );
    let words = refused(&["--contract", "execution-loop/aq"], folder.path());
    assert!(words.contains("did you mean 'execution-loop/qa'?"), "{words}");
    write(folder.path(), "counterfoil.toml", "[agents.tester]\ncontract = \"acme/none\"\n");
    let words = refused(&[], folder.path());
    assert!(words.contains("the contract of agent 'tester' in counterfoil.toml"), "{words}");
    let words = refused(&["--session", "none.json"], folder.path());
    assert!(words.contains("none.json cannot be read"), "{words}");
    write(folder.path(), "session.json", "{\"contract\": 1}");
    let words = refused(&["--session", "session.json"], folder.path());
    assert!(words.contains("session.json is not a session file"), "{words}");
    let words = refused(&["--session", "session.json", "--contract", "a/b"], folder.path());
    assert!(words.contains("cannot be used with"), "{words}");
}

#[test]
fn a_session_may_know_more_than_the_server_does() {
    let folder = tempfile::tempdir().unwrap();
    let submissions = folder.path().join("s.jsonl");
    let session = json!({
        "contract": packed("execution-loop/qa"), "target": "gemini", "submissions": submissions, "later": {"more": 1},
    });
    write(folder.path(), "session.json", &session.to_string());
    let mut client = Client::greet(&["--session", "session.json"], folder.path());
    assert_eq!(client.submit(&good())["isError"], false);
    assert_eq!(read(&submissions, 0).unwrap().0.len(), 1);
}
