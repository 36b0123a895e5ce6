//! The syntax tree of a workflow file: the YAML nodes grouped into workflow parts, each with its
//! position. Names, types and expressions are not resolved; the checker does that.

mod builtin;
mod file;
mod reader;
mod state;

pub(crate) use reader::Reader;

use crate::yaml_tree::Node;

/// A string scalar with the YAML node it comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpannedStr<'n> {
    pub(crate) text: &'n str,
    pub(crate) node: &'n Node,
}

/// A workflow file.
#[derive(Debug)]
pub(crate) struct Workflow<'n> {
    pub(crate) name: Option<SpannedStr<'n>>,
    pub(crate) version: u32,
    pub(crate) summary: String,
    pub(crate) main: Machine<'n>,
    pub(crate) machines: Vec<(SpannedStr<'n>, Machine<'n>)>,
    pub(crate) agents: Vec<(SpannedStr<'n>, Agent<'n>)>,
    pub(crate) contracts: Vec<SpannedStr<'n>>,
    pub(crate) budget: Option<&'n Node>,
    pub(crate) writes: Option<&'n Node>,
    pub(crate) protect: Option<&'n Node>,
    pub(crate) protection: Option<SpannedStr<'n>>,
    pub(crate) tests: Option<SpannedStr<'n>>,
}

/// A state machine: the main one or a sub-workflow.
#[derive(Debug)]
pub(crate) struct Machine<'n> {
    pub(crate) inputs: Vec<(SpannedStr<'n>, &'n Node)>,
    pub(crate) variables: Vec<(SpannedStr<'n>, &'n Node)>,
    pub(crate) limits: Vec<(SpannedStr<'n>, Limit<'n>)>,
    pub(crate) iterations: Option<SpannedStr<'n>>,
    pub(crate) start: Option<SpannedStr<'n>>,
    pub(crate) states: Vec<(SpannedStr<'n>, State<'n>)>,
    pub(crate) result: Option<&'n Node>,
    pub(crate) artifacts: Vec<Artifact<'n>>,
}

impl Machine<'_> {
    /// Whether the machine has states and their forms are right. Otherwise what seems not to be used
    /// may be used, because a state may be meant otherwise.
    pub(crate) fn is_clear(&self) -> bool {
        !self.states.is_empty() && !self.states.iter().any(|(_, state)| state.is_unclear)
    }
}

/// An entry of `agents:`.
#[derive(Debug)]
pub(crate) struct Agent<'n> {
    pub(crate) contract: Option<SpannedStr<'n>>,
    pub(crate) prompt: Option<SpannedStr<'n>>,
    pub(crate) settings: Settings<'n>,
    pub(crate) access: Option<SpannedStr<'n>>,
    pub(crate) writes: Option<&'n Node>,
    pub(crate) unknown_fields: Option<SpannedStr<'n>>,
}

/// The settings that an agent declaration and a state using the agent have in common.
#[derive(Debug, Default)]
pub(crate) struct Settings<'n> {
    pub(crate) timeout: Option<&'n Node>,
    pub(crate) startup: Option<&'n Node>,
    pub(crate) idle: Option<&'n Node>,
    pub(crate) repairs: Option<&'n Node>,
    pub(crate) retries: Option<&'n Node>,
    pub(crate) budget: Option<&'n Node>,
    pub(crate) claims: Option<&'n Node>,
}

/// An entry of `limits:`.
#[derive(Debug)]
pub(crate) struct Limit<'n> {
    pub(crate) max: Option<&'n Node>,
    pub(crate) then: Option<SpannedStr<'n>>,
    pub(crate) per: Option<SpannedStr<'n>>,
    pub(crate) total: Option<&'n Node>,
}

/// An entry of `artifacts:`.
#[derive(Debug)]
pub(crate) struct Artifact<'n> {
    pub(crate) path: SpannedStr<'n>,
    pub(crate) template: SpannedStr<'n>,
    pub(crate) contract: Option<SpannedStr<'n>>,
    pub(crate) append: bool,
    pub(crate) when: Option<&'n Node>,
}

/// An entry of `states:`.
#[derive(Debug)]
pub(crate) struct State<'n> {
    pub(crate) node: &'n Node,
    pub(crate) kind: StateKind<'n>,
    pub(crate) next: Vec<Transition<'n>>,
    pub(crate) on: Vec<(SpannedStr<'n>, Transition<'n>)>,
    pub(crate) counts: Option<SpannedStr<'n>>,
    /// The checks that follow the step.
    pub(crate) checks: Vec<SpannedStr<'n>>,
    /// Whether there are findings about its form: it may be meant to use other names and to lead to
    /// other states than the tree says.
    pub(crate) is_unclear: bool,
}

