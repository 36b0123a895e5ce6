//! A workflow that passed the checker: every name resolved, every expression compiled, every
//! template typed.

mod builtin;
mod claims;
mod failure;
mod lookup;

pub use builtin::{ChangesStep, CommitStep, ReadStep};
pub use claims::{ClaimPolicies, Paths, StateClaims, WorkspaceMode};
pub(crate) use claims::{PROTECTED, TESTS};
pub use failure::{End, FailureKind};

use crate::bundle::Bundle;
use crate::template::Template;
use counterfoil_contract::{Contract, Expression, Type};
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
    /// What it is for, in a line.
    pub summary: String,
    /// The main machine.
    pub main: Machine,
    /// The sub-workflows, by name.
    pub machines: BTreeMap<String, Machine>,
    /// Who does the work, by name.
    pub agents: BTreeMap<String, Role>,
    /// What a run may cost, unless whoever starts it says otherwise.
    pub budget: Budget,
    /// What its agents may write.
    pub paths: Paths,
    /// The files and contracts it was made from.
    pub bundle: Bundle,
}

impl Workflow {
    /// A machine by name; the main one has the empty name.
    pub fn machine(&self, name: &str) -> Option<&Machine> {
        if name.is_empty() { Some(&self.main) } else { self.machines.get(name) }
    }
}

/// A state machine.
#[derive(Debug)]
pub struct Machine {
    /// The empty name for the main one.
    pub name: String,
    /// What it is given.
    pub inputs: BTreeMap<String, Input>,
    /// What it remembers.
    pub variables: BTreeMap<String, Variable>,
    /// What bounds its cycles.
    pub limits: BTreeMap<String, Limit>,
    /// The limit whose count is shown as the iteration.
    pub iterations: Option<String>,
    /// Where it starts.
    pub start: String,
    /// Its states, by name.
    pub states: BTreeMap<String, State>,
    /// The names of its states in the order of the file.
    pub order: Vec<String>,
    /// The type of what it hands back when done.
    pub result: Option<Type>,
    /// Files rendered after each of its transitions.
    pub artifacts: Vec<Artifact>,
    /// Everything an expression or a template may read in every state.
    pub types: BTreeMap<String, Type>,
}

/// An input.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its type.
    pub ty: Type,
    /// What stands for it when it is not given; without it, it must be.
    pub default: Option<Value>,
    /// What it is, in a line.
    pub summary: String,
}

/// A variable.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its type.
    pub ty: Type,
    /// Its value at the start.
    pub initial: Value,
}

/// A bound on a cycle.
#[derive(Debug)]
pub struct Limit {
    /// How often it may be counted (for each key).
    pub max: Term,
    /// Where to go instead when it is used up.
    pub then: String,
    /// What it is counted by.
    pub per: Option<Expression>,
    /// How often it may be counted over all keys.
    pub total: u64,
}

/// A value that is written down or computed.
#[derive(Debug)]
pub enum Term {
    /// Written down.
    Literal(Value),
    /// Computed.
    Computed(Expression),
}

/// One who does work: what is asked of it and what it must hand back.
#[derive(Debug)]
pub struct Role {
    /// What it must hand back.
    pub contract: Arc<Contract>,
    /// What it is asked.
    pub prompt: Template,
    /// The words that tell it what to hand back.
    pub suffix: String,
    /// What it may do to the workspace.
    pub access: Access,
    /// Where it may write, as globs; anywhere, if there is no list.
    pub writes: Option<Vec<String>>,
    /// What its claims are held to, unless a state says otherwise.
    pub claim_policies: ClaimPolicies,
    /// How long and how often, unless a state says otherwise.
    pub bounds: Bounds,
}

impl Role {
    /// Whether it can change anything.
    pub fn can_write(&self) -> bool {
        self.access == Access::WorkspaceWrite
            && self.writes.as_ref().is_none_or(|globs| !globs.is_empty())
    }
}

/// What an agent may do to the workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Read it.
    ReadOnly,
    /// Change it.
    #[default]
    WorkspaceWrite,
}

/// What may be spent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Tokens in and out together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::value::optional_amount"
    )]
    pub cost_usd: Option<f64>,
    /// Time at work, in milliseconds; time spent waiting for a person does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// Visits of the main loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    /// Agent sessions and commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u64>,
}

/// A file rendered after each transition.
#[derive(Debug)]
pub struct Artifact {
    /// Where it goes, in the repository.
    pub path: Template,
    /// What stands in it.
    pub template: Template,
    /// What it must satisfy.
    pub contract: Option<Arc<Contract>>,
    /// Whether each rendering is added to the file rather than replacing it.
    pub append: bool,
    /// When it is rendered; always, if there is no condition.
    pub when: Option<Expression>,
}

/// A state.
#[derive(Debug)]
pub struct State {
    /// What happens in it.
    pub kind: Step,
    /// Where to go on success: the first whose guard holds.
    pub next: Vec<Transition>,
    /// Where to go on trouble.
    pub on: BTreeMap<FailureKind, Transition>,
    /// The limit that each entry counts.
    pub counts: Option<String>,
    /// The type of `result` in its transitions.
    pub result: Type,
    /// The type of `claims` in its transitions, if an agent works in it.
    pub claims: Option<Type>,
}

