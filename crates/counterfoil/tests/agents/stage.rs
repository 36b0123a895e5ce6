//! Where a scenario is played: a repository and a home of its own, the mock, and the command line
//! it is about.

use crate::house::{House, Live, Said, carrying};
use crate::mock::{Asked, Mock, testing};
use serde_json::Value;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// One of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Claude,
    Codex,
    Gemini,
}

impl Who {
    /// As it is named in specs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    /// Which one is pinned.
    pub(crate) fn version(self) -> String {
        let pinned: Value =
            serde_json::from_slice(&std::fs::read(testing().join("clis/package.json")).unwrap())
                .unwrap();
        let package = match self {
            Self::Claude => "@anthropic-ai/claude-code",
            Self::Codex => "@openai/codex",
            Self::Gemini => "@google/gemini-cli",
        };
        pinned["dependencies"][package].as_str().unwrap().to_owned()
    }

    /// Whether it takes a schema for its answer.
    pub(crate) fn takes_schema(self) -> bool {
        self != Self::Gemini
    }
}

/// A rule as a test for each of these command lines.
macro_rules! each {
    ($rule:ident: $($who:ident $test:ident),+) => {
        mod $rule {
            $(
                #[test]
                fn $test() {
                    super::$rule(crate::stage::Who::$who);
                }
            )+
        }
    };
    ($rule:ident) => {
        each!($rule: Claude claude, Codex codex, Gemini gemini);
    };
}
pub(crate) use each;

/// No scenario takes longer, however busy the machine is: some of these programs need seconds to
/// start on one that is not.
pub(crate) const MOST: Duration = Duration::from_mins(4);

/// The stage of one test.
pub(crate) struct Stage {
    pub(crate) house: House,
    pub(crate) mock: Mock,
    who: Who,
    path: OsString,
}

impl Stage {
    /// A stage with one agent under `acme/ok`, or none if the command lines are not there: the test
    /// is skipped then.
    pub(crate) fn open(who: Who, script: &Value) -> Option<Self> {
        let clis = clis()?;
        // Below the target folder: some of them trust no settings below one that anybody may write
        // to.
        let house = House::within(Path::new(env!("CARGO_TARGET_TMPDIR")));
        // And a repository of its own: else the one around the target folder would be worked in.
        let made = Command::new("git")
            .args(["init", "--quiet"])
            .current_dir(house.repo())
            .status()
            .unwrap();
        assert!(made.success(), "git init in {}", house.repo().display());
        let mock = Mock::start(house.folder(), script);
        let ours = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(
            std::iter::once(clis.join("bin")).chain(std::env::split_paths(&ours)),
        );
        let stage = Self { house, mock, who, path: path.unwrap() };
        stage.workflow("");
        Some(stage)
    }

    /// Writes the workflow anew, with these further keys of its agent.
    pub(crate) fn workflow(&self, keys: &str) {
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
        self.house.file("flow.yaml", text);
        self.house.file("prompts/work.md", "Do the work.\n\n{{ task }}\n");
    }

    /// Writes what `counterfoil.toml` says of the command line.
    pub(crate) fn settings(&self, lines: &str) {
        self.house.file("counterfoil.toml", format!("[agents.{}]\n{lines}\n", self.who.name()));
    }

