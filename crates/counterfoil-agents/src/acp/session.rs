//! A conversation with a program that speaks the protocol: one process, several prompts.

use super::AcpAgent;
use super::conversation::Conversation;
use super::failure;
use super::process::{MAX_UNREAD, Stopped, TurnSink, exchange};
use super::turn::{Turn, TurnResult, limit_reached};
use crate::adapters::common::truncate;
use crate::adapters::{Failure, Server, UsageMeter, Verdict};
use crate::agent::{
    Agent as _, AgentReply, BoxFuture, Message, Prompt, PromptContext, ReplyDetails, ReplyStatus,
    Session, Task,
};
use crate::check_service::CheckService;
use crate::cli_runner::check_instructions;
use crate::config::Denied;
use crate::line_buffer::{LineBuffer, MAX_LINE_BYTES};
use crate::stderr_end::StderrEnd;
use crate::submissions::{SessionFile, Submission, SubmissionReader};
use crate::termination;
use crate::trace_context;
use counterfoil_contract::render::prompt::Delivery;
use counterfoil_contract::render::vendor::Target;
use counterfoil_contract::text::{display_path, duration, pluralize};
use counterfoil_flow::{AttemptOutcome, Usage};
use counterfoil_process::{
    Cause, ChildOutcome, ChildSpec, Environment, Exchange, Exit, InteractiveChild, Timeouts,
};
use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// The default time in which a program has to open a conversation. Some need seconds on a busy machine,
/// and start servers of their own.
const DEFAULT_STARTUP: Duration = Duration::from_mins(2);
/// The default time for which a program may write nothing. A tool that it runs, such as a test suite,
/// may take that long.
const DEFAULT_IDLE: Duration = Duration::from_mins(15);

/// A conversation with a program.
pub(super) struct AcpSession {
    agent: AcpAgent,
    task: Task,
    /// The process, while it runs.
    process: Option<Process>,
    /// Whether nothing was submitted with the last reply although the tool was asked for. It may be
    /// missing, so the result is asked for as text.
    nothing_submitted: bool,
    /// The file in which the server stores submissions.
    submissions: SubmissionReader,
    /// The usage before this prompt.
    meter: UsageMeter,
}

struct Process {
    child: InteractiveChild,
    input: mpsc::Sender<Vec<u8>>,
    lines: LineBuffer,
    conversation: Conversation,
}

/// A reply, before submissions are added.
struct TurnReply {
    result: Option<TurnResult>,
    status: ReplyStatus,
    exit: Option<i32>,
    errors: Vec<u8>,
    conversation: Option<String>,
}

impl TurnReply {
    fn failed(outcome: AttemptOutcome, why: impl Into<String>) -> Self {
        let status = ReplyStatus::failed(outcome, why);
        Self { result: None, status, exit: None, errors: Vec::new(), conversation: None }
    }
}

impl AcpSession {
    pub(super) fn new(agent: AcpAgent, task: Task) -> Self {
        let submissions = SubmissionReader::new(task.scratch.join("submissions.jsonl"));
        Self {
            agent,
            task,
            process: None,
            nothing_submitted: false,
            submissions,
            meter: UsageMeter::default(),
        }
    }

    fn session_file(&self) -> PathBuf {
        self.task.scratch.join("session.json")
    }

    /// The checks that the agent can have run.
    fn checks(&self) -> Option<&CheckService> {
        self.task.checks.as_ref().filter(|_| self.agent.has_tools())
    }

    /// Our server, if it can be attached.
    fn server(&self) -> Option<Server> {
        let program = self.agent.environment.executable.as_ref()?;
        self.agent.has_tools().then(|| Server {
            command: vec![
                program.display().to_string(),
                "mcp".to_owned(),
                "--session".to_owned(),
                self.session_file().display().to_string(),
            ],
            receives: true,
            call_timeout: self.checks().map(CheckService::call_timeout),
        })
    }

