//! `script:` agents: recorded replies for demos and tests. They work offline and change files as
//! recorded.

use crate::agent::{
    Agent, AgentReply, BoxFuture, Prompt, PromptContext, ReplyDetails, ReplyStatus, Session, Task,
};
use counterfoil_contract::load::yaml_error;
use counterfoil_contract::render::prompt::Delivery;
use counterfoil_contract::text::display_path;
use counterfoil_flow::{AttemptOutcome, Usage};
use counterfoil_process::contain::Launcher;
use counterfoil_process::{
    ChildSpec, Environment, Output, OutputSink, StopRequest, Timeouts, supervise,
};
use counterfoil_workspace::path::resolve_inside;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A script that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the script {file} cannot be used: {why}")]
pub struct ScriptError {
    /// The script file.
    pub file: String,
    /// What is wrong with it.
    pub why: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    #[serde(default)]
    replies: Vec<ScriptedReply>,
    #[serde(default)]
    answers: Vec<ScriptedAnswer>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedReply {
    agent: String,
    #[serde(default)]
    when: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    fail: Option<Failure>,
    /// The reason of the failure, as text.
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    writes: BTreeMap<String, String>,
    #[serde(default)]
    deletes: Vec<String>,
    #[serde(default)]
    exec: Option<String>,
    #[serde(default)]
    delay_ms: u64,
    #[serde(default)]
    usage: ScriptedUsage,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Failure {
    Transport,
    Limit,
    Permission,
    Timeout,
    Agent,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedUsage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    #[serde(default)]
    cost_usd: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedAnswer {
    question: String,
    answer: String,
}

/// Recorded replies as an agent.
#[derive(Debug)]
pub struct ScriptAgent {
    script: Arc<Script>,
    used: Arc<Mutex<Used>>,
    launcher: Launcher,
    /// The least time before each reply.
    pause: Duration,
}

#[derive(Debug, Default)]
struct Used {
    replies: BTreeSet<usize>,
    answers: BTreeSet<usize>,
}

/// The largest script that is read.
const MAX_SCRIPT_BYTES: u64 = 64 << 20;

impl ScriptAgent {
    /// Reads a script. `played` lists the replies that were used before.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is too large, or is not a valid script.
    pub fn load(file: &Path, played: &[u32]) -> Result<Self, ScriptError> {
        let wrong = |why: String| ScriptError { file: display_path(file), why };
        let meta = std::fs::metadata(file).map_err(|error| wrong(error.to_string()))?;
        // Opening a pipe would block.
        if !meta.is_file() {
            return Err(wrong("it is not a regular file".to_owned()));
        }
        let size = meta.len();
        if size > MAX_SCRIPT_BYTES {
            return Err(wrong(format!("it has {size} bytes, more than {MAX_SCRIPT_BYTES}")));
        }
        let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
        let options = serde_saphyr::options! { with_snippet: false };
        let script: Script = serde_saphyr::from_str_with_options(&text, options)
            .map_err(|error| wrong(yaml_error(&error)))?;
        for (at, reply) in script.replies.iter().enumerate() {
            if reply.text.is_some() == reply.fail.is_some() {
                return Err(wrong(format!(
                    "reply {} has both a text and a failure, or neither; give one of them",
                    at + 1
                )));
            }
        }
        let replies = played.iter().map(|at| *at as usize).collect();
        Ok(Self {
            script: Arc::new(script),
            used: Arc::new(Mutex::new(Used { replies, answers: BTreeSet::new() })),
            launcher: Launcher::default(),
            pause: Duration::ZERO,
        })
    }

    /// Sets how the commands of the script are contained.
    #[must_use]
    pub fn with_launcher(mut self, launcher: Launcher) -> Self {
        self.launcher = launcher;
        self
    }

    /// Waits at least so long before each reply, so that people can follow the run.
    #[must_use]
    pub fn with_pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }
}

impl Agent for ScriptAgent {
    fn open(&self, task: Task) -> Box<dyn Session> {
        Box::new(ScriptSession {
            script: self.script.clone(),
            used: self.used.clone(),
            launcher: self.launcher.clone(),
            pause: self.pause,
            task,
            first: None,
        })
    }

    fn backs_off(&self) -> bool {
        false
    }

    fn answer(&self, question: &str) -> Option<String> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = question.rsplit_once('#').map_or(question, |(name, _)| name);
        let state = asked.rsplit('/').next().unwrap_or(asked);
        let name = state.rsplit('.').next().unwrap_or(state);
        // An answer can also name the state that runs the sub-workflow of the question.
        let is_parent =
            |given: &str| asked.strip_prefix(given).is_some_and(|rest| rest.starts_with('/'));
        let at = self.script.answers.iter().enumerate().position(|(at, given)| {
            let given = given.question.as_str();
            !used.answers.contains(&at)
                && ([question, asked, state, name].contains(&given) || is_parent(given))
        })?;
        used.answers.insert(at);
        Some(self.script.answers[at].answer.clone())
    }
}

struct ScriptSession {
    script: Arc<Script>,
    used: Arc<Mutex<Used>>,
    launcher: Launcher,
    pause: Duration,
    task: Task,
    /// The session's first prompt, which `when` is matched against.
    first: Option<String>,
}

impl Session for ScriptSession {
    fn ask<'a>(
        &'a mut self,
        prompt: &'a Prompt,
        context: &'a mut PromptContext,
    ) -> BoxFuture<'a, AgentReply> {
        Box::pin(async move {
            let began = Instant::now();
            let first = self.first.get_or_insert_with(|| prompt.text(Delivery::Text)).clone();
            let Some(at) = self.next(&first) else {
                return failure(AttemptOutcome::Agent, self.ran_out(), None);
            };
            let played = u32::try_from(at).ok();
            let reply = &self.script.replies[at];
            let delay = Duration::from_millis(reply.delay_ms).max(self.pause);
            if !wait(delay, context).await {
                // The reply was not played.
                self.used.lock().unwrap_or_else(PoisonError::into_inner).replies.remove(&at);
                return failure(AttemptOutcome::Cancelled, "stopped".into(), None);
            }
            if let Err(why) = self.perform(reply, context).await {
                return failure(AttemptOutcome::Agent, why, played);
            }
            let usage = Usage {
                input_tokens: reply.usage.input_tokens,
                output_tokens: reply.usage.output_tokens,
                cost_usd: reply.usage.cost_usd,
                wall_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            };
            let text = reply.text.clone().unwrap_or_default();
            let status = match reply.fail {
                None => ReplyStatus::Complete,
                Some(failure) => {
                    let (outcome, default) = match failure {
                        Failure::Transport => (AttemptOutcome::Transport, "the connection failed"),
                        Failure::Limit => (AttemptOutcome::Limit, "the limit is reached"),
                        Failure::Permission => {
                            (AttemptOutcome::Permission, "permission was denied")
                        }
                        Failure::Timeout => (AttemptOutcome::Timeout, "it took too long"),
                        Failure::Agent => (AttemptOutcome::Agent, "the agent failed"),
                    };
                    ReplyStatus::failed(
                        outcome,
                        reply.reason.clone().unwrap_or_else(|| default.to_owned()),
                    )
                }
            };
            if let Some(line) = text.lines().next() {
                (context.activity)(line);
            }
            AgentReply {
                text: text.into_bytes(),
                usage,
                status,
                played,
                recorded: false,
                details: ReplyDetails::default(),
            }
        })
    }
}

