//! Commands that ask a server (`--server URL`): what they print, what they change, and whom they trust.

use super::client::TestServer;
use crate::PROGRAM;
use crate::runs::project::WorkflowProject;
use counterfoil_testkit::{TIMEOUT, TestProject, wait_until};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

const APPROVE: &str = "
workflow: approve
agents: { worker: { contract: scene/step, prompt: Do it. } }
contracts: [contracts]
start: approve
states:
  approve:
    ask: { question: \"Shall it go out?\", choices: [proceed, reject] }
    next:
      - { when: result.answer == \"proceed\", go: work }
      - { go: rejected, reason: \"'somebody said no'\" }
  work: { agent: worker, go: done }
  done: { end: done }
  rejected: { end: blocked }
";
const WORKS: &str = "replies: [{ agent: worker, text: '{\"ok\": true}' }]\n";

/// A run that waits until there is a file `go`, but not forever.
const WAIT: &str = "
workflow: wait
start: work
states:
  work: { command: [sh, -c, 'for i in $(seq 600); do [ -e go ] && exit; sleep 0.1; done'], go: done }
  done: { end: done }
";

/// A project with a run that waits for an answer, its server, and the address of the server.
fn waiting() -> (WorkflowProject, TestServer, String) {
    let project = WorkflowProject::new(APPROVE, WORKS);
    project.run_workflow();
    let server = TestServer::start(&project, &["serve", "--port", "0"]);
    let url = format!("http://{}", server.address);
    (project, server, url)
}

/// Asserts that a command prints the same with a server and without it, but for the option.
#[track_caller]
fn assert_same(project: &TestProject, url: &str, arguments: &[&str]) {
    let here = project.run(arguments);
    let mut there = project.run(&[arguments, &["--server", url]].concat());
    there.stdout = there.stdout.replace(&format!(" --server {url}"), "");
    assert_eq!(there, here, "{arguments:?}");
    assert!(here.is_success() && !here.stdout.is_empty(), "{arguments:?}: {here:?}");
}

/// Every way to look at runs that a server offers.
#[track_caller]
fn assert_all_same(project: &TestProject, url: &str) {
    for arguments in [
        &["runs"][..],
        &["runs", "--format", "json"],
        &["runs", "--limit", "1", "--format", "json"],
        &["show"],
        &["show", "last", "--format", "json"],
        &["show", "last", "--trouble"],
        &["show", "last", "--trouble", "--format", "json"],
        &["show", "last", "--claims"],
        &["show", "last", "--claims", "--format", "json"],
        &["show", "last", "--events"],
        &["show", "last", "--follow"],
    ] {
        assert_same(project, url, arguments);
    }
}

#[test]
fn a_server_shows_what_the_folder_shows() {
    let (project, _server, url) = waiting();
    project.run_workflow();
    assert_all_same(&project, &url);
    assert_same(&project, &url, &["show", "last", "--timeline"]);
    assert_same(&project, &url, &["answer"]);
    assert_same(&project, &url, &["answer", "--format", "json"]);
    assert_same(&project, &url, &["answer", "last"]);
    project.run_json(&["answer", "last", "approve", "proceed", "--resume", "--format", "json"]);
    assert_all_same(&project, &url);
    assert_same(&project, &url, &["show", "last", "work", "--claims"]);
    // The name of this machine leads to the server, too.
    let named = url.replace("127.0.0.1", "localhost") + "/";
    assert!(project.run(&["runs", "--server", &named]).is_success());
}

#[test]
fn an_answer_is_given_through_a_server() {
    let (project, _server, url) = waiting();
    let words = project.run_refused(&["answer", "last", "aprove", "proceed", "--server", &url]);
    assert!(words.contains("'aprove' is not open") && words.contains("open: approve"), "{words}");
    let words = project.run_refused(&["answer", "last", "approve", "procede", "--server", &url]);
    assert!(words.contains("'procede'") && words.contains("one of proceed, reject"), "{words}");
    let words = project.run_refused(&["answer", "last", "proceed", "--server", &url]);
    assert!(words.contains("'proceed' is not an open question of run"), "{words}");
    assert!(words.contains(&format!(" approve proceed --resume --server {url}")), "{words}");
    let answered = project.run(&["answer", "last", "approve", "proceed", "now", "--server", &url]);
    answered.expect(0, &["the answer is recorded; no process drives", "counterfoil resume"]);
    assert_eq!(project.show_last()["questions"], json!([]));
    let words = project.run_refused(&["answer", "last", "approve", "reject", "--server", &url]);
    assert!(words.contains("'approve' is not open"), "{words}");
    let events = project.events();
    let answer = events.iter().find(|event| event["kind"] == "answered").unwrap();
    assert_eq!(answer["answer"], "proceed: now");
    assert_eq!(answer["by"], "kim");
}

#[test]
fn an_answer_can_continue_the_run_there() {
    let (project, _server, url) = waiting();
    let answered =
        project.run(&["answer", "last", "approve", "proceed", "--resume", "--server", &url]);
    answered.expect(0, &["answer recorded; ", "done"]);
    // It prints what the process that drives the run prints: nothing from before the answer, and all
    // of it to stderr.
    assert_eq!(answered.stdout, "");
    assert_eq!(project.show_last()["outcome"], "done");
}

#[test]
fn an_answer_that_continues_the_run_there_has_the_exit_code_of_the_run() {
    let (project, _server, url) = waiting();
    let answer = ["answer", "last", "approve", "reject", "--resume", "--format", "json"];
    let answered = project.run(&[&answer[..], &["--server", url.as_str()]].concat());
    answered.expect(7, &["answer recorded; "]);
    let report = answered.json();
    assert_eq!(
        (&report["outcome"], &report["reason"]),
        (&json!("blocked"), &json!("somebody said no")),
        "{report}"
    );
    assert_eq!(report, project.show_last());
}

#[test]
fn a_run_that_fails_at_once_after_an_answer_is_no_error_of_the_server() {
    let workflow = APPROVE.replace("rejected: { end: blocked }", "rejected: { end: failed }");
    let project = WorkflowProject::new(&workflow, WORKS);
    project.run_workflow();
    let server = TestServer::start(&project, &["serve", "--port", "0"]);
    let url = format!("http://{}", server.address);
    let answered =
        project.run(&["answer", "last", "approve", "reject", "--resume", "--server", &url]);
    answered.expect(1, &["answer recorded; ", "somebody said no"]);
}

#[test]
fn an_altered_run_has_the_exit_code_that_it_has_where_it_is() {
    let (project, _server, url) = waiting();
    let sql = rusqlite::Connection::open(project.state().join("journal.db")).unwrap();
    sql.execute_batch("UPDATE runs SET outcome = 'blocked'").unwrap();
    drop(sql);
    for more in [&[][..], &["--server", url.as_str()]] {
        project.run(&[&["runs"][..], more].concat()).expect(9, &["altered"]);
    }
}

#[test]
fn a_run_is_cancelled_through_a_server() {
    let (project, _server, url) = waiting();
    project.run(&["cancel", "last", "--server", &url]).expect(0, &["cancelled"]);
    assert_eq!(project.show_last()["outcome"], "cancelled");
    project.run_refused(&["cancel", "last", "--server", &url]);
    let words = project.run_refused(&["cancel", "nothing", "--server", &url]);
    assert!(words.contains("nothing"), "{words}");
}

#[test]
fn a_server_that_only_shows_runs_changes_none() {
    let project = WorkflowProject::new(APPROVE, WORKS);
    project.run_workflow();
    let server = TestServer::start(&project, &["serve", "--port", "0", "--read-only"]);
    let url = format!("http://{}", server.address);
    for command in [&["cancel", "last"][..], &["answer", "last", "approve", "proceed"]] {
        let words = project.run_refused(&[command, &["--server", url.as_str()]].concat());
        assert!(words.contains("only shows runs"), "{words}");
    }
    assert_eq!(project.show_last()["outcome"], "waiting");
}

#[test]
fn a_run_is_followed_until_it_ends() {
    let project = WorkflowProject::new(WAIT, "");
    let run = project.start(&["run", "flow.yaml"]);
    wait_until(TIMEOUT, "the run has begun", || {
        let runs = project.run(&["runs", "--format", "json"]);
        (runs.is_success() && runs.json()[0]["outcome"] == "running").then_some(())
    });
    let server = TestServer::start(&project, &["serve", "--port", "0"]);
    let url = format!("http://{}", server.address);
    let follower = project.start(&["show", "last", "--follow", "--server", &url]);
    project.write("go", "");
    run.wait().expect(0, &[]);
    let mut followed = follower.wait();
    followed.stdout = followed.stdout.replace(&format!(" --server {url}"), "");
    assert_eq!(followed, project.run(&["show", "last", "--follow"]));
}

#[test]
fn a_token_of_another_server_is_refused_and_not_printed() {
    let project = WorkflowProject::new(APPROVE, WORKS);
    project.run_workflow();
    let path = project.write("token", TOKEN);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let server = TestServer::start(&project, &["serve", "--port", "0", "--token-file", "token"]);
    let url = format!("http://{}", server.address);
    let asked = |token: Option<&str>| {
        let mut command = project.command(&["runs", "--server", &url]);
        if let Some(token) = token {
            command.env("COUNTERFOIL_SERVER_TOKEN", token);
        }
        command.output()
    };
    asked(Some(TOKEN)).expect(0, &["approve"]);
    asked(None).expect(2, &["needs a token", "COUNTERFOIL_SERVER_TOKEN"]);
    let wrong = TOKEN.replace('0', "9");
    let refused = asked(Some(&wrong));
    refused.expect(2, &["does not accept the token", "COUNTERFOIL_SERVER_TOKEN"]);
    assert!(!refused.stderr.contains(&wrong), "{refused:?}");
    let broken = asked(Some("two words"));
    broken.expect(2, &["is not a token"]);
    assert!(!broken.stderr.contains("two words"), "{broken:?}");
}

#[test]
fn without_a_server_it_says_how_to_start_one() {
    let project = TestProject::new(PROGRAM);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    for command in [&["runs"][..], &["show"], &["answer", "last", "a", "b"], &["cancel", "last"]] {
        let words = project.run_refused(&[command, &["--server", url.as_str()]].concat());
        let expected = format!("no server answers at {url}; start one with `counterfoil serve`");
        assert!(words.contains(&expected), "{words}");
    }
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let project = TestProject::new(PROGRAM);
    let url = "http://127.0.0.1:9";
    for more in [["--state", "x"], ["--repo", "x"]] {
        for command in ["runs", "show"] {
            let arguments = [&[command, "--server", url][..], &more].concat();
            let words = project.run_refused(&arguments);
            assert!(words.contains("--server"), "{words}");
        }
    }
    let words = project.run_refused(&["show", "last", "work", "--reply", "--server", url]);
    assert!(words.contains("a step is only shown where its run is"), "{words}");
    for url in ["127.0.0.1:4173", "ftp://127.0.0.1", "http://127.0.0.1:4173/runs"] {
        let words = project.run_refused(&["runs", "--server", url]);
        assert!(words.contains("is not the address of a server"), "{words}");
    }
}

/// The error of `runs` or another command that asks a server with this answer.
#[track_caller]
fn refused_with(project: &TestProject, command: &[&str], answer: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = answer.to_owned();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() > 0 {
            request.push(byte[0]);
        }
        stream.write_all(answer.as_bytes()).unwrap();
        String::from_utf8(request).unwrap()
    });
    let words = project.run_refused(&[command, &["--server", url.as_str()]].concat());
    let request = server.join().unwrap();
    assert!(!request.to_lowercase().contains("authorization"), "{request}");
    words
}

fn answer(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

#[test]
fn what_a_server_says_is_not_trusted() {
    let project = TestProject::new(PROGRAM);
    let elsewhere =
        "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n";
    let words = refused_with(&project, &["runs"], elsewhere);
    assert!(words.contains("leads to another address"), "{words}");
    let words = refused_with(&project, &["runs"], &answer("200 OK", "<html>"));
    assert!(words.contains("is it a Counterfoil server"), "{words}");
    let words = refused_with(&project, &["runs"], &answer("500 Oh", "<html>"));
    assert!(words.contains("status 500"), "{words}");
    let problem = json!({"detail": "\u{1b}]0;title\u{7}\nerror: \u{202e}x", "code": "request"});
    let words = refused_with(&project, &["show"], &answer("400 Bad Request", &problem.to_string()));
    assert!(!words.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{words:?}");
    let named = json!({"run": "x; touch y", "outcome": "done", "driven": false});
    let words = refused_with(&project, &["show"], &answer("200 OK", &named.to_string()));
    assert!(words.contains("an id that none has"), "{words}");
}
