//! Artifacts: files that show the state of a run.

use crate::runs::project::{GOOD, WorkflowProject, replies};

const FLOW: &str = "
workflow: published
agents: { worker: { contract: scene/step, prompt: Do it. } }
contracts: [contracts]
variables: { note: string? }
artifacts:
  - { path: \"out/{{ run.workflow }}/STATUS.md\", template: \"{{ run.state }} {{ run.outcome }} {{ note | default('-', true) }}\\n\" }
  - { path: out/log.md, template: \"{{ run.from }} to {{ run.state }}\\n\", append: true }
start: work
states:
  work: { agent: worker, next: [{ set: { note: \"'it works'\" }, go: check }] }
  check: { agent: worker, go: done }
  done: { end: done }
";

#[test]
fn artifacts_are_rendered_after_each_transition() {
    let peeks = "exec: 'cat out/published/STATUS.md >> seen.md', text: '{\"ok\": true}'";
    let project = WorkflowProject::new(FLOW, &replies(&[peeks, peeks]));
    assert_eq!(project.run_workflow().ended(), ("done", None, 0));
    assert_eq!(
        project.read("seen.md"),
        "work running -\ncheck running it works\n",
        "as the agents saw it"
    );
    assert_eq!(project.read("out/published/STATUS.md"), "done done it works\n");
    assert_eq!(project.read("out/log.md"), " to work\nwork to check\ncheck to done\n");
}

#[test]
fn nothing_half_written_is_left() {
    let project = WorkflowProject::new(FLOW, &replies(&[GOOD, GOOD]));
    project.run_workflow();
    let left: Vec<String> = std::fs::read_dir(project.path("out/published"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(left, ["STATUS.md"]);
}

#[test]
fn one_that_cannot_be_written_blocks_the_run() {
    let project = WorkflowProject::new(FLOW, &replies(&[GOOD, GOOD]));
    project.write("out", "a file where a folder must be");
    let ran = project.run_workflow();
    assert_eq!(ran.ended(), ("blocked", None, 7));
    assert!(ran.reason().contains("out/published/STATUS.md"), "{}", ran.reason());
}

#[test]
fn one_that_fails_its_contract_blocks_the_run() {
    let flow = FLOW.replace("append: true", "contract: scene/step");
    let ran = WorkflowProject::new(&flow, &replies(&[GOOD, GOOD])).run_workflow();
    assert_eq!(ran.ended(), ("blocked", None, 7));
    assert!(
        ran.reason().contains("out/log.md") && ran.reason().contains("scene/step@1"),
        "{}",
        ran.reason()
    );
}

#[test]
fn one_that_satisfies_its_contract_is_written() {
    let flow = FLOW.replace(
        "template: \"{{ run.from }} to {{ run.state }}\\n\", append: true",
        "template: '{\"ok\": true, \"note\": {{ run.state | tojson }}}', contract: scene/step",
    );
    let project = WorkflowProject::new(&flow, &replies(&[GOOD, GOOD]));
    let ran = project.run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.reason());
    assert_eq!(project.read("out/log.md"), "{\"ok\": true, \"note\": \"done\"}");
}
