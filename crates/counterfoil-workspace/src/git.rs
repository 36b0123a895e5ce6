//! Runs git without prompts, hooks, background processes or changes that were not asked for.
//!
//! Everything in this crate that needs git goes through a [`GitCommand`]. Only a command that is to
//! be [supervised](GitCommand::into_child_spec) runs with the user's hooks and settings.

pub mod programs;
mod quote;
pub mod recent_writes;
mod settings;
mod special_files;

pub use settings::SettingsCache;

pub use quote::quote_path;

use counterfoil_process::{ChildSpec, Environment, Timeouts};
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long a command may take unless it sets another timeout.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(5);
/// A command that takes longer is looked after.
const LONG: Duration = Duration::from_secs(2);
/// How many bytes a command may write to stdout before it is killed, unless it sets another limit.
const DEFAULT_MAX_OUTPUT: u64 = 1 << 30;
/// The length of a file that contains a path.
const MAX_POINTER: u64 = 1 << 16;
/// How many bytes of stderr are kept.
const MAX_STDERR: u64 = 4000;
/// Settings that keep git from running programs of the repository (hooks, monitors) and from
/// waiting in a pager.
const SAFE_CONFIG: [&str; 4] =
    ["core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat", "gc.auto=0"];
/// Prefixes of the `GIT_` variables that are passed on: where git finds its settings and programs,
/// and where it stops looking for a repository. All others would point it at another repository.
const PASSED_VARIABLES: [&str; 4] =
    ["GIT_CONFIG", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM"];
/// Prefixes of the variables that hold the user's identity.
const IDENTITY_VARIABLES: [&str; 2] = ["GIT_AUTHOR_", "GIT_COMMITTER_"];
/// Settings that keep git from leaving background processes behind.
const NO_BACKGROUND_CONFIG: [&str; 3] =
    ["core.fsmonitor=false", "gc.auto=0", "maintenance.auto=false"];

/// The top of the repository around a folder, found without starting git. As for git, a folder called
/// `.git` that has no repository in it does not count, and a file of that name that leads nowhere
/// ends the search.
pub fn repository_top(folder: &Path) -> Option<&Path> {
    for above in folder.ancestors() {
        let git = above.join(".git");
        if git.is_dir() {
            if is_repository(&git) {
                return Some(above);
            }
        } else if git.symlink_metadata().is_ok() {
            let named = read_pointer(&git)?;
            let named = named.strip_prefix(b"gitdir: ")?.trim_ascii_end();
            return is_repository(&above.join(OsStr::from_bytes(named))).then_some(above);
        }
    }
    None
}

/// The git folder that all worktrees of a repository share, found without starting git, given the
/// top of one of them. `None` if there is no repository or its folder cannot be read.
pub fn common_folder(top: &Path) -> Option<PathBuf> {
    let git = own_folder(top)?;
    let pointer = git.join("commondir");
    let common = if pointer.symlink_metadata().is_ok() {
        git.join(OsStr::from_bytes(read_pointer(&pointer)?.trim_ascii_end()))
    } else {
        git
    };
    common.canonicalize().ok()
}

/// Whether a repository is a shallow clone, which lacks older commits, given the top of its work tree.
pub fn is_shallow(top: &Path) -> bool {
    let list = common_folder(top).map(|common| common.join("shallow"));
    let meta = list.and_then(|list| list.metadata().ok());
    meta.is_some_and(|meta| meta.is_file() && meta.len() > 0)
}

/// The git folder of one work tree, given its top.
fn own_folder(top: &Path) -> Option<PathBuf> {
    let git = top.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let named = read_pointer(&git)?;
    Some(top.join(OsStr::from_bytes(named.strip_prefix(b"gitdir: ")?.trim_ascii_end())))
}

/// Reads a file of git that contains a path. Nothing else than a small regular file is opened, which
/// an agent may have put in its place.
pub(crate) fn read_pointer(path: &Path) -> Option<Vec<u8>> {
    let meta = path.metadata().ok()?;
    (meta.is_file() && meta.len() < MAX_POINTER).then(|| std::fs::read(path).ok()).flatten()
}

/// Whether a git folder has what git requires of one. That of a worktree shares the rest with the
/// repository.
fn is_repository(git: &Path) -> bool {
    let exists = |name: &str| git.join(name).symlink_metadata().is_ok();
    let is_folder = |name: &str| git.join(name).is_dir();
    exists("HEAD") && (exists("commondir") || (is_folder("objects") && is_folder("refs")))
}

/// The commit that HEAD points to in a folder. `None` outside of git, and before the first commit.
pub fn head(folder: &Path) -> Option<String> {
    // Without a repository there is no need to start git.
    repository_top(folder)?;
    let command = GitCommand::new(folder, ["rev-parse", "-q", "--verify", "HEAD^{commit}"]);
    let output = command.output().ok()?;
    output.ok().then(|| output.line().to_string_lossy().into_owned())
}

/// Why a git command gave no usable result.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The git program was not found.
    #[error("git is not installed (`{0}` was not found on the PATH)")]
    NotInstalled(String),
    /// The command could not be started, or its output could not be read.
    #[error("`git {command}` could not be run: {reason}")]
    NotRun {
        /// The name of the git command, such as `status`.
        command: String,
        /// The operating system's error.
        reason: String,
    },
    /// The command took too long and was killed.
    #[error("`git {command}` was killed: it took longer than {} s", limit.as_secs_f64())]
    TimedOut {
        /// The name of the git command.
        command: String,
        /// The timeout.
        limit: Duration,
    },
    /// The command wrote too much and was killed.
    #[error("`git {command}` was killed: it wrote more than {} MiB", limit >> 20)]
    OutputTooLarge {
        /// The name of the git command.
        command: String,
        /// How many bytes it was allowed to write.
        limit: u64,
    },
    /// Something else is in the place of a file that git reads.
    #[error("`git {command}` was not run: {} is {kind}; remove it", path.display())]
    SpecialFile {
        /// The name of the git command.
        command: String,
        /// Its path.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// The command ended with a non-zero exit code.
    #[error("`git {command}` failed: {message}")]
    Failed {
        /// The name of the git command.
        command: String,
        /// What git wrote to stderr, or the exit status if it wrote nothing.
        message: String,
    },
}

/// The result of a git command that ran to its end.
#[derive(Debug)]
pub struct GitOutput {
    status: ExitStatus,
    /// The bytes written to stdout.
    pub stdout: Vec<u8>,
    /// The beginning of stderr, on one line.
    pub stderr: String,
}

impl GitOutput {
    /// Whether the exit code is 0.
    pub fn ok(&self) -> bool {
        self.status.success()
    }

    /// The exit code. `None` if a signal ended the command.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The output as a single path or word: without the newline at its end.
    pub fn line(mut self) -> OsString {
        use std::os::unix::ffi::OsStringExt;
        if self.stdout.last() == Some(&b'\n') {
            self.stdout.pop();
        }
        OsString::from_vec(self.stdout)
    }
}

/// A git command to run in a folder.
#[derive(Debug)]
pub struct GitCommand {
    program: OsString,
    timeout: Duration,
    max_output: u64,
    as_user: bool,
    folder: PathBuf,
    config: Vec<String>,
    arguments: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
    stdin: Option<Vec<u8>>,
    stdout_file: Option<File>,
}

impl GitCommand {
    /// A command with its arguments, to run in a folder.
    pub fn new<A: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = A>) -> Self {
        Self {
            program: "git".into(),
            timeout: DEFAULT_TIMEOUT,
            max_output: DEFAULT_MAX_OUTPUT,
            as_user: false,
            folder: folder.to_owned(),
            config: Vec::new(),
            arguments: arguments.into_iter().map(|argument| argument.as_ref().to_owned()).collect(),
            variables: Vec::new(),
            stdin: None,
            stdout_file: None,
        }
    }

    /// Runs this program instead of `git`.
    pub fn program(mut self, program: &OsStr) -> Self {
        program.clone_into(&mut self.program);
        self
    }

    /// Kills the command when it takes longer than this.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Kills the command when it writes more than this many bytes to stdout.
    pub fn max_output(mut self, bytes: u64) -> Self {
        self.max_output = bytes;
        self
    }

    /// Passes on the variables that hold the user's identity.
    pub fn as_user(mut self) -> Self {
        self.as_user = true;
        self
    }

    /// Adds a setting, `key=value`.
    pub fn config(mut self, setting: impl Into<String>) -> Self {
        self.config.push(setting.into());
        self
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name, value.as_ref().to_owned()));
        self
    }

    /// Writes these bytes to stdin.
    pub fn stdin(mut self, bytes: Vec<u8>) -> Self {
        self.stdin = Some(bytes);
        self
    }

    /// Redirects stdout to a file.
    pub fn stdout_to(mut self, file: File) -> Self {
        self.stdout_file = Some(file);
        self
    }

    /// Runs the command and requires exit code 0.
    pub fn run(self) -> Result<GitOutput, GitError> {
        let command = self.name();
        let output = self.output()?;
        if output.ok() {
            return Ok(output);
        }
        let message = match output.stderr.as_str() {
            "" => format!("it ended with {}", output.status),
            stderr => stderr.to_owned(),
        };
        Err(GitError::Failed { command, message })
    }

    /// Runs the command and accepts any exit code.
    pub fn output(mut self) -> Result<GitOutput, GitError> {
        let command = self.name();
        let not_run = |reason: String| GitError::NotRun { command: command.clone(), reason };
        let mut child = self.start()?;
        let deadline = Instant::now() + self.timeout;
        // None of these threads is joined: another process that holds a pipe open must not block
        // us.
        let (stdout_sender, stdout_receiver) = mpsc::channel();
        // One byte more than the limit shows that the limit was exceeded.
        let limit = self.max_output.saturating_add(1);
        match child.stdout.take() {
            Some(mut stdout) => {
                std::thread::spawn(move || {
                    let mut bytes = Vec::new();
                    let read = stdout.by_ref().take(limit).read_to_end(&mut bytes);
                    let _ = stdout_sender.send(read.map(|_| bytes));
                });
            }
            None => drop(stdout_sender.send(Ok(Vec::new()))),
        }
        let (stderr_sender, stderr_receiver) = mpsc::channel();
        if let Some(mut stderr) = child.stderr.take() {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = stderr.by_ref().take(MAX_STDERR).read_to_end(&mut bytes);
                let _ = stderr_sender.send(bytes);
                let _ = std::io::copy(&mut stderr, &mut std::io::sink());
            });
        }
        if let (Some(mut pipe), Some(input)) = (child.stdin.take(), self.stdin.take()) {
            // If git stops reading, its exit code and stderr say why.
            std::thread::spawn(move || pipe.write_all(&input));
        }
        let mut received = stdout_receiver.recv_timeout(self.timeout.min(LONG));
        if received.is_err() && self.timeout > LONG {
            // Git may wait for somebody to write into a pipe.
            if let Some(found) = special_files::search(&self.folder) {
                kill(&mut child);
                return Err(special(command, found));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            received = stdout_receiver.recv_timeout(left);
        }
        let too_large = matches!(&received, Ok(Ok(bytes)) if bytes.len() as u64 > self.max_output);
        let ended = if too_large || received.is_err() { None } else { wait(&mut child, deadline) };
        let Some(status) = ended else {
            kill(&mut child);
            return Err(if too_large {
                GitError::OutputTooLarge { command, limit: self.max_output }
            } else {
                GitError::TimedOut { command, limit: self.timeout }
            });
        };
        let stdout = match received {
            Ok(Ok(stdout)) => stdout,
            Ok(Err(error)) => return Err(not_run(error.to_string())),
            Err(_) => return Err(not_run("its output could not be read".to_owned())),
        };
        let stderr = stderr_receiver.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
        Ok(GitOutput { status, stdout, stderr: on_one_line(&stderr) })
    }

    fn start(&self) -> Result<Child, GitError> {
        if let Some(found) = special_files::likely(&self.folder) {
            return Err(special(self.name(), found));
        }
        let overrides = programs::overrides(&self.folder, &self.name())?;
        let mut command = Command::new(&self.program);
        for (key, _) in std::env::vars_os() {
            if !self.passes(&key) {
                command.env_remove(&key);
            }
        }
        command.args(["--no-optional-locks", "--no-pager"]);
        let settings = overrides.iter().chain(&self.config).map(String::as_str);
        for setting in settings.chain(SAFE_CONFIG) {
            command.args(["-c", setting]);
        }
        command
            .args(&self.arguments)
            .current_dir(&self.folder)
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            // A replaced object could make an edit look committed.
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env(counterfoil_process::MARKER, counterfoil_process::own_marker())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() })
            .stderr(Stdio::piped())
            .process_group(0);
        let not_run = |reason: String| GitError::NotRun { command: self.name(), reason };
        match &self.stdout_file {
            Some(file) => {
                command.stdout(file.try_clone().map_err(|error| not_run(error.to_string()))?)
            }
            None => command.stdout(Stdio::piped()),
        };
        command.spawn().map_err(|error| match error.kind() {
            // The same error is reported for a missing folder.
            std::io::ErrorKind::NotFound if self.folder.is_dir() => {
                GitError::NotInstalled(self.program.to_string_lossy().into_owned())
            }
            _ => not_run(error.to_string()),
        })
    }

    /// Whether one of our environment variables is passed on to git.
    fn passes(&self, name: &OsStr) -> bool {
        let name = name.to_string_lossy();
        let has_prefix = |prefixes: &[&str]| prefixes.iter().any(|with| name.starts_with(with));
        !name.starts_with("GIT_")
            || has_prefix(&PASSED_VARIABLES)
            || (self.as_user && has_prefix(&IDENTITY_VARIABLES))
    }

    /// The command as a child for the process supervisor, run the way its user would run it: with
    /// the user's hooks, settings and identity. It does not prompt and leaves no background process
    /// behind.
    pub fn into_child_spec(self, marker: String, timeout: Duration) -> ChildSpec {
        let command = self.as_user();
        let mut argv = vec![command.program.clone(), "--no-pager".into()];
        let config = command.config.iter().map(String::as_str);
        for setting in NO_BACKGROUND_CONFIG.into_iter().chain(config) {
            argv.extend(["-c".into(), setting.into()]);
        }
        argv.extend(command.arguments.iter().cloned());
        let environment = std::env::vars_os().filter(|(name, _)| command.passes(name)).collect();
        let mut extra: Vec<(OsString, OsString)> = vec![("GIT_TERMINAL_PROMPT".into(), "0".into())];
        extra.extend(command.variables.into_iter().map(|(name, value)| (name.into(), value)));
        ChildSpec {
            argv,
            cwd: command.folder,
            environment: Environment::Only(environment),
            extra,
            stdin: command.stdin.unwrap_or_default(),
            marker,
            timeouts: Timeouts { total: Some(timeout), ..Timeouts::default() },
        }
    }

    /// The git command by its name, for messages: the first argument that is no setting.
    fn name(&self) -> String {
        let mut words = self.arguments.iter().map(|word| word.to_string_lossy());
        while let Some(word) = words.next() {
            if word == "-c" {
                words.next();
            } else {
                return word.into_owned();
            }
        }
        String::new()
    }
}

fn special(command: String, found: special_files::SpecialFile) -> GitError {
    GitError::SpecialFile { command, path: found.path, kind: found.kind }
}

/// Waits until a child that closed its stdout has ended. `None` if it does not end in time.
fn wait(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    let mut pause = Duration::from_micros(100);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(20));
            }
            _ => return None,
        }
    }
}

/// Kills a child and its process group. The child is not reaped yet, so its process id cannot have
/// been reused.
fn kill(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

fn on_one_line(text: &[u8]) -> String {
    String::from_utf8_lossy(text).split_whitespace().collect::<Vec<_>>().join(" ")
}
