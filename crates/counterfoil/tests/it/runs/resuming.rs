//! Resuming and cancelling runs.

use crate::runs::project::{WorkflowProject, replies};

const TWO: &str = "
workflow: two
agents: { worker: { contract: scene/step, prompt: \"Do {{ run.state }}.\" } }
contracts: [contracts]
start: first
states:
  first: { agent: worker, go: second }
  second: { agent: worker, go: approve }
  approve: { ask: { question: \"Well?\", choices: [\"yes\", \"no\"] }, go: done }
  done: { end: done }
";

/// A run that was interrupted while its second step was at work: its process is killed as soon as
/// that step says so.
fn interrupted(project: &WorkflowProject) {
    let mut child = std::process::Command::new(crate::PROGRAM)
        .args(["run", "flow.yaml", "--format", "json", "--agent", "script:script.yaml"])
        .current_dir(project.path("."))
        .env("COUNTERFOIL_STATE", ".counterfoil")
        .env("XDG_DATA_HOME", project.data())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !project.path("at-work").exists() {
        assert!(std::time::Instant::now() < deadline, "the second step did not start");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

fn slow_second() -> WorkflowProject {
    let script = replies(&[
        "text: '{\"ok\": true, \"note\": \"one\"}'",
        "exec: 'touch at-work; test -e go-on || exec sleep 30', text: '{\"ok\": true, \"note\": \"two\"}'",
    ]);
    WorkflowProject::new(TWO, &script)
}

#[test]
fn completed_steps_never_run_again() {
    let project = slow_second();
    interrupted(&project);
    let shown = project.run_json(&["show", "last", "--format", "json"]);
    assert_eq!(shown.report["outcome"], "interrupted");
    assert_eq!(shown.report["state"], "second");
    project.write("go-on", "");
    let ran = project.run_json(&["resume", "last", "--format", "json"]);
    assert_eq!(ran.ended(), ("waiting", None, 4), "{}", ran.reason());
    assert_eq!(ran.run_id(), shown.run_id());
    assert_eq!(ran.attempts(), ["first#1 accepted", "second#1 cancelled", "second#2 accepted"]);
    assert_eq!(
        ran.report["attempts"][2]["value"]["note"], "two",
        "the reply that was not heard is played again"
    );
}

/// A contract with a claim about the changed files.
const CHANGES: &str = "
contract: scene/changes
version: 1
fields: { files_changed: [path] }
claims: { files_changed: { kind: files-changed } }
examples: [{ files_changed: [src/lib.rs] }]
";

#[test]
fn a_receipt_of_an_interrupted_run_is_not_a_change_of_its_step() {
    let workflow = "
workflow: changes
agents: { worker: { contract: scene/changes, prompt: \"Change it.\", repairs: 0 } }
contracts: [contracts]
start: work
states:
  work: { agent: worker, go: done }
  done: { end: done }
";
    let reply = r#"exec: 'touch at-work; test -e go-on || exec sleep 30', writes: { a.txt: "x\n" }, text: '{"files_changed": ["a.txt"]}'"#;
    let project = WorkflowProject::new(workflow, &replies(&[reply]));
    project.write("contracts/changes.yaml", CHANGES);
    project.write(".gitignore", ".counterfoil\nat-work\ngo-on\n");
    project.init_git();
    project.commit_all("base");
    interrupted(&project);
    let written = project.run(&["receipt", "last"]);
    written.expect(0, &["receipt-"]);
    assert!(!written.stderr.contains("count as changes"), "{written:?}");
    project.write("go-on", "");
    let ran = project.run_json(&["resume", "last", "--format", "json"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.reason());
    let claims = &ran.report["claims"];
    assert_eq!(claims["verified"].as_u64(), Some(1), "{claims}");
    assert_eq!(claims["refuted"].as_u64().unwrap_or(0), 0, "{claims}");
    let lost = project.events().into_iter().find(|event| event["kind"] == "attempt-lost").unwrap();
    assert!(!lost.to_string().contains("receipt-"), "{lost}");
}

#[test]
fn an_interrupted_run_can_be_cancelled_and_not_resumed() {
    let project = slow_second();
    interrupted(&project);
    let output = project.command(&["cancel", "last"]).output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let shown = project.run_json(&["show", "last", "--format", "json"]);
    assert_eq!(shown.report["outcome"], "cancelled");
    assert_eq!(shown.reason(), "interrupted, and then cancelled by kim");
    // When it was interrupted, and when and by whom it was cancelled.
    let attempt = &shown.report["attempts"][1];
    let interrupted = &shown.report["interrupted"];
    assert_eq!(interrupted.as_array().unwrap().len(), 1, "{interrupted}");
    assert_eq!(interrupted[0]["taken_up_by"], "kim");
    assert_eq!(interrupted[0]["taken_up_at"], attempt["ended_at"]);
    assert!(interrupted[0]["after"].as_i64() >= attempt["started_at"].as_i64(), "{interrupted}");
    let receipt = project.run_json(&["receipt", "last", "--format", "json"]);
    assert_eq!(&receipt.report["interrupted"], interrupted);
    assert_eq!(receipt.report["reason"], "interrupted, and then cancelled by kim");
    let page = project.run(&["show", "last"]).stdout;
    for text in [
        "taken up to be cancelled",
        "interrupted: the process that drove the run ended",
        "✗ cancelled in state 'second': interrupted, and then cancelled by kim",
        "interrupted: its process ended after ",
    ] {
        assert!(page.contains(text), "'{text}' is missing: {page}");
    }
    assert!(!page.contains("resumed") && !page.contains("again"), "{page}");
    project.run(&["runs"]).expect(0, &["interrupted, and then cancelled by kim"]);
    let words = project.run_refused(&["resume", "last"]);
    assert!(words.contains("ended as cancelled") && words.contains("start a new one"), "{words}");
    let words = project.run_refused(&["cancel", "last"]);
    assert!(words.contains("ended as cancelled"), "{words}");
}

#[test]
fn a_waiting_run_can_be_cancelled() {
    let project = WorkflowProject::new(TWO, &replies(&["text: '{\"ok\": true}'"; 2]));
    project.run_workflow();
    assert!(project.command(&["cancel", "last"]).output().is_success());
    assert_eq!(
        project.run_json(&["show", "last", "--format", "json"]).report["outcome"],
        "cancelled"
    );
}

#[test]
fn resume_last_goes_on_with_what_is_unfinished_and_else_starts_anew() {
    let project = WorkflowProject::new(TWO, &replies(&["text: '{\"ok\": true}'"; 2]));
    let first = project.run_workflow_with(&["--resume-last"]);
    assert_eq!(first.ended(), ("waiting", None, 4), "there was none, so it started one");
    let again = project.run_workflow_with(&["--resume-last"]);
    assert_eq!(again.run_id(), first.run_id());
    assert_eq!(again.attempts().len(), 2);
    let done =
        project.run_json(&["answer", "last", "approve", "yes", "--resume", "--format", "json"]);
    assert_eq!(done.ended(), ("done", None, 0));
    let fresh = project.run_workflow_with(&["--resume-last"]);
    assert_ne!(fresh.run_id(), first.run_id());
}

#[test]
fn a_resumed_run_can_have_other_agents() {
    let project = slow_second();
    interrupted(&project);
    project.write("agent.sh", "cat >/dev/null; echo '{\"ok\": true, \"note\": \"other\"}'");
    let ran =
        project.run_json(&["resume", "last", "--format", "json", "--agent", "command:sh agent.sh"]);
    assert_eq!(ran.ended(), ("waiting", None, 4), "{}", ran.reason());
    assert_eq!(ran.report["attempts"][2]["value"]["note"], "other");
    // And keeps them when it is taken up the next time.
    let ran =
        project.run_json(&["answer", "last", "approve", "yes", "--resume", "--format", "json"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.reason());
    let events = project.snapshot(&["show", "last", "--events"]);
    let resumed: Vec<&str> = events.lines().filter(|line| line.contains("run-resumed")).collect();
    assert!(resumed[0].contains("command:sh agent.sh"), "{resumed:?}");
    assert!(!resumed[1].contains("agents"), "nothing changed: {resumed:?}");
}

#[test]
fn another_script_is_played_from_its_beginning() {
    let project = slow_second();
    interrupted(&project);
    project.write("other.yaml", replies(&["text: '{\"ok\": true, \"note\": \"other\"}'"]));
    let resume = ["resume", "last", "--format", "json", "--agent", "script:other.yaml"];
    let ran = project.run_json(&resume);
    assert_eq!(ran.ended(), ("waiting", None, 4), "{}", ran.reason());
    assert_eq!(ran.report["attempts"][2]["value"]["note"], "other");
}

#[test]
fn a_run_keeps_the_files_it_began_with() {
    let project = WorkflowProject::new(TWO, &replies(&["text: '{\"ok\": true}'"; 2]));
    project.run_workflow();
    project.write("flow.yaml", "this is no workflow any more");
    std::fs::remove_dir_all(project.path("contracts")).unwrap();
    let ran =
        project.run_json(&["answer", "last", "approve", "yes", "--resume", "--format", "json"]);
    assert_eq!(ran.ended(), ("done", None, 0));
}
