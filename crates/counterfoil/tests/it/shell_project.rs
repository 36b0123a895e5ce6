//! A project whose agents are shell scripts, for tests of processes, kills and faults.

use crate::PROGRAM;
use counterfoil_testkit::{CommandOutput, TestProject, processes_in_attempts};
use serde_json::Value;
use std::ops::Deref;
use std::path::Path;

/// The contract of the agents.
const CONTRACT: &str = "contract: acme/ok\nversion: 1\nfields: { ok: boolean, note?: string }\nexamples: [{ ok: true }]\n";

/// The agent that runs `agent.sh` of the repository.
pub(crate) const SHELL_AGENT: &str = "command:sh agent.sh";

/// A project with the contract `acme/ok` and a prompt, whose runs are kept beside the repository, so
/// that a test can remove either alone.
pub(crate) struct ShellProject {
    project: TestProject,
}

impl Deref for ShellProject {
    type Target = TestProject;

    fn deref(&self) -> &TestProject {
        &self.project
    }
}

impl ShellProject {
    pub(crate) fn new() -> Self {
        Self::from_project(TestProject::with_state_beside(PROGRAM))
    }

    /// A project below a directory of the test's choice.
    pub(crate) fn below(parent: &Path) -> Self {
        let root = tempfile::TempDir::new_in(parent).unwrap();
        Self::from_project(TestProject::with_state_beside_in(root, PROGRAM))
    }

    fn from_project(project: TestProject) -> Self {
        project.write("contracts/ok.yaml", CONTRACT);
        project.write("prompts/work.md", "Do the work.\n");
        Self { project }
    }

    /// A project with [`agent_workflow`] and a shell script as its agent.
    pub(crate) fn with_agent(keys: &str, script: &str) -> Self {
        let project = Self::new();
        project.write("flow.yaml", agent_workflow(keys));
        project.write("agent.sh", script);
        project
    }

    /// Runs the program to its end. It prints into files: a process that the run leaves behind could
    /// keep a pipe open.
    pub(crate) fn run<S: AsRef<str>>(&self, arguments: &[S]) -> CommandOutput {
        self.start(arguments).wait()
    }

    /// Runs a workflow of the repository with one program for all agents.
    pub(crate) fn run_workflow(&self, workflow: &str, agent: &str) -> CommandOutput {
        self.run(&run_arguments(workflow, agent))
    }

    /// Asserts that the newest run of [`agent_workflow`] lost nothing that was journaled: its first
    /// command was done exactly once, and no process is left.
    #[track_caller]
    pub(crate) fn assert_intact(&self) {
        let report = self.show_last();
        assert_eq!(report["commands"][0]["outcome"], "accepted", "{report:#}");
        assert_eq!(self.read_or_empty("before"), "ran\n");
        self.events();
        assert_no_processes(&report);
    }

    /// Runs [`agent_workflow`] and asserts how it ends, and that the output and the reason of the
    /// run contain these texts. Returns the report.
    #[track_caller]
    pub(crate) fn assert_run_ends(
        &self,
        agent: &str,
        code: i32,
        outcome: &str,
        cause: Option<&str>,
        texts: &[&str],
    ) -> Value {
        let output = self.run_workflow("flow.yaml", agent);
        output.expect(code, texts);
        let report = output.json();
        assert_eq!(
            (report["outcome"].as_str(), report["cause"].as_str()),
            (Some(outcome), cause),
            "{output:?}"
        );
        for text in texts {
            let reason = report["reason"].as_str().unwrap();
            assert!(reason.contains(text), "'{text}' is missing: {reason}");
        }
        self.assert_intact();
        report
    }
}

/// Asserts that no process of a run is left.
#[track_caller]
pub(crate) fn assert_no_processes(report: &Value) {
    let left = processes_in_attempts(report["run"].as_str().unwrap());
    assert!(left.is_empty(), "processes are left: {left:?}");
}

/// The arguments that run a workflow of the repository with one program for all agents.
pub(crate) fn run_arguments(workflow: &str, agent: &str) -> [String; 6] {
    ["run", &format!("repo/{workflow}"), "--agent", agent, "--format", "json"].map(str::to_owned)
}

/// A workflow with a command, then an agent with these keys.
pub(crate) fn agent_workflow(keys: &str) -> String {
    format!(
        "workflow: work\n\
         agents: {{ worker: {{ contract: acme/ok, prompt: prompts/work.md, {keys} }} }}\n\
         contracts: [contracts]\n\
         start: before\n\
         states:\n\
         \x20 before: {{ command: [sh, -c, 'echo ran >> before'], go: work }}\n\
         \x20 work: {{ agent: worker, go: end }}\n\
         \x20 end: {{ end: done }}\n"
    )
}

/// [`agent_workflow`] with a question before the agent, at which the run waits.
pub(crate) fn workflow_with_question() -> String {
    agent_workflow("").replace("before'], go: work", "before'], go: approve")
        + "  approve: { ask: { question: Go on?, choices: [yes, no] }, go: work }\n"
}
