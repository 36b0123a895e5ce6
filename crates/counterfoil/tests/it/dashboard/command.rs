//! `ui` and `serve` as commands: what they refuse, what they print and write, and how they end.

use super::client::TestServer;
use crate::PROGRAM;
use crate::runs::undoing::blocked;
use counterfoil_testkit::{TIMEOUT, TestProject, wait_until};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Asks a person, and then waits until there is a file `go`, but not forever.
const ASK_AND_WAIT: &str = "
workflow: ask
start: approve
states:
  approve: { ask: { question: \"Shall it go out?\", choices: [proceed, reject] }, go: work }
  work:
    command: [sh, -c, 'for i in $(seq 600); do [ -e go ] && exit; sleep 0.1; done']
    go: done
  done: { end: done }
";

/// A project with a run that waits for an answer.
fn waiting() -> (TestProject, String) {
    let project = TestProject::new(PROGRAM).with_env("USER", "kim");
    project.write("flow.yaml", ASK_AND_WAIT);
    let ran = project.run_json(&["run", "flow.yaml", "--format", "json"]);
    assert_eq!(ran.ended(), ("waiting", None, 4), "{ran:?}");
    let run = ran.run_id().to_owned();
    (project, run)
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_port_that_is_in_use_is_named() {
    let project = TestProject::new(PROGRAM);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let port = address.rsplit_once(':').unwrap().1;
    for command in [&["serve", "--port", port][..], &["ui", "--no-open", "--port", port]] {
        let words = project.run_refused(command);
        assert!(words.contains(&format!("cannot listen at {address}")), "{command:?}: {words}");
        assert!(words.contains("in use"), "{command:?}: {words}");
    }
    // Nothing was published for a server that never listened.
    assert!(!project.data().join("counterfoil/servers").exists());
}

#[test]
fn an_address_that_others_can_reach_needs_a_token_file() {
    let project = TestProject::new(PROGRAM);
    for host in ["0.0.0.0", "::", "192.0.2.1", "::ffff:192.0.2.1"] {
        let words = project.run_refused(&["serve", "--port", "0", "--host", host]);
        assert!(words.contains("--token-file"), "{host}: {words}");
    }
    let words = project.run_refused(&["serve", "--port", "0", "--host", "somewhere"]);
    assert!(words.contains("--host"), "{words}");
    project.run_refused(&["serve", "--read-only", "--allow-start"]);
}

#[test]
fn a_token_file_must_be_private_and_have_a_long_token() {
    let project = TestProject::new(PROGRAM);
    let path = project.write("token", format!("{TOKEN}\n"));
    let serve = ["serve", "--port", "0", "--token-file", "token"];
    for open in [0o640, 0o604, 0o660, 0o620, 0o644] {
        set_mode(&path, open);
        let words = project.run_refused(&serve);
        assert!(words.contains("other users") && words.contains("chmod 600"), "{open:o}: {words}");
        assert!(!words.contains(TOKEN), "{words}");
    }
    set_mode(&path, 0o600);
    for token in ["", "\n", "short", &TOKEN[1..], "0123456789abcdef 0123456789abcdef", "\u{e9}"] {
        project.write("token", token.repeat(if token == "\u{e9}" { 40 } else { 1 }));
        let words = project.run_refused(&serve);
        assert!(words.contains("at least 32"), "{token:?}: {words}");
        assert!(token.trim().is_empty() || !words.contains(token), "{words}");
    }
    project.write("token", "x".repeat(5000));
    assert!(project.run_refused(&serve).contains("not a file with a token"));
    let words = project.run_refused(&["serve", "--port", "0", "--token-file", "."]);
    assert!(words.contains("not a file with a token"), "{words}");
    let words = project.run_refused(&["serve", "--port", "0", "--token-file", "none"]);
    assert!(words.contains("cannot read none"), "{words}");
}

#[test]
fn a_token_of_ones_own_is_used_and_not_published() {
    let project = TestProject::new(PROGRAM);
    set_mode(&project.write("token", format!("{TOKEN}\n")), 0o600);
    let serve = ["serve", "--port", "0", "--token-file", "token"];
    let server = TestServer::start(&project, &serve);
    let authorization = format!("Authorization: Bearer {TOKEN}");
    assert_eq!(server.send("GET", "/api/v1/runs", &[&authorization], "").status, 200);
    assert!(!server.token_file(&project).exists());
    let output = server.end("TERM");
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(!output.stderr.contains(TOKEN), "{output:?}");
    assert!(project.path("token").exists());
}

#[test]
fn the_published_token_is_private_and_goes_with_the_server() {
    let project = TestProject::new(PROGRAM);
    for command in [&["serve", "--port", "0"][..], &["ui", "--no-open"]] {
        let server = TestServer::start(&project, command);
        let path = server.token_file(&project);
        assert_eq!(mode(&path), 0o600, "{command:?}");
        assert_eq!(mode(path.parent().unwrap()), 0o700, "{command:?}");
        let token = server.token(&project);
        assert_eq!(server.get(&project, "/api/v1/runs").status, 200);
        let wrong = format!("Authorization: Bearer {TOKEN}");
        for headers in [&[][..], &[wrong.as_str()], &["Authorization: Bearer "]] {
            let refused = server.send("GET", "/api/v1/runs", headers, "");
            assert_eq!(refused.status, 401, "{headers:?}: {refused:?}");
        }
        let output = server.end("TERM");
        assert_eq!(output.code, Some(0), "{output:?}");
        assert!(output.stdout.is_empty() && !output.stderr.contains(&token), "{output:?}");
        assert!(!path.exists(), "{command:?}");
    }
}

#[test]
fn the_printed_link_works_once() {
    let project = TestProject::new(PROGRAM);
    let server = TestServer::start(&project, &["serve", "--port", "0"]);
    let first = server.send("GET", &server.link, &[], "");
    assert_eq!(first.status, 200, "{first:?}");
    let cookie = first.header("set-cookie").unwrap().to_owned();
    assert!(cookie.starts_with(&format!("counterfoil-{}=", server.port())), "{cookie}");
    for part in ["httponly", "samesite=strict", "path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    assert_eq!(server.send("GET", "/", &[&cookie], "").status, 200);
    assert_eq!(server.send("GET", "/", &[], "").status, 401);
    assert_eq!(server.send("GET", &server.link, &[], "").status, 401);
}

#[test]
fn only_the_names_of_the_server_are_answered() {
    let project = TestProject::new(PROGRAM);
    let server =
        TestServer::start(&project, &["serve", "--port", "0", "--name", "Runs.Example.com"]);
    let port = server.port();
    for (host, status) in [
        (format!("runs.example.com:{port}"), 401),
        (format!("RUNS.EXAMPLE.COM:{port}"), 401),
        (format!("localhost:{port}"), 401),
        (format!("127.0.0.1:{port}"), 401),
        (format!("evil.example.com:{port}"), 421),
        ("localhost:1".to_owned(), 421),
        (String::new(), 421),
    ] {
        let header = format!("Host: {host}");
        let answer = server.send("GET", "/api/v1/runs", &[&header], "");
        assert_eq!(answer.status, status, "{host}: {answer:?}");
    }
}

/// Pages that are followed keep their connections open; a server ends all the same.
#[test]
fn a_signal_ends_a_server_that_is_followed() {
    let (project, run) = waiting();
    for signal in ["INT", "TERM", "HUP"] {
        for command in [&["serve", "--port", "0"][..], &["ui", "--no-open"]] {
            let server = TestServer::start(&project, command);
            let token = format!("Authorization: Bearer {}", server.token(&project));
            let path = format!("/live/runs/{run}");
            let mut page = server.open("GET", &path, &[&token], "");
            let mut first = [0; 200];
            page.read_exact(&mut first).unwrap();
            assert!(first.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&first));
            let output = server.end(signal);
            assert_eq!(output.code, Some(0), "{signal} {command:?}: {output:?}");
        }
    }
}

/// Clients without a token do not keep a server from ending.
#[test]
fn a_signal_ends_a_server_that_waits_for_the_end_of_a_request() {
    let project = TestProject::new(PROGRAM);
    for command in [&["serve", "--port", "0"][..], &["ui", "--no-open"]] {
        let server = TestServer::start(&project, command);
        let connect = || TcpStream::connect(format!("127.0.0.1:{}", server.port())).unwrap();
        let (_silent, mut half) = (connect(), connect());
        half.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n").unwrap();
        let path = server.token_file(&project);
        let output = server.end("INT");
        assert_eq!(output.code, Some(0), "{command:?}: {output:?}");
        assert!(!path.exists(), "{command:?}");
    }
}

#[test]
fn a_run_that_the_server_resumed_goes_on_without_it() {
    let (project, run) = waiting();
    let server = TestServer::start(&project, &["serve", "--port", "0"]);
    let questions = server.get(&project, &format!("/api/v1/runs/{run}/questions")).json();
    let etag = questions["questions"][0]["etag"].as_str().unwrap();
    let path = format!("/api/v1/runs/{run}/questions/approve/answer");
    let if_match = format!("If-Match: {etag}");
    let answered = server.post(&project, &path, &[&if_match], &json!({"answer": "proceed"}));
    assert_eq!(answered.status, 200, "{answered:?}");
    let resumed = server.post(&project, &format!("/api/v1/runs/{run}/resume"), &[], &json!({}));
    assert_eq!(resumed.status, 200, "{resumed:?}");
    assert_eq!(server.end("TERM").code, Some(0));
    let before = project.show_last();
    assert_eq!(before["outcome"], "running", "{before}");
    project.write("go", "");
    let ended = wait_until(TIMEOUT, "the run ends", || {
        let shown = project.show_last();
        (shown["outcome"] != "running").then_some(shown)
    });
    assert_eq!(ended["outcome"], "done", "{ended}");
    // What the process printed is for the user alone.
    let log = project.state().join("server").join(format!("{run}.log"));
    assert_eq!((mode(&log), mode(log.parent().unwrap())), (0o600, 0o700));
}

#[test]
fn a_run_that_was_undone_is_not_reopened() {
    let project = blocked();
    let server = TestServer::start(&project, &["serve", "--port", "0"]);
    let run = project.show_last()["run"].as_str().unwrap().to_owned();
    let page = server.get(&project, &format!("/runs/{run}"));
    assert!(page.body.contains("Try again"), "{page:?}");
    project.run(&["undo", &run]).expect(0, &["restored 1 file"]);
    project.write("open", "");
    let page = server.get(&project, &format!("/runs/{run}"));
    assert!(!page.body.contains("Try again"), "{page:?}");
    assert!(page.body.contains("Undone</strong> by kim"), "{page:?}");
    let shown = server.get(&project, &format!("/api/v1/runs/{run}")).json();
    assert_eq!((&shown["reopenable"], &shown["undone"][0]["by"]), (&json!(false), &json!("kim")));
    let listed = server.get(&project, "/api/v1/runs").json();
    assert_eq!(listed["runs"][0]["undone_by"], "kim");
    let refused = server.post(&project, &format!("/api/v1/runs/{run}/resume"), &[], &json!({}));
    assert_eq!((refused.status, refused.json()["code"].as_str()), (409, Some("refused")));
    assert!(refused.body.contains("was undone by kim"), "{refused:?}");
}

/// A run that somebody drives in a terminal does not notice a server that comes and goes.
#[test]
fn a_run_goes_on_when_a_server_ends() {
    let (project, run) = waiting();
    project.run(&["answer", &run, "approve", "proceed"]).expect(0, &[]);
    let driver = project.start(&["resume", &run, "--format", "json"]);
    let server = TestServer::start(&project, &["serve", "--port", "0"]);
    wait_until(TIMEOUT, "the server sees the driver", || {
        let shown = server.get(&project, &format!("/api/v1/runs/{run}")).json();
        (shown["driven"] == true).then_some(())
    });
    assert_eq!(server.end("INT").code, Some(0));
    project.write("go", "");
    let output = driver.wait();
    assert_eq!(output.code, Some(0), "{output:?}");
}

#[test]
fn a_server_starts_and_changes_only_what_it_may() {
    let (project, run) = waiting();
    let start = json!({"workflow": "flow.yaml", "inputs": {}});
    let cancel = format!("/api/v1/runs/{run}/cancel");
    let only_shows = TestServer::start(&project, &["serve", "--port", "0", "--read-only"]);
    for (path, body) in [(cancel.as_str(), &json!({})), ("/api/v1/runs", &start)] {
        let refused = only_shows.post(&project, path, &[], body);
        assert_eq!((refused.status, refused.json()["code"].as_str()), (403, Some("read-only")));
    }
    only_shows.end("TERM");
    for command in [&["serve", "--port", "0"][..], &["ui", "--no-open"]] {
        let server = TestServer::start(&project, command);
        let refused = server.post(&project, "/api/v1/runs", &[], &start);
        assert_eq!((refused.status, refused.json()["code"].as_str()), (403, Some("not-allowed")));
        server.end("TERM");
    }
    assert_eq!(project.show_last()["outcome"], "waiting");
    let starts = TestServer::start(&project, &["serve", "--port", "0", "--allow-start"]);
    let started = starts.post(&project, "/api/v1/runs", &[], &start);
    assert_eq!(started.status, 200, "{started:?}");
    wait_until(TIMEOUT, "the started run is listed", || {
        let listed = starts.get(&project, "/api/v1/runs").json();
        (listed["runs"].as_array().map(Vec::len) == Some(2)).then_some(())
    });
    let cancelled = starts.post(&project, &cancel, &[], &json!({}));
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
}

#[test]
fn a_state_folder_has_the_name_of_its_repository_however_it_is_given() {
    let (project, run) = waiting();
    let own = project.repo().file_name().unwrap().to_str().unwrap();
    let whole = project.state().display().to_string();
    for state in [".counterfoil", whole.as_str()] {
        let serve = ["serve", "--port", "0", "--read-only", "--state", state];
        let server = TestServer::start(&project, &serve);
        let listed = server.get(&project, "/api/v1/runs").json();
        assert_eq!(listed["runs"][0]["run"], run, "{state}: {listed}");
        assert_eq!(listed["runs"][0]["folder"], own, "{state}: {listed}");
        // Its command lines can be typed in any folder.
        let page = server.get(&project, &format!("/runs/{run}")).body;
        assert!(page.contains(&format!("counterfoil cancel {run} --state /")), "{state}: {page}");
    }
}

#[test]
fn ui_opens_the_link_that_it_prints() {
    let project = TestProject::new(PROGRAM);
    let script = "echo $$ $(cut -d' ' -f5 /proc/$$/stat) > group
        echo \"$*\" > opened.part; mv opened.part opened";
    let browser = project.write_program("browser", script);
    let mut command = project.command(&["ui"]);
    let server = TestServer::start_command(&project, command.env("BROWSER", &browser));
    let opened = wait_until(TIMEOUT, "the browser is called", || {
        Some(project.read_or_empty("opened")).filter(|text| !text.is_empty())
    });
    assert_eq!(opened.trim_end(), format!("http://{}{}", server.address, server.link));
    assert_eq!(server.send("GET", &server.link, &[], "").status, 200);
    // Ctrl-C goes to the process group of the command.
    let group = project.read_or_empty("group");
    let (pid, group) = group.trim_end().split_once(' ').unwrap();
    assert_eq!(pid, group, "the browser would end with the command");
}

/// A server acts for anyone who asks it, so nothing that a run started may start one.
#[test]
fn a_server_is_not_started_inside_of_an_attempt() {
    let project = TestProject::new(PROGRAM);
    for arguments in [&["serve", "--port", "0"][..], &["ui", "--no-open"]] {
        let mut command = project.command(arguments);
        let output = command.env("COUNTERFOIL_ATTEMPT", "run/1").output();
        assert_eq!(output.code, Some(2), "{output:?}");
        assert!(output.stderr.contains("is refused inside of an attempt"), "{output:?}");
    }
    assert!(!project.data().join("counterfoil/servers").exists());
}
