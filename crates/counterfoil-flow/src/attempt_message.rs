//! Attempt requests as plain data, for a driver that starts attempts in another process.
//!
//! A request refers to compiled contracts and expressions. Its message names them instead: the
//! contract by `id@version`, a rule by its id and its state, and both within the bundle of the run.
//! The worker loads the workflow from the bundle and resolves the message against it.

use crate::decide::{
    AgentWork, AttemptRequest, AttemptWork, ChangesWork, ChecksWork, CommandWork, CommitWork,
    EarlierAttempt, QuotedValue, ReadWork,
};
use crate::step_rule::BoundRule;
use crate::workflow::{Access, Bounds, Workflow};
use counterfoil_contract::Contract;
use counterfoil_contract::claim::{ClaimPolicy, EffectiveClaim};
use counterfoil_contract::expr::Type;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use std::sync::Arc;

/// An attempt request that can be sent to another process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptMessage {
    /// The id of the attempt.
    pub attempt: String,
    /// The id of the first attempt of this visit of the step; empty if it is this one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub first: String,
    /// The frame that the attempt works for.
    pub frame: String,
    /// The path of the step: a state, or a state, an item key and an inner state.
    pub path: Vec<String>,
    /// The number of the attempt on this path, from 1.
    pub n: u32,
    /// The earliest start time, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<i64>,
    /// The hash of the bundle that has the workflow and the contracts.
    pub bundle: String,
    /// The machine that the frame runs; the main machine has the empty name.
    pub machine: String,
    /// The state of that machine.
    pub state: String,
    /// The work to do.
    pub work: WorkMessage,
}

/// The work of an attempt, as plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkMessage {
    /// Run an agent.
    Agent(Box<AgentMessage>),
    /// Run a command.
    Command(Box<CommandMessage>),
    /// Read a file.
    Read(ReadMessage),
    /// Collect the changes since a revision.
    Changes(ChangesWork),
    /// Make a commit.
    Commit(CommitWork),
    /// Run checks of the project.
    Checks(ChecksWork),
}

/// An agent's work, as plain data. The fields are those of [`AgentWork`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct AgentMessage {
    pub agent: String,
    pub prompt: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quotes: Vec<QuotedValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<EarlierAttempt>,
    /// The contract of the result, as `id@version`.
    pub contract: String,
    pub access: Access,
    pub workspace: Option<String>,
    pub claims: Vec<EffectiveClaim>,
    pub rules: Vec<RuleMessage>,
    pub writes: Option<Vec<String>>,
    pub protect: Vec<String>,
    pub protected: ClaimPolicy,
    pub tests: ClaimPolicy,
    pub bounds: Bounds,
}

/// A rule of a step with the values that it reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleMessage {
    /// The id of the rule within its state.
    pub id: String,
    /// The rendered message for a result that breaks the rule.
    pub message: String,
    /// The values that the rule reads, except for the result.
    pub known: Vec<(String, Value)>,
}

/// A command's work, as plain data. The fields are those of [`CommandWork`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct CommandMessage {
    pub argv: Vec<String>,
    pub input: String,
    /// The contract of the output, as `id@version`.
    pub output: Option<String>,
    pub workspace: Option<String>,
    pub cwd: Option<String>,
    pub timeout_ms: u64,
}

/// A file to read, as plain data. The fields are those of [`ReadWork`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct ReadMessage {
    pub path: String,
    /// The contract of the file, as `id@version`.
    pub contract: Option<String>,
    pub workspace: Option<String>,
}

/// A message that does not fit the workflow: it belongs to another bundle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The workflow does not use the contract.
    #[error("the workflow does not use contract '{reference}'")]
    UnknownContract {
        /// The contract, as `id@version`.
        reference: String,
    },
    /// The state has no rule of this name.
    #[error("state '{state}' has no rule '{rule}'")]
    UnknownRule {
        /// The state of the attempt.
        state: String,
        /// The id of the rule.
        rule: String,
    },
}

fn reference(contract: &Arc<Contract>) -> String {
    contract.reference().to_owned()
}

impl From<&AttemptRequest> for AttemptMessage {
    fn from(request: &AttemptRequest) -> Self {
        let work = match &request.work {
            AttemptWork::Agent(work) => WorkMessage::Agent(Box::new(agent_message(work))),
            AttemptWork::Command(work) => WorkMessage::Command(Box::new(CommandMessage {
                argv: work.argv.clone(),
                input: work.input.clone(),
                output: work.output.as_ref().map(reference),
                workspace: work.workspace.clone(),
                cwd: work.cwd.clone(),
                timeout_ms: work.timeout_ms,
            })),
            AttemptWork::Read(work) => WorkMessage::Read(ReadMessage {
                path: work.path.clone(),
                contract: work.contract.as_ref().map(reference),
                workspace: work.workspace.clone(),
            }),
            AttemptWork::Changes(work) => WorkMessage::Changes((**work).clone()),
            AttemptWork::Commit(work) => WorkMessage::Commit((**work).clone()),
            AttemptWork::Checks(work) => WorkMessage::Checks((**work).clone()),
        };
        let again = request.first != request.attempt;
        Self {
            attempt: request.attempt.clone(),
            first: if again { request.first.clone() } else { String::new() },
            frame: request.frame.clone(),
            path: request.path.clone(),
            n: request.n,
            not_before: request.not_before,
            bundle: request.bundle.clone(),
            machine: request.machine.clone(),
            state: request.state.clone(),
            work,
        }
    }
}

