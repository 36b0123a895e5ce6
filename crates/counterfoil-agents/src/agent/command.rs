//! `command:` agents: any program that reads a prompt on its standard input and writes its answer
//! to its standard output.

use super::ended::{self, tail};
use super::{Agent, Answer, Beside, How, Later, Reach, Session, Task};
use counterfoil_flow::{AttemptOutcome, Usage};
use counterfoil_process::{
    Cause, ChildSpec, Environment, Exit, Output, OutputSink, Timeouts, supervise,
};
use std::ops::ControlFlow;
use std::time::Instant;

/// A program as an agent.
#[derive(Clone, Debug)]
pub struct CommandAgent {
    argv: Vec<String>,
}

impl CommandAgent {
    /// An agent that runs this program with these arguments, without a shell.
    pub fn new(argv: Vec<String>) -> Self {
        Self { argv }
    }
}

impl Agent for CommandAgent {
    fn open(&self, task: Task) -> Box<dyn Session> {
        Box::new(CommandSession { argv: self.argv.clone(), task, before: None })
    }
}

struct CommandSession {
    argv: Vec<String>,
    task: Task,
    /// The prompt and the answer before: a program remembers nothing, so it is told.
    before: Option<(String, String)>,
}

/// What of an earlier answer is told again; what counts stands at its end.
const LONGEST_RETOLD: usize = 60_000;

impl Session for CommandSession {
    fn ask<'a>(&'a mut self, prompt: &'a str, reach: &'a mut Reach) -> Later<'a, Answer> {
        Box::pin(async move {
            let answer = self.run(self.told(prompt), reach).await;
            let first = self.before.take().map_or_else(|| prompt.to_owned(), |(first, _)| first);
            // Only the end of it is told again, so no more is kept: a flood is not held twice.
            let end = answer.text.len().saturating_sub(LONGEST_RETOLD);
            let retold = String::from_utf8_lossy(&answer.text[end..]).into_owned();
            self.before = Some((first, retold));
            answer
        })
    }

    fn told(&self, prompt: &str) -> String {
        match &self.before {
            None => prompt.to_owned(),
            Some((first, answer)) => format!(
                "You were asked this:\n\n{first}\n\nYou answered this:\n\n{}\n\n{prompt}",
                tail(answer, LONGEST_RETOLD)
            ),
        }
    }
}

impl CommandSession {
    async fn run(&self, prompt: String, reach: &mut Reach) -> Answer {
        let began = Instant::now();
        let spawn = ChildSpec {
            argv: self.argv.iter().map(Into::into).collect(),
            cwd: self.task.cwd.clone(),
            environment: Environment::Inherit,
            extra: Vec::new(),
            stdin: prompt.into_bytes(),
            marker: self.task.marker.clone(),
            timeouts: Timeouts {
                startup: self.task.startup,
                idle: self.task.idle,
                total: Some(reach.total),
                ..Timeouts::default()
            },
        };
        let keep = self.task.contract.policy().max_bytes.saturating_add(1);
        let stop = reach.stop.clone();
        let clocks = spawn.timeouts;
        let mut hearing = Hearing { reach, text: Vec::new(), keep, errors: Vec::new() };
        let ended = supervise(spawn, &mut hearing, stop).await;
        let (text, errors) = (hearing.text, hearing.errors);
        let how = match ended {
            Err(error) => How::failed(AttemptOutcome::Agent, error.to_string()),
            Ok(ended) => how(ended.cause, ended.exit, clocks, &errors),
        };
        let wall_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let usage = Usage { wall_ms, ..Usage::default() };
        Answer { text, usage, how, played: None, recorded: true, beside: Beside::default() }
    }
}

fn how(cause: Cause, exit: Exit, clocks: Timeouts, errors: &[u8]) -> How {
    if let Some(how) = ended::by_us("the command", cause, clocks) {
        return how;
    }
    let said = ended::said(errors, 400);
    match exit {
        Exit::Code(0) => How::Whole,
        Exit::Code(code) => How::failed(
            AttemptOutcome::Agent,
            format!("the command ended with exit code {code}{said}"),
        ),
        Exit::Signal(signal) => How::failed(
            AttemptOutcome::Agent,
            format!("the command was killed by signal {signal}{said}"),
        ),
    }
}

/// Keeps what a program says: all of it in the transcript, as much as a contract reads in memory.
struct Hearing<'r> {
    reach: &'r mut Reach,
    text: Vec<u8>,
    keep: usize,
    /// The end of what it wrote to standard error.
    errors: Vec<u8>,
}

/// The end of standard error that is kept.
const ERRORS_KEPT: usize = 4096;

impl OutputSink for Hearing<'_> {
    fn output(&mut self, output: Output<'_>) -> ControlFlow<()> {
        let bytes = match output {
            Output::Stdout(bytes) => {
                let room = self.keep.saturating_sub(self.text.len()).min(bytes.len());
                self.text.extend_from_slice(&bytes[..room]);
                bytes
            }
            Output::Stderr(bytes) => {
                self.errors.extend_from_slice(bytes);
                let over = self.errors.len().saturating_sub(ERRORS_KEPT);
                self.errors.drain(..over);
                bytes
            }
        };
        if let Some(line) =
            bytes.split(|byte| *byte == b'\n').rev().find(|line| !line.trim_ascii().is_empty())
        {
            (self.reach.activity)(String::from_utf8_lossy(&line[..line.len().min(400)]).trim());
        }
        // Only the answer goes into the transcript: it is what the contract is held against.
        if let Output::Stdout(bytes) = output
            && self.reach.transcript.write(bytes).is_err()
        {
            // The transcript knows why, and whoever reads it there stops the run.
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}
