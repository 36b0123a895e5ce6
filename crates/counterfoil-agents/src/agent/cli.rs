//! Programs with a stream of events of their own, as agents. What is particular to each is its
//! [`Adapter`]'s; here is what all share: the environment, the process, the conversation, what was
//! used, the server that takes results.

use super::adapter::{
    Adapter, Conversation, End, Failure, Heard, Meter, Reader, Server, Turn, Verdict, adapter,
};
use super::ended;
use super::installed::{self, Installed, Trouble};
use super::lines::Lines;
use super::{Agent, Answer, Beside, Equipment, How, Identity, Later, Reach, Session, Task};
use crate::config::{Channel, Denied, Settings};
use crate::submit::{self, SessionFile, Submission};
use counterfoil_contract::Contract;
use counterfoil_contract::render::vendor;
use counterfoil_flow::{AttemptOutcome, Usage};
use counterfoil_process::{
    Cause, ChildSpec, Environment, Exit, Output, OutputSink, Timeouts, supervise,
};
use serde_json::Value;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a program's first event may take if nothing else is said: some need seconds on a
/// machine that is busy.
const STARTUP: Duration = Duration::from_mins(2);
/// How long it may be silent if nothing else is said: a tool of its own, such as a test suite, may
/// take that long.
const IDLE: Duration = Duration::from_mins(15);
/// The end of standard error that is kept.
const ERRORS_KEPT: usize = 64 << 10;

/// A program as an agent.
#[derive(Clone)]
pub struct CliAgent {
    adapter: &'static dyn Adapter,
    installed: Installed,
    settings: Settings,
    equipment: Equipment,
}

impl CliAgent {
    /// The program of this name, to play this agent.
    pub fn new(program: &str, agent: &str, equipment: &Equipment) -> Result<Self, Trouble> {
        let Some(adapter) = adapter(program) else {
            return Err(Trouble::Missing {
                name: program.to_owned(),
                looked: "nothing is known of it".to_owned(),
                install: String::new(),
            });
        };
        let settings = equipment.agents.settings(agent, program);
        let installed = installed::needed(adapter, &settings, equipment)?;
        Ok(Self { adapter, installed, settings, equipment: equipment.clone() })
    }
}

impl Agent for CliAgent {
    fn open(&self, task: Task) -> Box<dyn Session> {
        Box::new(CliSession::new(self.clone(), task))
    }

    fn identity(&self) -> Identity {
        Identity { model: self.settings.model.clone(), version: self.installed.version.clone() }
    }

    fn timeout(&self) -> Option<Duration> {
        self.settings.timeout
    }
}

/// A conversation with a program, one process for each prompt.
struct CliSession {
    player: CliAgent,
    task: Task,
    /// The schema of its answer, as long as it is taken.
    schema: Option<Value>,
    /// The server that takes results, and where it keeps them.
    server: Option<Server>,
    submissions: PathBuf,
    /// How much of that file was read.
    read: u64,
    /// The conversation, once there is one.
    conversation: Option<String>,
    /// What it had used before this prompt.
    meter: Meter,
}

impl CliSession {
    fn new(player: CliAgent, task: Task) -> Self {
        let (adapter, settings) = (player.adapter, &player.settings);
        let native = settings.has(Channel::Native) && adapter.takes_schema();
        let lowered = native.then(|| vendor::schema(&task.contract, adapter.dialect()));
        let schema = lowered.filter(vendor::Lowered::is_usable).map(|lowered| lowered.schema);
        let file = task.scratch.join("session.json");
        let server = match &player.equipment.counterfoil {
            Some(program) if settings.has(Channel::Submit) => Some(Server {
                command: vec![
                    program.display().to_string(),
                    "mcp".to_owned(),
                    "--session".to_owned(),
                    file.display().to_string(),
                ],
            }),
            _ => None,
        };
        let submissions = task.scratch.join("submissions.jsonl");
        Self {
            player,
            task,
            schema,
            server,
            submissions,
            read: 0,
            conversation: None,
            meter: Meter::default(),
        }
    }

