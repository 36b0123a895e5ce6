//! A repository in which a workflow of a pack runs, with the script beside it.

use crate::PROGRAM;
use counterfoil_testkit::{
    RunOutput, RunningCommand, TestProject, memory_dir, normalize, wait_until,
};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a test waits for a run, even on a busy machine.
const RUN_TIMEOUT: Duration = Duration::from_mins(2);
/// The prefix of the name of an ejected pack.
const RENAMED: &str = "renamed-";

/// A repository, a script, and the workflow to run.
pub(crate) struct PackProject {
    project: TestProject,
    /// The name of a workflow in a pack, or a file.
    workflow: String,
}

impl Deref for PackProject {
    type Target = TestProject;

    fn deref(&self) -> &TestProject {
        &self.project
    }
}

impl PackProject {
    /// An empty repository.
    pub(crate) fn new(workflow: &str) -> Self {
        Self {
            project: TestProject::nested_in(memory_dir(), PROGRAM).with_env("USER", "kim"),
            workflow: workflow.to_owned(),
        }
    }

    /// A copy of the repository, for another run.
    pub(crate) fn copy(&self, workflow: &str) -> Self {
        Self { project: self.project.copy(), workflow: workflow.to_owned() }
    }

    /// A copy with the pack ejected beside the repository, under another name.
    pub(crate) fn copy_with_ejected_pack(&self, workflow: &str) -> Self {
        let mut copy = self.copy(workflow);
        let (pack, name) = workflow.split_once('/').unwrap_or((workflow, "workflow"));
        let dir = copy.root_path("ejected").join(format!("{RENAMED}{pack}"));
        let output = copy.run(&["pack", "eject", pack, dir.to_str().unwrap()]);
        assert!(output.is_success(), "{output:?}");
        let file = dir.join(format!("{name}.yaml"));
        let text = std::fs::read_to_string(&file).unwrap();
        let original = format!("workflow: {workflow}\n");
        assert!(text.contains(&original), "the file of {workflow} has another name in it");
        let renamed = text.replacen(&original, &format!("workflow: {RENAMED}{workflow}\n"), 1);
        std::fs::write(&file, renamed).unwrap();
        copy.workflow = file.display().to_string();
        copy
    }

    /// The directory of the ejected pack.
    pub(crate) fn pack_dir(&self) -> PathBuf {
        Path::new(&self.workflow).parent().unwrap().to_owned()
    }

    /// Writes the script of the agents.
    pub(crate) fn write_script(&self, script: &str) {
        std::fs::write(self.root_path("script.yaml"), script).unwrap();
    }

    fn run_arguments<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let base = ["run", &self.workflow, "--format", "json", "--agent", "script:../script.yaml"];
        [&base, more].concat()
    }

    /// Runs the workflow with the script to its end.
    #[track_caller]
    pub(crate) fn run_workflow(&self, more: &[&str]) -> RunOutput {
        self.run_json(&self.run_arguments(more))
    }

    /// Starts the workflow and does not wait for it.
    pub(crate) fn start_workflow(self, more: &[&str]) -> RunningScenario {
        RunningScenario { command: self.start(&self.run_arguments(more)), project: self }
    }

    /// A text without what differs between two projects: paths, and the name of the workflow.
    pub(crate) fn without_names(&self, text: &str) -> String {
        normalize::directory(text, self.root(), "FOLDER").replace(RENAMED, "")
    }
}

/// A run that goes on while the test does something else. It is killed when the test ends.
pub(crate) struct RunningScenario {
    command: RunningCommand,
    project: PackProject,
}

impl RunningScenario {
    /// Waits until a file of the repository exists.
    pub(crate) fn wait_for_file(&mut self, path: &str) {
        self.wait_until(path, |project| project.path(path).exists());
    }

    /// Waits until a condition is met; the run must not end before.
    pub(crate) fn wait_until(&mut self, what: &str, condition: impl Fn(&PackProject) -> bool) {
        wait_until(RUN_TIMEOUT, what, || {
            let met = condition(&self.project);
            assert!(met || self.command.is_running(), "the run ended before: {what}");
            met.then_some(())
        });
    }

    /// Kills the run and leaves everything as it is at that moment.
    pub(crate) fn kill(self) -> PackProject {
        self.command.kill();
        self.project
    }
}