/// What happens in a state.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // One for each state, made once.
pub enum Step {
    /// An agent works.
    Agent(Dispatch),
    /// The engine runs a command.
    Command(ShellStep),
    /// The engine reads a file.
    Read(ReadStep),
    /// The engine looks at what changed.
    Changes(ChangesStep),
    /// The engine commits.
    Commit(CommitStep),
    /// Somebody is asked.
    Ask(Vec<Question>),
    /// A list is worked through.
    Each(Box<Each>),
    /// A list is put in order.
    Order(Box<Listing>),
    /// A sub-workflow runs.
    Call {
        /// Which.
        machine: String,
        /// Its inputs.
        with: Vec<(String, Term)>,
        /// Where it works.
        workspace: WorkspaceMode,
    },
    /// Nothing: the guards decide.
    Route,
    /// The machine ends.
    End {
        /// How.
        outcome: End,
        /// Why.
        reason: Option<Term>,
        /// What it hands back.
        result: Option<Term>,
    },
}

/// An agent at work.
#[derive(Debug)]
pub struct Dispatch {
    /// Who.
    pub agent: String,
    /// What it is asked.
    pub prompt: Template,
    /// Further variables of the prompt.
    pub with: Vec<(String, Term)>,
    /// Files that must be there first.
    pub needs: Vec<Template>,
    /// What its claims are held to.
    pub claims: StateClaims,
    /// What its result must satisfy beside its contract.
    pub rules: Vec<StepRule>,
    /// Where it works; for an item of a fan-out, the fan-out says so.
    pub workspace: WorkspaceMode,
    /// How long and how often.
    pub bounds: Bounds,
}

/// A rule of a step.
#[derive(Debug)]
pub struct StepRule {
    /// Its name.
    pub id: String,
    /// What must hold, over the result and what the run knows.
    pub check: Arc<Expression>,
    /// What is wrong if it does not.
    pub message: Template,
    /// The part of the result that it is about, as a JSON pointer.
    pub at: String,
    /// The types of what the state gives beside what the run knows.
    pub with: BTreeMap<String, Type>,
}

/// How long an attempt may take and how often it is tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// The whole attempt, in milliseconds.
    pub timeout_ms: u64,
    /// Until the first sign of life, in milliseconds.
    pub startup_ms: Option<u64>,
    /// Silence, in milliseconds.
    pub idle_ms: Option<u64>,
    /// How often the result is asked for again in the same session.
    pub repairs: u32,
    /// How often an attempt is started again, by trouble.
    pub retries: BTreeMap<FailureKind, u32>,
    /// What one attempt may spend.
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
                (FailureKind::Transport, 3),
                (FailureKind::Timeout, 1),
                (FailureKind::Limit, 24),
            ]),
            budget: Budget::default(),
        }
    }
}

/// A command that the engine runs.
#[derive(Debug)]
pub struct ShellStep {
    /// The program and its arguments.
    pub argv: Vec<Template>,
    /// What it reads.
    pub input: Option<Template>,
    /// What its output must satisfy.
    pub output: Option<Arc<Contract>>,
    /// Where it runs, in the repository.
    pub cwd: Option<Template>,
    /// How long it may take, in milliseconds.
    pub timeout_ms: u64,
}

/// A question.
#[derive(Debug)]
pub struct Question {
    /// Its name among those asked together.
    pub name: String,
    /// What is asked.
    pub text: Template,
    /// What an answer must be.
    pub form: Form,
    /// Whether it is cancelled by itself once all others are answered.
    pub optional: bool,
}

/// What an answer must be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// One of these.
    Choices(Vec<String>),
    /// A text of this form.
    Pattern(String),
    /// Any text that is not blank.
    Text,
}

/// A list whose items have a key and an order.
#[derive(Debug)]
pub struct Listing {
    /// The list.
    pub list: Expression,
    /// The name of the item.
    pub bind: String,
    /// The type of an item.
    pub item: Type,
    /// What names an item; without it, its number from 1.
    pub key: Option<Expression>,
    /// The keys of the items that must be done before it.
    pub after: Option<Expression>,
    /// Who comes first among those that may start; smaller is earlier.
    pub rank: Option<Expression>,
}

/// A fan-out.
#[derive(Debug)]
pub struct Each {
    /// What is worked through.
    pub listing: Listing,
    /// How many run at once.
    pub parallel: u32,
    /// What an item that is not done means for the rest.
    pub failures: Failures,
    /// Where each item works.
    pub workspace: WorkspaceMode,
    /// What runs for an item.
    pub body: Body,
}

/// What an item that is not done means for the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failures {
    /// No further item starts, and the state ends as that item did.
    Stop,
    /// The others go on, and the guards see what failed.
    Collect,
}

/// What runs for an item.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // One for each fan-out, made once.
pub enum Body {
    /// An agent.
    Agent(Dispatch),
    /// A sub-workflow.
    Machine {
        /// Which.
        machine: String,
        /// Its inputs.
        with: Vec<(String, Term)>,
    },
}

/// A way from one state to another.
#[derive(Debug)]
pub struct Transition {
    /// When it is taken; always, if there is no guard.
    pub when: Option<Expression>,
    /// What it assigns.
    pub set: Vec<(String, Term)>,
    /// Where it leads.
    pub go: Target,
    /// Why, for whoever reads the end.
    pub reason: Option<Term>,
    /// The limit it counts.
    pub counts: Option<String>,
    /// The limits it sets back to nothing.
    pub resets: Vec<String>,
    /// How long what starts there waits first.
    pub wait: Option<Wait>,
}

/// How long to wait.
#[derive(Debug)]
pub enum Wait {
    /// So many milliseconds.
    For(u64),
    /// As many seconds as this gives.
    Seconds(Expression),
}

/// Where a transition leads.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // One for each transition, made once.
pub enum Target {
    /// To this state.
    State(String),
    /// To the state that a value names; these are possible.
    Computed(Expression, Vec<String>),
}

impl Target {
    /// Every state it may lead to.
    pub fn states(&self) -> &[String] {
        match self {
            Self::State(name) => std::slice::from_ref(name),
            Self::Computed(_, names) => names,
        }
    }
}
