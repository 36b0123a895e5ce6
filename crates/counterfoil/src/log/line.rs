//! A line of the log as data. Messages to people are written from it. Events of the log are written by
//! the subscriber; a test compares its lines with this form.

use schemars::JsonSchema;
use serde::Serialize;

/// A line of the log.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LogLine {
    /// The time, as RFC 3339 in UTC.
    pub(crate) timestamp: String,
    /// `INFO`, `WARN` or `ERROR`; `DEBUG` or `TRACE` if the filter asks for them.
    pub(crate) level: &'static str,
    /// What happened.
    pub(crate) fields: LogFields,
    /// `counterfoil::run` for events of runs, `counterfoil::rejected` for rejections,
    /// `counterfoil::message` for messages to people; otherwise the part of the program that reports a
    /// problem.
    pub(crate) target: &'static str,
    /// The attempt during which it happened, if the filter lets errors of `counterfoil::run` through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) span: Option<LogSpan>,
}

/// What happened. Which fields there are depends on the target; problems can have further ones.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct LogFields {
    /// The message.
    pub(crate) message: String,
    /// The run's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<String>,
    /// The name of the workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workflow: Option<String>,
    /// The kind of the event, as `show --events` prints it, or `run-attached` when a process begins to
    /// drive the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) event: Option<String>,
    /// The number of events that the run had when the process began to drive it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) events: Option<u64>,
    /// The state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<String>,
    /// The state that a transition enters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
    /// The number of the visit of the state, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) visit: Option<u64>,
    /// The number of the attempt in the visit, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attempt: Option<u64>,
    /// The agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// The program that is assigned to the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) program: Option<String>,
    /// The model of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// The outcome of the attempt or of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<String>,
    /// Input tokens of the attempt, or of the run at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input_tokens: Option<u64>,
    /// Output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_tokens: Option<u64>,
    /// The cost in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost_usd: Option<f64>,
    /// The wall-clock time, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wall_ms: Option<u64>,
    /// The contract of a result that was not accepted, as `id@version`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) contract: Option<String>,
    /// Whether the result was `rejected` or `absent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<String>,
    /// The stage at which the result failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stage: Option<String>,
    /// The codes of the violations, with commas between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) codes: Option<String>,
    /// The JSON pointer of the first violation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pointer: Option<String>,
    /// What the contract expects there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expected: Option<String>,
    /// What the text has there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) received: Option<String>,
}

/// An attempt.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LogSpan {
    /// `attempt`.
    pub(crate) name: String,
    /// The run's id.
    pub(crate) run: String,
    /// The path of the state.
    pub(crate) state: String,
    /// The number of the visit of the state, from 1.
    pub(crate) visit: u64,
    /// The number of the attempt in the visit, from 1.
    pub(crate) attempt: u64,
    /// The agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// The program that is assigned to the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) program: Option<String>,
    /// The model of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
}
