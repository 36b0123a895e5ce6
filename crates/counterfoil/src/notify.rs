//! Tells a program of the user what happens in a run: that it ended, asks something, or stalls.

use crate::redaction;
use counterfoil_agents::agent::AgentProgress;
use counterfoil_contract::text::truncate;
use counterfoil_engine::RunObserver;
use counterfoil_engine::event_text::one_line;
use counterfoil_flow::{Event, Form, RunState};
use schemars::JsonSchema;
use serde::Serialize;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// After this time without a sign of life, a run counts as stalled.
const STALL: Duration = Duration::from_mins(10);
/// How often it is looked whether the run stalls.
const TICK: Duration = Duration::from_secs(5);
/// How long the end of the process waits for the program.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most characters that a message repeats of a command.
const MAX_COMMAND: usize = 60;
/// The most bytes that are read of what a program that failed wrote to stderr.
const MAX_STDERR_BYTES: usize = 4096;
/// The word for a notification of the desktop, instead of a command.
const DESKTOP: &str = "desktop";

/// What the program is told, as a line of JSON.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(crate) enum Notification<'a> {
    /// A run ended.
    End {
        /// The run's id.
        run: &'a str,
        /// The message for people.
        text: &'a str,
        /// The outcome of the run.
        outcome: &'a str,
        /// The reason for the outcome, as text.
        reason: &'a str,
    },
    /// A run asks a question.
    Question {
        /// The run's id.
        run: &'a str,
        /// The text of the question.
        text: &'a str,
        /// The question's id.
        question: &'a str,
        /// The form that an answer must have.
        form: &'a Form,
    },
    /// A run gives no sign of life.
    Stall {
        /// The run's id.
        run: &'a str,
        /// The message for people.
        text: &'a str,
        /// The time since the last sign of life, in seconds.
        silent_seconds: u64,
    },
}

impl Notification<'_> {
    /// The event, the run and the message, for the environment of the program.
    fn parts(&self) -> (&'static str, &str, &str) {
        match self {
            Self::End { run, text, .. } => ("end", run, text),
            Self::Question { run, text, .. } => ("question", run, text),
            Self::Stall { run, text, .. } => ("stall", run, text),
        }
    }
}

/// Tells a program of what somebody waits for.
pub(crate) struct Notifier {
    command: String,
    run: Mutex<String>,
    last_sign: Mutex<Instant>,
    /// Whether the program was told that the run stalls.
    stalled: AtomicBool,
    /// The programs that were started.
    started: Mutex<Vec<std::thread::JoinHandle<()>>>,
    /// Why a program failed, of the first that did.
    failed: Arc<Mutex<Option<String>>>,
}

impl Notifier {
    pub(crate) fn new(command: &str) -> Arc<Self> {
        let notifier = Arc::new(Self {
            command: command.to_owned(),
            run: Mutex::default(),
            last_sign: Mutex::new(Instant::now()),
            stalled: AtomicBool::new(false),
            started: Mutex::default(),
            failed: Arc::default(),
        });
        let watched = Arc::downgrade(&notifier);
        // Without the thread nobody is told of a stall; nothing else depends on it.
        let _ = std::thread::Builder::new().name("notify".to_owned()).spawn(move || {
            while let Some(notifier) = watched.upgrade() {
                notifier.watch();
                drop(notifier);
                std::thread::sleep(TICK);
            }
        });
        notifier
    }

    fn watch(&self) {
        let silent = lock(&self.last_sign).elapsed();
        if silent >= STALL && !self.stalled.swap(true, Ordering::Relaxed) {
            let minutes = silent.as_secs() / 60;
            let text = format!("no sign of life for {minutes} minutes");
            let (run, silent_seconds) = (self.run(), silent.as_secs());
            self.tell(&Notification::Stall { run: &run, text: &text, silent_seconds });
        }
    }

    fn run(&self) -> String {
        lock(&self.run).clone()
    }

    fn sign(&self) {
        *lock(&self.last_sign) = Instant::now();
        self.stalled.store(false, Ordering::Relaxed);
    }

    /// Starts the program with a message, without the secrets in it. It does not wait for it.
    fn tell(&self, message: &Notification<'_>) {
        let line = serde_json::to_string(message).ok().and_then(|line| redaction::json(&line));
        let Some(line) = line else { return };
        let (event, run, text) = message.parts();
        let text = redaction::text(text);
        let mut command = program(&self.command, &text);
        command
            .env("COUNTERFOIL_EVENT", event)
            .env("COUNTERFOIL_RUN", run)
            .env("COUNTERFOIL_TEXT", text.replace('\0', ""))
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        let failed = self.failed.clone();
        let thread = std::thread::spawn(move || {
            // Nobody depends on the program: a run is not stopped because it cannot be started.
            if let Some(problem) = run_to_end(command, &format!("{line}\n"))
                && let Ok(mut first) = failed.lock()
            {
                first.get_or_insert(problem);
            }
        });
        lock(&self.started).push(thread);
    }

