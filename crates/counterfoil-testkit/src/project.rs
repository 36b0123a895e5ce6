//! A temporary project in which the binary runs.

use crate::command::{RunningCommand, TestCommand};
use crate::files::write_executable;
use crate::git::git_command;
use crate::normalize;
use crate::output::{CommandOutput, RunOutput};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

/// The directory beside the repository for files of the tests themselves.
const SCRATCH: &str = "scratch";

/// A temporary project: a directory with a repository, its run state, and the program under test.
///
/// Names of files are relative to the repository.
#[derive(Debug)]
pub struct TestProject {
    root: TempDir,
    /// The user's folder for data.
    data: TempDir,
    program: PathBuf,
    repo: PathBuf,
    state: PathBuf,
    state_is_beside: bool,
    variables: Vec<(OsString, OsString)>,
    started: AtomicUsize,
}

impl TestProject {
    /// A project whose repository is the temporary directory itself. The state directory exists, so
    /// that no directory above is taken for the repository.
    pub fn new(program: impl AsRef<Path>) -> Self {
        let project = Self::with_repo(TempDir::new().unwrap(), program.as_ref(), "");
        std::fs::create_dir(&project.state).unwrap();
        project
    }

    /// A project whose repository is the directory `repo` below the temporary directory, so that
    /// there is room for files beside it.
    pub fn nested(program: impl AsRef<Path>) -> Self {
        Self::nested_in(TempDir::new().unwrap(), program)
    }

    /// Like [`Self::nested`], in a directory of the test's choice.
    pub fn nested_in(root: TempDir, program: impl AsRef<Path>) -> Self {
        Self::with_repo(root, program.as_ref(), "repo")
    }

    /// A nested project whose runs are kept in the directory `state` beside the repository.
    /// Commands run in the directory around both, and get `--state` and `--repo`.
    pub fn with_state_beside(program: impl AsRef<Path>) -> Self {
        Self::with_state_beside_in(TempDir::new().unwrap(), program)
    }

    /// Like [`Self::with_state_beside`], in a directory of the test's choice.
    pub fn with_state_beside_in(root: TempDir, program: impl AsRef<Path>) -> Self {
        let mut project = Self::with_repo(root, program.as_ref(), "repo");
        project.state = project.root_path("state");
        project.state_is_beside = true;
        project
    }

    fn with_repo(root: TempDir, program: &Path, repo: &str) -> Self {
        let repo = root.path().join(repo);
        std::fs::create_dir_all(&repo).unwrap();
        Self {
            data: TempDir::new().unwrap(),
            program: program.to_owned(),
            state: repo.join(".counterfoil"),
            repo,
            state_is_beside: false,
            variables: Vec::new(),
            started: AtomicUsize::new(0),
            root,
        }
    }

    /// A new nested project with a copy of this repository, on the same disk.
    #[must_use]
    pub fn copy(&self) -> Self {
        let parent = self.root().parent().unwrap();
        let mut copy = Self::nested_in(TempDir::new_in(parent).unwrap(), &self.program);
        copy.variables.clone_from(&self.variables);
        let source = self.repo.join(".");
        let status =
            std::process::Command::new("cp").arg("-a").arg(source).arg(&copy.repo).status();
        assert!(status.unwrap().success(), "cannot copy {}", self.repo.display());
        copy
    }

