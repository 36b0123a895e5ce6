//! Agents: whoever can be sent a prompt and sends back a text. What the text must hold is not their
//! business.

pub mod adapter;
mod claude;
mod cli;
mod codex;
mod command;
mod ended;
mod equipment;
mod gemini;
pub mod installed;
pub mod lines;
mod script;

pub use cli::CliAgent;
pub(crate) use cli::{combined, structured};
pub use command::CommandAgent;
pub use equipment::Equipment;
pub use script::{ScriptAgent, ScriptError};

use crate::submit::Submission;
use crate::transcript::{Stored, TranscriptSink};
use counterfoil_contract::Contract;
use counterfoil_flow::{Access, AttemptOutcome, Usage};
use counterfoil_process::StopRequest;
use serde_json::Value;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Something that is ready later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One who can be asked.
pub trait Agent: Send + Sync {
    /// Opens a session: one conversation, in which a result can be asked for again.
    fn open(&self, task: Task) -> Box<dyn Session>;

    /// Whether a retry should wait before it starts again.
    fn backs_off(&self) -> bool {
        true
    }

    /// Who it is, for whoever wants to know which agent to trust with what.
    fn identity(&self) -> Identity {
        Identity::default()
    }

    /// How long an attempt may take, over what the workflow says.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Whether its work can be seen in the work tree.
    fn changes_files(&self) -> bool {
        true
    }

    /// Whether each of its replies, and what it was asked, gets a file of its own. An agent in this
    /// process that gives many short replies says no: they become lines of one file.
    fn has_files(&self) -> bool {
        true
    }

    /// The answer it has ready for a question, if it plays a person too.
    fn answer(&self, question: &str) -> Option<String> {
        let _ = question;
        None
    }
}

/// Who an agent is, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The model.
    pub model: Option<String>,
    /// The version of the program.
    pub version: Option<String>,
}

/// What a session is for.
#[derive(Clone, Debug)]
pub struct Task {
    /// The agent's name in the workflow.
    pub agent: String,
    /// Names the attempt among all: the processes of a session carry it.
    pub marker: String,
    /// Where the work is done.
    pub cwd: PathBuf,
    /// A folder that the session may make, for files that are nobody's work. It sees to it that
    /// nothing stays there.
    pub scratch: PathBuf,
    /// What it may do there.
    pub access: Access,
    /// What it must hand back, for agents that can be told in other ways than by the prompt.
    pub contract: Arc<Contract>,
    /// How long its first sign of life may take.
    pub startup: Option<Duration>,
    /// How long it may be silent.
    pub idle: Option<Duration>,
}

/// A conversation.
pub trait Session: Send {
    /// Sends a prompt and waits for the reply.
    fn ask<'a>(&'a mut self, prompt: &'a str, reach: &'a mut Reach) -> Later<'a, Answer>;

    /// What reaches the agent for a prompt: more than the prompt where it must be told again what
    /// was said before.
    fn told(&self, prompt: &str) -> String {
        prompt.to_owned()
    }
}

/// What a session has at hand while it works on a prompt.
pub struct Reach {
    /// Tells it to stop.
    pub stop: watch::Receiver<StopRequest>,
    /// How long this reply may take.
    pub total: Duration,
    /// Where everything that is received goes, as it streams.
    pub transcript: Box<dyn TranscriptSink>,
    /// Takes the last line of activity, for whoever watches.
    pub activity: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Reach {
    /// Whether it was told to stop.
    pub fn stopped(&self) -> bool {
        *self.stop.borrow() != StopRequest::None
    }
}

/// What came of a prompt.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What it said, as it came.
    pub text: Vec<u8>,
    /// What it cost.
    pub usage: Usage,
    /// How the reply ended.
    pub how: How,
    /// Which of its recorded replies it was, for an agent that plays them.
    pub played: Option<u32>,
    /// Whether what it said is in the transcript already.
    pub recorded: bool,
    /// What came beside the text.
    pub beside: Beside,
}

