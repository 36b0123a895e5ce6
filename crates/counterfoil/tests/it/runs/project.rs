//! A project with one workflow and a script that plays its agents.

use crate::PROGRAM;
use counterfoil_testkit::{RunOutput, TestProject};
use std::ops::Deref;

/// The contract of most agents.
const STEP: &str = r#"
contract: scene/step
version: 1
fields: { ok: boolean, note?: string }
rules:
  - { id: note-when-not-ok, when: "!result.ok", require: [note] }
examples: [{ ok: true }]
"#;

/// A list of tasks, for fan-outs.
const TASKS: &str = r"
contract: scene/tasks
version: 1
fields: { tasks: [{ id: string, after: [string], rank: integer }] }
examples: [{ tasks: [{ id: a, after: [], rank: 1 }] }]
";

/// A project with `flow.yaml`, `script.yaml` and two contracts.
pub(crate) struct WorkflowProject {
    project: TestProject,
}

impl Deref for WorkflowProject {
    type Target = TestProject;

    fn deref(&self) -> &TestProject {
        &self.project
    }
}

impl WorkflowProject {
    /// A workflow and the script of its agents.
    pub(crate) fn new(workflow: &str, script: &str) -> Self {
        let project = TestProject::new(PROGRAM).with_env("USER", "kim");
        project.write("flow.yaml", workflow);
        project.write("script.yaml", script);
        project.write("contracts/step.yaml", STEP);
        project.write("contracts/tasks.yaml", TASKS);
        Self { project }
    }

    /// Runs the workflow with the script.
    #[track_caller]
    pub(crate) fn run_workflow(&self) -> RunOutput {
        self.run_workflow_with(&[])
    }

    /// Runs the workflow with the script and further arguments.
    #[track_caller]
    pub(crate) fn run_workflow_with(&self, more: &[&str]) -> RunOutput {
        let base = ["run", "flow.yaml", "--format", "json", "--agent", "script:script.yaml"];
        self.run_json(&[&base, more].concat())
    }

    /// The prompt of an attempt, by the name of the transcript.
    pub(crate) fn prompt(&self, run: &RunOutput, name: &str) -> String {
        self.project.prompt(run.run_id(), name)
    }
}

/// A workflow of one state in which an agent works, with more keys of the state.
pub(crate) fn one_step(more: &str) -> String {
    format!(
        "workflow: one\n\
         agents: {{ worker: {{ contract: scene/step, prompt: \"Do it.\" }} }}\n\
         contracts: [contracts]\n\
         start: work\n\
         states:\n  \
           work: {{ agent: worker, go: done{more} }}\n  \
           done: {{ end: done }}\n"
    )
}

/// A script with these replies of `worker`.
pub(crate) fn replies(replies: &[&str]) -> String {
    let replies: Vec<String> =
        replies.iter().map(|reply| format!("  - {{ agent: worker, {reply} }}\n")).collect();
    format!("replies:\n{}", replies.concat())
}

/// A reply that its contract accepts.
pub(crate) const GOOD: &str = r#"text: '{"ok": true}'"#;
/// A reply that breaks a rule of its contract.
pub(crate) const BAD: &str = r#"text: '{"ok": false}'"#;

/// A reply that sends a looping workflow back.
pub(crate) const NOT_OK: &str = r#"text: '{"ok": false, "note": "no"}'"#;

/// A workflow with a step that is repeated until it is ok, at most so many times.
pub(crate) fn looping(max: u32) -> String {
    format!(
        "
workflow: loop
agents: {{ worker: {{ contract: scene/step, prompt: \"Do {{{{ run.state }}}}.\" }} }}
contracts: [contracts]
limits: {{ rounds: {{ max: {max}, then: over }} }}
start: work
states:
  work: {{ agent: worker, next: [{{ when: result.ok, go: done }}, {{ go: work, counts: rounds }}] }}
  done: {{ end: done }}
  over: {{ end: exhausted }}
"
    )
}
