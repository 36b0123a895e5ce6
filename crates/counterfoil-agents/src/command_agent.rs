//! `command:` agents: any program that reads a prompt from standard input and writes its reply to
//! standard output, as text or as events.

mod events;
mod output;

use crate::adapters::{StreamEnd, StreamParser, UsageMeter};
use crate::agent::{
    Agent, AgentReply, BoxFuture, Measure, Prompt, PromptContext, ReplyDetails, ReplyStatus,
    Session, Task,
};
use crate::cli_runner;
use crate::config::{Agents, CONVERSATION, CommandError, Denied, OutputDialect, Settings};
use crate::environment::AgentEnvironment;
use crate::line_buffer::{LineBuffer, MAX_LINE_BYTES};
use crate::stderr_end::StderrEnd;
use crate::termination::{self, tail};
use crate::trace_context;
use counterfoil_contract::render::prompt::Delivery;
use counterfoil_contract::text::pluralize;
use counterfoil_flow::{AttemptOutcome, FailureKind, RetryRule, Usage};
use counterfoil_process::contain::Launcher;
use counterfoil_process::{Cause, ChildSpec, Environment, Exit, Timeouts, supervise};
use events::EventParser;
use output::{EventReader, MAX_STDERR_BYTES, OutputCollector, Read};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A program without an adapter as an agent.
#[derive(Clone, Debug)]
pub struct CommandAgent {
    argv: Vec<String>,
    settings: Settings,
    environment: AgentEnvironment,
    /// The variables that look like credentials and that it does not see.
    hidden_keys: Vec<String>,
}

impl CommandAgent {
    /// Creates an agent that runs a program with arguments, without a shell and without settings.
    pub fn new(argv: Vec<String>) -> Self {
        let environment = AgentEnvironment::from_process(Agents::default(), None);
        Self::with_settings(argv, Settings::default(), &environment)
    }

    /// Creates the agent `agent` with the project's settings for it and for its program, whose name
    /// is that of the file.
    ///
    /// # Errors
    ///
    /// The settings do not fit together, or do not fit the command line.
    pub fn configured(
        argv: Vec<String>,
        agent: &str,
        environment: &AgentEnvironment,
    ) -> Result<Self, CommandError> {
        let mut settings = environment.agents.settings(agent, program_name(&argv));
        // The line is in the project's file, too: a path in it begins at the folder of that file.
        if let Some(program) = settings.command.resume.as_mut().and_then(|argv| argv.first_mut())
            && program.contains('/')
            && let Ok(path) = std::path::absolute(environment.folder.join(program.as_str()))
        {
            *program = path.display().to_string();
        }
        settings
            .command
            .check(&argv)
            .map_err(|why| CommandError { agent: agent.to_owned(), why })?;
        Ok(Self::with_settings(argv, settings, environment))
    }

    fn with_settings(
        argv: Vec<String>,
        settings: Settings,
        environment: &AgentEnvironment,
    ) -> Self {
        Self {
            argv,
            environment: environment.clone(),
            hidden_keys: environment.keys_hidden_from_command(&settings),
            settings,
        }
    }

    /// Sets how the program is contained.
    #[must_use]
    pub fn with_launcher(mut self, launcher: Launcher) -> Self {
        self.environment.launcher = launcher;
        self
    }
}

/// The name of the program of a command line: the last part of its path.
pub fn program_name(argv: &[String]) -> &str {
    let program = argv.first().map(String::as_str).unwrap_or_default();
    program.rsplit('/').find(|part| !part.is_empty()).unwrap_or("command")
}

impl Agent for CommandAgent {
    fn unknown_usage(&self, measure: Measure) -> Option<String> {
        let command = &self.settings.command;
        let usage = command.usage.as_ref();
        let (is_set, what, key) = match measure {
            Measure::Cost => {
                (usage.is_some_and(|usage| !usage.cost.is_empty()), "the cost", "cost")
            }
            Measure::Tokens => (
                usage.is_some_and(|usage| !usage.input.is_empty() && !usage.output.is_empty()),
                "its tokens",
                "input` and `usage.output",
            ),
        };
        if is_set || command.output == Some(OutputDialect::ClaudeStreamJson) {
            return None;
        }
        Some(format!(
            "its settings do not say where its program reports {what} (`usage.{key}` in \
             [agents.NAME.command])"
        ))
    }