    /// Tells how the run ended or why it waits, and waits a little for the program. Returns a warning
    /// if the program failed or has not ended.
    pub(crate) fn end(&self, outcome: &str, reason: &str) -> Option<String> {
        if outcome != "waiting" {
            let (run, text) = (self.run(), format!("{outcome}: {reason}"));
            let text = text.trim_end_matches(": ");
            self.tell(&Notification::End { run: &run, text, outcome, reason });
        }
        let began = Instant::now();
        let mut is_over = true;
        for thread in std::mem::take(&mut *lock(&self.started)) {
            while !thread.is_finished() && began.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(20));
            }
            is_over &= thread.is_finished();
        }
        let failed = lock(&self.failed).take();
        let late = (!is_over)
            .then(|| format!("is still running after {} s and goes on", PATIENCE.as_secs()));
        let problem = failed.or(late)?;
        Some(format!(
            "the command of --notify, `{}`, {}; the run itself is not affected",
            self.command_name(),
            redaction::text(&problem)
        ))
    }

    /// The command on one line, for messages.
    fn command_name(&self) -> String {
        if self.command == DESKTOP {
            return program(DESKTOP, "").get_program().to_string_lossy().into_owned();
        }
        truncate(&one_line(&redaction::text(&self.command)), MAX_COMMAND).into_owned()
    }
}

/// Starts a program, writes to it, and waits until it ends. Returns how it failed, if it did.
fn run_to_end(mut command: Command, input: &str) -> Option<String> {
    // A file and not a pipe, because the program may go on after this process.
    let stderr = tempfile::tempfile().ok();
    let written = stderr.as_ref().and_then(|file| file.try_clone().ok());
    command.stderr(written.map_or_else(Stdio::null, Stdio::from));
    let ended = match status_of(&mut command, input) {
        Ok(status) if status.success() => return None,
        Ok(status) => how_it_ended(status),
        Err(error) => format!("cannot be started: {error}"),
    };
    let said = stderr.and_then(|file| first_line(&file));
    Some(ended + &said.map(|line| format!(": {line}")).unwrap_or_default())
}

fn how_it_ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => format!("ended: {status}"),
    }
}

/// The first line of a file that is not blank, in a form that stays on its line.
fn first_line(file: &File) -> Option<String> {
    let mut buffer = vec![0; MAX_STDERR_BYTES];
    let length = file.read_at(&mut buffer, 0).ok()?;
    let text = String::from_utf8_lossy(&buffer[..length]);
    text.lines().map(one_line).find(|line| !line.is_empty())
}

/// The status with which a program ends that is started and told something.
fn status_of(command: &mut Command, input: &str) -> std::io::Result<ExitStatus> {
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // It need not read what it is told.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait()
}

/// The program to start: a command line for the shell, or what shows a notification on this desktop.
fn program(command: &str, text: &str) -> Command {
    if command != DESKTOP {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]);
        return shell;
    }
    let text = text.replace('\0', "");
    if cfg!(target_os = "macos") {
        let mut script = Command::new("osascript");
        script.args(["-e", "on run argv", "-e"]);
        script.arg("display notification (item 1 of argv) with title \"Counterfoil\"");
        script.args(["-e", "end run", "--", &text]);
        return script;
    }
    let mut send = Command::new("notify-send");
    send.args(["--app-name=Counterfoil", "--", "Counterfoil", &text]);
    send
}

impl RunObserver for Notifier {
    fn on_event(&self, event: &Event, _: i64, run: &RunState) {
        self.sign();
        lock(&self.run).clone_from(&run.run);
        if let Event::Asked { questions, .. } = event {
            for question in questions {
                self.tell(&Notification::Question {
                    run: &run.run,
                    text: &question.question,
                    question: &question.id,
                    form: &question.form,
                });
            }
        }
    }

    fn on_activity(&self, _: &str, _: &str) {
        self.sign();
    }

    fn on_agent_progress(&self, _: &str, _: &AgentProgress) {
        self.sign();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_told_once_until_there_is_a_sign_of_life() {
        let folder = tempfile::tempdir().unwrap();
        let told = folder.path().join("told");
        let command = format!("printf '%s ' \"$COUNTERFOIL_EVENT\" >> '{}'", told.display());
        let notifier = Notifier::new(&command);
        let silent = |notifier: &Notifier, time: Duration| {
            *lock(&notifier.last_sign) =
                Instant::now().checked_sub(time).unwrap_or_else(Instant::now);
        };
        silent(&notifier, STALL / 2);
        notifier.watch();
        silent(&notifier, STALL * 2);
        notifier.watch();
        notifier.watch();
        notifier.sign();
        notifier.watch();
        silent(&notifier, STALL * 2);
        notifier.watch();
        // The end waits for the programs that were started.
        notifier.end("waiting", "");
        assert_eq!(std::fs::read_to_string(&told).unwrap(), "stall stall ");
    }
}
