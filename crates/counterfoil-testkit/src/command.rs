//! Commands that a test runs to their end, or starts and watches.

use crate::output::CommandOutput;
use crate::process::{TIMEOUT, send_signal, wait_until};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A command with the input it reads. Without input, its standard input is empty.
#[derive(Debug)]
pub struct TestCommand {
    command: Command,
    input: Option<Vec<u8>>,
}

impl From<Command> for TestCommand {
    fn from(mut command: Command) -> Self {
        command.stdin(Stdio::null());
        Self { command, input: None }
    }
}

impl TestCommand {
    /// A program with an environment of its own: no color, UTF-8, the `PATH` of the test, and no
    /// configuration of git. Runs are kept in the repository. Nothing else is inherited.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("NO_COLOR", "1")
            .env("LANG", "C.UTF-8")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            // In the project of the test, never in the home folder of the person who tests.
            .env("COUNTERFOIL_STATE", ".counterfoil")
            // No place for keys; a project has one.
            .env("XDG_DATA_HOME", "/dev/null/data")
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.into()
    }

    /// Adds an argument.
    pub fn arg(&mut self, argument: impl AsRef<OsStr>) -> &mut Self {
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    pub fn args<S: AsRef<OsStr>>(&mut self, arguments: impl IntoIterator<Item = S>) -> &mut Self {
        self.command.args(arguments);
        self
    }

    /// Sets a variable.
    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.command.env(name, value);
        self
    }

    /// Sets variables.
    pub fn envs<K: AsRef<OsStr>, V: AsRef<OsStr>>(
        &mut self,
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> &mut Self {
        self.command.envs(variables);
        self
    }

    /// Removes a variable.
    pub fn env_remove(&mut self, name: impl AsRef<OsStr>) -> &mut Self {
        self.command.env_remove(name);
        self
    }

    /// Sets the directory in which the command runs.
    pub fn current_dir(&mut self, dir: impl AsRef<Path>) -> &mut Self {
        self.command.current_dir(dir);
        self
    }

    /// Passes bytes as standard input.
    pub fn write_stdin(&mut self, input: impl Into<Vec<u8>>) -> &mut Self {
        self.input = Some(input.into());
        self
    }

    /// The command of the standard library, for what this type does not offer.
    pub fn as_std(&mut self) -> &mut Command {
        &mut self.command
    }

    /// Runs the command to its end.
    pub fn output(&mut self) -> CommandOutput {
        let Some(input) = self.input.clone() else {
            return self.command.output().unwrap().into();
        };
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A command may print a lot before it has read everything, or end without reading.
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().unwrap();
        let _ = writer.join();
        output.into()
    }

    /// Starts the command; it prints into two files, so that it never waits for a reader.
    pub fn start(&mut self, stdout: PathBuf, stderr: PathBuf) -> RunningCommand {
        self.command.stdout(File::create(&stdout).unwrap()).stderr(File::create(&stderr).unwrap());
        RunningCommand { child: self.command.spawn().unwrap(), stdout, stderr }
    }
}

/// A command that is running. It is killed when the value is dropped.
#[derive(Debug)]
pub struct RunningCommand {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl RunningCommand {
    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the command has ended by itself.
    pub fn wait(self) -> CommandOutput {
        self.wait_for(TIMEOUT)
    }

    /// Waits at most so long until the command has ended by itself.
    pub fn wait_for(mut self, timeout: Duration) -> CommandOutput {
        let status = wait_until(timeout, "the process ends", || self.child.try_wait().unwrap());
        CommandOutput {
            code: status.code(),
            stdout: read_lossy(&self.stdout),
            stderr: read_lossy(&self.stderr),
        }
    }

    /// Sends SIGKILL. Returns whether that ended the process, rather than the process itself.
    pub fn kill(mut self) -> bool {
        self.child.kill().unwrap();
        self.child.wait().unwrap().signal() == Some(9)
    }

    /// Sends a signal by its name: `INT`, `TERM`.
    pub fn signal(&self, name: &str) {
        send_signal(name, &self.pid().to_string());
    }

    /// What is on standard output so far.
    pub fn stdout_so_far(&self) -> String {
        read_lossy(&self.stdout)
    }

    /// What is on standard error so far.
    pub fn stderr_so_far(&self) -> String {
        read_lossy(&self.stderr)
    }

    /// Whether the process has not ended yet.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_lossy(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()
}
