//! Runs git so that it asks nobody, waits for nothing and leaves alone what it was not asked to touch.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// No command of ours takes longer; one that does is stuck.
const PATIENCE: Duration = Duration::from_mins(5);
/// The most that is read of what git says.
const MOST_OUTPUT: u64 = 512 << 20;
/// The most that is read of its complaints.
const MOST_COMPLAINTS: u64 = 16 << 10;
/// Variables that say where git's own settings are. All others that begin with `GIT_` point it at another repository.
const KEPT: [&str; 6] = [
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
];

/// Why git gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// There is no git.
    #[error("git is not installed")]
    Absent,
    /// It could not be started, or spoken to.
    #[error("git could not be run: {0}")]
    Start(#[from] std::io::Error),
    /// It was killed.
    #[error("`git {what}` took longer than {} s and was stopped", PATIENCE.as_secs())]
    Stuck {
        /// The command.
        what: String,
    },
    /// It said more than anyone could mean.
    #[error("`git {what}` wrote more than {MOST_OUTPUT} bytes")]
    Endless {
        /// The command.
        what: String,
    },
    /// It refused.
    #[error("`git {what}` failed: {said}")]
    Refused {
        /// The command.
        what: String,
        /// Its complaint.
        said: String,
    },
}

/// What git answered.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Its exit code; none if a signal ended it.
    pub(crate) code: Option<i32>,
    /// What it wrote.
    pub(crate) stdout: Vec<u8>,
    /// Its complaint, on one line.
    pub(crate) complaint: String,
}

impl Answer {
    /// The output as a path or a word: without the newline that ends it.
    pub(crate) fn line(mut self) -> OsString {
        use std::os::unix::ffi::OsStringExt;
        if self.stdout.last() == Some(&b'\n') {
            self.stdout.pop();
        }
        OsString::from_vec(self.stdout)
    }
}

/// One command to be run.
#[derive(Debug)]
pub(crate) struct Call {
    folder: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
    stdin: Vec<u8>,
    output: Option<File>,
}

impl Call {
    /// A command in a folder.
    pub(crate) fn new<A: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = A>) -> Self {
        Self {
            folder: folder.to_owned(),
            arguments: arguments.into_iter().map(|argument| argument.as_ref().to_owned()).collect(),
            variables: Vec::new(),
            stdin: Vec::new(),
            output: None,
        }
    }

    /// With one more argument.
    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// With a variable set.
    pub(crate) fn env(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name, value.as_ref().to_owned()));
        self
    }

    /// With something to read.
    pub(crate) fn stdin(mut self, bytes: Vec<u8>) -> Self {
        self.stdin = bytes;
        self
    }

    /// Writing to a file rather than to us.
    pub(crate) fn output(mut self, file: File) -> Self {
        self.output = Some(file);
        self
    }

    /// Runs it, and takes no other exit code than 0.
    pub(crate) fn run(self) -> Result<Answer, Failure> {
        let what = self.what();
        let answer = self.ask()?;
        if answer.code == Some(0) {
            return Ok(answer);
        }
        let said = match (answer.complaint.is_empty(), answer.code) {
            (false, _) => answer.complaint,
            (true, Some(code)) => format!("exit code {code}"),
            (true, None) => "it was killed".to_owned(),
        };
        Err(Failure::Refused { what, said })
    }

    /// Runs it; the exit code is an answer.
    pub(crate) fn ask(self) -> Result<Answer, Failure> {
        let what = self.what();
        let (mut child, deadline) = (self.start()?, Instant::now() + PATIENCE);
        let stdin = child.stdin.take().map(|mut pipe| {
            let bytes = self.stdin;
            // A git that does not read on has said why on stderr.
            std::thread::spawn(move || drop(pipe.write_all(&bytes)))
        });
        let (done, both) = mpsc::channel();
        let stdout = child.stdout.take().map(|pipe| hear(pipe, MOST_OUTPUT, done.clone()));
        let stderr = child.stderr.take().map(|pipe| hear(pipe, MOST_COMPLAINTS, done));
        let mut cut = None;
        loop {
            match both.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Ear::Closed) => {}
                Ok(Ear::Full) => cut = Some(Failure::Endless { what: what.clone() }),
                Err(RecvTimeoutError::Timeout) => cut = Some(Failure::Stuck { what: what.clone() }),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if cut.is_some() {
                kill(&child);
                break;
            }
        }
        let status = child.wait()?;
        let stdout = stdout.map(joined).unwrap_or_default();
        let stderr = stderr.map(joined).unwrap_or_default();
        if let Some(stdin) = stdin {
            let _ = stdin.join();
        }
        match cut {
            Some(failure) => Err(failure),
            None => Ok(Answer { code: status.code(), stdout, complaint: on_one_line(&stderr) }),
        }
    }

    fn start(&self) -> Result<Child, Failure> {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            let bytes = name.as_encoded_bytes();
            if bytes.starts_with(b"GIT_") && !KEPT.iter().any(|kept| kept.as_bytes() == bytes) {
                command.env_remove(name);
            }
        }
        // Hooks and monitors are programs of the repository's; a question on the terminal would wait for ever.
        command.args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0"]);
        command
            .args(&self.arguments)
            .current_dir(&self.folder)
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(if self.stdin.is_empty() { Stdio::null() } else { Stdio::piped() })
            .stderr(Stdio::piped())
            .process_group(0);
        match &self.output {
            Some(file) => command.stdout(file.try_clone()?),
            None => command.stdout(Stdio::piped()),
        };
        command.spawn().map_err(|error| match error.kind() {
            // The folder may be what is missing.
            std::io::ErrorKind::NotFound if self.folder.is_dir() => Failure::Absent,
            _ => Failure::Start(error),
        })
    }

    /// The command by its name, for people.
    fn what(&self) -> String {
        let mut words = self.arguments.iter().map(|word| word.to_string_lossy());
        let mut named = Vec::new();
        while let Some(word) = words.next() {
            if word == "-c" {
                words.next();
            } else {
                named.push(word);
            }
        }
        named.truncate(3);
        named.join(" ")
    }
}

enum Ear {
    Closed,
    Full,
}

fn hear(mut pipe: impl Read + Send + 'static, most: u64, done: mpsc::Sender<Ear>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut heard = Vec::new();
        let _ = pipe.by_ref().take(most).read_to_end(&mut heard);
        let full = heard.len() as u64 == most && most == MOST_OUTPUT;
        let _ = done.send(if full { Ear::Full } else { Ear::Closed });
        if !full {
            // Complaints beyond what anyone reads must not block it.
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        }
        heard
    })
}

fn joined(thread: JoinHandle<Vec<u8>>) -> Vec<u8> {
    thread.join().unwrap_or_default()
}

fn kill(child: &Child) {
    let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

fn on_one_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.take(4).collect::<Vec<_>>().join("; ")
}