    /// The folder for files, with what the server is told.
    fn prepare(&self) -> Result<(), String> {
        let scratch = &self.task.scratch;
        let cannot = |error: std::io::Error| format!("cannot make {}: {error}", scratch.display());
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(scratch).map_err(cannot)?;
        if self.server.is_none() {
            return Ok(());
        }
        let session = SessionFile {
            contract: self.task.contract.definition().clone(),
            target: self.player.adapter.dialect(),
            submissions: self.submissions.clone(),
        };
        session.save(&scratch.join("session.json")).map_err(|error| error.to_string())
    }

    /// One process for one prompt.
    async fn once(&mut self, prompt: &str, reach: &mut Reach, left: Duration) -> Reply {
        let fresh = uuid::Uuid::now_v7().to_string();
        let spawn = match self.spawn(prompt, &fresh, left) {
            Ok(spawn) => spawn,
            Err(why) => return Reply::failed(AttemptOutcome::Agent, why),
        };
        let (spawn, notes) = spawn;
        let clocks = spawn.timeouts;
        let stop = reach.stop.clone();
        let mut hearing = Hearing {
            reach,
            lines: Lines::default(),
            reader: self.player.adapter.reader(),
            errors: Vec::new(),
        };
        let ended = supervise(spawn, &mut hearing, stop).await;
        let Hearing { mut lines, mut reader, errors, .. } = hearing;
        lines.end(|line| drop(reader.line(line)));
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => return Reply::failed(AttemptOutcome::Agent, error.to_string()),
        };
        let finished = reader.finished();
        let words = String::from_utf8_lossy(&errors);
        let mut heard = reader.read(&End {
            exit: ended.exit,
            errors: &words,
            at: jiff::Timestamp::now().as_millisecond(),
        });
        heard.odd.splice(0..0, notes);
        if lines.too_long > 0 {
            let (count, most) = (lines.too_long, super::lines::LONGEST >> 20);
            heard.odd.push(format!(
                "{count} lines of its output were longer than {most} MiB and not read"
            ));
        }
        // Where the program lets us choose the id, it is the one that we chose.
        self.conversation = heard.conversation.clone().or(self.conversation.take());
        let name = self.player.adapter.name();
        let how = match ended::by_us(name, ended.cause, clocks) {
            // It had said all before the clock struck.
            Some(How::Failed { outcome: AttemptOutcome::Timeout, .. }) if finished => None,
            how => how,
        };
        let refused = matches!(&heard.verdict, Verdict::Failed(failure) if failure.schema);
        let ours = ended.cause != Cause::Finished;
        let how = how.unwrap_or_else(|| combined(name, &heard, ended.exit, ours, &errors));
        Reply { heard, how, exit: ended.exit, errors, refused }
    }

    /// The process for a prompt, and what could not be done as it was asked for.
    fn spawn(
        &self,
        prompt: &str,
        fresh: &str,
        left: Duration,
    ) -> Result<(ChildSpec, Vec<String>), String> {
        self.prepare()?;
        let CliAgent { adapter, installed, settings, equipment } = &self.player;
        // As the program will see them: what is set for it is over what it is handed on.
        let ours = |name: &str| {
            settings.env.get(name).map(OsString::from).or_else(|| equipment.variable(name))
        };
        let turn = Turn {
            model: settings.model.as_deref(),
            flags: &settings.flags,
            access: settings.access.unwrap_or(self.task.access),
            conversation: self
                .conversation
                .as_deref()
                .map_or(Conversation::New(fresh), Conversation::On),
            schema: self.schema.as_ref(),
            server: self.server.as_ref(),
            scratch: &self.task.scratch,
            cwd: &self.task.cwd,
            ours: &ours,
        };
        let mut call = adapter.call(&turn);
        for (path, bytes) in &call.files {
            std::fs::write(path, bytes)
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        let set =
            settings.env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        call.variables.extend(set);
        // It stands in for the folder that any of these names.
        match adapter.stand_in(&turn).map(|stand_in| stand_in.make().map(|()| stand_in.variables)) {
            Some(Ok(variables)) => call.variables.extend(variables),
            Some(Err(why)) => {
                call.notes.push(format!("{} runs without settings of ours: {why}", adapter.name()));
            }
            None => {}
        }
        let spawn = ChildSpec {
            argv: [installed.program.clone().into_os_string()]
                .into_iter()
                .chain(call.arguments)
                .collect(),
            cwd: self.task.cwd.clone(),
            environment: Environment::Only(equipment.seen_by(*adapter, settings)),
            extra: call.variables,
            stdin: adapter.prompt(prompt).into_owned().into_bytes(),
            marker: self.task.marker.clone(),
            timeouts: Timeouts {
                startup: settings.startup.or(self.task.startup).or(Some(STARTUP)),
                idle: settings.idle.or(self.task.idle).or(Some(IDLE)),
                total: Some(left),
                ..Timeouts::default()
            },
        };
        Ok((spawn, call.notes))
    }

    /// What this prompt cost.
    fn spent(&mut self, meter: Meter) -> Usage {
        let before = std::mem::replace(&mut self.meter, meter);
        meter.since(&before)
    }

    /// What was handed in since the last look.
    fn handed_in(&mut self, notes: &mut Vec<String>) -> Vec<Submission> {
        if self.server.is_none() {
            return Vec::new();
        }
        match submit::read(&self.submissions, self.read) {
            Ok((submissions, read)) => {
                self.read = read;
                submissions
            }
            Err(error) => {
                notes.push(format!("what was submitted cannot be read: {error}"));
                Vec::new()
            }
        }
    }
}

