//! The interface of an agent: it receives a prompt and returns a reply. Whether the reply satisfies
//! a contract is not decided here.

use crate::check_service::CheckService;
use crate::interruption;
use crate::submissions::Submission;
use crate::transcript::TranscriptSink;
use counterfoil_contract::claim::ClaimReport;
use counterfoil_contract::render::prompt::{self, Delivery};
use counterfoil_contract::{Context, Contract, Report};
use counterfoil_flow::{
    Access, AttemptOutcome, Budget, EarlierAttempt, FailureKind, RetryRule, Usage,
};
use counterfoil_process::StopRequest;
use serde_json::Value;
use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A boxed future, so that the traits here can be used as trait objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Something that can be prompted for a result.
pub trait Agent: Send + Sync {
    /// Opens a session: one conversation, in which a result can be asked for again.
    fn open(&self, task: Task) -> Box<dyn Session>;

    /// Whether a retry should wait before it starts.
    fn backs_off(&self) -> bool {
        true
    }

    /// The model and version, for statistics by agent.
    fn identity(&self) -> Identity {
        Identity::default()
    }

    /// How long an attempt may take. It overrides the timeout of the workflow.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Whether the agent can change files in the work tree.
    fn changes_files(&self) -> bool {
        true
    }

    /// Whether each prompt and reply gets a transcript file of its own. An agent in this process
    /// that gives many short replies returns false: they become lines of one file.
    fn has_files(&self) -> bool {
        true
    }

    /// Whether the agent can call our tools while it works.
    fn has_tools(&self) -> bool {
        false
    }

    /// What a conversation used in all, by the record that the program keeps of it. `scratch` is the
    /// folder for temporary files of the attempt.
    fn recorded_usage(&self, conversation: &str, scratch: &Path) -> Option<Usage> {
        let _ = (conversation, scratch);
        None
    }

    /// Why it cannot be known how much the agent uses, if it cannot.
    fn unknown_usage(&self, measure: Measure) -> Option<String> {
        let _ = measure;
        None
    }

    /// How a retry waits, by kind of failure, where the user has set it.
    fn retry(&self) -> BTreeMap<FailureKind, RetryRule> {
        BTreeMap::new()
    }

    /// The answer that the agent has ready for a question to a person, if it has one.
    fn answer(&self, question: &str) -> Option<String> {
        let _ = question;
        None
    }
}

/// What an agent uses, and a budget limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Money.
    Cost,
    /// Tokens that the model reads and writes.
    Tokens,
}

impl Measure {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Cost, Self::Tokens];

    /// Whether a budget limits it.
    pub fn is_limited_by(self, budget: &Budget) -> bool {
        match self {
            Self::Cost => budget.cost_usd.is_some(),
            Self::Tokens => budget.tokens.is_some(),
        }
    }

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cost => "cost",
            Self::Tokens => "tokens",
        }
    }
}

/// The model and version of an agent, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The model that the agent was configured with.
    pub model: Option<String>,
    /// The version of the program.
    pub version: Option<String>,
}

/// What a session needs to know about its attempt.
#[derive(Clone, Debug)]
pub struct Task {
    /// The agent's name in the workflow.
    pub agent: String,
    /// Identifies the attempt among all attempts. The processes of the session carry it.
    pub marker: String,
    /// The working directory of the agent.
    pub cwd: PathBuf,
    /// A folder that the session may create for temporary files. The session removes it.
    pub scratch: PathBuf,
    /// What the agent may do in the working directory.
    pub access: Access,
    /// The contract of the result, for agents that accept a schema besides the prompt.
    pub contract: Arc<Contract>,
    /// What is known of the attempt when it begins.
    pub context: Context,
    /// How long the agent may take to write its first output.
    pub startup: Option<Duration>,
    /// How long the agent may write nothing.
    pub idle: Option<Duration>,
    /// The checks that the agent can have run while it works.
    pub checks: Option<CheckService>,
    /// The attempt before, if it was interrupted.
    pub earlier: Option<EarlierAttempt>,
}

/// A message to an agent, without what depends on how the agent returns its result.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// The contract of the result.
    pub contract: Arc<Contract>,
    /// What the agent is asked.
    pub message: Message,
}

/// What an agent is asked.
#[derive(Clone, Debug)]
pub enum Message {
    /// To do a task.
    Task {
        /// The task.
        task: String,
        /// The attempt before, if it was interrupted.
        earlier: Option<EarlierAttempt>,
    },
    /// To go on with the task of this conversation.
    Continue(EarlierAttempt),
    /// To correct a result that does not satisfy its contract.
    Correct(Box<Report>),
    /// To correct a result with refuted claims.
    Reconsider(Vec<ClaimReport>),
}

