//! The workflow as it was written: the tree sorted into its parts, every part with its place,
//! nothing resolved yet.

mod deed;
mod file;
mod read;
mod state;

pub(crate) use read::Reader;

use crate::tree::Node;

/// A word with its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'n> {
    pub(crate) text: &'n str,
    pub(crate) node: &'n Node,
}

/// The whole file.
#[derive(Debug)]
pub(crate) struct Draft<'n> {
    pub(crate) name: Option<Name<'n>>,
    pub(crate) version: u32,
    pub(crate) summary: String,
    pub(crate) main: MachineDraft<'n>,
    pub(crate) machines: Vec<(Name<'n>, MachineDraft<'n>)>,
    pub(crate) agents: Vec<(Name<'n>, AgentDraft<'n>)>,
    pub(crate) contracts: Vec<Name<'n>>,
    pub(crate) budget: Option<&'n Node>,
    pub(crate) writes: Option<&'n Node>,
    pub(crate) protect: Option<&'n Node>,
    pub(crate) protection: Option<Name<'n>>,
    pub(crate) tests: Option<Name<'n>>,
}

/// A state machine: the main one or a sub-workflow.
#[derive(Debug)]
pub(crate) struct MachineDraft<'n> {
    pub(crate) inputs: Vec<(Name<'n>, &'n Node)>,
    pub(crate) variables: Vec<(Name<'n>, &'n Node)>,
    pub(crate) limits: Vec<(Name<'n>, LimitDraft<'n>)>,
    pub(crate) iterations: Option<Name<'n>>,
    pub(crate) start: Option<Name<'n>>,
    pub(crate) states: Vec<(Name<'n>, StateDraft<'n>)>,
    pub(crate) result: Option<&'n Node>,
    pub(crate) artifacts: Vec<ArtifactDraft<'n>>,
}

#[derive(Debug)]
pub(crate) struct AgentDraft<'n> {
    pub(crate) contract: Option<Name<'n>>,
    pub(crate) prompt: Option<Name<'n>>,
    pub(crate) settings: Settings<'n>,
    pub(crate) access: Option<Name<'n>>,
    pub(crate) writes: Option<&'n Node>,
}

/// What an agent and a state that uses it may both say.
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

#[derive(Debug)]
pub(crate) struct LimitDraft<'n> {
    pub(crate) max: Option<&'n Node>,
    pub(crate) then: Option<Name<'n>>,
    pub(crate) per: Option<Name<'n>>,
    pub(crate) total: Option<&'n Node>,
}

#[derive(Debug)]
pub(crate) struct ArtifactDraft<'n> {
    pub(crate) path: Name<'n>,
    pub(crate) template: Name<'n>,
    pub(crate) contract: Option<Name<'n>>,
    pub(crate) append: bool,
    pub(crate) when: Option<&'n Node>,
}

#[derive(Debug)]
pub(crate) struct StateDraft<'n> {
    pub(crate) node: &'n Node,
    pub(crate) kind: KindDraft<'n>,
    pub(crate) next: Vec<TransitionDraft<'n>>,
    pub(crate) on: Vec<(Name<'n>, TransitionDraft<'n>)>,
    pub(crate) counts: Option<Name<'n>>,
}

