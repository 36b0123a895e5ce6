//! Changes runs for a server: answers and cancels here, and continues and starts runs in processes of
//! their own, which go on when the server stops.

use crate::cli::StateLocation;
use crate::command::runs::environment_of_run;
use crate::{person, state_folder};
use counterfoil_agents::environment::AgentEnvironment;
use counterfoil_contract::text::{display_path, escape_control};
use counterfoil_engine::{CancelOutcome, Engine};
use counterfoil_server::{ControlError, ResumeRequest, RunControl, StartRequest};
use counterfoil_workspace::make_private_folder;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a process that ends at once is waited for, so that its error is told.
const START_TIME: Duration = Duration::from_millis(1500);
/// How often it is looked whether it has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(25);
/// The most bytes of its output in an error.
const MAX_OUTPUT: u64 = 4000;

/// Changes the runs of this machine.
pub(super) struct LocalControl {
    /// Whether clients may start runs.
    pub(super) may_start: bool,
    /// Whether clients may resume runs, in processes that this one starts.
    pub(super) may_resume: bool,
    /// The repository in which runs are started.
    pub(super) repo: Option<PathBuf>,
    /// The run whose answers this process waits for.
    pub(super) awaited: AwaitedRun,
}

/// The run whose answers a process waits for, if there is one. Copies share it.
#[derive(Clone, Debug, Default)]
pub(super) struct AwaitedRun(Arc<Mutex<Option<String>>>);

impl AwaitedRun {
    pub(super) fn set(&self, run: Option<&str>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = run.map(str::to_owned);
    }

    fn is(&self, run: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_deref() == Some(run)
    }
}

fn failed(error: impl std::fmt::Display) -> ControlError {
    ControlError::Failed(format!("{error:#}"))
}

fn open(state: &Path) -> Result<Engine, ControlError> {
    Engine::open(state, state_folder::keys_folder().as_deref()).map_err(ControlError::Engine)
}

impl RunControl for LocalControl {
    fn may_resume(&self) -> bool {
        self.may_resume
    }

    fn waits_for(&self, run: &str) -> bool {
        self.awaited.is(run)
    }

    fn answer(
        &self,
        state: &Path,
        run: &str,
        question: &str,
        answer: &str,
    ) -> Result<(), ControlError> {
        Ok(open(state)?.answer(run, question, answer, person::current())?)
    }

    fn cancel(&self, state: &Path, run: &str) -> Result<String, ControlError> {
        let engine = open(state)?;
        // Without the programs of the agents, what lost attempts used is not counted.
        let location = StateLocation { repo: self.repo.clone(), state: Some(state.to_owned()) };
        let environment = environment_of_run(&engine, &location, state, run)
            .unwrap_or_else(|_| AgentEnvironment::default());
        Ok(match engine.cancel(run, environment, person::current())? {
            CancelOutcome::Cancelled => "the run is cancelled".to_owned(),
            CancelOutcome::Requested => {
                "the process that runs it was asked to cancel it".to_owned()
            }
        })
    }

    fn resume(
        &self,
        state: &Path,
        run: &str,
        request: &ResumeRequest,
    ) -> Result<String, ControlError> {
        if !self.may_resume {
            // A process that drives runs would start it, so it would count as started by a run.
            return Err(ControlError::NotAllowed(format!(
                "this dashboard belongs to the process of a run and resumes no run; use \
                 `counterfoil resume {run}`, or the dashboard of `counterfoil ui`"
            )));
        }
        let mut arguments = vec!["resume".to_owned(), run.to_owned()];
        let options = [
            ("--because", &request.because),
            ("--max-cost", &request.max_cost),
            ("--max-time", &request.max_time),
            ("--max-attempts", &request.max_attempts),
            ("--max-tokens", &request.max_tokens),
            ("--max-iterations", &request.max_iterations),
        ];
        for (option, value) in options {
            let value = value.trim();
            if !value.is_empty() {
                // In one word, so that a value is never an option.
                arguments.push(format!("{option}={value}"));
            }
        }
        match self.spawn(state, &arguments, run)? {
            Spawned::Drives(message) => Ok(message),
            Spawned::Ended => Ok(went_on(&open(state)?.report(run)?.outcome)),
        }
    }

    fn start(&self, state: &Path, request: &StartRequest) -> Result<String, ControlError> {
        if !self.may_start {
            let why =
                "this server does not start runs; start it with `counterfoil serve --allow-start`";
            return Err(ControlError::NotAllowed(why.to_owned()));
        }
        let mut arguments = vec!["run".to_owned()];
        arguments.extend(input_arguments(&request.inputs)?);
        arguments.extend(["--".to_owned(), request.workflow.clone()]);
        let name = format!("start-{}", jiff::Timestamp::now().as_millisecond());
        Ok(match self.spawn(state, &arguments, &name)? {
            Spawned::Drives(message) => message,
            Spawned::Ended => "the run was started, and has stopped already".to_owned(),
        })
    }
}

