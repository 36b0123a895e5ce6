//! A workflow that passed the checker: every name resolved, every expression compiled, every
//! template typed.

mod builtin;
mod check_uses;
mod claims;
mod failure;
mod lookup;
mod question;

pub use builtin::{ChangesStep, CommitStep, ReadStep};
pub use check_uses::{CheckUse, ClaimUse, MissingCheck};
pub(crate) use claims::{COMPLETE, PROTECTED, TESTS, complete_claim};
pub use claims::{ClaimPolicies, Paths, StateClaims, WorkspaceMode};
pub use failure::{End, FailureKind};
pub(crate) use question::words_field;
pub use question::{Form, Question};

use crate::bundle::Bundle;
use crate::template::Template;
use counterfoil_contract::Contract;
use counterfoil_contract::expr::{Expression, Type};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A checked workflow.
#[derive(Debug)]
pub struct Workflow {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: u32,
    /// A one-line summary.
    pub summary: String,
    /// The main machine.
    pub main: Machine,
    /// The sub-workflows, by name.
    pub machines: BTreeMap<String, Machine>,
    /// The agents, by name.
    pub agents: BTreeMap<String, Role>,
    /// The default budget of a run.
    pub budget: Budget,
    /// The paths that agents may write.
    pub paths: Paths,
    /// The names of the checks that its states run, in the order of the file.
    pub checks: Vec<String>,
    /// The checks that its states run and that verify its claims, in the order of the file.
    pub check_uses: Vec<CheckUse>,
    /// The files in the folders of its own contracts that are no contracts.
    pub skipped: Vec<String>,
    /// The files and folders that its own contracts come from, relative to the workflow's folder.
    pub contract_paths: Vec<String>,
    /// The files and contracts of the workflow.
    pub bundle: Bundle,
}

impl Workflow {
    /// A machine by name; the main one has the empty name.
    pub fn machine(&self, name: &str) -> Option<&Machine> {
        if name.is_empty() { Some(&self.main) } else { self.machines.get(name) }
    }

    /// The states of all machines.
    fn all_states(&self) -> impl Iterator<Item = &State> {
        let machines = std::iter::once(&self.main).chain(self.machines.values());
        machines.flat_map(|machine| machine.states.values())
    }

    /// The budgets of single attempts of an agent, in the steps that it performs.
    pub fn attempt_budgets(&self, agent: &str) -> impl Iterator<Item = &Budget> {
        let steps = self.all_states().filter_map(|state| state.kind.dispatch());
        steps.filter(move |step| step.agent == agent).map(|step| &step.bounds.budget)
    }

    /// Whether the prompt of an agent reads a variable of this name.
    pub fn prompts_read(&self, name: &str) -> bool {
        let agents = self.agents.values().map(|role| &role.prompt);
        let states = self.all_states().filter_map(|state| Some(&state.kind.dispatch()?.prompt));
        let mut read = agents.chain(states).flat_map(Template::reads);
        read.any(|read| read.split('.').next() == Some(name))
    }

    /// Whether a command of the workflow mentions a text, such as the name of a file that it writes.
    pub fn commands_mention(&self, text: &str) -> bool {
        self.all_states().any(|state| match &state.kind {
            Step::Command(command) => {
                let mut templates = command.argv.iter().chain(&command.input);
                templates.any(|template| template.source().contains(text))
            }
            _ => false,
        })
    }
}

/// A state machine.
#[derive(Debug)]
pub struct Machine {
    /// The name; empty for the main machine.
    pub name: String,
    /// The inputs, by name.
    pub inputs: BTreeMap<String, Input>,
    /// The variables, by name.
    pub variables: BTreeMap<String, Variable>,
    /// The limits of its cycles, by name.
    pub limits: BTreeMap<String, Limit>,
    /// The limit whose count is shown as the iteration.
    pub iterations: Option<String>,
    /// The first state.
    pub start: String,
    /// Its states, by name.
    pub states: BTreeMap<String, State>,
    /// The names of its states in the order of the file.
    pub order: Vec<String>,
    /// The type of its result.
    pub result: Option<Type>,
    /// The artifacts that are rendered after each transition.
    pub artifacts: Vec<Artifact>,
    /// The types of all values that expressions and templates can read in every state.
    pub types: BTreeMap<String, Type>,
}

/// An input of a machine.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its type.
    pub ty: Type,
    /// The default; without it, the input is required.
    pub default: Option<Value>,
    /// A one-line summary.
    pub summary: String,
}

/// A variable of a machine.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its type.
    pub ty: Type,
    /// The initial value.
    pub initial: Value,
}

/// A limit on a cycle.
#[derive(Debug)]
pub struct Limit {
    /// The maximum count, for each key if there are keys.
    pub max: Term,
    /// The state to enter when the limit is exhausted.
    pub then: String,
    /// The key that it is counted by.
    pub per: Option<Expression>,
    /// The maximum count over all keys.
    pub total: u64,
}

/// A literal or computed value.
#[derive(Debug)]
pub enum Term {
    /// A literal.
    Literal(Value),
    /// The value of an expression.
    Computed(Expression),
}

