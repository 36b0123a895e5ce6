//! Runs git so that it asks nobody, waits for nothing, runs nothing of the repository's own and
//! leaves alone what it was not asked to touch. Everything here that needs git goes through a
//! [`Call`]. Only one that is to be [supervised](Call::supervised) runs the way its user would run
//! it.

use counterfoil_process::{Clocks, Environment, Spawn};
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A call that does not say otherwise takes no longer; one that does is stuck.
const PATIENCE: Duration = Duration::from_mins(5);
/// What a call may say on its standard output before it is ended.
const MOST_OUTPUT: u64 = 1 << 30;
/// What is kept of its complaints.
const MOST_WORDS: u64 = 4000;
/// So many words of a command are its name, for people.
const NAMED: usize = 1;
/// Hooks and monitors are programs of the repository's; a pager would wait for ever.
const SETTINGS: [&str; 4] =
    ["core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat", "gc.auto=0"];
/// Variables of ours that git must hear too: where its settings are, and where it stops to look for
/// a repository. All others that begin with `GIT_` point it at another repository.
const HEARD: [&str; 4] =
    ["GIT_CONFIG", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM"];

/// The commit that HEAD names in a folder; none outside of git, or before the first commit.
pub fn head(folder: &Path) -> Option<String> {
    // Where there is no repository, nobody has to be asked.
    folder.ancestors().find(|above| above.join(".git").exists())?;
    let head = Call::new(folder, ["rev-parse", "-q", "--verify", "HEAD^{commit}"]).ask().ok()?;
    head.ok().then(|| head.line().to_string_lossy().into_owned())
}

/// Variables that say who the user is.
const IDENTITY: [&str; 2] = ["GIT_AUTHOR_", "GIT_COMMITTER_"];
/// What git would leave running behind itself.
const NOTHING_BEHIND: [&str; 3] = ["core.fsmonitor=false", "gc.auto=0", "maintenance.auto=false"];

/// Why git gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// There is no such program.
    #[error(
        "git is not there (`{0}` was not found on the PATH); install it to have work seen as git sees it"
    )]
    Absent(String),
    /// It could not be started or heard.
    #[error("`git {what}` could not be run: {why}")]
    Unheard {
        /// The command.
        what: String,
        /// Why.
        why: String,
    },
    /// It took too long, and was ended.
    #[error("`git {what}` was ended: it took longer than {} s", limit.as_secs_f64())]
    Late {
        /// The command.
        what: String,
        /// How long it had.
        limit: Duration,
    },
    /// It said too much, and was ended.
    #[error("`git {what}` was ended: it said more than {} MiB", most >> 20)]
    TooMuch {
        /// The command.
        what: String,
        /// How many bytes it may say.
        most: u64,
    },
    /// It said no.
    #[error("`git {what}` failed: {words}")]
    Refused {
        /// The command.
        what: String,
        /// Its complaint.
        words: String,
    },
}

/// What git answered.
#[derive(Debug)]
pub struct Answer {
    status: ExitStatus,
    /// What it wrote.
    pub stdout: Vec<u8>,
    /// Its complaints, on one line.
    pub words: String,
}

impl Answer {
    /// Whether it said yes.
    pub fn ok(&self) -> bool {
        self.status.success()
    }

    /// Its exit code; none if a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The output as a path or a word: without the newline that ends it.
    pub fn line(mut self) -> OsString {
        use std::os::unix::ffi::OsStringExt;
        if self.stdout.last() == Some(&b'\n') {
            self.stdout.pop();
        }
        OsString::from_vec(self.stdout)
    }
}

/// One command to be run.
#[derive(Debug)]
pub struct Call {
    program: OsString,
    limit: Duration,
    most: u64,
    by_user: bool,
    folder: PathBuf,
    settings: Vec<String>,
    arguments: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
    stdin: Option<Vec<u8>>,
    output: Option<File>,
}