    fn retry(&self) -> BTreeMap<FailureKind, RetryRule> {
        self.settings.retry.clone()
    }

    fn open(&self, task: Task) -> Box<dyn Session> {
        Box::new(CommandSession {
            agent: self.clone(),
            task,
            new_id: uuid::Uuid::now_v7().to_string(),
            conversation: None,
            meter: UsageMeter::default(),
            cannot_resume: false,
            previous: None,
        })
    }

    fn timeout(&self) -> Option<Duration> {
        self.settings.timeout
    }
}

struct CommandSession {
    agent: CommandAgent,
    task: Task,
    /// The id of a new conversation, for programs that let us choose it.
    new_id: String,
    /// The id of the conversation, once it is known.
    conversation: Option<String>,
    /// The usage before this prompt.
    meter: UsageMeter,
    /// Whether the program could not continue a conversation that has no id.
    cannot_resume: bool,
    /// The first prompt and the last reply. They are repeated in the next prompt unless the program
    /// continues the conversation.
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
            let began = Instant::now();
            let resumed = self.resume_argv().is_some();
            let full_prompt = self.full_prompt(prompt);
            let first = self.previous.as_ref().map_or(&full_prompt, |(first, _)| first).clone();
            let mut reply = self.run(full_prompt, context).await;
            if resumed && let Some(why) = why_not_resumed(&reply, context) {
                let before = reply.usage;
                self.forget_conversation();
                let instead = self.full_prompt(prompt);
                context.total = context.total.saturating_sub(began.elapsed());
                reply = self.run(instead.clone(), context).await;
                let wall_ms = before.wall_ms.saturating_add(reply.usage.wall_ms);
                reply.usage += before;
                reply.usage.wall_ms = wall_ms;
                let note = "its conversation could not be continued, and it was asked anew";
                reply.details.notes.insert(0, format!("{note}: {why}"));
                reply.details.sent_instead = Some(instead);
            }
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
            Some((first, reply)) if self.resume_argv().is_none() => format!(
                "You were asked this:\n\n{first}\n\nYou answered this:\n\n{}\n\n{prompt}",
                tail(reply, MAX_REPEATED_BYTES)
            ),
            _ => prompt,
        }
    }
}

impl CommandSession {
    /// The command line that continues the conversation, if there is one to continue and the
    /// settings say how.
    fn resume_argv(&self) -> Option<Vec<String>> {
        let (_, command) = (self.previous.as_ref()?, &self.agent.settings.command);
        let resume = command.resume.as_ref().filter(|_| !self.cannot_resume)?;
        if command.resumes_by_id() {
            Some(with_id(resume, self.conversation.as_deref()?))
        } else {
            Some(resume.clone())
        }
    }

    /// Goes on without the conversation, which could not be continued.
    fn forget_conversation(&mut self) {
        self.conversation = None;
        self.meter = UsageMeter::default();
        self.new_id = uuid::Uuid::now_v7().to_string();
        self.cannot_resume = !self.agent.settings.command.resumes_by_id();
    }

    /// The command line of a new conversation, and its id if we choose it.
    fn new_argv(&self) -> (Vec<String>, Option<&str>) {
        let argv = &self.agent.argv;
        let chosen = self.agent.settings.command.resume.is_some()
            && argv.iter().any(|word| word.contains(CONVERSATION));
        if chosen {
            (with_id(argv, &self.new_id), Some(&self.new_id))
        } else {
            (argv.clone(), None)
        }
    }

