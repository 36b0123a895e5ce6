//! What the engine knows of an attempt: fields that it fills in, and paths in the workspace.

use crate::runs::project::{WorkflowProject, replies};

const CONTRACT: &str = "
contract: scene/known
version: 1
fields: { file: path, run: string, flow: string, step: string, took_ms: count, at: timestamp }
filled:
  run: run.id
  flow: run.workflow
  step: run.step
  took_ms: run.duration_ms
  at: run.ended
examples: [{ file: src/list.rs, run: r, flow: f, step: s, took_ms: 1, at: \"2026-03-01T09:30:00Z\" }]
";

const FLOW: &str = "
workflow: known
agents: { worker: { contract: scene/known, prompt: Do it. } }
contracts: [contracts]
variables: { seen: string? }
artifacts:
  - { path: out.md, template: \"{{ seen | default('-', true) }}\\n\" }
start: work
states:
  work:
    agent: worker
    next:
      - { set: { seen: \"result.file + ' ' + result.run + ' ' + result.flow + ' ' + result.step\" }, go: done }
  done: { end: done }
";

fn project(texts: &[&str]) -> WorkflowProject {
    let project = WorkflowProject::new(FLOW, &replies(texts));
    project.write("contracts/known.yaml", CONTRACT);
    project
}

#[test]
fn fields_are_filled_in_and_not_asked_for() {
    let project = project(&[r#"text: '{"file": "a.rs"}'"#]);
    let ran = project.run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(project.read("out.md"), format!("a.rs {} known work\n", ran.run_id()));
    let prompt = project.prompt(&ran, "work_1.1");
    assert!(prompt.contains("`file`") && !prompt.contains("took_ms"), "{prompt}");
}

#[test]
fn another_value_is_sent_back() {
    let project =
        project(&[r#"text: '{"file": "a.rs", "run": "mine"}'"#, r#"text: '{"file": "a.rs"}'"#]);
    let ran = project.run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0));
    let prompt = project.prompt(&ran, "work_1.2");
    assert!(prompt.contains("leave out `run`: it is filled in"), "{prompt}");
}

#[test]
fn an_absolute_path_inside_the_workspace_becomes_relative() {
    let flow = project(&[]);
    let inside = flow.path("src/a.rs");
    flow.write(
        "script.yaml",
        replies(&[&format!("text: '{{\"file\": \"{}\"}}'", inside.display())]),
    );
    let ran = flow.run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(flow.read("out.md"), format!("src/a.rs {} known work\n", ran.run_id()));
}