#[derive(Debug)]
pub(crate) enum KindDraft<'n> {
    Agent(StepDraft<'n>),
    Command(CommandDraft<'n>),
    Read(ReadDraft<'n>),
    Changes(ChangesDraft<'n>),
    Commit(CommitDraft<'n>),
    Ask(Vec<(Name<'n>, QuestionDraft<'n>)>, Asked),
    Each(EachDraft<'n>),
    Order(ListDraft<'n>),
    Call {
        machine: Name<'n>,
        with: Vec<(Name<'n>, &'n Node)>,
        workspace: Option<Name<'n>>,
    },
    Route,
    End {
        outcome: Name<'n>,
        reason: Option<&'n Node>,
        result: Option<&'n Node>,
    },
    /// What it is cannot be told; this was reported.
    Unclear,
}

impl KindDraft<'_> {
    /// Whether the engine starts something in such a state; what cannot be told may be that.
    pub(crate) fn is_started(&self) -> bool {
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
            Self::Unclear => true,
        }
    }
}

/// Whether one question was written or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    One,
    Several,
}

/// An agent at work, as a state or as the body of a fan-out.
#[derive(Debug)]
pub(crate) struct StepDraft<'n> {
    pub(crate) agent: Name<'n>,
    pub(crate) prompt: Option<Name<'n>>,
    pub(crate) with: Vec<(Name<'n>, &'n Node)>,
    pub(crate) needs: Vec<Name<'n>>,
    pub(crate) rules: Vec<RuleDraft<'n>>,
    /// For a state; a fan-out says it of its items.
    pub(crate) workspace: Option<Name<'n>>,
    pub(crate) settings: Settings<'n>,
}

/// What a result must satisfy beside its contract.
#[derive(Debug)]
pub(crate) struct RuleDraft<'n> {
    pub(crate) id: Option<Name<'n>>,
    pub(crate) check: Option<&'n Node>,
    pub(crate) message: Option<Name<'n>>,
    pub(crate) at: Option<Name<'n>>,
}

#[derive(Debug)]
pub(crate) struct CommandDraft<'n> {
    pub(crate) argv: Vec<Name<'n>>,
    pub(crate) input: Option<Name<'n>>,
    pub(crate) output: Option<Name<'n>>,
    pub(crate) cwd: Option<Name<'n>>,
    pub(crate) timeout: Option<&'n Node>,
}

/// A file that is read.
#[derive(Debug)]
pub(crate) struct ReadDraft<'n> {
    pub(crate) path: Name<'n>,
    pub(crate) contract: Option<Name<'n>>,
}

/// What changed since a revision.
#[derive(Debug)]
pub(crate) struct ChangesDraft<'n> {
    pub(crate) since: Option<&'n Node>,
    pub(crate) split: Option<&'n Node>,
}

/// A commit.
#[derive(Debug)]
pub(crate) struct CommitDraft<'n> {
    pub(crate) message: Name<'n>,
    pub(crate) paths: Option<&'n Node>,
    pub(crate) timeout: Option<&'n Node>,
}

#[derive(Debug)]
pub(crate) struct QuestionDraft<'n> {
    pub(crate) question: Option<Name<'n>>,
    pub(crate) choices: Option<Vec<Name<'n>>>,
    pub(crate) pattern: Option<Name<'n>>,
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) struct ListDraft<'n> {
    pub(crate) node: &'n Node,
    pub(crate) list: Option<&'n Node>,
    pub(crate) bind: Option<Name<'n>>,
    pub(crate) key: Option<Name<'n>>,
    pub(crate) after: Option<Name<'n>>,
    pub(crate) rank: Option<Name<'n>>,
}

#[derive(Debug)]
pub(crate) struct EachDraft<'n> {
    pub(crate) listing: ListDraft<'n>,
    pub(crate) parallel: Option<&'n Node>,
    pub(crate) failures: Option<Name<'n>>,
    pub(crate) workspace: Option<Name<'n>>,
    pub(crate) body: Option<BodyDraft<'n>>,
}

#[derive(Debug)]
pub(crate) enum BodyDraft<'n> {
    Agent(StepDraft<'n>),
    Machine { machine: Name<'n>, with: Vec<(Name<'n>, &'n Node)> },
}

#[derive(Debug)]
pub(crate) struct TransitionDraft<'n> {
    pub(crate) node: &'n Node,
    pub(crate) when: Option<&'n Node>,
    pub(crate) set: Vec<(Name<'n>, &'n Node)>,
    pub(crate) go: Option<Name<'n>>,
    pub(crate) goto: Option<Name<'n>>,
    pub(crate) reason: Option<&'n Node>,
    pub(crate) counts: Option<Name<'n>>,
    pub(crate) resets: Vec<Name<'n>>,
    pub(crate) wait: Option<&'n Node>,
}
