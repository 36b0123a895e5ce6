//! A project in which a real command line of an agent runs against the mock server.

use crate::PROGRAM;
use crate::shell_project::{ShellProject, assert_no_processes};
use counterfoil_testkit::{
    CommandOutput, MockServer, ModelRequest, RunningCommand, TestCommand, installed_clis,
    read_tree, testing_dir,
};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Whether the oldest supported versions are under test, and not the newest tested ones.
pub(crate) fn tests_oldest_versions() -> bool {
    std::env::var("COUNTERFOIL_TEST_VERSIONS").is_ok_and(|versions| versions == "oldest")
}

/// A vendor's command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VendorCli {
    Claude,
    Codex,
    Gemini,
}

impl VendorCli {
    /// Its name in agent specifications.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    /// The version that is under test.
    pub(crate) fn version(self) -> String {
        self.pinned_version(if tests_oldest_versions() { "oldest" } else { "newest" })
    }

    /// The version that `testing/clis` pins as the `newest` or the `oldest`.
    pub(crate) fn pinned_version(self, versions: &str) -> String {
        let manifest = testing_dir().join("clis").join(versions).join("package.json");
        let manifest = std::fs::read(manifest).unwrap();
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        let package = match self {
            Self::Claude => "@anthropic-ai/claude-code",
            Self::Codex => "@openai/codex",
            Self::Gemini => "@google/gemini-cli",
        };
        manifest["dependencies"][package].as_str().unwrap().to_owned()
    }

    /// Whether it accepts a schema for its answer.
    pub(crate) fn accepts_schema(self) -> bool {
        self != Self::Gemini
    }

    /// The reply of a model that hands in its result when its prompt contains a text. Without a
    /// schema a result is submitted; as a text it would have to be a block for some contracts.
    pub(crate) fn hand_in(self, when: &str, result: &Value) -> Value {
        if self.accepts_schema() {
            json!({"when": when, "result": result})
        } else {
            Self::submit(when, result)
        }
    }

    /// The reply of a model that submits its result when its prompt contains a text.
    pub(crate) fn submit(when: &str, result: &Value) -> Value {
        json!({"when": when, "calls": [{"mcp": "submit_result", "input": result}]})
    }
}

/// Defines a test for each of these command lines from a function that takes the command line.
macro_rules! for_each_cli {
    ($rule:ident: $($cli:ident $test:ident),+) => {
        mod $rule {
            $(
                #[test]
                fn $test() {
                    super::$rule(crate::agents::project::VendorCli::$cli);
                }
            )+
        }
    };
    ($rule:ident) => {
        for_each_cli!($rule: Claude claude, Codex codex, Gemini gemini);
    };
}
pub(crate) use for_each_cli;

/// How long a run may take on a busy machine; some command lines need seconds to start on an idle
/// one.
pub(crate) const RUN_TIMEOUT: Duration = Duration::from_mins(4);

/// A project, the mock server, and the command line under test.
pub(crate) struct CliProject {
    project: ShellProject,
    pub(crate) mock: MockServer,
    cli: VendorCli,
    path: OsString,
}

impl Deref for CliProject {
    type Target = ShellProject;

    fn deref(&self) -> &ShellProject {
        &self.project
    }
}

impl CliProject {
    /// A project with one agent under the contract `acme/ok`, or `None` if the command lines are not
    /// installed: the test is skipped then.
    pub(crate) fn open(cli: VendorCli, script: &Value) -> Option<Self> {
        let clis = installed_clis()?;
        // Below the target directory, because some command lines trust no settings below a
        // directory that everybody may write to.
        let project = ShellProject::below(Path::new(env!("CARGO_TARGET_TMPDIR")));
        // A repository of its own. Otherwise the one around the target directory would be used.
        project.init_git();
        let mock = MockServer::start(project.root(), script);
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(
            std::iter::once(clis.join("bin")).chain(std::env::split_paths(&inherited)),
        );
        let project = Self { project, mock, cli, path: path.unwrap() };
        project.write_workflow("");
        Some(project)
    }

    /// Writes the workflow, with these further keys of its agent.
    pub(crate) fn write_workflow(&self, keys: &str) {
        let text = format!(
            "workflow: one\n\
             inputs: {{ task: {{ type: string, default: Water the plants. }} }}\n\
             agents: {{ worker: {{ contract: acme/ok, prompt: prompts/work.md, {keys} }} }}\n\
             contracts: [contracts]\n\
             start: work\n\
             states:\n\
             \x20 work: {{ agent: worker, go: end }}\n\
             \x20 end: {{ end: done }}\n"
        );
        self.write("flow.yaml", text);
        self.write("prompts/work.md", "Do the work.\n\n{{ task }}\n");
    }

    /// Writes the settings of the command line in `counterfoil.toml`.
    pub(crate) fn write_settings(&self, lines: &str) {
        self.write("counterfoil.toml", format!("[agents.{}]\n{lines}\n", self.cli.name()));
    }

    /// The program under test, with the command lines on its `PATH` and the environment of the mock.
    pub(crate) fn command(&self, arguments: &[&str]) -> TestCommand {
        let mut command = self.project.command(arguments);
        command.envs(self.mock.variables()).env("PATH", &self.path);
        command
    }