fn agent_message(work: &AgentWork) -> AgentMessage {
    let rule = |rule: &BoundRule| RuleMessage {
        id: rule.id.clone(),
        message: rule.message.clone(),
        known: rule.known.iter().map(|(name, value, _)| (name.clone(), value.clone())).collect(),
    };
    AgentMessage {
        agent: work.agent.clone(),
        prompt: work.prompt.clone(),
        quotes: work.quotes.clone(),
        earlier: work.earlier.clone(),
        contract: reference(&work.contract),
        access: work.access,
        workspace: work.workspace.clone(),
        claims: work.claims.clone(),
        rules: work.rules.iter().map(rule).collect(),
        writes: work.writes.clone(),
        protect: work.protect.clone(),
        protected: work.protected,
        tests: work.tests,
        bounds: work.bounds.clone(),
    }
}

/// Written as its message.
impl Serialize for AttemptRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        AttemptMessage::from(self).serialize(serializer)
    }
}

impl AttemptMessage {
    /// The request with its compiled contracts and rules.
    ///
    /// # Errors
    ///
    /// Returns an error if the workflow has no such contract or rule, that is, if it was not
    /// loaded from the bundle that the message names.
    pub fn resolve(self, workflow: &Workflow) -> Result<AttemptRequest, ResolveError> {
        let compiled = |reference: String| {
            workflow
                .contract(&reference)
                .cloned()
                .ok_or(ResolveError::UnknownContract { reference })
        };
        let work = match self.work {
            WorkMessage::Agent(work) => {
                let rules = work
                    .rules
                    .into_iter()
                    .map(|rule| bound_rule(rule, workflow, &self.machine, &self.state))
                    .collect::<Result<_, _>>()?;
                let contract = workflow
                    .contract_of(&work.agent, &work.contract)
                    .cloned()
                    .ok_or(ResolveError::UnknownContract { reference: work.contract })?;
                AttemptWork::Agent(Box::new(AgentWork {
                    agent: work.agent,
                    prompt: work.prompt,
                    quotes: work.quotes,
                    earlier: work.earlier,
                    contract,
                    access: work.access,
                    workspace: work.workspace,
                    claims: work.claims,
                    rules,
                    writes: work.writes,
                    protect: work.protect,
                    protected: work.protected,
                    tests: work.tests,
                    bounds: work.bounds,
                }))
            }
            WorkMessage::Command(work) => AttemptWork::Command(Box::new(CommandWork {
                argv: work.argv,
                input: work.input,
                output: work.output.map(compiled).transpose()?,
                workspace: work.workspace,
                cwd: work.cwd,
                timeout_ms: work.timeout_ms,
            })),
            WorkMessage::Read(work) => AttemptWork::Read(Box::new(ReadWork {
                path: work.path,
                contract: work.contract.map(compiled).transpose()?,
                workspace: work.workspace,
            })),
            WorkMessage::Changes(work) => AttemptWork::Changes(Box::new(work)),
            WorkMessage::Commit(work) => AttemptWork::Commit(Box::new(work)),
            WorkMessage::Checks(work) => AttemptWork::Checks(Box::new(work)),
        };
        let first = if self.first.is_empty() { self.attempt.clone() } else { self.first };
        Ok(AttemptRequest {
            attempt: self.attempt,
            first,
            frame: self.frame,
            path: self.path,
            n: self.n,
            not_before: self.not_before,
            bundle: self.bundle,
            machine: self.machine,
            state: self.state,
            work,
        })
    }
}

/// Binds the values of a rule to its compiled expression, with the types that the state gives them.
fn bound_rule(
    message: RuleMessage,
    workflow: &Workflow,
    machine: &str,
    state: &str,
) -> Result<BoundRule, ResolveError> {
    let unknown =
        || ResolveError::UnknownRule { state: state.to_owned(), rule: message.id.clone() };
    let (dispatch, listing) = workflow.dispatch(machine, state).ok_or_else(unknown)?;
    let rule = dispatch.rules.iter().find(|rule| rule.id == message.id).ok_or_else(unknown)?;
    let type_of = |name: &str| {
        let item = listing.filter(|listing| listing.bind == name).map(|listing| &listing.item);
        let machine = || workflow.machine(machine)?.types.get(name);
        item.or_else(machine).or_else(|| rule.with.get(name)).cloned().unwrap_or(Type::Any)
    };
    let known = message.known.into_iter().map(|(name, value)| {
        let ty = type_of(&name);
        (name, value, ty)
    });
    Ok(BoundRule {
        id: rule.id.clone(),
        check: rule.check.clone(),
        message: message.message,
        at: rule.at.clone(),
        known: known.collect(),
    })
}
