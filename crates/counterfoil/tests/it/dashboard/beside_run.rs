//! `--ui`: the dashboard that the process of a run serves.

use super::client::{TestServer, send};
use crate::PROGRAM;
use counterfoil_testkit::{RunningCommand, TIMEOUT, TestProject, send_signal, wait_until};
use serde_json::Value;
use std::net::TcpListener;
use std::path::PathBuf;

/// Waits until there is a file `go`, but not forever, and ends with an exit code of its own.
const WAIT: &str = "
workflow: wait
start: work
states:
  work:
    command: [sh, -c, 'touch begun; for i in $(seq 600); do [ -e go ] && exit; sleep 0.1; done']
    go: stuck
  stuck: { end: blocked }
";

/// Asks a person, and is done.
const ASK: &str = "
workflow: ask
start: approve
states:
  approve: { ask: { question: \"Shall it go out?\", choices: [proceed, reject] }, go: done }
  done: { end: done }
";

const RUN: [&str; 4] = ["run", "flow.yaml", "--ui", "--no-open"];

fn project(workflow: &str) -> TestProject {
    let project = TestProject::new(PROGRAM).with_env("USER", "kim");
    project.write("flow.yaml", workflow);
    project
}

/// A pack in the current folder whose agent waits until there is a file `go`, but not forever.
fn write_pack(project: &TestProject) {
    project.write(
        "small/workflow.yaml",
        "workflow: small\nsummary: Says something\ninputs: { task: string }\n\
         agents: { worker: { contract: execution-loop/qa, prompt: \"{{ task }}\" } }\n\
         start: work\nstates:\n  work: { agent: worker, go: stuck }\n  stuck: { end: blocked }\n",
    );
    let go = project.path("go");
    project.write(
        "small/demo/script.yaml",
        format!(
            "replies:\n  - agent: worker\n    \
             exec: \"for i in $(seq 600); do [ -e '{}' ] && exit; sleep 0.1; done\"\n    \
             text: '{{\"dod_achieved\": false, \"checks\": [], \"fix_info\": \"no\"}}'\n",
            go.display()
        ),
    );
    project.write("small/demo/demo.yaml", "task: Say it\nabout: It waits.\nends: blocked\n");
    project.write("small/demo/repo/a.txt", "a\n");
}

/// The run to whose page the printed link leads.
#[track_caller]
fn run_of(server: &TestServer) -> String {
    server.link.split_once("&run=").unwrap().1.to_owned()
}

/// The run is at work, its page is there, and the printed link leads to it.
#[track_caller]
fn assert_shown(project: &TestProject, server: &TestServer) {
    let run = run_of(server);
    let shown = server.get(project, &format!("/api/v1/runs/{run}")).json();
    assert_eq!(shown["outcome"], "running", "{shown}");
    assert_eq!(shown["driven"], true, "{shown}");
    let page = server.get(project, &format!("/runs/{run}"));
    assert_eq!(page.status, 200, "{page:?}");
    let signed_in = server.send("GET", &server.link, &[], "");
    assert_eq!(signed_in.status, 200, "{signed_in:?}");
    assert!(signed_in.body.contains(&format!("url=/runs/{run}\"")), "{signed_in:?}");
}

#[test]
fn a_run_is_shown_while_it_is_driven_and_gives_the_exit_code() {
    let project = project(WAIT);
    let server = TestServer::start(&project, &RUN);
    assert_shown(&project, &server);
    let token = server.token_file(&project);
    assert!(token.exists());
    project.write("go", "");
    // Nobody could press Ctrl-C here, so it ends with the run.
    let output = server.wait();
    assert_eq!(output.code, Some(7), "{output:?}");
    assert!(!output.stderr.contains("stays open"), "{output:?}");
    assert!(!token.exists());
}

#[test]
fn a_run_that_is_resumed_is_shown_as_well() {
    let project = project(WAIT);
    let server = TestServer::start(&project, &RUN);
    wait_until(TIMEOUT, "the step begins", || project.path("begun").exists().then_some(()));
    // The first signal stops the run, and the dashboard goes with it.
    let output = server.end("INT");
    assert_eq!(output.code, Some(130), "{output:?}");
    let server = TestServer::start(&project, &["resume", "last", "--ui", "--no-open"]);
    assert_shown(&project, &server);
    project.write("go", "");
    assert_eq!(server.wait().code, Some(7));
}

#[test]
fn the_browser_is_opened_at_the_page_of_the_run() {
    let project = project(WAIT);
    let script = "echo \"$*\" > opened.part; mv opened.part opened";
    let browser = project.write_program("browser", script);
    let mut command = project.command(&["run", "flow.yaml", "--ui"]);
    let server = TestServer::start_command(&project, command.env("BROWSER", &browser));
    let opened = wait_until(TIMEOUT, "the browser is called", || {
        Some(project.read_or_empty("opened")).filter(|text| !text.is_empty())
    });
    assert_eq!(opened.trim_end(), format!("http://{}{}", server.address, server.link));
    project.write("go", "");
    assert_eq!(server.wait().code, Some(7));
}

#[test]
fn a_port_that_is_in_use_is_refused_before_there_is_a_run() {
    let project = project(WAIT);
    write_pack(&project);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let port = ["--port", address.rsplit_once(':').unwrap().1];
    for command in [&RUN[..], &["demo", "./small", "--ui", "--no-open", "--keep", "kept"]] {
        let words = project.run_refused(&[command, &port].concat());
        assert!(words.contains(&format!("cannot listen at {address}")), "{command:?}: {words}");
    }
    for state in [project.state().to_owned(), project.path("kept/.counterfoil")] {
        assert!(!state.join("journal.db").exists(), "{}", state.display());
    }
    assert!(!project.path("begun").exists());
    assert!(!project.data().join("counterfoil/servers").exists());
}

#[test]
fn the_options_of_the_dashboard_need_it() {
    let project = project(WAIT);
    for command in [&["run", "flow.yaml"][..], &["resume", "last"], &["demo"]] {
        for option in [&["--no-open"][..], &["--port", "1"]] {
            let words = project.run_refused(&[command, option].concat());
            assert!(words.contains("--ui"), "{command:?} {option:?}: {words}");
        }
    }
    let words = project.run_refused(&["demo", "contracts", "--ui"]);
    assert!(words.contains("--ui"), "{words}");
}

/// A server acts for anyone who asks it, so nothing that a run started may start one.
#[test]
fn no_dashboard_is_started_inside_of_an_attempt() {
    let project = project(WAIT);
    write_pack(&project);
    for arguments in [&RUN[..], &["demo", "./small", "--ui", "--no-open", "--keep", "kept"]] {
        let mut command = project.command(arguments);
        let output = command.env("COUNTERFOIL_ATTEMPT", "run/1").output();
        assert_eq!(output.code, Some(2), "{output:?}");
        assert!(output.stderr.contains("is refused inside of an attempt"), "{output:?}");
    }
    assert!(!project.data().join("counterfoil/servers").exists());
}

/// The process drives runs: a process that it starts would count as started by one.
#[test]
fn the_dashboard_of_a_run_resumes_none() {
    let project = project(WAIT);
    let server = TestServer::start(&project, &RUN);
    let path = format!("/api/v1/runs/{}/resume", run_of(&server));
    let refused = server.post(&project, &path, &[], &serde_json::json!({}));
    assert_eq!((refused.status, refused.json()["code"].as_str()), (403, Some("not-allowed")));
    assert!(refused.body.contains("counterfoil resume"), "{refused:?}");
    project.write("go", "");
    assert_eq!(server.wait().code, Some(7));
}

#[test]
fn a_demo_is_shown_while_it_runs() {
    let project = TestProject::new(PROGRAM);
    write_pack(&project);
    let demo = ["demo", "./small", "--ui", "--no-open", "--keep", "kept"];
    let server = TestServer::start(&project, &demo);
    assert_shown(&project, &server);
    project.write("go", "");
    let output = server.wait();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stderr.contains("Inspect it with:"), "{output:?}");
}

/// At a terminal the dashboard stays until Ctrl-C. An answer lets the same process go on.
#[test]
fn at_a_terminal_the_dashboard_stays_and_the_run_goes_on_when_it_is_answered() {
    let project = project(ASK);
    let line = format!("exec '{PROGRAM}' {}", RUN.join(" "));
    let mut command = project.command_of("script", &["-qefc", &line, "/dev/null"]);
    let terminal = project.start_command(command.env("TERM", "dumb"));
    let stays = |times: usize| {
        let printed = terminal.stdout_so_far();
        (printed.matches("The dashboard stays open").count() == times).then_some(())
    };
    wait_until(TIMEOUT, "the dashboard stays for the question", || stays(1));
    let folder = project.data().join("counterfoil/servers");
    let files = || std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let file = files().next().unwrap();
    let published: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let (_, port) = file.file_stem().unwrap().to_str().unwrap().rsplit_once('-').unwrap();
    let address = format!("127.0.0.1:{port}");
    let token = format!("Authorization: Bearer {}", published["token"].as_str().unwrap());
    let questions = "/api/v1/runs/last/questions";
    let asked = send(&address, "GET", questions, &[&token], "").json();
    let named = format!("If-Match: {}", asked["questions"][0]["etag"].as_str().unwrap());
    let headers = [token.as_str(), named.as_str(), "Content-Type: application/json"];
    let target = format!("{questions}/approve/answer");
    let answered = send(&address, "POST", &target, &headers, "{\"answer\": \"proceed\"}").json();
    let message = answered["message"].as_str().unwrap();
    assert!(message.starts_with("the answer is recorded; the process that "), "{message}");
    wait_until(TIMEOUT, "the dashboard stays after the end", || stays(2));
    assert_eq!(project.show_last()["outcome"], "done");
    send_signal("INT", &published["pid"].to_string());
    let output = terminal.wait();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(files().count(), 0);
}

/// Runs the workflow with its dashboard at a terminal, with these further words of a shell line, until
/// the dashboard stays for the question.
fn waiting_at_terminal(project: &TestProject, more: &str) -> RunningCommand {
    let line = format!("exec '{PROGRAM}' {} {more}", RUN.join(" "));
    let mut command = project.command_of("script", &["-qefc", &line, "/dev/null"]);
    let terminal = project.start_command(command.env("TERM", "dumb"));
    wait_until(TIMEOUT, "the dashboard stays for the question", || {
        (stays(&terminal) == 1).then_some(())
    });
    terminal
}

#[test]
fn a_run_that_another_process_ends_ends_the_wait_with_its_exit_code() {
    for (command, code, words) in [
        (&["cancel", "last"][..], 130, "cancelled"),
        (&["answer", "last", "approve", "reject", "--resume"], 7, "blocked"),
    ] {
        let project = project(&ASK.replace("end: done", "end: blocked"));
        let mut terminal = waiting_at_terminal(&project, "");
        project.run(command);
        wait_until(TIMEOUT, "the wait ends", || {
            // This process may be the one that goes on. Then its dashboard stays once more.
            let goes_on = stays(&terminal) == 2;
            if goes_on {
                interrupt(&project);
            }
            (goes_on || !terminal.is_running()).then_some(())
        });
        let output = terminal.wait();
        assert_eq!(output.code, Some(code), "{command:?}: {output:?}");
        assert!(output.stdout.contains(&format!("✗ {words}")), "{command:?}: {output:?}");
    }
}

#[test]
fn an_answer_through_the_server_of_a_run_follows_the_process_that_goes_on() {
    let project = project(ASK);
    let terminal = waiting_at_terminal(&project, "");
    let port = published(&project).file_stem().unwrap().to_str().unwrap().to_owned();
    let url = format!("http://127.0.0.1:{}", port.rsplit_once('-').unwrap().1);
    let answer = ["answer", "last", "approve", "proceed", "--resume", "--server", &url];
    let answered = project.run(&answer);
    answered.expect(0, &["the answer is recorded; the process that ", "✓ done"]);
    wait_until(TIMEOUT, "the dashboard stays", || (stays(&terminal) == 2).then_some(()));
    interrupt(&project);
    assert_eq!(terminal.wait().code, Some(0));
}

#[test]
fn a_run_that_is_answered_in_its_dashboard_has_one_report_for_programs() {
    let project = project(ASK);
    let terminal = waiting_at_terminal(&project, "--format json > out.json");
    assert_eq!(project.read("out.json"), "", "the run may go on");
    project.run(&["answer", "last", "approve", "proceed"]).expect(0, &[]);
    wait_until(TIMEOUT, "the dashboard stays after the end", || {
        (stays(&terminal) == 2).then_some(())
    });
    let report: Value = serde_json::from_str(&project.read("out.json")).unwrap();
    assert_eq!(report["outcome"], "done");
    interrupt(&project);
    assert_eq!(terminal.wait().code, Some(0));
}

#[test]
fn a_run_that_goes_on_waiting_is_reported_to_programs_when_the_dashboard_ends() {
    let project = project(ASK);
    let terminal = waiting_at_terminal(&project, "--format json > out.json");
    interrupt(&project);
    assert_eq!(terminal.wait().code, Some(4));
    let report: Value = serde_json::from_str(&project.read("out.json")).unwrap();
    assert_eq!(report["outcome"], "waiting");
}

/// How often the dashboard of a run stayed open.
fn stays(terminal: &RunningCommand) -> usize {
    terminal.stdout_so_far().matches("The dashboard stays open").count()
}

/// The file that the only server publishes.
#[track_caller]
fn published(project: &TestProject) -> PathBuf {
    let folder = project.data().join("counterfoil/servers");
    std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path()
}

/// Interrupts the only process with a dashboard.
#[track_caller]
fn interrupt(project: &TestProject) {
    let text = std::fs::read_to_string(published(project)).unwrap();
    let published: Value = serde_json::from_str(&text).unwrap();
    send_signal("INT", &published["pid"].to_string());
}