    /// A program as a user starts it in the repository, with the program under test on the `PATH`.
    pub(crate) fn user_command(&self, program: &str, arguments: &[&str]) -> TestCommand {
        let own = Path::new(PROGRAM).parent().unwrap().to_owned();
        let path: Vec<PathBuf> =
            std::iter::once(own).chain(std::env::split_paths(&self.path)).collect();
        let file = path.iter().map(|dir| dir.join(program)).find(|file| file.exists()).unwrap();
        let mut command = TestCommand::new(file);
        command
            .args(arguments)
            .current_dir(self.repo())
            .env("XDG_DATA_HOME", self.data())
            .envs(self.mock.variables())
            .env("PATH", std::env::join_paths(path).unwrap());
        command
    }

    /// Starts the workflow.
    pub(crate) fn start_workflow(&self, arguments: &[&str]) -> RunningCommand {
        let workflow = ["run", "repo/flow.yaml", "--agent", self.cli.name(), "--format", "json"];
        self.start_command(&mut self.command(&[&workflow, arguments].concat()))
    }

    /// Runs the workflow to its end.
    pub(crate) fn run_workflow(&self) -> CommandOutput {
        self.start_workflow(&[]).wait_for(RUN_TIMEOUT)
    }

    /// Runs the workflow and asserts that it is done after one attempt; returns the attempt.
    #[track_caller]
    pub(crate) fn accepted(&self) -> Value {
        let output = self.run_workflow();
        let report = output.json();
        assert_eq!(
            (output.code, report["outcome"].as_str()),
            (Some(0), Some("done")),
            "{}",
            self.describe(&output)
        );
        let attempts = report["attempts"].as_array().unwrap();
        assert_eq!(attempts.len(), 1, "{}", self.describe(&output));
        self.assert_nothing_runs(&report);
        attempts[0].clone()
    }

    /// Runs the workflow and asserts how it failed; returns the report.
    #[track_caller]
    pub(crate) fn failed(&self, cause: &str, code: i32) -> Value {
        let output = self.run_workflow();
        let report = output.json();
        let ended = (output.code, report["outcome"].as_str(), report["cause"].as_str());
        assert_eq!(ended, (Some(code), Some("failed"), Some(cause)), "{}", self.describe(&output));
        self.assert_nothing_runs(&report);
        report
    }

    /// Runs a pack whose agents do what they are asked to, and asserts that it is done: no result
    /// was asked for again, and nothing that they tried was denied. Returns the report.
    #[track_caller]
    pub(crate) fn play_honestly(&self, arguments: &[&str]) -> Value {
        let options = ["--format", "json", "--agent", self.cli.name()];
        self.ends_honestly(&mut self.command(&[&["run"], arguments, &options].concat()))
    }

    /// Answers the question that the last run of such a pack waits for; the rest is as in
    /// `play_honestly`.
    #[track_caller]
    pub(crate) fn answer_honestly(&self, question: &str, answer: &str) -> Value {
        let arguments = ["answer", "last", question, answer, "--resume", "--format", "json"];
        self.ends_honestly(&mut self.command(&arguments))
    }

    #[track_caller]
    fn ends_honestly(&self, command: &mut TestCommand) -> Value {
        let output = self.start_command(command).wait_for(RUN_TIMEOUT);
        let report = output.json();
        let ended = (output.code, report["outcome"].as_str());
        assert_eq!(ended, (Some(0), Some("done")), "{}", self.describe(&output));
        // Each result came in the way that the prompt names, which is never the text. Some schemas
        // cannot be used with Codex.
        let channels: &[&str] = match self.cli {
            VendorCli::Claude => &["native"],
            VendorCli::Codex => &["native", "submitted"],
            VendorCli::Gemini => &["submitted"],
        };
        for attempt in report["attempts"].as_array().unwrap() {
            assert_eq!(attempt["repairs_asked"], 0, "{attempt:#}");
            for reply in attempt["replies"].as_array().unwrap() {
                let channel = reply["channel"].as_str().unwrap_or("text");
                assert!(channels.contains(&channel), "{channel}: {attempt:#}");
                let denied = reply.get("denied").and_then(Value::as_array);
                assert!(denied.is_none_or(Vec::is_empty), "{reply:#}");
            }
        }
        self.assert_nothing_runs(&report);
        report
    }

    /// Asserts that no process of the run is left, including those that changed their environment:
    /// whatever works in the repository was started for the run.
    #[track_caller]
    pub(crate) fn assert_nothing_runs(&self, report: &Value) {
        assert_no_processes(report);
        let own_pid = std::process::id().to_string();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let (Ok(command_line), Ok(dir)) = (
                std::fs::read(entry.path().join("cmdline")),
                std::fs::read_link(entry.path().join("cwd")),
            ) else {
                continue;
            };
            assert!(
                !dir.starts_with(self.repo()) || entry.file_name().to_str() == Some(&own_pid),
                "still running in {}: {}",
                self.root().display(),
                String::from_utf8_lossy(&command_line)
            );
        }
    }

    /// The requests to the model.
    pub(crate) fn requests(&self) -> Vec<ModelRequest> {
        self.mock.requests()
    }

    /// Everything that helps to find out why a run did not go as expected.
    pub(crate) fn describe(&self, output: &CommandOutput) -> String {
        let mut text = format!("{output:#?}\n");
        for (path, (_, bytes)) in read_tree(self.state()) {
            let content = String::from_utf8_lossy(&bytes).into_owned();
            if !content.contains('\0') {
                let content: String = content.chars().take(6000).collect();
                let _ = writeln!(text, "== {}\n{content}", path.display());
            }
        }
        let _ = writeln!(text, "{} requests", self.requests().len());
        text
    }
}