impl Prompt {
    /// The text of the prompt for an agent that returns its result in a certain way.
    pub fn text(&self, delivery: Delivery) -> String {
        match &self.message {
            Message::Task { task, earlier } => {
                let earlier = earlier.as_ref().map(interruption::in_new_conversation);
                let suffix = prompt::suffix(&self.contract, delivery);
                format!("{task}{}\n\n{suffix}", earlier.unwrap_or_default())
            }
            Message::Continue(earlier) => {
                let suffix = prompt::suffix(&self.contract, delivery);
                format!("{}\n\n{suffix}", interruption::in_same_conversation(earlier))
            }
            Message::Correct(report) => prompt::repair(&self.contract, report, delivery),
            Message::Reconsider(refuted) => {
                prompt::repair_claims(&self.contract, refuted, delivery)
            }
        }
    }
}

/// A conversation with an agent.
pub trait Session: Send {
    /// Sends a prompt and waits for the reply.
    fn ask<'a>(
        &'a mut self,
        prompt: &'a Prompt,
        context: &'a mut PromptContext,
    ) -> BoxFuture<'a, AgentReply>;

    /// The full text that the agent receives for a prompt. It names the only way in which this
    /// session takes a result.
    fn full_prompt(&self, prompt: &Prompt) -> String {
        prompt.text(Delivery::Text)
    }
}

/// How far an agent is with its reply, for progress displays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentProgress {
    /// The model, if it is known.
    pub model: Option<String>,
    /// The number of tool calls so far.
    pub calls: u64,
    /// The tool that runs.
    pub open_call: Option<String>,
    /// The tokens and the money that the prompt has used so far, as far as they are known.
    pub usage: Usage,
}

/// What a session uses while it works on one prompt.
pub struct PromptContext {
    /// Signals that the session must stop.
    pub stop: watch::Receiver<StopRequest>,
    /// How long this reply may take.
    pub total: Duration,
    /// How many tokens and how much money this reply may take.
    pub budget: Budget,
    /// Receives all output while it streams.
    pub transcript: Box<dyn TranscriptSink>,
    /// Receives the id of the conversation as soon as the program tells it.
    pub conversation: Arc<dyn Fn(&str) + Send + Sync>,
    /// Receives the latest line of activity, for progress displays.
    pub activity: Arc<dyn Fn(&str) + Send + Sync>,
    /// Receives how far the agent is, whenever it gives a sign of life.
    pub progress: Arc<dyn Fn(&AgentProgress) + Send + Sync>,
}

impl PromptContext {
    /// Whether a stop was requested.
    pub fn stopped(&self) -> bool {
        *self.stop.borrow() != StopRequest::None
    }
}

/// The reply to a prompt.
#[derive(Clone, Debug)]
pub struct AgentReply {
    /// The final text, unchanged.
    pub text: Vec<u8>,
    /// The tokens, money and time that the prompt used.
    pub usage: Usage,
    /// Whether the reply is complete, or why it failed.
    pub status: ReplyStatus,
    /// The index of the recorded reply that was played, for script agents.
    pub played: Option<u32>,
    /// Whether the output is in the transcript already.
    pub recorded: bool,
    /// What the program returned besides the text.
    pub details: ReplyDetails,
}

/// What a program returns besides the text of its reply.
#[derive(Clone, Debug, Default)]
pub struct ReplyDetails {
    /// Whether the transcript contains events, of which the text is only a part.
    pub events: bool,
    /// The end of standard error.
    pub errors: Vec<u8>,
    /// All messages that may have the result, if there are several.
    pub messages: Option<Vec<u8>>,
    /// The results that were submitted through the tool.
    pub submissions: Vec<Submission>,
    /// The result from the program's own structured output.
    pub structured: Option<Value>,
    /// The actions that were denied.
    pub denied: Vec<String>,
    /// Whether a denied action makes the attempt fail even if the result is valid.
    pub denied_fails: bool,
    /// The id of the conversation.
    pub conversation: Option<String>,
    /// The model that replied, if the program tells it.
    pub model: Option<String>,
    /// The exit code of the program.
    pub exit: Option<i32>,
    /// Further notes for the report.
    pub notes: Vec<String>,
    /// The text that was sent instead of the full prompt, if the program rejected that.
    pub sent_instead: Option<String>,
}

/// Whether a reply is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyStatus {
    /// The agent finished its reply.
    Complete,
    /// The agent did not finish its reply.
    Failed {
        /// The kind of failure.
        outcome: AttemptOutcome,
        /// The reason, as text.
        reason: String,
        /// When a limit is lifted, in milliseconds since 1970.
        reset_at: Option<i64>,
    },
}

impl ReplyStatus {
    /// A failure without a reset time.
    pub fn failed(outcome: AttemptOutcome, reason: impl Into<String>) -> Self {
        Self::Failed { outcome, reason: reason.into(), reset_at: None }
    }
}
