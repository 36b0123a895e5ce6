//! Runs the vendors' command-line programs as agents. Each program has an [`Adapter`]; this module
//! contains what they share: environment, process, conversation, usage and the server that receives
//! results.

mod cli_agent;
mod delivery;
mod output;
mod record_watch;
mod reply_status;

pub use cli_agent::CliAgent;
use delivery::LastExchange;
pub(crate) use delivery::check_instructions;
use output::{OutputCollector, SharedProgress, SubmissionWatch, supervise_until};
use record_watch::RecordWatch;
pub(crate) use reply_status::reply_status;

use crate::adapters::common::truncate;
use crate::adapters::{
    Adapter, Conversation, ParsedReply, PromptRequest, Server, StreamEnd, UsageMeter, Verdict,
};
use crate::agent::{
    Agent, AgentReply, BoxFuture, Prompt, PromptContext, ReplyDetails, ReplyStatus, Session, Task,
};
use crate::config::{Channel, Denied};
use crate::line_buffer::MAX_LINE_BYTES;
use crate::stderr_end::StderrEnd;
use crate::submissions::{SessionFile, Submission, SubmissionReader};
use crate::termination;
use crate::trace_context;
use counterfoil_contract::Contract;
use counterfoil_contract::render::prompt::Delivery;
use counterfoil_contract::render::vendor;
use counterfoil_contract::text::{display_path, pluralize};
use counterfoil_flow::{AttemptOutcome, Usage};
use counterfoil_process::{Cause, ChildSpec, Environment, Exit, Timeouts};
use serde_json::Value;
use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The default time for a program's first event. Some need seconds on a busy machine.
const DEFAULT_STARTUP: Duration = Duration::from_mins(2);
/// The default time for which a program may write nothing. A tool that it runs, such as a test
/// suite, may take that long.
const DEFAULT_IDLE: Duration = Duration::from_mins(15);

/// The most characters of the name of a model that are kept.
const MAX_MODEL_CHARS: usize = 120;

/// How often a record is read that has to catch up with the events of its program.
const RECORD_DELAY: Duration = Duration::from_millis(20);

/// A conversation with a program, one process for each prompt.
struct CliSession {
    agent: CliAgent,
    task: Task,
    /// The schema of the reply, unless it cannot be used or was rejected.
    schema: Option<Value>,
    /// Why the schema is not used, until it is reported.
    schema_note: Option<String>,
    /// Whether nothing was submitted with the last reply although the tool was asked for. It may be
    /// missing, so the result is asked for as text.
    nothing_submitted: bool,
    /// The file in which the server stores submissions.
    submissions: SubmissionReader,
    /// The id of the conversation, once it is known.
    conversation: Option<String>,
    /// Whether the next prompt continues the conversation of an earlier attempt.
    continues: bool,
    /// The usage before this prompt.
    meter: UsageMeter,
    /// What is repeated if the conversation cannot be continued.
    last_exchange: LastExchange,
}

impl CliSession {
    fn new(agent: CliAgent, task: Task) -> Self {
        let (schema, schema_note) = delivery::schema(&agent, &task.contract);
        let submissions = SubmissionReader::new(task.scratch.join("submissions.jsonl"));
        let past = task.earlier.as_ref().and_then(|earlier| earlier.conversation.as_ref());
        let past = past.filter(|past| agent.has_record(&past.id, &task.scratch)).cloned();
        Self {
            conversation: past.as_ref().map(|past| past.id.clone()),
            continues: past.is_some(),
            meter: past.map(|past| UsageMeter::of_conversation(past.usage)).unwrap_or_default(),
            agent,
            task,
            schema,
            schema_note,
            nothing_submitted: false,
            submissions,
            last_exchange: LastExchange::default(),
        }
    }

    /// Creates the scratch folder and the session file of the server.
    fn prepare(&self, server: Option<&Server>) -> Result<(), String> {
        let scratch = &self.task.scratch;
        let failed =
            |error: std::io::Error| format!("cannot create {}: {error}", display_path(scratch));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(scratch).map_err(failed)?;
        let Some(server) = server else { return Ok(()) };
        let session = SessionFile {
            contract: self.task.contract.definition().clone(),
            target: self.agent.adapter.dialect(),
            submissions: self.submissions.path.clone(),
            context: Some(self.task.context.clone()),
            receives: server.receives,
            checks: self.task.checks.clone(),
        };
        session.save(&self.session_file()).map_err(|error| error.to_string())
    }