/// What comes beside the text of a reply.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// Whether the transcript holds events, of which the text is only a part.
    pub events: bool,
    /// The end of what was written to standard error.
    pub errors: Vec<u8>,
    /// The results that were handed in through the tool.
    pub submissions: Vec<Submission>,
    /// The result by the program's own structured output.
    pub structured: Option<Value>,
    /// What it was not allowed to do.
    pub denied: Vec<String>,
    /// Whether a result counts for nothing then.
    pub denied_fails: bool,
    /// The id of the conversation.
    pub conversation: Option<String>,
    /// The exit code of the program.
    pub exit: Option<i32>,
    /// What else is worth telling.
    pub notes: Vec<String>,
}

/// How a reply ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// It is whole.
    Whole,
    /// It is not, for this reason.
    Failed {
        /// What kind of failure.
        outcome: AttemptOutcome,
        /// In words.
        reason: String,
        /// When a limit is lifted, in milliseconds since 1970.
        reset_at: Option<i64>,
    },
}

impl How {
    /// A failure without a time.
    pub fn failed(outcome: AttemptOutcome, reason: impl Into<String>) -> Self {
        Self::Failed { outcome, reason: reason.into(), reset_at: None }
    }
}

/// A transcript that is finished, as an event refers to it.
pub fn reference(stored: &Stored, status: &str) -> counterfoil_flow::Reply {
    counterfoil_flow::Reply {
        transcript: stored.path.clone(),
        sha256: stored.sha256.clone(),
        status: status.to_owned(),
        ..counterfoil_flow::Reply::default()
    }
}

/// How an agent was named on a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// A program that is known by its name.
    Cli(&'static str),
    /// `command:CMDLINE`
    Command(Vec<String>),
    /// `script:FILE`
    Script(PathBuf),
}

/// A spec that names no agent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{spec}' is not an agent: {why}; write {}command:CMDLINE or script:FILE", known())]
pub struct SpecError {
    /// What was given.
    pub spec: String,
    /// What is wrong with it.
    pub why: String,
}

/// The programs that are known, as the beginning of a list.
fn known() -> String {
    adapter::adapters().iter().map(|adapter| format!("{}, ", adapter.name())).collect()
}

/// An agent that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// Its script cannot be used.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// Its program is not there, or too old.
    #[error(transparent)]
    Program(#[from] installed::Trouble),
}

impl Spec {
    /// Reads a spec.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let wrong = |why: &str| SpecError { spec: text.to_owned(), why: why.to_owned() };
        if let Some(adapter) = adapter::adapter(text) {
            return Ok(Self::Cli(adapter.name()));
        }
        match text.split_once(':') {
            Some(("command", line)) => match shlex::split(line) {
                None => Err(wrong("a quote is not closed")),
                Some(argv) if argv.is_empty() => Err(wrong("there is no program")),
                Some(argv) => Ok(Self::Command(argv)),
            },
            Some(("script", "")) => Err(wrong("there is no file")),
            Some(("script", file)) => Ok(Self::Script(PathBuf::from(file))),
            _ => {
                let kind = text.split(':').next().unwrap_or_default();
                let names = adapter::adapters().iter().map(|adapter| adapter.name());
                let near = counterfoil_contract::suggest::did_you_mean(
                    kind,
                    names.chain(["command", "script"]),
                );
                Err(wrong(&near.unwrap_or_else(|| format!("nothing is known of '{kind}'"))))
            }
        }
    }

    /// Whether one agent can play all that name it, as a script must, whose replies are in one
    /// order.
    pub fn is_shared(&self) -> bool {
        !matches!(self, Self::Cli(_))
    }

    /// The one it names, to play this agent. `played` are the recorded replies that a run has used
    /// already.
    pub fn agent(
        &self,
        name: &str,
        equipment: &Equipment,
        played: &[u32],
    ) -> Result<Arc<dyn Agent>, Unavailable> {
        Ok(match self {
            Self::Cli(program) => Arc::new(CliAgent::new(program, name, equipment)?),
            Self::Command(argv) => Arc::new(CommandAgent::new(argv.clone())),
            Self::Script(file) => {
                Arc::new(ScriptAgent::load(&equipment.folder.join(file), played)?)
            }
        })
    }
}
