//! What changes runs. The command line implements it: only it knows how its agents are found.

use counterfoil_engine::Error;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::Path;

/// A run to start.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartRequest {
    /// The pack, or the path of a workflow file in the repository.
    pub workflow: String,
    /// The inputs by name.
    #[serde(default)]
    pub inputs: Map<String, Value>,
}

/// How a run goes on. Limits are those of the whole run; an empty text is none.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResumeRequest {
    /// The reason, recorded if the run had ended.
    pub because: String,
    /// The maximum cost in US dollars.
    pub max_cost: String,
    /// The maximum duration, such as `2h`.
    pub max_time: String,
    /// The maximum number of attempts.
    pub max_attempts: String,
    /// The maximum number of tokens.
    pub max_tokens: String,
    /// The maximum number of iterations.
    pub max_iterations: String,
}

impl ResumeRequest {
    /// What is wrong with the limits, with the name of the field.
    pub(crate) fn wrong_limit(&self) -> Option<String> {
        let is_amount = |text: &str| {
            let amount = text.trim_start_matches('$').parse::<f64>();
            amount.is_ok_and(|amount| amount.is_finite() && amount > 0.0)
        };
        let is_count = |text: &str| text.parse::<u64>().is_ok_and(|count| count > 0);
        let is_time = |text: &str| {
            text.parse::<jiff::SignedDuration>().is_ok_and(|time| time.as_millis() > 0)
        };
        let count = "a whole number of at least 1";
        let limits = [
            ("max_cost", &self.max_cost, is_amount(self.max_cost.trim()), "an amount such as 2.50"),
            (
                "max_time",
                &self.max_time,
                is_time(self.max_time.trim()),
                "a duration such as 90s, 30m or 8h",
            ),
            ("max_attempts", &self.max_attempts, is_count(self.max_attempts.trim()), count),
            ("max_tokens", &self.max_tokens, is_count(self.max_tokens.trim()), count),
            ("max_iterations", &self.max_iterations, is_count(self.max_iterations.trim()), count),
        ];
        let mut given = limits.into_iter().filter(|(_, value, ..)| !value.trim().is_empty());
        given.find(|(_, _, is_valid, _)| !is_valid).map(|(name, value, _, expected)| {
            let what = name.trim_start_matches("max_");
            format!(
                "the maximum of {what} (`{name}`) cannot be '{}': expected {expected}",
                value.trim()
            )
        })
    }
}

/// Why a run was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The engine refused it.
    #[error(transparent)]
    Engine(#[from] Error),
    /// This server must not do it.
    #[error("{0}")]
    NotAllowed(String),
    /// It could not be done.
    #[error("{0}")]
    Failed(String),
}

/// Changes the runs of a state folder. Texts that it returns say what happened, for people.
pub trait RunControl: Send + Sync {
    /// Whether it resumes runs. Where it does not, pages show the command that does.
    fn may_resume(&self) -> bool;

    /// Whether this process waits for the answers of a run, and goes on with the run then.
    fn waits_for(&self, run: &str) -> bool;

    /// Records an answer to a question.
    ///
    /// # Errors
    ///
    /// The question is not open, or the answer is not valid.
    fn answer(
        &self,
        state: &Path,
        run: &str,
        question: &str,
        answer: &str,
    ) -> Result<(), ControlError>;

    /// Cancels a run.
    ///
    /// # Errors
    ///
    /// The run has ended.
    fn cancel(&self, state: &Path, run: &str) -> Result<String, ControlError>;

    /// Starts a process that continues a run.
    ///
    /// # Errors
    ///
    /// The process cannot be started.
    fn resume(
        &self,
        state: &Path,
        run: &str,
        request: &ResumeRequest,
    ) -> Result<String, ControlError>;

    /// Starts a process that runs a workflow.
    ///
    /// # Errors
    ///
    /// The process cannot be started, or the server must not start runs.
    fn start(&self, state: &Path, request: &StartRequest) -> Result<String, ControlError>;
}
