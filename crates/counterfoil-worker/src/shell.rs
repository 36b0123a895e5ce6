//! Commands of a workflow: runs a program and returns its exit code and the end of its output.

use crate::attempt::{AttemptContext, AttemptResult, TranscriptMode};
use counterfoil_agents::transcript::reply_reference;
use counterfoil_agents::transcript::{StoredTranscript, TranscriptError, TranscriptSink};
use counterfoil_flow::amount::duration;
use counterfoil_flow::{AttemptOutcome, CommandWork, Ended, Usage};
use counterfoil_process::contain::{Launcher, SetupFailure};
use counterfoil_process::{
    Cause, ChildSpec, Environment, Exit, Output, OutputSink, SpawnError, Timeouts, supervise,
};
use counterfoil_workspace::path::resolve_inside;
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How many bytes of the end of the output guards can read.
const MAX_TAIL: usize = 4000;
/// The exit code of a shell for a program that does not exist.
const NO_PROGRAM: i32 = 127;

/// Where a command runs, and how.
pub(crate) struct CommandPlace {
    /// The repository or workspace.
    pub(crate) repo: PathBuf,
    /// How the command is contained.
    pub(crate) launcher: Launcher,
}

/// Runs a command to its end.
pub(crate) async fn run(
    attempt: String,
    marker: String,
    work: CommandWork,
    CommandPlace { repo, launcher }: CommandPlace,
    context: Arc<dyn AttemptContext>,
) -> AttemptResult {
    let ended = |outcome, reason: String| Ended { reason, ..Ended::new(&attempt, outcome) };
    let done = AttemptResult::new;
    let cwd = match inside(&repo, work.cwd.as_deref()) {
        Ok(cwd) => cwd,
        Err(why) => return done(ended(AttemptOutcome::Agent, why)),
    };
    let keep =
        work.output.as_ref().map_or(0, |contract| contract.policy().max_bytes.saturating_add(1));
    let argv = match launcher.argv(work.argv.iter().map(Into::into).collect(), &cwd) {
        Ok(argv) => argv,
        Err(error) => {
            let reason = format!("`{}` was not started: {error}", work.argv.join(" "));
            return done(ended(AttemptOutcome::Agent, reason));
        }
    };
    let spawn = ChildSpec {
        argv,
        cwd,
        environment: Environment::Inherit,
        extra: Vec::new(),
        stdin: work.input.clone().into_bytes(),
        marker,
        timeouts: Timeouts {
            total: Some(Duration::from_millis(work.timeout_ms)),
            ..Timeouts::default()
        },
    };
    let ChildOutput { outcome, stored, tail, stdout } =
        match run_child(&attempt, spawn, keep, &context).await {
            Ok(child) => child,
            Err(error) => return AttemptResult::transcript_failed(&attempt, error),
        };
    let (code, output, wall) = match outcome {
        Ok(process) => {
            let reason = |what: &str| format!("`{}` {what}", work.argv.join(" "));
            match process.cause {
                Cause::Stopped => {
                    return done(ended(AttemptOutcome::Cancelled, "stopped".to_owned()));
                }
                Cause::Startup | Cause::Idle | Cause::Total => {
                    let reply = Some(reply_reference(&stored, "timeout"));
                    let reason = reason(&format!("took longer than {}", duration(work.timeout_ms)));
                    return done(Ended { reply, ..ended(AttemptOutcome::Timeout, reason) });
                }
                Cause::Finished | Cause::Finishing | Cause::SinkStopped => {}
            }
            let code = exit_code(process.exit);
            match launcher.setup_failure(code, &tail) {
                Some(SetupFailure::Containment(why)) => {
                    let reason = reason(&format!("was not started: it cannot be contained: {why}"));
                    let reply = Some(reply_reference(&stored, "failed"));
                    return done(Ended { reply, ..ended(AttemptOutcome::Agent, reason) });
                }
                Some(SetupFailure::Program(_)) => (NO_PROGRAM, tail, process.wall),
                None => (code, tail, process.wall),
            }
        }
        // Treated as a shell would: guards can act on the exit code.
        Err(error) => (NO_PROGRAM, error.to_string(), Duration::ZERO),
    };
    let usage =
        Usage { wall_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX), ..Usage::default() };
    let mut value = json!({"ok": code == 0, "exit_code": code, "output": output});
    let mut reply = reply_reference(&stored, "accepted");
    if let (Some(contract), Some(members)) = (&work.output, value.as_object_mut()) {
        let report = contract.check_bytes(&stdout);
        match report.value {
            Some(result) => {
                members.insert("value".to_owned(), result);
            }
            None => {
                "rejected".clone_into(&mut reply.status);
                let first = report
                    .violations
                    .first()
                    .map(|violation| violation.message.clone())
                    .unwrap_or_default();
                let reason = format!(
                    "the output of `{}` does not satisfy {}: {first}",
                    work.argv.join(" "),
                    contract.reference()
                );
                let violations: Vec<Value> = report
                    .violations
                    .iter()
                    .filter_map(|violation| serde_json::to_value(violation).ok())
                    .collect();
                return done(Ended {
                    violations,
                    partial: report.partial,
                    reply: Some(reply),
                    usage,
                    ..ended(AttemptOutcome::Contract, reason)
                });
            }
        }
    }
    done(Ended {
        value: Some(value),
        reply: Some(reply),
        usage,
        ..ended(AttemptOutcome::Accepted, String::new())
    })
}