/// The kind of a state, given by its main key.
#[derive(Debug)]
pub(crate) enum StateKind<'n> {
    Agent(AgentStep<'n>),
    Command(CommandStep<'n>),
    Read(ReadStep<'n>),
    Changes(ChangesStep<'n>),
    Commit(CommitStep<'n>),
    Ask(Vec<(SpannedStr<'n>, Question<'n>)>, AskForm),
    Each(Each<'n>),
    Order(Listing<'n>),
    Call {
        machine: SpannedStr<'n>,
        with: Vec<(SpannedStr<'n>, &'n Node)>,
        workspace: Option<SpannedStr<'n>>,
    },
    Route,
    End {
        outcome: SpannedStr<'n>,
        reason: Option<&'n Node>,
        result: Option<&'n Node>,
        exit: Option<&'n Node>,
    },
    /// The kind cannot be determined. A finding has been reported.
    Invalid,
}

impl StateKind<'_> {
    /// Whether the engine starts an attempt in such a state. An invalid kind counts as one that
    /// does, so that it causes no further finding.
    pub(crate) fn starts_attempt(&self) -> bool {
        match self {
            Self::Agent(_)
            | Self::Command(_)
            | Self::Read(_)
            | Self::Changes(_)
            | Self::Commit(_) => true,
            Self::Ask(..)
            | Self::Each(_)
            | Self::Order(_)
            | Self::Call { .. }
            | Self::Route
            | Self::End { .. } => false,
            Self::Invalid => true,
        }
    }
}

/// Whether the state uses `ask` (one question) or `asks` (several named questions).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskForm {
    Single,
    Multiple,
}

/// A step performed by an agent, as a state or as the body of a fan-out.
#[derive(Debug)]
pub(crate) struct AgentStep<'n> {
    pub(crate) agent: SpannedStr<'n>,
    pub(crate) prompt: Option<SpannedStr<'n>>,
    pub(crate) with: Vec<(SpannedStr<'n>, &'n Node)>,
    pub(crate) needs: Vec<SpannedStr<'n>>,
    pub(crate) rules: Vec<Rule<'n>>,
    /// Set for a state only. For the items of a fan-out, the fan-out has this setting.
    pub(crate) workspace: Option<SpannedStr<'n>>,
    pub(crate) settings: Settings<'n>,
}

/// A rule that the result must satisfy in addition to its contract.
#[derive(Debug)]
pub(crate) struct Rule<'n> {
    pub(crate) id: Option<SpannedStr<'n>>,
    pub(crate) check: Option<&'n Node>,
    pub(crate) message: Option<SpannedStr<'n>>,
    pub(crate) at: Option<SpannedStr<'n>>,
}

/// A `command` state.
#[derive(Debug)]
pub(crate) struct CommandStep<'n> {
    pub(crate) argv: Vec<SpannedStr<'n>>,
    pub(crate) input: Option<SpannedStr<'n>>,
    pub(crate) output: Option<SpannedStr<'n>>,
    pub(crate) cwd: Option<SpannedStr<'n>>,
    pub(crate) timeout: Option<&'n Node>,
}

/// A `read` state, which reads a file.
#[derive(Debug)]
pub(crate) struct ReadStep<'n> {
    pub(crate) path: SpannedStr<'n>,
    pub(crate) contract: Option<SpannedStr<'n>>,
}

/// A `changes` state, which lists the changes since a revision.
#[derive(Debug)]
pub(crate) struct ChangesStep<'n> {
    pub(crate) since: Option<&'n Node>,
    pub(crate) split: Option<&'n Node>,
}

/// A `commit` state.
#[derive(Debug)]
pub(crate) struct CommitStep<'n> {
    pub(crate) message: SpannedStr<'n>,
    pub(crate) paths: Option<&'n Node>,
    pub(crate) timeout: Option<&'n Node>,
}

/// A question of an `ask` or `asks` state.
#[derive(Debug)]
pub(crate) struct Question<'n> {
    pub(crate) question: Option<SpannedStr<'n>>,
    pub(crate) choices: Option<Vec<SpannedStr<'n>>>,
    pub(crate) pattern: Option<SpannedStr<'n>>,
    pub(crate) optional: bool,
}

/// A list whose items have a key and an order, as used by `each` and `order`.
#[derive(Debug)]
pub(crate) struct Listing<'n> {
    pub(crate) node: &'n Node,
    pub(crate) list: Option<&'n Node>,
    pub(crate) bind: Option<SpannedStr<'n>>,
    pub(crate) key: Option<SpannedStr<'n>>,
    pub(crate) after: Option<SpannedStr<'n>>,
    pub(crate) rank: Option<SpannedStr<'n>>,
}

/// An `each` state, which runs an agent or a sub-workflow for every item of a list.
#[derive(Debug)]
pub(crate) struct Each<'n> {
    pub(crate) listing: Listing<'n>,
    pub(crate) parallel: Option<&'n Node>,
    pub(crate) failures: Option<SpannedStr<'n>>,
    pub(crate) workspace: Option<SpannedStr<'n>>,
    pub(crate) body: Option<Body<'n>>,
}

/// What a fan-out runs for an item.
#[derive(Debug)]
pub(crate) enum Body<'n> {
    Agent(AgentStep<'n>),
    Machine { machine: SpannedStr<'n>, with: Vec<(SpannedStr<'n>, &'n Node)> },
}

/// An entry of `next` or `on`.
#[derive(Debug)]
pub(crate) struct Transition<'n> {
    pub(crate) node: &'n Node,
    pub(crate) when: Option<&'n Node>,
    pub(crate) set: Vec<(SpannedStr<'n>, &'n Node)>,
    pub(crate) go: Option<SpannedStr<'n>>,
    pub(crate) goto: Option<SpannedStr<'n>>,
    pub(crate) reason: Option<&'n Node>,
    pub(crate) counts: Option<SpannedStr<'n>>,
    pub(crate) resets: Vec<SpannedStr<'n>>,
    pub(crate) wait: Option<&'n Node>,
}