    /// Runs one process for one prompt.
    async fn run_process(
        &mut self,
        prompt: &str,
        context: &mut PromptContext,
        timeout: Duration,
    ) -> ProcessReply {
        let new_id = uuid::Uuid::now_v7().to_string();
        let max_cost_usd = context.budget.cost_usd;
        let spawn = match self.spawn(prompt, &new_id, timeout, max_cost_usd) {
            Ok(spawn) => spawn,
            Err(why) => return ProcessReply::failed(AttemptOutcome::Agent, why),
        };
        let (spawn, notes) = spawn;
        let clocks = spawn.timeouts;
        let stop = context.stop.clone();
        let budget = context.budget.clone();
        let conversation: Arc<OnceLock<String>> = Arc::default();
        if let Some(id) = &self.conversation {
            let _ = conversation.set(id.clone());
        }
        let mut record =
            RecordWatch::new(self.agent.clone(), self.task.scratch.clone(), conversation.clone());
        let accepted: Arc<Notify> = Arc::default();
        let submissions = (self.channel() == Some(Channel::Submit)).then(|| SubmissionWatch {
            file: self.submissions.path.clone(),
            from: self.submissions.offset,
            accepted: accepted.clone(),
        });
        let submitted = submissions.clone();
        let progress = SharedProgress::new(context.progress.clone());
        let parser = self.agent.adapter.parser();
        let mut collector =
            OutputCollector::new(context, parser, conversation, submissions, progress.clone());
        let enough = async {
            let mut is_accepted = false;
            loop {
                let delay =
                    if is_accepted { RECORD_DELAY } else { record_watch::interval(&budget) };
                tokio::select! {
                    () = tokio::time::sleep(delay) => {}
                    () = accepted.notified() => is_accepted = true,
                }
                if let Some(used) = record.exhausted(&budget, &progress) {
                    return Enough::Used(used);
                }
                is_accepted &= submitted.as_ref().is_some_and(SubmissionWatch::is_accepted);
                if is_accepted && !record.has_open_calls() {
                    return Enough::Accepted;
                }
            }
        };
        let (ended, enough) = supervise_until(spawn, &mut collector, stop, enough).await;
        let OutputCollector {
            mut lines, mut parser, errors: StderrEnd { bytes: errors, .. }, ..
        } = collector;
        lines.end(|line| drop(parser.on_line(line)));
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => return ProcessReply::failed(AttemptOutcome::Agent, error.to_string()),
        };
        let finished = parser.finished();
        let model = parser.progress().model.map(|model| truncate(model, MAX_MODEL_CHARS));
        let stderr = String::from_utf8_lossy(&errors);
        let mut parsed = parser.finish(&StreamEnd {
            exit: ended.exit,
            errors: &stderr,
            at: jiff::Timestamp::now().as_millisecond(),
        });
        parsed.anomalies.splice(0..0, notes);
        if lines.too_long > 0 {
            let (lines, max) = (pluralize(lines.too_long, "line"), MAX_LINE_BYTES >> 20);
            parsed
                .anomalies
                .push(format!("{lines} of its output had more than {max} MiB and did not count"));
        }
        self.conversation = parsed.conversation.clone().or(self.conversation.take());
        let name = self.agent.adapter.name();
        let status = match termination::status_if_ended_early(name, ended.cause, clocks) {
            // The reply was complete before the timeout or the limit.
            Some(ReplyStatus::Failed { outcome: AttemptOutcome::Timeout, .. }) if finished => None,
            Some(_) if finished && enough.is_some() => None,
            Some(status) => match enough {
                Some(Enough::Accepted) => Some(ReplyStatus::Complete),
                Some(Enough::Used(used)) => {
                    let reason = format!("stopped at its limit: {used}");
                    Some(ReplyStatus::failed(AttemptOutcome::Cancelled, reason))
                }
                None => Some(status),
            },
            None => None,
        };
        let recorded = record.used().0;
        let used_nothing = parsed.meter.is_empty() && recorded.all() == 0;
        let reports_cost = parsed.meter.cost_usd > 0.0;
        if parsed.meter.is_empty() {
            parsed.meter = self.meter.plus(recorded);
        }
        // What the program does not report is computed from what it recorded.
        let priced_usd = if reports_cost { None } else { record.cost_usd() };
        let unpriced = if reports_cost { Vec::new() } else { record.unpriced() };
        if !unpriced.is_empty() && budget.cost_usd.is_some() {
            parsed.anomalies.push(format!(
                "its cost is not known: there is no price for {}; set it in [prices]",
                unpriced.join(", ")
            ));
        }
        let schema_rejected =
            matches!(&parsed.verdict, Verdict::Failed(failure) if failure.schema_rejected);
        let ended_by_us = ended.cause != Cause::Finished;
        let status =
            status.unwrap_or_else(|| reply_status(name, &parsed, ended.exit, ended_by_us, &errors));
        ProcessReply {
            parsed,
            model: model.or_else(|| record.model()),
            status,
            exit: ended.exit,
            errors,
            schema_rejected,
            used_nothing,
            priced_usd,
        }
    }

    /// The process for a prompt, and notes on settings that could not be applied.
    fn spawn(
        &self,
        prompt: &str,
        new_id: &str,
        timeout: Duration,
        max_cost_usd: Option<f64>,
    ) -> Result<(ChildSpec, Vec<String>), String> {
        let server = self.server();
        self.prepare(server.as_ref())?;
        let CliAgent { adapter, installed, settings, environment } = &self.agent;
        let env = |name: &str| self.agent.variable(name);
        let request = PromptRequest {
            model: settings.model.as_deref(),
            flags: &settings.flags,
            access: settings.access.unwrap_or(self.task.access),
            max_cost_usd,
            conversation: self
                .conversation
                .as_deref()
                .map_or(Conversation::New(new_id), Conversation::Resume),
            schema: self.schema.as_ref().filter(|_| self.channel() == Some(Channel::Native)),
            server: server.as_ref(),
            scratch: &self.task.scratch,
            cwd: &self.task.cwd,
            env: &env,
        };
        let mut call = adapter.call(&request);
        for (path, bytes) in &call.files {
            std::fs::write(path, bytes)
                .map_err(|error| format!("cannot write {}: {error}", display_path(path)))?;
        }
        let set =
            settings.env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        call.variables.extend(set);
        // The overlay replaces the folder that any of these variables names.
        let overlay = adapter.home_overlay(&request);
        match overlay.map(|overlay| overlay.create().map(|()| overlay.variables)) {
            Some(Ok(variables)) => call.variables.extend(variables),
            Some(Err(error)) => {
                call.notes.push(format!("{} runs without our settings: {error}", adapter.name()));
            }
            None => {}
        }
        // The program is silent while it waits for a check.
        let idle = settings.idle.or(self.task.idle).unwrap_or(DEFAULT_IDLE);
        let tool = server.as_ref().and_then(|server| server.call_timeout);
        let idle = tool.map_or(idle, |tool| idle.max(tool));
        let trace = trace_context::variables(environment, &self.task.marker);
        let spawn = ChildSpec {
            argv: [installed.program.clone().into_os_string()]
                .into_iter()
                .chain(call.arguments)
                .collect(),
            cwd: self.task.cwd.clone(),
            environment: Environment::Only(environment.visible_to(*adapter, settings)),
            extra: trace.into_iter().chain(call.variables).collect(),
            stdin: adapter.prompt(prompt).into_owned().into_bytes(),
            marker: self.task.marker.clone(),
            timeouts: Timeouts {
                startup: settings.startup.or(self.task.startup).or(Some(DEFAULT_STARTUP)),
                idle: Some(idle),
                total: Some(timeout),
                ..Timeouts::default()
            },
        };
        Ok((spawn, call.notes))
    }

    /// The usage of this prompt, from the reading after it.
    fn usage_since_last(&mut self, reply: &ProcessReply) -> Usage {
        let mut meter = reply.parsed.meter;
        let mut used = meter.since(&self.meter);
        if let Some(cost_usd) = reply.priced_usd {
            used.cost_usd = cost_usd;
            // A later total of the program includes it.
            meter.cost_usd = self.meter.cost_usd + cost_usd;
        }
        self.meter = meter;
        used
    }

    /// The submissions since the last call.
    fn new_submissions(&mut self, notes: &mut Vec<String>) -> Vec<Submission> {
        if !self.agent.has_tools() {
            return Vec::new();
        }
        self.submissions.read_new(notes)
    }
}