    /// The binary with these arguments, the command lines on its path and nothing of ours but that.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.house.command(arguments);
        command.envs(&self.mock.variables).env("PATH", &self.path);
        command
    }

    /// A program as people start it in the repository, with our own on its path.
    pub(crate) fn by_hand(&self, program: &str, arguments: &[&str]) -> Command {
        let ours = Path::new(env!("CARGO_BIN_EXE_counterfoil")).parent().unwrap().to_owned();
        let path: Vec<PathBuf> =
            std::iter::once(ours).chain(std::env::split_paths(&self.path)).collect();
        let found =
            path.iter().map(|folder| folder.join(program)).find(|file| file.exists()).unwrap();
        let mut command = Command::new(found);
        command
            .args(arguments)
            .current_dir(self.house.repo())
            .env_clear()
            .envs(&self.mock.variables);
        command
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("NO_COLOR", "1")
            .env("LANG", "C.UTF-8");
        command.stdin(std::process::Stdio::null());
        command
    }

    /// Starts the workflow.
    pub(crate) fn start(&self, arguments: &[&str]) -> Live {
        let workflow = ["run", "repo/flow.yaml", "--agent", self.who.name(), "--format", "json"];
        self.house.start_as(self.command(&[&workflow, arguments].concat()))
    }

    /// Runs the workflow to its end.
    pub(crate) fn run(&self) -> Said {
        self.start(&[]).end_within(MOST)
    }

    /// Runs the workflow and holds that it is done; its only attempt.
    pub(crate) fn accepted(&self) -> Value {
        let said = self.run();
        let report = said.report();
        assert_eq!(
            (said.code, report["outcome"].as_str()),
            (Some(0), Some("done")),
            "{}",
            self.story(&said)
        );
        let attempts = report["attempts"].as_array().unwrap();
        assert_eq!(attempts.len(), 1, "{}", self.story(&said));
        self.nothing_is_left(&report);
        attempts[0].clone()
    }

    /// Runs the workflow and holds that it failed so; its report.
    pub(crate) fn failed(&self, cause: &str, code: i32) -> Value {
        let said = self.run();
        let report = said.report();
        let ended = (said.code, report["outcome"].as_str(), report["cause"].as_str());
        assert_eq!(ended, (Some(code), Some("failed"), Some(cause)), "{}", self.story(&said));
        self.nothing_is_left(&report);
        report
    }

    /// Holds that nothing of a run is at work any more.
    pub(crate) fn nothing_is_left(&self, report: &Value) {
        let left = carrying(report["run"].as_str().unwrap());
        assert!(left.is_empty(), "left behind: {left:?}");
        let folder = self.house.folder().to_str().unwrap().to_owned();
        let ours = std::process::id().to_string();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let (Ok(line), Ok(cwd)) = (
                std::fs::read(entry.path().join("cmdline")),
                std::fs::read_link(entry.path().join("cwd")),
            ) else {
                continue;
            };
            // Whatever it made of its environment: who works in the repository was started for the
            // run.
            let here = cwd.starts_with(self.house.repo());
            assert!(
                !here || entry.file_name().to_str() == Some(&ours),
                "at work in {folder}: {}",
                String::from_utf8_lossy(&line)
            );
        }
    }

    /// The requests to the model.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.mock.asked()
    }

    /// All that there is to say about a run that did not go as it should.
    pub(crate) fn story(&self, said: &Said) -> String {
        let mut told = format!("{said:#?}\n");
        for file in files(&self.house.state()) {
            let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
            if !text.contains('\0') {
                let _ = writeln!(
                    told,
                    "== {}\n{}",
                    file.display(),
                    text.chars().take(6000).collect::<String>()
                );
            }
        }
        let _ = writeln!(told, "{} requests", self.asked().len());
        told
    }
}

/// Every file below a folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut rest = vec![folder.to_owned()];
    while let Some(folder) = rest.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().unwrap().is_dir() {
                rest.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

/// The folder of the command lines, if they are installed. If not, this says so: loudly, and to who
/// counts.
fn clis() -> Option<PathBuf> {
    let output = Command::new(testing().join("install-clis")).arg("--where").output().unwrap();
    let folder = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end());
    if folder.join("bin/claude").exists() {
        return Some(folder);
    }
    let unreachable = std::env::var_os("COUNTERFOIL_TEST_UNREACHABLE").is_some();
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    assert!(
        unreachable || std::env::var_os("COUNTERFOIL_NO_SKIPS").is_none(),
        "{name} may not be skipped here, and there are no command lines in {}",
        folder.display()
    );
    let why =
        if unreachable { "the npm registry did not answer" } else { "run testing/install-clis" };
    let _ = writeln!(
        std::io::stderr(),
        "SKIPPED: {name}: the agents' command lines are not installed; {why}"
    );
    if let Some(list) = std::env::var_os("COUNTERFOIL_TEST_SKIPS") {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(list).unwrap();
        writeln!(file, "agents {name}").unwrap();
    }
    None
}