/// The options for the inputs of a run. Neither a name nor a value may let the command line read a
/// file: an option has one text for both, which is split at its first `=`.
fn input_arguments<'i>(
    inputs: impl IntoIterator<Item = (&'i String, &'i serde_json::Value)>,
) -> Result<Vec<String>, ControlError> {
    let argument = |(name, value): (&String, &serde_json::Value)| {
        if !is_identifier(name) {
            let name = escape_control(name);
            return Err(ControlError::Failed(format!("'{name}' is no name of an input")));
        }
        let value = match value {
            serde_json::Value::String(text) if text.starts_with('@') => {
                // The command line would read a file.
                return Err(ControlError::Failed(format!("input {name} begins with '@'")));
            }
            serde_json::Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        Ok(format!("--input={name}={value}"))
    };
    inputs.into_iter().map(argument).collect()
}

/// Whether a text can be the name of an input.
fn is_identifier(text: &str) -> bool {
    let is_part = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(is_part)
}

/// What became of a process within a short time.
enum Spawned {
    /// It drives the run, as this text says.
    Drives(String),
    /// It has ended, with the exit code of a run.
    Ended,
}

/// What to say of a run that went on and stopped within a short time, by its outcome.
fn went_on(outcome: &str) -> String {
    match outcome {
        "done" => "the run went on, and is done".to_owned(),
        "waiting" => "the run went on, and waits for an answer".to_owned(),
        outcome => format!("the run went on, and has stopped again: {outcome}"),
    }
}

impl LocalControl {
    /// Starts this program in a process of its own, which goes on when the server ends.
    fn spawn(
        &self,
        state: &Path,
        arguments: &[String],
        name: &str,
    ) -> Result<Spawned, ControlError> {
        let program = std::env::current_exe().map_err(failed)?;
        let folder = state.join("server");
        make_private_folder(&folder).map_err(failed)?;
        let path = folder.join(format!("{name}.log"));
        let mut options = OpenOptions::new();
        let log = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
        let log = log.map_err(failed)?;
        let mut command = Command::new(program);
        let (first, rest) =
            arguments.split_first().map_or(("", arguments), |(first, rest)| (first, rest));
        command.arg(first).arg("--state").arg(state);
        if let Some(repo) = &self.repo {
            command.arg("--repo").arg(repo);
        }
        command.args(rest).stdin(Stdio::null());
        command.stdout(log.try_clone().map_err(failed)?).stderr(log);
        // Ctrl-C at the terminal of the server is for the server alone.
        command.process_group(0);
        let mut child = command.spawn().map_err(failed)?;
        let pid = child.id();
        match ended_at_once(&mut child) {
            // Every exit code but these says how a run ended.
            Some(1 | 2) => Err(ControlError::Failed(last_output(&path))),
            Some(_) => Ok(Spawned::Ended),
            None => {
                // Otherwise it would stay as a zombie.
                std::thread::spawn(move || child.wait());
                Ok(Spawned::Drives(format!(
                    "process {pid} drives the run; what it prints is in {}",
                    display_path(&path)
                )))
            }
        }
    }
}

/// The exit code of a process that ends within a short time.
fn ended_at_once(child: &mut Child) -> Option<i32> {
    let started = Instant::now();
    while started.elapsed() < START_TIME {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status.code().unwrap_or(1));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    None
}

/// The end of what a process printed.
fn last_output(path: &Path) -> String {
    let length = fs::metadata(path).map_or(0, |metadata| metadata.len());
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::Start(length.saturating_sub(MAX_OUTPUT)))?;
        file.take(MAX_OUTPUT).read_to_end(&mut bytes)
    });
    match read {
        Ok(_) if !bytes.is_empty() => String::from_utf8_lossy(&bytes).trim().to_owned(),
        _ => "the process ended at once".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_run_that_went_on_is_said_to_be_what_it_is() {
        assert_eq!(went_on("done"), "the run went on, and is done");
        assert_eq!(went_on("waiting"), "the run went on, and waits for an answer");
        assert_eq!(went_on("failed"), "the run went on, and has stopped again: failed");
    }

    #[test]
    fn an_input_names_no_file() {
        let arguments = |name: &str, value: serde_json::Value| {
            input_arguments([(&name.to_owned(), &value)]).map_err(|error| error.to_string())
        };
        assert_eq!(arguments("task", json!("a=@b")).unwrap(), ["--input=task=a=@b"]);
        assert_eq!(arguments("max_tries", json!(3)).unwrap(), ["--input=max_tries=3"]);
        arguments("task", json!("@/etc/passwd")).unwrap_err();
        for name in ["task=@a", "task=@a=/../../x", "task=", "=", "", "@a", "a b", "-a", "a\n"] {
            arguments(name, json!("x")).unwrap_err();
        }
    }
}
