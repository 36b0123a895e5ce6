//! A repository with a home folder, another worktree and a state folder beside it.

use crate::PROGRAM;
use crate::shell_project::{SHELL_AGENT, ShellProject, agent_workflow, run_arguments};
use counterfoil_testkit::{CommandOutput, report_skip};
use std::ops::Deref;
use std::path::PathBuf;
use std::process::Command;

/// The kinds that contain, as in the configuration.
pub(super) const CONTAINING: [&str; 2] = ["bwrap", "landlock"];

/// Whether a kind can be used here. If not, the test is reported as skipped for it, or fails with
/// `COUNTERFOIL_NO_SKIPS`.
pub(super) fn is_available(kind: &str) -> bool {
    let works = match kind {
        "bwrap" => {
            prints("bwrap", &["--unshare-user", "--ro-bind", "/", "/", "echo", "yes"], "yes")
        }
        _ => prints(PROGRAM, &["contained", "--probe"], "network yes mounts yes"),
    };
    if !works {
        assert!(
            std::env::var_os("COUNTERFOIL_NO_SKIPS").is_none(),
            "{kind} must be usable here; see testing/README.md"
        );
        report_skip(&format!("{kind} cannot be used here; see testing/README.md"));
    }
    works
}

/// Whether a program can be run and prints this.
fn prints(program: &str, arguments: &[&str], expected: &str) -> bool {
    let output = Command::new(program).args(arguments).output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim() == expected)
}

/// A project with what an attack aims at.
pub(super) struct TargetProject {
    project: ShellProject,
}

impl Deref for TargetProject {
    type Target = ShellProject;

    fn deref(&self) -> &ShellProject {
        &self.project
    }
}

impl TargetProject {
    /// A project with these settings in its configuration, and a script as its agent.
    pub(super) fn new(config: &str, script: &str) -> Self {
        let project = Self { project: ShellProject::new() };
        project.write("flow.yaml", agent_workflow(""));
        project.write("agent.sh", script);
        project.write("counterfoil.toml", config);
        project.write(".gitignore", "before\n");
        project.init_git();
        project.commit_all("base");
        let other = project.root_path("other");
        project.git(&["worktree", "add", "-q", &other.display().to_string()]);
        for (path, text) in [
            (".bashrc", "# mine\n"),
            (".ssh/id_test", "a key\n"),
            (".npm/old", "cached\n"),
            (".cargo/registry/old", "cached\n"),
        ] {
            let path = project.home(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        project
    }

    /// A path in the home folder.
    pub(super) fn home(&self, name: &str) -> PathBuf {
        self.root_path("home").join(name)
    }

    /// Runs the workflow with a home folder of its own. `CARGO_HOME` is not set, so it is there.
    pub(super) fn run_agent(&self) -> CommandOutput {
        self.run_with(&[])
    }

    /// Runs the workflow with more variables.
    pub(super) fn run_with(&self, variables: &[(&str, &str)]) -> CommandOutput {
        let mut command = self.command(&run_arguments("flow.yaml", SHELL_AGENT));
        command.env("HOME", self.home("")).envs(variables.iter().copied());
        self.start_command(&mut command).wait()
    }
}