    /// How the agent is told to return its result.
    fn delivery(&self) -> Delivery {
        if self.agent.has_tools() && !self.nothing_submitted {
            Delivery::Tool { name: Server::TOOL, server: Some(Server::NAME) }
        } else {
            Delivery::Text
        }
    }

    /// Creates the scratch folder and the session file of the server.
    fn prepare(&self, server: Option<&Server>) -> Result<(), String> {
        let scratch = &self.task.scratch;
        let failed =
            |error: std::io::Error| format!("cannot create {}: {error}", display_path(scratch));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(scratch).map_err(failed)?;
        if server.is_none() {
            return Ok(());
        }
        let session = SessionFile {
            contract: self.task.contract.definition().clone(),
            // Its model is unknown: the dialect that every one reads.
            target: Target::Claude,
            submissions: self.submissions.path.clone(),
            context: Some(self.task.context.clone()),
            receives: true,
            checks: self.task.checks.clone(),
        };
        session.save(&self.session_file()).map_err(|error| error.to_string())
    }

    /// Starts the program.
    fn start(&self) -> Result<Process, String> {
        let server = self.server();
        self.prepare(server.as_ref())?;
        let AcpAgent { argv, settings, environment } = &self.agent;
        let argv = argv.iter().chain(&settings.flags).map(OsString::from).collect();
        let argv = environment
            .launcher
            .argv(argv, &self.task.cwd)
            .map_err(|error| format!("the program was not started: {error}"))?;
        let set = settings.env.iter().map(|(name, value)| (name.into(), value.into()));
        let trace = trace_context::variables(environment, &self.task.marker);
        let spec = ChildSpec {
            argv,
            cwd: self.task.cwd.clone(),
            environment: Environment::Only(environment.visible_to_others(settings)),
            extra: trace.into_iter().chain(set).collect(),
            stdin: Vec::new(),
            marker: self.task.marker.clone(),
            timeouts: Timeouts::default(),
        };
        let (input, receiver) = mpsc::channel(MAX_UNREAD);
        let child = InteractiveChild::start(spec, receiver).map_err(|error| error.to_string())?;
        // The protocol wants an absolute path.
        let cwd = std::path::absolute(&self.task.cwd).unwrap_or_else(|_| self.task.cwd.clone());
        let access = settings.access.unwrap_or(self.task.access);
        let program = self.agent.program().to_owned();
        let conversation = Conversation::new(program, cwd, access, server);
        Ok(Process { child, input, lines: LineBuffer::default(), conversation })
    }

    /// The time for the program to open a conversation, and the timeouts of a prompt.
    fn timeouts(&self, total: Duration) -> (Duration, Timeouts) {
        let settings = &self.agent.settings;
        let startup = settings.startup.or(self.task.startup).unwrap_or(DEFAULT_STARTUP);
        let idle = settings.idle.or(self.task.idle).unwrap_or(DEFAULT_IDLE);
        // The program is silent while it waits for a check.
        let idle = idle.max(self.checks().map(CheckService::call_timeout).unwrap_or_default());
        let timeouts = Timeouts {
            startup: Some(startup),
            idle: Some(idle),
            total: Some(total),
            ..Timeouts::default()
        };
        (startup, timeouts)
    }

