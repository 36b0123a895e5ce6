//! The work that a driver does: attempts to start and files to check, with all templates rendered.

use super::builtin::{ChangesWork, CommitWork, ReadWork};
use super::checks::ChecksWork;
use crate::event::Event;
use crate::run_state::PastConversation;
use crate::step_rule::BoundRule;
use crate::workflow::{Access, Bounds};
use counterfoil_contract::Contract;
use counterfoil_contract::claim::{ClaimPolicy, EffectiveClaim};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// What a step needs to know before it can start: whether files exist, and how its checks are
/// configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCheck {
    /// The frame that needs them.
    pub frame: String,
    /// The workspace to check; the repository, if there is none.
    pub workspace: Option<String>,
    /// The paths, relative to the workspace.
    pub paths: Vec<String>,
    /// The names of the checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// The earliest time, in milliseconds since 1970.
    pub not_before: Option<i64>,
}

/// A request to start an attempt.
#[derive(Clone, Debug)]
pub struct AttemptRequest {
    /// The id of the attempt.
    pub attempt: String,
    /// The id of the first attempt of this visit of the step in the same workspace. Changes are
    /// compared with the workspace before that one.
    pub first: String,
    /// The frame that the attempt works for.
    pub frame: String,
    /// The path of the step: a state, or a state, an item key and an inner state.
    pub path: Vec<String>,
    /// The number of the attempt on this path, from 1.
    pub n: u32,
    /// The earliest time, in milliseconds since 1970.
    pub not_before: Option<i64>,
    /// The hash of the bundle that has the workflow and the contracts.
    pub bundle: String,
    /// The machine that the frame runs; the main machine has the empty name.
    pub machine: String,
    /// The state of that machine.
    pub state: String,
    /// The work to do.
    pub work: AttemptWork,
}

impl AttemptRequest {
    /// The event that records the start.
    pub fn event(&self) -> Event {
        let agent = match &self.work {
            AttemptWork::Agent(work) => Some(work.agent.clone()),
            _ => None,
        };
        let contract = match &self.work {
            AttemptWork::Agent(work) => Some(&work.contract),
            AttemptWork::Command(work) => work.output.as_ref(),
            AttemptWork::Read(work) => work.contract.as_ref(),
            AttemptWork::Changes(_) | AttemptWork::Commit(_) | AttemptWork::Checks(_) => None,
        };
        Event::AttemptStarted {
            attempt: self.attempt.clone(),
            frame: self.frame.clone(),
            path: self.path.clone(),
            agent,
            n: self.n,
            contract: contract.map(|contract| contract.reference().to_owned()),
            builtin: self.work.builtin(),
        }
    }
}

/// The work of an attempt.
#[derive(Clone, Debug)]
pub enum AttemptWork {
    /// Run an agent.
    Agent(Box<AgentWork>),
    /// Run a command.
    Command(Box<CommandWork>),
    /// Read a file.
    Read(Box<ReadWork>),
    /// What changed is looked at.
    Changes(Box<ChangesWork>),
    /// Make a commit.
    Commit(Box<CommitWork>),
    /// Run checks of the project.
    Checks(Box<ChecksWork>),
}

impl AttemptWork {
    /// The workspace to work in; the repository, if there is none.
    pub fn workspace(&self) -> Option<&str> {
        match self {
            Self::Agent(work) => work.workspace.as_deref(),
            Self::Command(work) => work.workspace.as_deref(),
            Self::Read(work) => work.workspace.as_deref(),
            Self::Changes(work) => work.workspace.as_deref(),
            Self::Commit(work) => work.workspace.as_deref(),
            Self::Checks(work) => work.workspace.as_deref(),
        }
    }

    /// Whether the work spends from the budget of tokens, cost and attempts. Checks are a part of a
    /// step that was paid for.
    pub(crate) fn is_budgeted(&self) -> bool {
        !matches!(self, Self::Checks(_))
    }
}

/// The work of an agent.
#[derive(Clone, Debug)]
pub struct AgentWork {
    /// The name of the agent.
    pub agent: String,
    /// The prompt. The instructions for the result are added where the agent is known.
    pub prompt: String,
    /// The values of the run that the prompt contains.
    pub quotes: Vec<QuotedValue>,
    /// The attempt before this one, if it was interrupted.
    pub earlier: Option<EarlierAttempt>,
    /// The contract of the result.
    pub contract: Arc<Contract>,
    /// What it may do to the workspace.
    pub access: Access,
    /// The workspace to work in; the repository, if there is none.
    pub workspace: Option<String>,
    /// The claims to verify, without ignored ones.
    pub claims: Vec<EffectiveClaim>,
    /// The rules that the result must satisfy in addition to its contract.
    pub rules: Vec<BoundRule>,
    /// Globs of the paths that it may write; any path, if there is no list.
    pub writes: Option<Vec<String>>,
    /// Globs of the paths that it may not write, in addition to those that are always protected.
    pub protect: Vec<String>,
    /// The policy for writes to protected paths; `ignore` skips the check.
    pub protected: ClaimPolicy,
    /// The policy for tests that were removed, skipped or emptied.
    pub tests: ClaimPolicy,
    /// Timeouts and numbers of repairs and retries.
    pub bounds: Bounds,
}

/// An attempt that was interrupted, and from which the next one goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EarlierAttempt {
    /// Why it was interrupted.
    pub reason: String,
    /// Files that it changed, as far as known; of many, some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Its conversation, if the same program can continue it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<PastConversation>,
}

/// A value of the run that a prompt contains. It is not part of the instructions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuotedValue {
    /// The name by which the prompt reads it.
    pub name: String,
    /// The value.
    pub value: Value,
    /// Whether it is an input, rather than a result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub input: bool,
}

impl QuotedValue {
    /// Whether a value can contain a result: an object, a list, or a text with one of them.
    pub(crate) fn can_hold_result(value: &Value) -> bool {
        match value {
            Value::Object(_) | Value::Array(_) => true,
            Value::String(text) => text.contains(['{', '[']),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
}

/// The work of a command.
#[derive(Clone, Debug)]
pub struct CommandWork {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The standard input.
    pub input: String,
    /// The contract of the output.
    pub output: Option<Arc<Contract>>,
    /// The workspace to run in; the repository, if there is none.
    pub workspace: Option<String>,
    /// The working directory, relative to the workspace.
    pub cwd: Option<String>,
    /// The timeout, in milliseconds.
    pub timeout_ms: u64,
}
