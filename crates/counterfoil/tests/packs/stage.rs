//! One place where a scenario is played: a copy of its repository, the script beside it, and the
//! binary at work there.

use crate::git::git;
use crate::told::Told;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Nothing here takes longer, however busy the machine is.
const LONG: Duration = Duration::from_mins(2);
/// What stands before the name of a pack that was ejected.
const RENAMED: &str = "renamed-";

/// A folder in memory, where there is one with room, since a disk takes most of the time of so many
/// runs; else the usual one.
fn folder() -> TempDir {
    const MEMORY: &str = "/dev/shm";
    static ROOM: LazyLock<bool> = LazyLock::new(|| {
        let said = Command::new("df").args(["-kP", MEMORY]).output().ok();
        let said = said.and_then(|said| String::from_utf8(said.stdout).ok()).unwrap_or_default();
        let free = said
            .lines()
            .last()
            .and_then(|line| line.split_whitespace().nth(3)?.parse::<u64>().ok());
        std::env::var_os("TMPDIR").is_none() && free.is_some_and(|kilobytes| kilobytes > 512 << 10)
    });
    let in_memory = ROOM.then(|| tempfile::tempdir_in(MEMORY).ok()).flatten();
    in_memory.unwrap_or_else(|| TempDir::new().unwrap())
}

/// A repository, a script, and what is run.
pub(crate) struct Stage {
    folder: TempDir,
    /// What is run: a pack's name, or a file.
    workflow: String,
}

impl Stage {
    /// An empty repository.
    pub(crate) fn new(workflow: &str) -> Self {
        let stage = Self { folder: folder(), workflow: workflow.to_owned() };
        std::fs::create_dir(stage.repo()).unwrap();
        stage
    }

    /// The same repository somewhere else.
    pub(crate) fn copy(&self, workflow: &str) -> Self {
        let folder = folder();
        let copied = Command::new("cp").arg("-a").arg(self.repo()).arg(folder.path()).status();
        assert!(copied.unwrap().success(), "the repository cannot be copied");
        Self { folder, workflow: workflow.to_owned() }
    }

    /// The same with the pack ejected beside it, under another name.
    pub(crate) fn copy_with_pack(&self, workflow: &str) -> Self {
        let mut stage = self.copy(workflow);
        let (pack, name) = workflow.split_once('/').unwrap_or((workflow, "workflow"));
        let folder = stage.folder.path().join("theirs").join(format!("{RENAMED}{pack}"));
        let ejected = stage.said(&["pack", "eject", pack, folder.to_str().unwrap()]);
        assert!(ejected.status.success(), "{}", String::from_utf8_lossy(&ejected.stderr));
        let file = folder.join(format!("{name}.yaml"));
        let text = std::fs::read_to_string(&file).unwrap();
        let own = format!("workflow: {workflow}\n");
        assert!(text.contains(&own), "{workflow} is not called so in its file");
        let renamed = text.replacen(&own, &format!("workflow: {RENAMED}{workflow}\n"), 1);
        std::fs::write(&file, renamed).unwrap();
        stage.workflow = file.display().to_string();
        stage
    }

    /// The repository.
    pub(crate) fn repo(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    /// The folder of the pack that was ejected for it.
    pub(crate) fn pack(&self) -> PathBuf {
        Path::new(&self.workflow).parent().unwrap().to_owned()
    }

    /// A file of the repository.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.repo().join(path)
    }

    pub(crate) fn file(&self, path: &str, text: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = git(&self.repo(), arguments).output().unwrap();
        assert!(
            output.status.success(),
            "git {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// What the agents say and do. It stands beside the repository.
    pub(crate) fn script(&self, script: &str) {
        std::fs::write(self.folder.path().join("script.yaml"), script).unwrap();
    }

    /// The binary in the repository, with nothing of whoever runs the tests.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_counterfoil"));
        command.args(arguments).current_dir(self.repo()).stdin(Stdio::null());
        command.env_clear().env("NO_COLOR", "1").env("LANG", "C.UTF-8").env("USER", "kim");
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    /// What a command printed.
    pub(crate) fn said(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// A command that prints one JSON object.
    pub(crate) fn told(&self, arguments: &[&str]) -> Told {
        Told::of(self.said(arguments), arguments)
    }

    fn starting<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let base = ["run", &self.workflow, "--format", "json", "--agent", "script:../script.yaml"];
        [&base, more].concat()
    }

    /// Runs the workflow with the script to its end.
    pub(crate) fn run(&self, more: &[&str]) -> Told {
        self.told(&self.starting(more))
    }

    /// Starts it and does not wait.
    pub(crate) fn start(self, more: &[&str]) -> Live {
        let mut command = self.command(&self.starting(more));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Live { child, stage: self }
    }

    /// The events of a run.
    pub(crate) fn events(&self, run: &str) -> Vec<Value> {
        let output = self.said(&["show", run, "--events"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// A text without what only this place has: its paths and the name of its workflow.
    pub(crate) fn anonymous(&self, text: &str) -> String {
        let folder = self.folder.path().canonicalize().unwrap();
        let text = text.replace(&folder.display().to_string(), "FOLDER");
        text.replace(&self.folder.path().display().to_string(), "FOLDER").replace(RENAMED, "")
    }
}

/// A run that goes on while the test does something else. It does not outlive the test.
pub(crate) struct Live {
    child: Child,
    stage: Stage,
}

impl Live {
    /// Waits until a file of the repository is there: one that an agent wrote.
    pub(crate) fn until(&mut self, path: &str) {
        self.until_so(path, |stage| stage.path(path).exists());
    }

    /// Waits until something is so.
    pub(crate) fn until_so(&mut self, what: &str, so: impl Fn(&Stage) -> bool) {
        let began = Instant::now();
        while !so(&self.stage) {
            assert!(self.child.try_wait().unwrap().is_none(), "the run ended before: {what}");
            assert!(began.elapsed() < LONG, "waited in vain: {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills it without a warning, and leaves everything as it stands then.
    pub(crate) fn kill(mut self) -> Stage {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let elsewhere = Stage::new("");
        std::mem::replace(&mut self.stage, elsewhere)
    }

    /// Where it is at work.
    pub(crate) fn repo(&self) -> &Path {
        self.stage.folder.path()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