/// The structured output of a program. For programs that return it as the text, this is the whole
/// text.
pub(crate) fn structured_output(
    contract: &Contract,
    adapter: &dyn Adapter,
    parsed: &mut ParsedReply,
) -> Option<Value> {
    let in_text = || {
        (adapter.structured_output() == Some(Delivery::Message))
            .then(|| serde_json::from_str(&parsed.text).ok())
            .flatten()
    };
    let value = parsed.structured.take().or_else(in_text)?;
    Some(vendor::raise(contract, adapter.dialect(), value))
}

impl Session for CliSession {
    fn ask<'a>(
        &'a mut self,
        prompt: &'a Prompt,
        context: &'a mut PromptContext,
    ) -> BoxFuture<'a, AgentReply> {
        Box::pin(async move {
            let began = Instant::now();
            let full_prompt = self.full_prompt(prompt);
            let is_resumed = self.conversation.is_some();
            self.continues = false;
            let mut reply = self.run_process(&full_prompt, context, context.total).await;
            let mut usage = self.usage_since_last(&reply);
            let mut notes: Vec<String> = self.schema_note.take().into_iter().collect();
            let mut sent_instead = None;
            if is_resumed && reply.did_nothing() {
                notes.push(format!(
                    "its conversation could not be continued, and it was asked anew: {}",
                    reply.reason()
                ));
                self.conversation = None;
                self.meter = UsageMeter::default();
                let left = context.total.saturating_sub(began.elapsed());
                let full_prompt = sent_instead.insert(self.anew(prompt));
                reply = self.run_process(full_prompt, context, left).await;
                usage += self.usage_since_last(&reply);
            }
            if reply.schema_rejected && self.schema.take().is_some() {
                notes.push(format!(
                    "the schema was rejected, and the prompt was sent again without it: {}",
                    reply.reason()
                ));
                self.conversation = None;
                let left = context.total.saturating_sub(began.elapsed());
                // The result is now asked for in another way.
                let full_prompt = sent_instead.insert(self.full_prompt(prompt));
                reply = self.run_process(full_prompt, context, left).await;
                usage += self.usage_since_last(&reply);
            }
            usage.wall_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            notes.append(&mut reply.parsed.anomalies);
            let submissions = self.new_submissions(&mut notes);
            self.nothing_submitted =
                self.channel() == Some(Channel::Submit) && submissions.is_empty();
            let with_schema = self.channel() == Some(Channel::Native);
            let structured = with_schema
                .then(|| {
                    structured_output(&self.task.contract, self.agent.adapter, &mut reply.parsed)
                })
                .flatten();
            let messages = reply.parsed.messages().map(String::into_bytes);
            let (said, asked) = (&reply.parsed.text, sent_instead.as_ref().unwrap_or(&full_prompt));
            self.last_exchange.remember(asked, said);
            AgentReply {
                text: reply.parsed.text.into_bytes(),
                usage,
                status: reply.status,
                played: None,
                recorded: true,
                details: ReplyDetails {
                    events: true,
                    errors: reply.errors,
                    messages,
                    submissions,
                    structured,
                    denied: reply.parsed.denied,
                    denied_fails: self.agent.settings.denied == Some(Denied::Fail),
                    conversation: self.conversation.clone(),
                    model: reply.model,
                    exit: match reply.exit {
                        Exit::Code(code) => Some(code),
                        Exit::Signal(signal) => Some(-signal),
                    },
                    notes,
                    sent_instead,
                },
            }
        })
    }

    fn full_prompt(&self, prompt: &Prompt) -> String {
        self.prompt_text(prompt)
    }
}