/// The result by a program's own structured output, if it was given a schema. Where it comes as the
/// text, the whole text is it.
pub(crate) fn structured(
    contract: &Contract,
    adapter: &dyn Adapter,
    heard: &mut Heard,
) -> Option<Value> {
    let in_text =
        || adapter.answers_in_text().then(|| serde_json::from_str(&heard.text).ok()).flatten();
    let value = heard.structured.take().or_else(in_text)?;
    Some(vendor::raise(contract, adapter.dialect(), value))
}

impl Session for CliSession {
    fn ask<'a>(&'a mut self, prompt: &'a str, reach: &'a mut Reach) -> Later<'a, Answer> {
        Box::pin(async move {
            let began = Instant::now();
            let told = self.told(prompt);
            let mut reply = self.once(&told, reach, reach.total).await;
            let mut usage = self.spent(reply.heard.meter);
            let mut notes = Vec::new();
            if reply.refused && self.schema.take().is_some() {
                notes.push(format!(
                    "the schema was refused, and it was asked without: {}",
                    reply.reason()
                ));
                self.conversation = None;
                let left = reach.total.saturating_sub(began.elapsed());
                reply = self.once(&told, reach, left).await;
                usage += self.spent(reply.heard.meter);
            }
            usage.wall_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            notes.append(&mut reply.heard.odd);
            let submissions = self.handed_in(&mut notes);
            let with_schema = self.schema.is_some();
            let structured = with_schema
                .then(|| structured(&self.task.contract, self.player.adapter, &mut reply.heard))
                .flatten();
            Answer {
                text: reply.heard.text.into_bytes(),
                usage,
                how: reply.how,
                played: None,
                recorded: true,
                beside: Beside {
                    events: true,
                    errors: reply.errors,
                    submissions,
                    structured,
                    denied: reply.heard.denied,
                    denied_fails: self.player.settings.denied == Some(Denied::Fail),
                    conversation: self.conversation.clone(),
                    exit: match reply.exit {
                        Exit::Code(code) => Some(code),
                        Exit::Signal(signal) => Some(-signal),
                    },
                    notes,
                },
            }
        })
    }

    fn told(&self, prompt: &str) -> String {
        match &self.server {
            Some(_) => format!("{prompt}\n\n{}", handing_in()),
            None => prompt.to_owned(),
        }
    }
}

impl Drop for CliSession {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.task.scratch);
        // The folder of the run, behind its last attempt.
        let _ = self.task.scratch.parent().map(std::fs::remove_dir);
    }
}