impl Call {
    /// A command in a folder.
    pub fn new<A: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = A>) -> Self {
        Self {
            program: "git".into(),
            limit: PATIENCE,
            most: MOST_OUTPUT,
            by_user: false,
            folder: folder.to_owned(),
            settings: Vec::new(),
            arguments: arguments.into_iter().map(|argument| argument.as_ref().to_owned()).collect(),
            variables: Vec::new(),
            stdin: None,
            output: None,
        }
    }

    /// By another git, or in another time.
    pub fn by(mut self, program: &OsStr, limit: Duration) -> Self {
        (self.program, self.limit) = (program.to_owned(), limit);
        self
    }

    /// Saying no more than this.
    pub fn most(mut self, bytes: u64) -> Self {
        self.most = bytes;
        self
    }

    /// As the user, where variables say who that is.
    pub fn by_user(mut self) -> Self {
        self.by_user = true;
        self
    }

    /// With a setting, `key=value`.
    pub fn set(mut self, setting: impl Into<String>) -> Self {
        self.settings.push(setting.into());
        self
    }

    /// With one more argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// With a variable set.
    pub fn env(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name, value.as_ref().to_owned()));
        self
    }

    /// With something to read.
    pub fn stdin(mut self, bytes: Vec<u8>) -> Self {
        self.stdin = Some(bytes);
        self
    }

    /// Writing to a file rather than to us.
    pub fn output(mut self, file: File) -> Self {
        self.output = Some(file);
        self
    }

    /// Runs it, and takes no other exit code than 0.
    pub fn run(self) -> Result<Answer, Failure> {
        let what = self.what();
        let answer = self.ask()?;
        if answer.ok() {
            return Ok(answer);
        }
        let words = match answer.words.as_str() {
            "" => format!("it ended with {}", answer.status),
            words => words.to_owned(),
        };
        Err(Failure::Refused { what, words })
    }

    /// Runs it; the exit code is an answer.
    pub fn ask(mut self) -> Result<Answer, Failure> {
        let what = self.what();
        let unheard = |why: String| Failure::Unheard { what: what.clone(), why };
        let mut child = self.start()?;
        let deadline = Instant::now() + self.limit;
        // None of these threads is waited for: a stranger who holds a pipe open must not hold us.
        let (told, hear) = mpsc::channel();
        // One byte more than it may say tells that it said too much.
        let most = self.most.saturating_add(1);
        match child.stdout.take() {
            Some(mut out) => {
                std::thread::spawn(move || {
                    let mut bytes = Vec::new();
                    let read = out.by_ref().take(most).read_to_end(&mut bytes);
                    let _ = told.send(read.map(|_| bytes));
                });
            }
            None => drop(told.send(Ok(Vec::new()))),
        }
        let (told_words, hear_words) = mpsc::channel();
        if let Some(mut words) = child.stderr.take() {
            std::thread::spawn(move || {
                let mut kept = Vec::new();
                let _ = words.by_ref().take(MOST_WORDS).read_to_end(&mut kept);
                let _ = told_words.send(kept);
                let _ = std::io::copy(&mut words, &mut std::io::sink());
            });
        }
        if let (Some(mut pipe), Some(input)) = (child.stdin.take(), self.stdin.take()) {
            // A git that does not read on has said why.
            std::thread::spawn(move || pipe.write_all(&input));
        }
        let heard = hear.recv_timeout(self.limit);
        let full = matches!(&heard, Ok(Ok(bytes)) if bytes.len() as u64 > self.most);
        let ended = if full || heard.is_err() { None } else { wait(&mut child, deadline) };
        let Some(status) = ended else {
            end(&mut child);
            return Err(if full {
                Failure::TooMuch { what, most: self.most }
            } else {
                Failure::Late { what, limit: self.limit }
            });
        };
        let stdout = match heard {
            Ok(Ok(stdout)) => stdout,
            Ok(Err(error)) => return Err(unheard(error.to_string())),
            Err(_) => return Err(unheard("nothing was heard of it".to_owned())),
        };
        let words = hear_words.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
        Ok(Answer { status, stdout, words: on_one_line(&words) })
    }

    fn start(&self) -> Result<Child, Failure> {
        let mut command = Command::new(&self.program);
        for (key, _) in std::env::vars_os() {
            if !self.hears(&key) {
                command.env_remove(&key);
            }
        }
        command.args(["--no-optional-locks", "--no-pager"]);
        for setting in SETTINGS.into_iter().chain(self.settings.iter().map(String::as_str)) {
            command.args(["-c", setting]);
        }
        command
            .args(&self.arguments)
            .current_dir(&self.folder)
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            // An object that another stands in for would be a way to make an edit look committed.
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() })
            .stderr(Stdio::piped())
            .process_group(0);
        let unheard = |why: String| Failure::Unheard { what: self.what(), why };
        match &self.output {
            Some(file) => {
                command.stdout(file.try_clone().map_err(|error| unheard(error.to_string()))?)
            }
            None => command.stdout(Stdio::piped()),
        };
        command.spawn().map_err(|error| match error.kind() {
            // The folder may be what is missing.
            std::io::ErrorKind::NotFound if self.folder.is_dir() => {
                Failure::Absent(self.program.to_string_lossy().into_owned())
            }
            _ => unheard(error.to_string()),
        })
    }

    /// Whether git is to hear a variable of ours.
    fn hears(&self, name: &OsStr) -> bool {
        let name = name.to_string_lossy();
        let begins = |with: &[&str]| with.iter().any(|with| name.starts_with(with));
        !name.starts_with("GIT_") || begins(&HEARD) || (self.by_user && begins(&IDENTITY))
    }

    /// The command as a child to be supervised, the way its user would run it: with the hooks,
    /// settings and identity there are. It asks nobody, and leaves nothing running behind
    /// itself.
    pub fn supervised(self, marker: String, limit: Duration) -> Spawn {
        let call = self.by_user();
        let mut argv = vec![call.program.clone(), "--no-pager".into()];
        for setting in NOTHING_BEHIND.into_iter().chain(call.settings.iter().map(String::as_str)) {
            argv.extend(["-c".into(), setting.into()]);
        }
        argv.extend(call.arguments.iter().cloned());
        let environment = std::env::vars_os().filter(|(name, _)| call.hears(name)).collect();
        let mut extra: Vec<(OsString, OsString)> = vec![("GIT_TERMINAL_PROMPT".into(), "0".into())];
        extra.extend(call.variables.into_iter().map(|(name, value)| (name.into(), value)));
        Spawn {
            argv,
            cwd: call.folder,
            environment: Environment::Only(environment),
            extra,
            stdin: call.stdin.unwrap_or_default(),
            marker,
            clocks: Clocks { total: Some(limit), ..Clocks::default() },
        }
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
        named.truncate(NAMED);
        named.join(" ")
    }
}

/// Waits until a child that said everything has ended; none if it does not.
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

/// Ends a child and the group it leads. It is not reaped yet, so its number is still its own.
fn end(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Words of git as one line.
fn on_one_line(words: &[u8]) -> String {
    String::from_utf8_lossy(words).split_whitespace().collect::<Vec<_>>().join(" ")
}