impl Drop for CliSession {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.task.scratch);
        // The folder of the run, which is empty after the last attempt.
        let _ = self.task.scratch.parent().map(std::fs::remove_dir);
    }
}

/// Why a program need not go on.
enum Enough {
    /// It has used what it may.
    Used(String),
    /// It has submitted a result that was accepted.
    Accepted,
}

/// The reply of one process.
struct ProcessReply {
    parsed: ParsedReply,
    /// The model, if it is known.
    model: Option<String>,
    status: ReplyStatus,
    exit: Exit,
    errors: Vec<u8>,
    /// Whether the program rejected the schema.
    schema_rejected: bool,
    /// Whether the program reported and recorded no tokens.
    used_nothing: bool,
    /// What the prompt cost by the prices of its models, if the program does not report it.
    priced_usd: Option<f64>,
}

impl ProcessReply {
    fn failed(outcome: AttemptOutcome, why: String) -> Self {
        let (parsed, status) = (ParsedReply::default(), ReplyStatus::failed(outcome, why));
        let exit = Exit::Code(0);
        let (errors, schema_rejected, used_nothing, priced_usd) = (Vec::new(), false, true, None);
        let model = None;
        Self { parsed, model, status, exit, errors, schema_rejected, used_nothing, priced_usd }
    }

    /// Whether the program failed before it asked its model anything.
    fn did_nothing(&self) -> bool {
        let failed = ReplyStatus::failed(AttemptOutcome::Agent, self.reason());
        self.status == failed && self.parsed.text.is_empty() && self.used_nothing
    }

    fn reason(&self) -> &str {
        match &self.status {
            ReplyStatus::Failed { reason, .. } => reason,
            ReplyStatus::Complete => "",
        }
    }
}

#[cfg(test)]
mod home_tests;
