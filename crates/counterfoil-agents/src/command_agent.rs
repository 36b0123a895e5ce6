//! `command:` agents: any program that reads a prompt from standard input and writes its reply to
//! standard output.

use crate::agent::{
    Agent, AgentReply, BoxFuture, Prompt, PromptContext, ReplyDetails, ReplyStatus, Session, Task,
};
use crate::termination::{self, tail};
use counterfoil_contract::render::prompt::Delivery;
use counterfoil_flow::{AttemptOutcome, Usage};
use counterfoil_process::contain::Launcher;
use counterfoil_process::{
    Cause, ChildSpec, Environment, Exit, Output, OutputSink, Timeouts, supervise,
};
use std::ops::ControlFlow;
use std::time::Instant;

/// A program without an adapter as an agent.
#[derive(Clone, Debug)]
pub struct CommandAgent {
    argv: Vec<String>,
    launcher: Launcher,
}

impl CommandAgent {
    /// Creates an agent that runs a program with arguments, without a shell.
    pub fn new(argv: Vec<String>) -> Self {
        Self { argv, launcher: Launcher::default() }
    }

    /// Sets how the program is contained.
    #[must_use]
    pub fn with_launcher(mut self, launcher: Launcher) -> Self {
        self.launcher = launcher;
        self
    }
}

impl Agent for CommandAgent {
    fn unknown_cost(&self) -> Option<String> {
        Some("its program does not report what it uses".to_owned())
    }

    fn open(&self, task: Task) -> Box<dyn Session> {
        Box::new(CommandSession {
            argv: self.argv.clone(),
            launcher: self.launcher.clone(),
            task,
            previous: None,
        })
    }
}

struct CommandSession {
    argv: Vec<String>,
    launcher: Launcher,
    task: Task,
    /// The first prompt and the last reply. The program keeps no state, so they are repeated in the
    /// next prompt.
    previous: Option<(String, String)>,
}

/// How much of the end of an earlier reply is repeated. The result is usually at the end.
const MAX_REPEATED_BYTES: usize = 60_000;

impl Session for CommandSession {
    fn ask<'a>(
        &'a mut self,
        prompt: &'a Prompt,
        context: &'a mut PromptContext,
    ) -> BoxFuture<'a, AgentReply> {
        Box::pin(async move {
            let full_prompt = self.full_prompt(prompt);
            let first = self.previous.as_ref().map_or(&full_prompt, |(first, _)| first).clone();
            let reply = self.run(full_prompt, context).await;
            // Only the end is repeated, so only the end is kept in memory.
            let start = reply.text.len().saturating_sub(MAX_REPEATED_BYTES);
            let repeated = String::from_utf8_lossy(&reply.text[start..]).into_owned();
            self.previous = Some((first, repeated));
            reply
        })
    }

    fn full_prompt(&self, prompt: &Prompt) -> String {
        let prompt = prompt.text(Delivery::Text);
        match &self.previous {
            None => prompt,
            Some((first, reply)) => format!(
                "You were asked this:\n\n{first}\n\nYou answered this:\n\n{}\n\n{prompt}",
                tail(reply, MAX_REPEATED_BYTES)
            ),
        }
    }
}

impl CommandSession {
    async fn run(&self, prompt: String, context: &mut PromptContext) -> AgentReply {
        let began = Instant::now();
        let argv = self.argv.iter().map(Into::into).collect();
        let argv = match self.launcher.argv(argv, &self.task.cwd) {
            Ok(argv) => argv,
            Err(error) => {
                let reason = format!("the command was not started: {error}");
                return reply(
                    Vec::new(),
                    began,
                    ReplyStatus::failed(AttemptOutcome::Agent, reason),
                );
            }
        };
        let spawn = ChildSpec {
            argv,
            cwd: self.task.cwd.clone(),
            environment: Environment::Inherit,
            extra: Vec::new(),
            stdin: prompt.into_bytes(),
            marker: self.task.marker.clone(),
            timeouts: Timeouts {
                startup: self.task.startup,
                idle: self.task.idle,
                total: Some(context.total),
                ..Timeouts::default()
            },
        };
        let max_text = self.task.contract.policy().max_bytes.saturating_add(1);
        let stop = context.stop.clone();
        let clocks = spawn.timeouts;
        let mut collector =
            OutputCollector { context, text: Vec::new(), max_text, errors: Vec::new() };
        let ended = supervise(spawn, &mut collector, stop).await;
        let (text, errors) = (collector.text, collector.errors);
        let status = match ended {
            Err(error) => ReplyStatus::failed(AttemptOutcome::Agent, error.to_string()),
            Ok(ended) => reply_status(ended.cause, ended.exit, clocks, &errors),
        };
        reply(text, began, status)
    }
}

fn reply(text: Vec<u8>, began: Instant, status: ReplyStatus) -> AgentReply {
    let wall_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let usage = Usage { wall_ms, ..Usage::default() };
    AgentReply {
        text,
        usage,
        status,
        played: None,
        recorded: true,
        details: ReplyDetails::default(),
    }
}

fn reply_status(cause: Cause, exit: Exit, clocks: Timeouts, errors: &[u8]) -> ReplyStatus {
    if let Some(status) = termination::status_if_ended_early("the command", cause, clocks) {
        return status;
    }
    let stderr = termination::stderr_suffix(errors, 400);
    match exit {
        Exit::Code(0) => ReplyStatus::Complete,
        Exit::Code(code) => ReplyStatus::failed(
            AttemptOutcome::Agent,
            format!("the command ended with exit code {code}{stderr}"),
        ),
        Exit::Signal(signal) => ReplyStatus::failed(
            AttemptOutcome::Agent,
            format!("the command was killed by signal {signal}{stderr}"),
        ),
    }
}

/// Writes the output of a program to the transcript, and keeps as much in memory as the contract
/// reads.
struct OutputCollector<'r> {
    context: &'r mut PromptContext,
    text: Vec<u8>,
    max_text: usize,
    /// The end of standard error.
    errors: Vec<u8>,
}

/// How much of the end of standard error is kept.
const MAX_STDERR_BYTES: usize = 4096;

impl OutputSink for OutputCollector<'_> {
    fn output(&mut self, output: Output<'_>) -> ControlFlow<()> {
        let bytes = match output {
            Output::Stdout(bytes) => {
                let room = self.max_text.saturating_sub(self.text.len()).min(bytes.len());
                self.text.extend_from_slice(&bytes[..room]);
                bytes
            }
            Output::Stderr(bytes) => {
                self.errors.extend_from_slice(bytes);
                let over = self.errors.len().saturating_sub(MAX_STDERR_BYTES);
                self.errors.drain(..over);
                bytes
            }
        };
        if let Some(line) =
            bytes.split(|byte| *byte == b'\n').rev().find(|line| !line.trim_ascii().is_empty())
        {
            (self.context.activity)(String::from_utf8_lossy(&line[..line.len().min(400)]).trim());
        }
        // Only standard output goes into the transcript: it is what the contract validates.
        if let Output::Stdout(bytes) = output
            && self.context.transcript.write(bytes).is_err()
        {
            // The transcript keeps the error, and the worker reports it.
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}