/// An agent: its prompt, its contract and its permissions.
#[derive(Debug)]
pub struct Role {
    /// The contract of the result. Its policy has the agent's answer to unknown fields.
    pub contract: Arc<Contract>,
    /// The prompt.
    pub prompt: Template,
    /// The access to the workspace.
    pub access: Access,
    /// Globs of the writable paths; any path, if there is no list.
    pub writes: Option<Vec<String>>,
    /// The default policies for its claims.
    pub claim_policies: ClaimPolicies,
    /// The default timeouts and numbers of repairs and retries.
    pub bounds: Bounds,
}

impl Role {
    /// Whether the agent may change files.
    pub fn can_write(&self) -> bool {
        self.access == Access::WorkspaceWrite
            && self.writes.as_ref().is_none_or(|globs| !globs.is_empty())
    }
}

/// The access of an agent to its workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// The agent may read files.
    ReadOnly,
    /// The agent may change files.
    #[default]
    WorkspaceWrite,
}

/// The budget of a run or an attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Budget {
    /// The sum of input and output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The cost in US dollars.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::value::optional_amount"
    )]
    pub cost_usd: Option<f64>,
    /// The working time, in milliseconds. Time spent waiting for a person does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// The number of iterations of the main loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    /// The number of attempts of agents, commands and built-in steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u64>,
}

impl Budget {
    /// This budget with the limits that are given in another one.
    #[must_use]
    pub fn with(&self, given: &Self) -> Self {
        Self {
            tokens: given.tokens.or(self.tokens),
            cost_usd: given.cost_usd.or(self.cost_usd),
            time_ms: given.time_ms.or(self.time_ms),
            iterations: given.iterations.or(self.iterations),
            attempts: given.attempts.or(self.attempts),
        }
    }
}

/// A part of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetPart {
    /// Input and output tokens.
    Tokens,
    /// The cost.
    Cost,
    /// The working time.
    Time,
    /// The iterations of the main loop.
    Iterations,
    /// The attempts.
    Attempts,
}

/// A file that is rendered after each transition.
#[derive(Debug)]
pub struct Artifact {
    /// The path, relative to the repository.
    pub path: Template,
    /// The content.
    pub template: Template,
    /// The contract of the content.
    pub contract: Option<Arc<Contract>>,
    /// Whether each rendering is appended to the file instead of replacing it.
    pub append: bool,
    /// The condition for rendering; always, if there is none.
    pub when: Option<Expression>,
}

/// A state of a machine.
#[derive(Debug)]
pub struct State {
    /// The step of the state.
    pub kind: Step,
    /// The transitions on success; the first one whose guard is true is taken.
    pub next: Vec<Transition>,
    /// The transitions on failure, by kind.
    pub on: BTreeMap<FailureKind, Transition>,
    /// The limit that each entry of the state counts.
    pub counts: Option<String>,
    /// The type of `result` in its transitions.
    pub result: Type,
    /// The type of `claims` in its transitions, if the step runs an agent.
    pub claims: Option<Type>,
    /// The checks of the project that follow the step, in the order in which they run.
    pub checks: Vec<String>,
    /// The type of `checks` in its transitions, if it has any.
    pub checks_type: Option<Type>,
}

/// The step of a state.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // One per state.
pub enum Step {
    /// Run an agent.
    Agent(Dispatch),
    /// Run a command.
    Command(ShellStep),
    /// Read a file.
    Read(ReadStep),
    /// Collect changes.
    Changes(ChangesStep),
    /// Make a commit.
    Commit(CommitStep),
    /// Ask a person.
    Ask(Vec<Question>),
    /// Fan out over a list.
    Each(Box<Each>),
    /// Sort a list by its dependencies.
    Order(Box<Listing>),
    /// Run a sub-workflow.
    Call {
        /// The name of the sub-workflow.
        machine: String,
        /// Its inputs.
        with: Vec<(String, Term)>,
        /// The workspace of the sub-workflow.
        workspace: WorkspaceMode,
    },
    /// Do nothing; the guards select the next state.
    Route,
    /// End the machine.
    End {
        /// The outcome.
        outcome: End,
        /// The reason.
        reason: Option<Term>,
        /// The result.
        result: Option<Term>,
        /// The exit code of a run that ends here, instead of that of the outcome.
        exit: Option<u8>,
    },
}

impl Step {
    /// The agent that the step runs, for itself or for each item of a list.
    pub(crate) fn dispatch(&self) -> Option<&Dispatch> {
        match self {
            Self::Agent(dispatch) => Some(dispatch),
            Self::Each(each) => match &each.body {
                Body::Agent(dispatch) => Some(dispatch),
                Body::Machine { .. } => None,
            },
            _ => None,
        }
    }

    /// As [`Step::dispatch`], to be changed.
    fn dispatch_mut(&mut self) -> Option<&mut Dispatch> {
        match self {
            Self::Agent(dispatch) => Some(dispatch),
            Self::Each(each) => match &mut each.body {
                Body::Agent(dispatch) => Some(dispatch),
                Body::Machine { .. } => None,
            },
            _ => None,
        }
    }
}