/// A child process that ended, and its output.
pub(crate) struct ChildOutput {
    /// How the process ended, or why it could not be started.
    pub(crate) outcome: Result<counterfoil_process::ChildOutcome, SpawnError>,
    /// The transcript of its output.
    pub(crate) stored: StoredTranscript,
    /// The end of its output.
    pub(crate) tail: String,
    /// The beginning of its standard output.
    pub(crate) stdout: Vec<u8>,
}

/// Runs a child process to its end and stores its output. `keep` is the number of bytes of standard
/// output to return.
pub(crate) async fn run_child(
    attempt: &str,
    spawn: ChildSpec,
    keep: usize,
    context: &Arc<dyn AttemptContext>,
) -> Result<ChildOutput, TranscriptError> {
    let transcript = context.transcript(&format!("{attempt}.output"), TranscriptMode::OwnFile)?;
    let mut collector = OutputCollector {
        transcript,
        tail: Vec::new(),
        is_cut: false,
        stdout: Vec::new(),
        keep,
        context: context.clone(),
    };
    let outcome = supervise(spawn, &mut collector, context.stop()).await;
    let OutputCollector { transcript, tail, is_cut, stdout, .. } = collector;
    if let Some(error) = transcript.error() {
        return Err(error.clone());
    }
    let stored = transcript.finish()?;
    let tail = if is_cut { whole_lines(&tail) } else { tail.as_slice() };
    Ok(ChildOutput { outcome, stored, tail: String::from_utf8_lossy(tail).into_owned(), stdout })
}

/// The lines that begin in the end of an output, if there are any. What is left of the line before
/// could be the end of a secret, which nobody recognises.
fn whole_lines(tail: &[u8]) -> &[u8] {
    let rest = tail.iter().position(|byte| *byte == b'\n').map_or(&[][..], |at| &tail[at + 1..]);
    if rest.trim_ascii().is_empty() { tail } else { rest }
}

/// The exit code as a shell reports it.
pub(crate) fn exit_code(exit: Exit) -> i32 {
    match exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => 128 + signal,
    }
}

/// The path of a folder inside the repository.
fn inside(repo: &Path, folder: Option<&str>) -> Result<PathBuf, String> {
    let Some(folder) = folder else { return Ok(repo.to_owned()) };
    resolve_inside(repo, Path::new(folder))
        .map_err(|_| format!("'{folder}' is not a folder inside the repository"))
}

struct OutputCollector {
    transcript: Box<dyn TranscriptSink>,
    tail: Vec<u8>,
    /// Whether the output is longer than its end that is kept.
    is_cut: bool,
    stdout: Vec<u8>,
    keep: usize,
    context: Arc<dyn AttemptContext>,
}

impl OutputSink for OutputCollector {
    fn output(&mut self, output: Output<'_>) -> ControlFlow<()> {
        let bytes = match output {
            Output::Stdout(bytes) => {
                let take = self.keep.saturating_sub(self.stdout.len()).min(bytes.len());
                self.stdout.extend_from_slice(&bytes[..take]);
                bytes
            }
            Output::Stderr(bytes) => bytes,
        };
        self.tail.extend_from_slice(bytes);
        let excess = self.tail.len().saturating_sub(MAX_TAIL);
        self.is_cut |= excess > 0;
        self.tail.drain(..excess);
        if let Some(line) =
            bytes.split(|byte| *byte == b'\n').rev().find(|line| !line.trim_ascii().is_empty())
        {
            self.context.heartbeat(String::from_utf8_lossy(&line[..line.len().min(400)]).trim());
        }
        if self.transcript.write(bytes).is_err() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}
