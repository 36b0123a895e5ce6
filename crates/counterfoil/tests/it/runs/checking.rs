//! `workflow check` and `explain`: all findings at once, each with its place and a fix.

use crate::runs::project::{WorkflowProject, one_step};

const WRONG: &str = "workflow: wrong
agents: { worker: { contract: scene/step, prompt: \"Do {{ what }}.\" } }
contracts: [contracts]
start: work
states:
  work:
    agent: worker
    next:
      - { when: result.okay, go: done }
      - { when: result.ok, go: dnoe }
  done: { end: done }
";

/// Every name is right, and the machine is not.
const LOST: &str = "workflow: lost
agents: { worker: { contract: scene/step, prompt: Do it. } }
contracts: [contracts]
start: work
states:
  work:
    agent: worker
    next:
      - { when: result.ok, go: done }
      - { when: 'has(result.note) && result.note == \"again\"', go: work }
  done: { end: done }
  lost: { end: done }
";

#[test]
fn a_workflow_that_holds_together() {
    let project = WorkflowProject::new(&one_step(""), "");
    insta::assert_snapshot!("holds", project.snapshot(&["workflow", "check", "flow.yaml"]));
    let checked = project.run_json(&["workflow", "check", "flow.yaml", "--format", "json"]);
    assert_eq!(checked.code, Some(0));
    assert_eq!(checked.report["ok"], true);
    assert_eq!(checked.report["workflows"][0]["findings"].as_array().unwrap().len(), 0);
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let project = WorkflowProject::new(WRONG, "");
    insta::assert_snapshot!("wrong", project.snapshot(&["workflow", "check", "flow.yaml"]));
}

#[test]
fn a_machine_that_cannot_work_is_found_before_it_runs() {
    let project = WorkflowProject::new(LOST, "");
    insta::assert_snapshot!("lost", project.snapshot(&["workflow", "check", "flow.yaml"]));
}

#[test]
fn every_finding_has_a_code_a_place_a_message_and_a_hint() {
    let project = WorkflowProject::new(WRONG, "");
    project.write("good.yaml", one_step(""));
    let checked =
        project.run_json(&["workflow", "check", "flow.yaml", "good.yaml", "--format", "json"]);
    assert_eq!(checked.code, Some(1));
    assert_eq!(checked.report["ok"], false);
    let workflows = checked.report["workflows"].as_array().unwrap();
    assert_eq!((&workflows[0]["ok"], &workflows[1]["ok"]), (&false.into(), &true.into()));
    let findings = workflows[0]["findings"].as_array().unwrap();
    let mut codes: Vec<&str> =
        findings.iter().map(|finding| finding["code"].as_str().unwrap()).collect();
    codes.sort_unstable();
    codes.dedup();
    for code in ["F0201", "F0301", "F0501"] {
        assert!(codes.contains(&code), "{code} in {codes:?}");
    }
    for finding in findings {
        assert!(finding["file"].as_str().unwrap().ends_with("flow.yaml"), "{finding}");
        assert!(finding["span"]["line"].as_u64().unwrap() >= 1, "{finding}");
        assert!(!finding["message"].as_str().unwrap().is_empty(), "{finding}");
        assert!(!finding["hint"].as_str().unwrap().is_empty(), "{finding}");
    }
    let unknown = findings.iter().find(|finding| finding["code"] == "F0201").unwrap();
    assert_eq!(unknown["span"]["line"], 10);
    assert!(unknown["hint"].as_str().unwrap().contains("done"), "{unknown}");
}

#[test]
fn a_finding_can_be_explained() {
    let project = WorkflowProject::new(WRONG, "");
    let output = project.command(&["explain", "F0401"]).output();
    assert_eq!(output.code, Some(0));
    let text = output.stdout + &output.stderr;
    assert!(text.contains("F0401: the transitions do not cover every case"), "{text}");
    let words = project.run_refused(&["explain", "F9999"]);
    assert!(words.contains("F9999"), "{words}");
}

#[test]
fn a_file_that_is_not_there_is_a_wrong_question() {
    let project = WorkflowProject::new(WRONG, "");
    let words = project.run_refused(&["workflow", "check", "nowhere.yaml"]);
    assert!(words.contains("nowhere.yaml"), "{words}");
}

#[test]
fn the_example_of_the_docs_passes_and_runs() {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/deliver");
    let project = WorkflowProject::new("", "");
    let file = examples.join("deliver.yaml");
    let checked =
        project.run_json(&["workflow", "check", file.to_str().unwrap(), "--format", "json"]);
    assert_eq!(checked.code, Some(0), "{}", checked.report);
    let script = format!("script:{}", examples.join("script.yaml").display());
    let ran = project.run_json(&[
        "run",
        file.to_str().unwrap(),
        "--task",
        "Add a login page",
        "--agent",
        &script,
        "--format",
        "json",
    ]);
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(
        ran.attempts(),
        ["implement#1 accepted", "qa#1 accepted", "implement#2 accepted", "qa#2 accepted"]
    );
}