/// A step that runs an agent.
#[derive(Debug)]
pub struct Dispatch {
    /// The name of the agent.
    pub agent: String,
    /// The prompt.
    pub prompt: Template,
    /// Additional variables of the prompt.
    pub with: Vec<(String, Term)>,
    /// The files that must exist before the agent starts.
    pub needs: Vec<Template>,
    /// The claims and their policies.
    pub claims: StateClaims,
    /// The rules that the result must satisfy in addition to its contract.
    pub rules: Vec<StepRule>,
    /// The workspace; for an item of a fan-out, the workspace of the fan-out applies.
    pub workspace: WorkspaceMode,
    /// Timeouts and numbers of repairs and retries.
    pub bounds: Bounds,
}

/// A rule of a step.
#[derive(Debug)]
pub struct StepRule {
    /// Its name.
    pub id: String,
    /// The condition, over the result and the values of the run.
    pub check: Arc<Expression>,
    /// The message for a result that breaks the rule.
    pub message: Template,
    /// The part of the result that the rule is about, as a JSON pointer.
    pub at: String,
    /// The types of the additional variables of the state.
    pub with: BTreeMap<String, Type>,
}

/// Timeouts of an attempt, and numbers of repairs and retries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// The timeout of the whole attempt, in milliseconds.
    pub timeout_ms: u64,
    /// The timeout until the first output, in milliseconds.
    pub startup_ms: Option<u64>,
    /// The timeout without output, in milliseconds.
    pub idle_ms: Option<u64>,
    /// The number of repair prompts in the same session.
    pub repairs: u32,
    /// The number of retries, by kind of failure.
    pub retries: BTreeMap<FailureKind, u32>,
    /// The budget of one attempt.
    pub budget: Budget,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            timeout_ms: 60 * 60 * 1000,
            startup_ms: None,
            idle_ms: None,
            repairs: 2,
            retries: BTreeMap::from([
                (FailureKind::Transport, 10),
                (FailureKind::Timeout, 1),
                (FailureKind::Limit, 24),
            ]),
            budget: Budget::default(),
        }
    }
}

/// A step that runs a command.
#[derive(Debug)]
pub struct ShellStep {
    /// The program and its arguments.
    pub argv: Vec<Template>,
    /// The standard input.
    pub input: Option<Template>,
    /// The contract of the output.
    pub output: Option<Arc<Contract>>,
    /// The working directory, relative to the repository.
    pub cwd: Option<Template>,
    /// The timeout, in milliseconds.
    pub timeout_ms: u64,
}

/// A list whose items have keys and an order.
#[derive(Debug)]
pub struct Listing {
    /// The list.
    pub list: Expression,
    /// The variable name of the item.
    pub bind: String,
    /// The type of an item.
    pub item: Type,
    /// The key of an item; without it, its number from 1.
    pub key: Option<Expression>,
    /// The keys of the items that must be done before an item.
    pub after: Option<Expression>,
    /// The rank; items with a smaller rank start earlier.
    pub rank: Option<Expression>,
}

/// The maximum number of running items of a fan-out.
pub(crate) const MAX_PARALLEL: u32 = 256;

/// A fan-out over a list.
#[derive(Debug)]
pub struct Each {
    /// The list.
    pub listing: Listing,
    /// The maximum number of running items: an integer.
    pub parallel: Term,
    /// The effect of an item that is not done.
    pub failures: Failures,
    /// The workspace of each item.
    pub workspace: WorkspaceMode,
    /// The work of an item.
    pub body: Body,
}

/// The effect of an item that is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failures {
    /// No further item starts, and the state ends as that item did.
    Stop,
    /// The other items continue, and the guards can read the failures.
    Collect,
}

/// The work of an item.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // One per fan-out.
pub enum Body {
    /// Run an agent.
    Agent(Dispatch),
    /// Run a sub-workflow.
    Machine {
        /// The name of the sub-workflow.
        machine: String,
        /// Its inputs.
        with: Vec<(String, Term)>,
    },
}

/// A transition from one state to another.
#[derive(Debug)]
pub struct Transition {
    /// The guard; without it, the transition is always taken.
    pub when: Option<Expression>,
    /// The assignments.
    pub set: Vec<(String, Term)>,
    /// The target.
    pub go: Target,
    /// The reason, for reports.
    pub reason: Option<Term>,
    /// The limit that it counts.
    pub counts: Option<String>,
    /// The limits that it resets.
    pub resets: Vec<String>,
    /// The delay before the next step starts.
    pub wait: Option<Wait>,
}

/// The delay before a step.
#[derive(Debug)]
pub enum Wait {
    /// A number of milliseconds.
    For(u64),
    /// The value of an expression, in seconds.
    Seconds(Expression),
}

/// The target of a transition.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // One per transition.
pub enum Target {
    /// A fixed state.
    State(String),
    /// The state that an expression names, and all possible states.
    Computed(Expression, Vec<String>),
}

impl Target {
    /// All possible target states.
    pub fn states(&self) -> &[String] {
        match self {
            Self::State(name) => std::slice::from_ref(name),
            Self::Computed(_, names) => names,
        }
    }
}
