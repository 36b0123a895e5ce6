//! A test repository, and workflows with one state that run in it.

use counterfoil_engine::{AgentAssignments, Engine, NoopObserver, RunReport, StartOptions};
use counterfoil_flow::{Budget, check};
use counterfoil_process::StopRequest;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tokio::sync::watch;

const TASKS: &str = "contract: t/tasks\nversion: 1\nfields: { tasks: [{ id: string, hours: integer }] }\n\
                     examples: [{ tasks: [] }]\n";

pub(crate) struct Project {
    _folder: tempfile::TempDir,
    pub(crate) repo: PathBuf,
}

/// The result of a built-in step.
#[derive(Debug)]
pub(crate) struct StepResult {
    /// The outcome of the attempt.
    pub(crate) outcome: String,
    pub(crate) reason: String,
    pub(crate) value: Value,
    pub(crate) whole: Value,
}

impl Project {
    /// A folder without a repository.
    pub(crate) fn bare() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let repo = folder.path().canonicalize().unwrap().join("repo");
        std::fs::create_dir(&repo).unwrap();
        Self { _folder: folder, repo }
    }

    /// A repository without a commit, independent of the git configuration of the machine.
    pub(crate) fn unborn() -> Self {
        let project = Self::bare();
        project.git(&["init", "-q", "-b", "main"]);
        for (key, value) in [
            ("user.name", "Ann"),
            ("user.email", "ann@example.com"),
            ("commit.gpgSign", "false"),
            ("core.hooksPath", ".git/hooks"),
            ("core.excludesFile", "/dev/null"),
            ("core.autocrlf", "false"),
        ] {
            project.git(&["config", key, value]);
        }
        project
    }

    /// A repository with these files committed.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let project = Self::unborn();
        for (path, text) in files {
            project.write(path, text);
        }
        project.commit_all();
        project
    }

    pub(crate) fn commit_all(&self) {
        self.git(&["add", "-A", "--", ".", ":!.counterfoil"]);
        self.git(&["commit", "-q", "--no-verify", "--allow-empty", "-m", "x"]);
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git(&self.repo, arguments)
    }

    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.repo.join(path)
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn remove(&self, path: impl AsRef<OsStr>) {
        std::fs::remove_file(self.path(Path::new(path.as_ref()))).unwrap();
    }

    /// A hook of the repository.
    pub(crate) fn hook(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = format!(".git/hooks/{name}");
        self.write(&path, format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(self.path(&path), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The entries of the index, and those that were only added by name.
    pub(crate) fn index(&self) -> String {
        self.git(&["ls-files", "--stage"]) + &self.git(&["diff", "--name-only", "--diff-filter=A"])
    }

    /// The subjects of all commits, the last first.
    pub(crate) fn log(&self) -> Vec<String> {
        self.git(&["log", "--format=%s"]).lines().map(str::to_owned).collect()
    }

    /// The files of the last commit, with their status.
    pub(crate) fn last(&self) -> Vec<String> {
        let listed = self.git(&["show", "--format=", "--name-status", "--no-renames"]);
        listed.lines().map(|line| line.replace('\t', " ")).collect()
    }

    /// Runs a workflow with one state, given in one line without its transitions.
    pub(crate) fn run_step(&self, state: &str) -> StepResult {
        run_step_in(&self.repo, state)
    }
}

/// Runs such a workflow in a folder of the repository.
pub(crate) fn run_step_in(folder: &Path, state: &str) -> StepResult {
    let text = format!(
        "workflow: one\ncontracts: [tasks.yaml]\nstart: it\nstates:\n  it: {{ {state}, go: done }}\n  done: {{ end: done }}\n"
    );
    let files = BTreeMap::from([
        ("workflow.yaml".to_owned(), text),
        ("tasks.yaml".to_owned(), TASKS.to_owned()),
    ]);
    let workflow = check("workflow.yaml", &files, &counterfoil_packs::registry())
        .unwrap_or_else(|why| panic!("{why}"));
    let options = StartOptions {
        workflow,
        inputs: Map::new(),
        budget: Budget::default(),
        agents: AgentAssignments::new(),
        repo: folder.to_owned(),
        workflow_folders: Vec::new(),
        launcher: counterfoil_process::contain::Launcher::default(),
    };
    let engine = Engine::open(&folder.join(".counterfoil"), None).unwrap();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (_stop, stopped) = watch::channel(StopRequest::None);
    let report = runtime.block_on(engine.start(options, Arc::new(NoopObserver), stopped)).unwrap();
    step_result(&report)
}

fn step_result(report: &RunReport) -> StepResult {
    let whole = serde_json::to_value(report).unwrap();
    let command = &whole["commands"][0];
    StepResult {
        outcome: command["outcome"].as_str().unwrap().to_owned(),
        reason: command["reason"].as_str().unwrap().to_owned(),
        value: command["value"].clone(),
        whole,
    }
}

impl StepResult {
    /// The value of an accepted step.
    pub(crate) fn value(self) -> Value {
        assert_eq!(self.outcome, "accepted", "{self:?}");
        self.value
    }

    /// The reason of a blocked step, which also blocks the run.
    pub(crate) fn blocked(self) -> String {
        assert_eq!(
            (self.outcome.as_str(), &self.whole["outcome"]),
            ("blocked", &"blocked".into()),
            "{self:?}"
        );
        self.reason
    }
}

pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_"))
    {
        command.env_remove(name);
    }
    command
        .args(["-c", "protocol.file.allow=always"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("LC_ALL", "C");
    for who in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{who}_NAME"), "Ann")
            .env(format!("GIT_{who}_EMAIL"), "ann@example.com");
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