    async fn run(&mut self, prompt: String, context: &mut PromptContext) -> AgentReply {
        let began = Instant::now();
        let argv = match self.resume_argv() {
            Some(argv) => argv,
            None => {
                let (argv, chosen) = self.new_argv();
                let chosen = chosen.map(str::to_owned);
                self.conversation = chosen;
                argv
            }
        };
        let CommandAgent { settings, environment, .. } = &self.agent;
        let argv = argv.into_iter().map(Into::into).collect();
        let argv = match environment.launcher.argv(argv, &self.task.cwd) {
            Ok(argv) => argv,
            Err(error) => {
                let reason = format!("the command was not started: {error}");
                let status = ReplyStatus::failed(AttemptOutcome::Agent, reason);
                return reply(Vec::new(), began, status, Vec::new());
            }
        };
        let set = settings.env.iter().map(|(name, value)| (name.into(), value.into()));
        let trace = trace_context::variables(environment, &self.task.marker);
        let spawn = ChildSpec {
            argv,
            cwd: self.task.cwd.clone(),
            environment: Environment::Only(environment.visible_to_command(settings)),
            extra: trace.into_iter().chain(set).collect(),
            stdin: prompt.into_bytes(),
            marker: self.task.marker.clone(),
            timeouts: Timeouts {
                startup: settings.startup.or(self.task.startup),
                idle: settings.idle.or(self.task.idle),
                total: Some(context.total),
                ..Timeouts::default()
            },
        };
        let max_text = self.task.contract.policy().max_bytes.saturating_add(1);
        let stop = context.stop.clone();
        let clocks = spawn.timeouts;
        let read = match EventParser::new(&settings.command, max_text) {
            None => Read::Text { text: Vec::new(), max_text },
            Some(parser) => Read::Events(Box::new(EventReader {
                parser,
                lines: LineBuffer::default(),
                before: self.meter,
                budget: context.budget.clone(),
                over_limit: None,
            })),
        };
        let mut collector =
            OutputCollector { context, read, errors: StderrEnd::of(MAX_STDERR_BYTES) };
        let ended = supervise(spawn, &mut collector, stop).await;
        let OutputCollector { read, errors: StderrEnd { bytes: errors, .. }, .. } = collector;
        let (cause, exit) = match ended {
            Ok(ended) => (ended.cause, ended.exit),
            Err(error) => {
                let status = ReplyStatus::failed(AttemptOutcome::Agent, error.to_string());
                return reply(Vec::new(), began, status, Vec::new());
            }
        };
        match read {
            Read::Text { text, .. } => {
                let status = text_status(cause, exit, clocks, &errors);
                let notes = self.notes_on_failure(&status, cause);
                let mut reply = reply(text, began, status, notes);
                reply.details.conversation.clone_from(&self.conversation);
                reply
            }
            Read::Events(reader) => {
                self.reply_of_events(*reader, Ended { cause, exit, clocks, errors, began })
            }
        }
    }

    /// The reply of a program that writes events.
    fn reply_of_events(&mut self, reader: EventReader, ended: Ended) -> AgentReply {
        let Ended { cause, exit, clocks, errors, began } = ended;
        let EventReader { mut parser, mut lines, over_limit, .. } = reader;
        lines.end(|line| drop(parser.on_line(line)));
        let finished = parser.finished();
        let stderr = String::from_utf8_lossy(&errors);
        let at = jiff::Timestamp::now().as_millisecond();
        let mut parsed = Box::new(parser).finish(&StreamEnd { exit, errors: &stderr, at });
        let mut notes = std::mem::take(&mut parsed.anomalies);
        if lines.too_long > 0 {
            let (lines, max) = (pluralize(lines.too_long, "line"), MAX_LINE_BYTES >> 20);
            notes.push(format!("{lines} of its output had more than {max} MiB and did not count"));
        }
        self.conversation = parsed.conversation.take().or(self.conversation.take());
        let early = match over_limit {
            Some(reason) => Some(ReplyStatus::failed(AttemptOutcome::Cancelled, reason)),
            None => termination::status_if_ended_early(NAME, cause, clocks),
        };
        let ended_by_us = cause != Cause::Finished;
        let status = match early {
            // The reply was complete before the timeout.
            Some(ReplyStatus::Failed { outcome: AttemptOutcome::Timeout, .. }) if finished => None,
            early => early,
        };
        let status = status
            .unwrap_or_else(|| cli_runner::reply_status(NAME, &parsed, exit, ended_by_us, &errors));
        let command = &self.agent.settings.command;
        if status == ReplyStatus::Complete && command.resumes_by_id() && self.conversation.is_none()
        {
            notes.push(
                "the id of its conversation is not known, so `resume` cannot be used; a repair runs \
                 the command anew"
                    .to_owned(),
            );
        }
        notes.extend(self.notes_on_failure(&status, cause));
        let before = std::mem::replace(&mut self.meter, parsed.meter);
        let mut reply = reply(parsed.text.into_bytes(), began, status, notes);
        reply.usage = Usage { wall_ms: reply.usage.wall_ms, ..parsed.meter.since(&before) };
        reply.details = ReplyDetails {
            events: true,
            errors,
            denied: parsed.denied,
            denied_fails: self.agent.settings.denied == Some(Denied::Fail),
            conversation: self.conversation.clone(),
            exit: match exit {
                Exit::Code(code) => Some(code),
                Exit::Signal(signal) => Some(-signal),
            },
            ..reply.details
        };
        reply
    }