/// What an agent is told of the tool that takes results.
fn handing_in() -> String {
    format!(
        "There is a tool `{}` (of the server `{}`) that takes this result and says at once what is wrong with it. If you can \
         call it, hand the result in by it; correct and hand it in again until it is accepted. Otherwise write the result as \
         described above.",
        Server::TOOL,
        Server::NAME
    )
}

/// What came of one process.
struct Reply {
    heard: Heard,
    how: How,
    exit: Exit,
    errors: Vec<u8>,
    /// Whether it is the schema that was refused.
    refused: bool,
}

impl Reply {
    fn failed(outcome: AttemptOutcome, why: String) -> Self {
        let (heard, how) = (Heard::default(), How::failed(outcome, why));
        Self { heard, how, exit: Exit::Code(0), errors: Vec::new(), refused: false }
    }

    fn reason(&self) -> &str {
        match &self.how {
            How::Failed { reason, .. } => reason,
            How::Whole => "",
        }
    }
}

/// How a reply ended, from what the program says and from how it ended: never from one of them
/// alone. One that we had to end behind its last event has no exit of its own.
pub(crate) fn combined(name: &str, heard: &Heard, exit: Exit, ours: bool, errors: &[u8]) -> How {
    let ended = match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
    };
    let said = ended::said(errors, 600);
    match &heard.verdict {
        Verdict::Whole if exit == Exit::Code(heard.exit) || ours => How::Whole,
        Verdict::Whole => How::failed(
            AttemptOutcome::Agent,
            format!("{name} said it was done and ended with {ended}{said}"),
        ),
        Verdict::Failed(Failure { outcome, reason, reset_at, .. }) => {
            How::Failed { outcome: *outcome, reason: reason.clone(), reset_at: *reset_at }
        }
        Verdict::Missing => How::failed(
            AttemptOutcome::Agent,
            format!("{name} ended with {ended} and never said it was done{said}"),
        ),
    }
}

/// Keeps what a program says: all of it in the transcript, line by line to the reader.
struct Hearing<'r> {
    reach: &'r mut Reach,
    lines: Lines,
    reader: Box<dyn Reader>,
    /// The end of what it wrote to standard error.
    errors: Vec<u8>,
}

impl OutputSink for Hearing<'_> {
    fn output(&mut self, output: Output<'_>) -> ControlFlow<()> {
        match output {
            Output::Stdout(bytes) => {
                let (reader, activity) = (&mut self.reader, &self.reach.activity);
                self.lines.push(bytes, |line| {
                    if let Some(words) = reader.line(line) {
                        activity(&words);
                    }
                });
                if self.reach.transcript.write(bytes).is_err() {
                    // The transcript knows why, and whoever reads it there stops the run.
                    return ControlFlow::Break(());
                }
            }
            Output::Stderr(bytes) => {
                self.errors.extend_from_slice(bytes);
                let over = self.errors.len().saturating_sub(ERRORS_KEPT);
                self.errors.drain(..over);
            }
        }
        ControlFlow::Continue(())
    }

    fn finished(&self) -> bool {
        self.reader.finished()
    }
}

#[cfg(test)]
mod home_tests;

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(verdict: Verdict, exit: i32, code: i32) -> How {
        combined(
            "acme",
            &Heard { verdict, exit, ..Heard::default() },
            Exit::Code(code),
            false,
            b"why",
        )
    }

    #[test]
    fn a_reply_is_whole_only_with_the_exit_that_goes_with_it() {
        assert_eq!(ended(Verdict::Whole, 0, 0), How::Whole);
        assert_eq!(ended(Verdict::Whole, 1, 1), How::Whole);
        let failed = |how| How::failed(AttemptOutcome::Agent, how);
        let done = "acme said it was done and ended with exit code 1: why";
        assert_eq!(ended(Verdict::Whole, 0, 1), failed(done));
        let never = "acme ended with exit code 0 and never said it was done: why";
        assert_eq!(ended(Verdict::Missing, 0, 0), failed(never));
    }
}