    /// Sends one prompt and waits for the reply. A program that fails is ended.
    async fn turn(&mut self, prompt: String, context: &mut PromptContext) -> TurnReply {
        if context.stopped() {
            return TurnReply::failed(AttemptOutcome::Cancelled, "stopped");
        }
        let mut process = match self.process.take().map_or_else(|| self.start(), Ok) {
            Ok(process) => process,
            Err(why) => return TurnReply::failed(AttemptOutcome::Agent, why),
        };
        let (startup, timeouts) = self.timeouts(context.total);
        let max_text = self.task.contract.policy().max_bytes.saturating_add(4);
        let max_cost = context.budget.cost_usd;
        let (turn, first) = Turn::begin(&mut process.conversation, prompt, max_text, max_cost);
        let lines = &mut process.lines;
        let mut sink = TurnSink::new(context, lines, turn, first, process.input.clone());
        let (ended, stopped) = exchange(&mut process.child, timeouts, startup, &mut sink).await;
        let at = jiff::Timestamp::now().as_millisecond();
        let TurnSink { turn, errors: StderrEnd { bytes: errors, .. }, is_deaf, .. } = sink;
        let mut result = turn.finish(at);
        let too_long = std::mem::take(&mut process.lines.too_long);
        if too_long > 0 {
            let lines = pluralize(too_long, "line");
            let max = MAX_LINE_BYTES >> 20;
            result
                .notes
                .push(format!("{lines} of its output had more than {max} MiB and did not count"));
        }
        let program = truncate(self.agent.program(), 60);
        let early = |cause| termination::status_if_ended_early(&program, cause, timeouts);
        let outcome = match &ended {
            Ok(Some(Exchange::Ended(outcome))) => Some(*outcome),
            _ => None,
        };
        let status = match (&ended, stopped) {
            (Err(error), _) => ReplyStatus::failed(AttemptOutcome::Agent, error.to_string()),
            (_, Some(Stopped::Requested)) => {
                ReplyStatus::failed(AttemptOutcome::Cancelled, "stopped")
            }
            (_, Some(Stopped::NotReady)) if result.unanswered.is_some() => {
                not_ready(&program, &result, startup, &errors)
            }
            (Ok(None), _) => ReplyStatus::failed(
                AttemptOutcome::Agent,
                format!("{program} had ended before it was asked again"),
            ),
            _ if is_deaf => ReplyStatus::failed(
                AttemptOutcome::Agent,
                format!(
                    "{program} does not read what it is sent: {MAX_UNREAD} messages wait for it"
                ),
            ),
            _ => match (result.over_limit, max_cost) {
                (Some(cost), Some(most)) => from_failure(&limit_reached(cost, most)),
                _ => match &result.verdict {
                    Verdict::Complete => ReplyStatus::Complete,
                    Verdict::Failed(failure) => from_failure(failure),
                    Verdict::Missing => outcome
                        .and_then(|outcome| early(outcome.cause))
                        .unwrap_or_else(|| ended_early(&program, outcome, &result, &errors)),
                },
            },
        };
        let conversation = process.conversation.session.clone();
        if outcome.is_none() && status == ReplyStatus::Complete {
            self.process = Some(process);
        }
        let exit = outcome.map(|outcome| match outcome.exit {
            Exit::Code(code) => code,
            Exit::Signal(signal) => -signal,
        });
        TurnReply { result: Some(result), status, exit, errors, conversation }
    }

    /// The submissions since the last call.
    fn new_submissions(&mut self, notes: &mut Vec<String>) -> Vec<Submission> {
        if !self.agent.has_tools() {
            return Vec::new();
        }
        self.submissions.read_new(notes)
    }
}

fn from_failure(failure: &Failure) -> ReplyStatus {
    let Failure { outcome, reason, reset_at, .. } = failure;
    ReplyStatus::Failed { outcome: *outcome, reason: reason.clone(), reset_at: *reset_at }
}

/// The status if the program did not open a conversation in time.
fn not_ready(program: &str, result: &TurnResult, startup: Duration, errors: &[u8]) -> ReplyStatus {
    let what = result.unanswered.unwrap_or("initialize");
    let stderr = termination::stderr_suffix(errors, 400);
    ReplyStatus::failed(
        AttemptOutcome::Timeout,
        format!(
            "{program} did not answer `{what}` in the first {}; if it needs longer, raise `startup`, and if \
             it is no program of the Agent Client Protocol, use `command:`{stderr}",
            duration(startup)
        ),
    )
}