    /// Sets a variable in the environment of all commands.
    #[must_use]
    pub fn with_env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// The temporary directory.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// A path below the temporary directory.
    pub fn root_path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root.path().join(name)
    }

    /// The user's folder for data, where the keys of journals are.
    pub fn data(&self) -> &Path {
        self.data.path()
    }

    /// A path in a directory beside the repository that neither the program nor its runs know of.
    pub fn scratch_path(&self, name: &str) -> PathBuf {
        let dir = self.root_path(SCRATCH);
        std::fs::create_dir_all(&dir).unwrap();
        dir.join(name)
    }

    /// The repository.
    pub fn repo(&self) -> &Path {
        &self.repo
    }

    /// Where the runs are kept.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The path of a file of the repository.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.repo.join(name)
    }

    /// Writes a file of the repository and creates the directories it needs.
    pub fn write(&self, name: impl AsRef<Path>, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes a shell script of the repository that can be executed.
    pub fn write_program(&self, name: impl AsRef<Path>, shell: &str) -> PathBuf {
        let path = self.path(name);
        write_executable(&path, format!("#!/bin/sh\n{shell}\n"));
        path
    }

    /// Reads a file of the repository.
    pub fn read(&self, name: impl AsRef<Path>) -> String {
        let path = self.path(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Reads a file of the repository; a file that does not exist is empty.
    pub fn read_or_empty(&self, name: impl AsRef<Path>) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Creates an empty git repository with the branch `main`.
    pub fn init_git(&self) {
        self.git(&["init", "-q", "-b", "main"]);
    }

    /// Runs git in the repository; returns what it printed.
    #[track_caller]
    pub fn git(&self, arguments: &[&str]) -> String {
        let output: CommandOutput = git_command(&self.repo, arguments).output().unwrap().into();
        assert!(output.is_success(), "git {arguments:?}: {}", output.stderr);
        output.stdout
    }

    /// Commits all files of the repository.
    pub fn commit_all(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
    }

    /// The program with these arguments and an environment of its own.
    pub fn command<S: AsRef<str>>(&self, arguments: &[S]) -> TestCommand {
        let mut command = self.command_of(&self.program, arguments);
        if self.state_is_beside {
            command.arg("--state").arg(&self.state);
            if arguments.first().is_some_and(|first| first.as_ref() == "run") {
                command.arg("--repo").arg(&self.repo);
            }
        }
        command
    }

    /// Another program with these arguments, in the same environment and directory.
    pub fn command_of<S: AsRef<str>>(
        &self,
        program: impl AsRef<OsStr>,
        arguments: &[S],
    ) -> TestCommand {
        let mut command = TestCommand::new(program);
        command
            .args(arguments.iter().map(AsRef::as_ref))
            .env("XDG_DATA_HOME", self.data())
            .envs(self.variables.clone());
        command.current_dir(if self.state_is_beside { self.root() } else { &self.repo });
        command
    }

    /// Runs the program to its end.
    pub fn run<S: AsRef<str>>(&self, arguments: &[S]) -> CommandOutput {
        self.command(arguments).output()
    }

    /// Runs the program, which must print one JSON document.
    #[track_caller]
    pub fn run_json<S: AsRef<str>>(&self, arguments: &[S]) -> RunOutput {
        self.run(arguments).into()
    }

    /// Runs the program, which must print one JSON document; returns the exit code with it.
    #[track_caller]
    pub fn code_and_json<S: AsRef<str>>(&self, arguments: &[S]) -> (i32, Value) {
        let output = self.run(arguments);
        (output.code.unwrap_or(-1), output.json())
    }

    /// Runs the program, which must refuse its arguments: exit code 2, and nothing on standard
    /// output. Returns what is on standard error.
    #[track_caller]
    pub fn run_refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.code, Some(2), "{arguments:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}: {output:?}");
        output.stderr
    }

    /// Runs the program and returns a readable block for snapshots: the command, its exit code and
    /// what it printed, without what differs from run to run.
    pub fn snapshot(&self, arguments: &[&str]) -> String {
        self.normalize(&self.run(arguments).to_block_with_command(arguments))
    }

    /// Like [`Self::snapshot`], but only the temporary directory is replaced: for journals with fixed
    /// ids and times.
    pub fn snapshot_verbatim(&self, arguments: &[&str]) -> String {
        let block = self.run(arguments).to_block_with_command(arguments);
        normalize::directory(&block, self.root(), "FOLDER")
    }

    /// Replaces the temporary directory, the program, ids, times and durations in a text.
    pub fn normalize(&self, text: &str) -> String {
        normalize::volatile(&normalize::directory(text, self.root(), "FOLDER"))
            .replace(&self.program.display().to_string(), "counterfoil")
    }

    /// Starts the program; it is killed when the test ends.
    pub fn start<S: AsRef<str>>(&self, arguments: &[S]) -> RunningCommand {
        self.start_command(&mut self.command(arguments))
    }

    /// Starts a command; it is killed when the test ends.
    pub fn start_command(&self, command: &mut TestCommand) -> RunningCommand {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let file = |stream: &str| self.scratch_path(&format!("{number}.{stream}"));
        command.start(file("stdout"), file("stderr"))
    }

    /// The report of the newest run.
    #[track_caller]
    pub fn show_last(&self) -> Value {
        let output = self.run(&["show", "last", "--format", "json"]);
        assert!(output.is_success(), "{output:?}");
        output.json()
    }

    /// The events of a run. Asserts that their numbers have no gap and that time does not go back.
    #[track_caller]
    pub fn events_of(&self, run: &str) -> Vec<Value> {
        let output = self.run(&["show", run, "--events"]);
        assert!(output.is_success(), "{output:?}");
        let events = output.json_lines();
        for (index, event) in events.iter().enumerate() {
            assert_eq!(
                event["seq"].as_u64(),
                Some(index as u64 + 1),
                "a gap in the journal at {event}"
            );
            assert!(
                index == 0 || event["at"].as_i64() >= events[index - 1]["at"].as_i64(),
                "time went back at {event}"
            );
        }
        events
    }

    /// The events of the newest run.
    pub fn events(&self) -> Vec<Value> {
        self.events_of("last")
    }

    /// How many events of a kind the newest run has.
    pub fn count_events(&self, kind: &str) -> usize {
        self.events().iter().filter(|event| event["kind"] == kind).count()
    }

    /// The prompt of an attempt, by the id of the run and the name of the transcript.
    pub fn prompt(&self, run: &str, name: &str) -> String {
        let path = self.state.join("transcripts").join(run).join(format!("{name}.prompt"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}