fn failure(outcome: AttemptOutcome, reason: String, played: Option<u32>) -> AgentReply {
    AgentReply {
        text: Vec::new(),
        usage: Usage::default(),
        status: ReplyStatus::failed(outcome, reason),
        played,
        recorded: false,
        details: ReplyDetails::default(),
    }
}

/// Waits. Returns false if a stop was requested.
async fn wait(time: Duration, context: &mut PromptContext) -> bool {
    if time.is_zero() {
        return !context.stopped();
    }
    tokio::select! {
        () = tokio::time::sleep(time) => true,
        () = async { drop(context.stop.wait_for(|stop| *stop != StopRequest::None).await) } => false,
    }
}

impl ScriptSession {
    fn next(&self, first: &str) -> Option<usize> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let at = self.script.replies.iter().enumerate().position(|(at, reply)| {
            !used.replies.contains(&at)
                && reply.agent == self.task.agent
                && reply.when.as_ref().is_none_or(|when| first.contains(when.as_str()))
        })?;
        used.replies.insert(at);
        Some(at)
    }

    fn ran_out(&self) -> String {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = |at: &usize| self.script.replies[*at].agent == self.task.agent;
        let asked = used.replies.iter().filter(|at| mine(at)).count() + 1;
        let left = (0..self.script.replies.len())
            .filter(|at| mine(at) && !used.replies.contains(at))
            .count();
        let why = if left == 0 {
            ""
        } else {
            ", and the `when` of the remaining replies matches no prompt"
        };
        format!(
            "the script has no more replies: '{}' asked for reply number {asked}{why}",
            self.task.agent
        )
    }

    /// Repeats the file changes and the command of a recorded reply.
    async fn perform(
        &self,
        reply: &ScriptedReply,
        context: &mut PromptContext,
    ) -> Result<(), String> {
        for (path, text) in &reply.writes {
            let path = inside(&self.task.cwd, path)?;
            let folder = path.parent().unwrap_or(&self.task.cwd);
            let written =
                std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text));
            written.map_err(|error| format!("cannot write {}: {error}", display_path(&path)))?;
        }
        for path in &reply.deletes {
            let path = inside(&self.task.cwd, path)?;
            std::fs::remove_file(&path)
                .map_err(|error| format!("cannot delete {}: {error}", display_path(&path)))?;
        }
        let Some(line) = &reply.exec else { return Ok(()) };
        let argv = ["sh", "-c", line].iter().map(Into::into).collect();
        let argv = self
            .launcher
            .argv(argv, &self.task.cwd)
            .map_err(|error| format!("its command was not started: {error}"))?;
        let spawn = ChildSpec {
            argv,
            cwd: self.task.cwd.clone(),
            environment: Environment::Inherit,
            extra: Vec::new(),
            stdin: Vec::new(),
            marker: self.task.marker.clone(),
            timeouts: Timeouts { total: Some(context.total), ..Timeouts::default() },
        };
        let stop = context.stop.clone();
        supervise(spawn, &mut DiscardOutput, stop)
            .await
            .map_err(|error| error.to_string())
            .map(|_| ())
    }
}

/// Resolves a path of a script, which must be inside the workspace.
fn inside(cwd: &Path, path: &str) -> Result<std::path::PathBuf, String> {
    resolve_inside(cwd, Path::new(path))
        .map_err(|_| format!("'{path}' is not a path inside the workspace"))
}

struct DiscardOutput;

impl OutputSink for DiscardOutput {
    fn output(&mut self, _: Output<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