    /// A note for somebody whose program lacks a variable.
    fn notes_on_failure(&self, status: &ReplyStatus, cause: Cause) -> Vec<String> {
        let hidden = &self.agent.hidden_keys;
        let failed = matches!(
            status,
            ReplyStatus::Failed { outcome: AttemptOutcome::Agent | AttemptOutcome::Permission, .. }
        );
        if !failed || cause != Cause::Finished || hidden.is_empty() {
            return Vec::new();
        }
        let shown = hidden.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>();
        let more = match hidden.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        vec![format!(
            "it was not given {}{more}; what it needs is named by `pass` in [agents.{}] of counterfoil.toml",
            shown.join(", "),
            program_name(&self.agent.argv)
        )]
    }
}

/// Why a conversation could not be continued: the program failed without a word of the agent.
fn why_not_resumed(reply: &AgentReply, context: &PromptContext) -> Option<String> {
    match &reply.status {
        ReplyStatus::Failed { outcome: AttemptOutcome::Agent, reason, .. }
            if reply.text.trim_ascii().is_empty() && !context.stopped() =>
        {
            Some(reason.clone())
        }
        _ => None,
    }
}

/// The most hidden variables that a note names.
const MAX_NAMED: usize = 5;

/// The name of the program in messages.
const NAME: &str = "the command";

/// How a process ended.
struct Ended {
    cause: Cause,
    exit: Exit,
    clocks: Timeouts,
    errors: Vec<u8>,
    began: Instant,
}

/// A command line with the id of a conversation.
fn with_id(argv: &[String], id: &str) -> Vec<String> {
    argv.iter().map(|word| word.replace(CONVERSATION, id)).collect()
}

fn reply(text: Vec<u8>, began: Instant, status: ReplyStatus, notes: Vec<String>) -> AgentReply {
    let wall_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let usage = Usage { wall_ms, ..Usage::default() };
    AgentReply {
        text,
        usage,
        status,
        played: None,
        recorded: true,
        details: ReplyDetails { notes, ..ReplyDetails::default() },
    }
}

/// How a program ended, as a sentence.
fn ended(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("the command ended with exit code {code}"),
        Exit::Signal(signal) => format!("the command was killed by signal {signal}"),
    }
}

/// The status of a reply that is the text itself.
fn text_status(cause: Cause, exit: Exit, clocks: Timeouts, errors: &[u8]) -> ReplyStatus {
    if let Some(status) = termination::status_if_ended_early(NAME, cause, clocks) {
        return status;
    }
    match exit {
        Exit::Code(0) => ReplyStatus::Complete,
        exit => ReplyStatus::failed(
            AttemptOutcome::Agent,
            ended(exit) + &termination::stderr_suffix(errors, 400),
        ),
    }
}