/// The status if the program ended by itself before its reply was complete.
fn ended_early(
    program: &str,
    outcome: Option<ChildOutcome>,
    result: &TurnResult,
    errors: &[u8],
) -> ReplyStatus {
    let how = match outcome.map(|outcome| outcome.exit) {
        Some(Exit::Code(code)) => format!("with exit code {code}"),
        Some(Exit::Signal(signal)) => format!("by signal {signal}"),
        None => "for an unknown reason".to_owned(),
    };
    let what = result.unanswered.unwrap_or("session/prompt");
    let stderr = termination::stderr_suffix(errors, 600);
    let reason = match outcome.map(|outcome| outcome.cause) {
        Some(Cause::SinkStopped) => {
            format!("{program} was ended before it answered `{what}`{stderr}")
        }
        _ => format!("{program} ended {how} before it answered `{what}`{stderr}"),
    };
    from_failure(&failure::of_protocol(&reason))
}

impl Session for AcpSession {
    fn ask<'a>(
        &'a mut self,
        prompt: &'a Prompt,
        context: &'a mut PromptContext,
    ) -> BoxFuture<'a, AgentReply> {
        Box::pin(async move {
            let began = Instant::now();
            let asked_for_tool = self.delivery() != Delivery::Text;
            let mut reply = self.turn(self.full_prompt(prompt), context).await;
            let (mut notes, mut denied, mut text) = (Vec::new(), Vec::new(), String::new());
            let mut usage = Usage::default();
            let mut error_in_text = None;
            if let Some(result) = reply.result.take() {
                usage = result.meter.since(&self.meter);
                self.meter = result.meter;
                (notes, denied, text) = (result.notes, result.denied, result.text);
                error_in_text = result.error_in_text;
                if reply.status == ReplyStatus::Complete && !result.tokens_known {
                    let program = truncate(self.agent.program(), 60);
                    notes.push(format!("{program} did not tell how many tokens it used"));
                }
            }
            if self.agent.settings.model.is_some() {
                notes.push(
                    "`model` is not passed on: the protocol has no way that all programs know; use their own"
                        .to_owned(),
                );
            }
            usage.wall_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            let submissions = self.new_submissions(&mut notes);
            self.nothing_submitted |= asked_for_tool && submissions.is_empty();
            if !submissions.is_empty() {
                self.nothing_submitted = false;
            }
            // A program that submitted something spoke to its model: what it says is its reply.
            if let Some(failure) = error_in_text.filter(|_| submissions.is_empty())
                && reply.status == ReplyStatus::Complete
            {
                reply.status = from_failure(&failure);
            }
            AgentReply {
                text: text.into_bytes(),
                usage,
                status: reply.status,
                played: None,
                recorded: true,
                details: ReplyDetails {
                    events: true,
                    errors: reply.errors,
                    messages: None,
                    submissions,
                    structured: None,
                    denied,
                    denied_fails: self.agent.settings.denied == Some(Denied::Fail),
                    conversation: reply.conversation,
                    model: None,
                    exit: reply.exit,
                    notes,
                    sent_instead: None,
                },
            }
        })
    }

    fn full_prompt(&self, prompt: &Prompt) -> String {
        match (self.checks(), &prompt.message) {
            (Some(checks), Message::Task { task, earlier }) => {
                let task = format!("{task}\n\n{}", check_instructions(checks));
                let message = Message::Task { task, earlier: earlier.clone() };
                Prompt { message, ..prompt.clone() }.text(self.delivery())
            }
            // The conversation has the instructions on checks already.
            _ => prompt.text(self.delivery()),
        }
    }
}

impl Drop for AcpSession {
    fn drop(&mut self) {
        // The program first: it uses the folder.
        self.process = None;
        let _ = std::fs::remove_dir_all(&self.task.scratch);
        // The folder of the run, which is empty after the last attempt.
        let _ = self.task.scratch.parent().map(std::fs::remove_dir);
    }
}
