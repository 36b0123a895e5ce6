//! Commands that a workflow runs itself: a program, its exit code, the end of what it said.

use crate::attempt::{Completed, Handle, Kept, bare};
use counterfoil_agents::agent::reference;
use counterfoil_agents::transcript::{Stored, TranscriptError, TranscriptSink};
use counterfoil_flow::{AttemptOutcome, CommandWork, Ended, Usage};
use counterfoil_process::{
    Cause, ChildSpec, Environment, Exit, Output, OutputSink, SpawnError, Timeouts, supervise,
};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The end of the output that a guard can see.
const TAIL: usize = 4000;
/// What a shell says when there is no such program.
const NO_PROGRAM: i32 = 127;

/// Runs a command to its end.
pub(crate) async fn run(
    attempt: String,
    marker: String,
    work: CommandWork,
    repo: PathBuf,
    handle: Arc<dyn Handle>,
) -> Completed {
    let ended = |outcome, reason: String| Ended { reason, ..bare(&attempt, outcome) };
    let done = |ended| Completed { ended, used_up: None, unkept: None };
    let unkept = |error: TranscriptError| Completed {
        ended: ended(AttemptOutcome::Cancelled, error.to_string()),
        used_up: None,
        unkept: Some(error),
    };
    let cwd = match inside(&repo, work.cwd.as_deref()) {
        Ok(cwd) => cwd,
        Err(why) => return done(ended(AttemptOutcome::Agent, why)),
    };
    let keep =
        work.output.as_ref().map_or(0, |contract| contract.policy().max_bytes.saturating_add(1));
    let spawn = ChildSpec {
        argv: work.argv.iter().map(Into::into).collect(),
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
    let Heard { outcome, stored, tail, stdout } = match listen(&attempt, spawn, keep, &handle).await
    {
        Ok(heard) => heard,
        Err(error) => return unkept(error),
    };
    let (code, said, wall) = match outcome {
        Ok(process) => {
            let reason = |what: &str| format!("`{}` {what}", work.argv.join(" "));
            match process.cause {
                Cause::Stopped => {
                    return done(ended(AttemptOutcome::Cancelled, "stopped".to_owned()));
                }
                Cause::Startup | Cause::Idle | Cause::Total => {
                    let reply = Some(reference(&stored, "timeout"));
                    let reason =
                        reason(&format!("took longer than {} s", work.timeout_ms.div_ceil(1000)));
                    return done(Ended { reply, ..ended(AttemptOutcome::Timeout, reason) });
                }
                Cause::Finished | Cause::Finishing | Cause::SinkStopped => {}
            }
            let code = exit_code(process.exit);
            (code, tail, process.wall)
        }
        // As a shell does: it is a result, and guards can act on it.
        Err(error) => (NO_PROGRAM, error.to_string(), Duration::ZERO),
    };
    let usage =
        Usage { wall_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX), ..Usage::default() };
    let mut value = json!({"ok": code == 0, "exit_code": code, "output": said});
    let mut reply = reference(&stored, "accepted");
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
                    "what `{}` wrote does not satisfy {}: {first}",
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

/// A child that came to its end, and what it said.
pub(crate) struct Heard {
    /// How it ended, or why it could not be started.
    pub(crate) outcome: Result<counterfoil_process::ChildOutcome, SpawnError>,
    /// Everything it said.
    pub(crate) stored: Stored,
    /// The end of it.
    pub(crate) tail: String,
    /// The beginning of what it wrote to its standard output.
    pub(crate) stdout: Vec<u8>,
}

/// Runs a child to its end and keeps what it says; of its standard output as many bytes are handed
/// back as are asked for.
pub(crate) async fn listen(
    attempt: &str,
    spawn: ChildSpec,
    keep: usize,
    handle: &Arc<dyn Handle>,
) -> Result<Heard, TranscriptError> {
    let transcript = handle.transcript(&format!("{attempt}.output"), Kept::InFiles)?;
    let mut hearing =
        Hearing { transcript, tail: Vec::new(), stdout: Vec::new(), keep, handle: handle.clone() };
    let outcome = supervise(spawn, &mut hearing, handle.stop()).await;
    let Hearing { transcript, tail, stdout, .. } = hearing;
    if let Some(error) = transcript.error() {
        return Err(error.clone());
    }
    let stored = transcript.finish()?;
    Ok(Heard { outcome, stored, tail: String::from_utf8_lossy(&tail).into_owned(), stdout })
}

/// As a shell counts.
pub(crate) fn exit_code(exit: Exit) -> i32 {
    match exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => 128 + signal,
    }
}

/// A folder of the repository.
fn inside(repo: &Path, folder: Option<&str>) -> Result<PathBuf, String> {
    let Some(folder) = folder else { return Ok(repo.to_owned()) };
    let plain = counterfoil_workspace::path::is_inside(Path::new(folder));
    if plain {
        Ok(repo.join(folder))
    } else {
        Err(format!("'{folder}' is not a folder inside the repository"))
    }
}

struct Hearing {
    transcript: Box<dyn TranscriptSink>,
    tail: Vec<u8>,
    stdout: Vec<u8>,
    keep: usize,
    handle: Arc<dyn Handle>,
}

impl OutputSink for Hearing {
    fn output(&mut self, output: Output<'_>) -> ControlFlow<()> {
        let bytes = match output {
            Output::Stdout(bytes) => {
                let room = self.keep.saturating_sub(self.stdout.len()).min(bytes.len());
                self.stdout.extend_from_slice(&bytes[..room]);
                bytes
            }
            Output::Stderr(bytes) => bytes,
        };
        self.tail.extend_from_slice(bytes);
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
        if let Some(line) =
            bytes.split(|byte| *byte == b'\n').rev().find(|line| !line.trim_ascii().is_empty())
        {
            self.handle.heartbeat(String::from_utf8_lossy(&line[..line.len().min(400)]).trim());
        }
        if self.transcript.write(bytes).is_err() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}
