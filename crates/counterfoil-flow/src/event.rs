//! What happened in a run. A run is a journal of these and nothing else.

mod attempt;
mod builtin;
mod outcome;

pub use attempt::{AttemptOutcome, ChangedFiles, Channel, Ended, Reply, Usage};
pub use builtin::BuiltinStep;
pub use outcome::{Cause, Outcome};

use crate::workflow::{Budget, End, FailureKind, Form};
use counterfoil_contract::ClaimReport;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The version of `decide` that a run begins under. A run keeps its version; a newer
/// program that decides otherwise must still decide the old way for it.
pub const DECIDE: u32 = 3;
/// The first version under which agents are held to their claims and to paths, and work in
/// worktrees of their own.
pub(crate) const CLAIMS_VERIFIED: u32 = 2;
/// The first version under which the first step of a frame that is lost begins anew in a fresh
/// workspace.
pub(crate) const AFRESH: u32 = 3;
/// The first version under which a wrong result that the workflow does without is no lack of
/// progress, and a limit that is used up comes before it.
pub(crate) const DOES_WITHOUT: u32 = 3;

/// One thing that happened. Written as `{"kind": {…}}`: a tag among the fields would have to be
/// read into a buffer first, and numbers that keep all their digits do not survive that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The run began.
    RunStarted(Box<Started>),
    /// A process took the run up again.
    RunResumed {
        /// Who.
        by: String,
        /// Who plays the agents from here on, where that changed.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        agents: BTreeMap<String, AssignedAgent>,
    },
    /// The files that a step needs were looked for.
    ContextChecked {
        /// The frame.
        frame: String,
        /// Those that are not there.
        missing: Vec<String>,
    },
    /// An attempt is about to run.
    AttemptStarted {
        /// Its id, which is its fence.
        attempt: String,
        /// The frame it works for.
        frame: String,
        /// State, or state, item key, inner state.
        path: Vec<String>,
        /// Who; none for a command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// Which attempt of this path, from 1.
        n: u32,
        /// What it must hand back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        contract: Option<String>,
        /// What the engine does itself; none for an agent or a command.
        #[serde(rename = "deed", default, skip_serializing_if = "Option::is_none")]
        builtin: Option<BuiltinStep>,
    },
    /// A reply was not accepted and the result was asked for again.
    RepairAsked {
        /// The attempt.
        attempt: String,
        /// The reply.
        reply: Reply,
        /// What it cost.
        usage: Usage,
        /// What became of its claims, if that is why.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        claims: Vec<ClaimReport>,
    },
    /// An attempt ended.
    AttemptEnded(Box<Ended>),
    /// An attempt was in flight when its process died; whatever it still says is dropped.
    AttemptLost {
        /// The attempt.
        attempt: String,
        /// The files that were written since it began, as far as can be told.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<String>,
    },
    /// An attempt will be started again.
    RetryPlanned {
        /// The frame.
        frame: String,
        /// Why.
        #[serde(rename = "trouble")]
        failure: FailureKind,
        /// Which retry, from 1.
        retry: u32,
        /// How long to wait first.
        after_ms: u64,
        /// Not before this time, in milliseconds since 1970.
        not_before: i64,
    },
    /// Somebody is asked.
    Asked {
        /// The frame.
        frame: String,
        /// What.
        questions: Vec<AskedQuestion>,
    },
    /// Somebody answered.
    Answered {
        /// The question.
        question: String,
        /// The answer.
        answer: String,
        /// Who.
        by: String,
    },
    /// Questions that need no answer any more.
    QuestionsCancelled {
        /// The frame.
        frame: String,
        /// Which.
        questions: Vec<String>,
    },
    /// A list is to be worked through.
    FannedOut {
        /// The frame.
        frame: String,
        /// Its items, in the order of the list.
        items: Vec<PlannedItem>,
        /// How many run at once.
        parallel: u32,
        /// Whether one that is not done ends the state.
        strict: bool,
        /// Why they cannot be ordered, if they cannot.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        problem: Option<String>,
    },
    /// An item, or a sub-workflow, begins.
    FrameOpened {
        /// The new frame.
        frame: String,
        /// The frame it belongs to; none for the run itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
        /// The machine it runs; for an item that runs an agent, that of its parent.
        machine: String,
        /// The item, by key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        item: Option<String>,
        /// Where it starts; for an item that runs an agent, the state of the fan-out.
        state: String,
        /// What it is given; for an item that runs an agent, the item.
        inputs: Map<String, Value>,
        /// What it remembers at the start.
        variables: Map<String, Value>,
        /// The counters that its first state counts.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        counts: BTreeMap<String, u64>,
        /// The iteration that begins.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        iteration: Option<u64>,
    },
    /// An item, or a sub-workflow, ended.
    FrameEnded {
        /// The frame.
        frame: String,
        /// How.
        outcome: End,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
        /// Why, in words.
        reason: String,
        /// What it hands back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Value>,
        /// Whether it failed because its work could not be folded back.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        conflict: bool,
    },
    /// A frame, or the state it stands in, is to work in a worktree of its own.
    WorkspacePlanned {
        /// The frame.
        frame: String,
        /// The id of the workspace, which is its fence.
        workspace: String,
        /// How long it is kept.
        #[serde(rename = "tenure")]
        lifetime: WorkspaceLifetime,
    },
    /// A workspace is there.
    WorkspaceOpened {
        /// The frame.
        frame: String,
        /// Which.
        workspace: String,
        /// What is different in it, for whoever reads the run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    /// A workspace could not be opened, folded back or dropped.
    WorkspaceFailed {
        /// The frame.
        frame: String,
        /// Which.
        workspace: String,
        /// Why.
        reason: String,
    },
    /// An item is done and waits until those that began before it are folded back.
    #[serde(rename = "fold-queued")]
    MergeQueued {
        /// The frame.
        frame: String,
    },
    /// What was done in a workspace is in the repository, or none of it is, if there were
    /// conflicts. The workspace is gone.
    #[serde(rename = "workspace-folded")]
    WorkspaceMerged {
        /// The frame.
        frame: String,
        /// Which.
        workspace: String,
        /// How many files of the repository were changed by it.
        changed: u64,
        /// The files that could not be brought together; then nothing was changed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        conflicts: Vec<String>,
        /// The patch that keeps the work, if it is not in the repository.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<String>,
        /// What else there is to say.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    /// A workspace is gone, and what was done in it is not in the repository.
    WorkspaceDropped {
        /// The frame.
        frame: String,
        /// Which.
        workspace: String,
        /// The patch that keeps the work, if there was any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<String>,
    },
    /// All items that will run have run.
    FannedIn {
        /// The frame.
        frame: String,
    },
    /// A transition was taken.
    #[serde(rename = "moved")]
    TransitionTaken(Box<TransitionTaken>),
    /// An expression or template met values it cannot handle.
    StepFailed {
        /// The frame.
        frame: String,
        /// Why.
        reason: String,
    },
    /// A budget is used up.
    BudgetReached {
        /// Which, and how far.
        what: String,
    },
    /// Somebody wants the run to end.
    CancelRequested {
        /// Who.
        by: String,
    },
    /// The run was stopped and can be taken up again.
    RunStopped {
        /// Why.
        reason: String,
    },
    /// A file could not be written.
    ArtifactFailed {
        /// Which.
        path: String,
        /// Why.
        reason: String,
    },
    /// The run ended.
    RunEnded {
        /// How.
        outcome: Outcome,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
        /// Why, in words.
        reason: String,
        /// Where.
        state: String,
    },
}

impl Event {
    /// The kind, as it is written.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::RunStarted(_) => "run-started",
            Self::RunResumed { .. } => "run-resumed",
            Self::ContextChecked { .. } => "context-checked",
            Self::AttemptStarted { .. } => "attempt-started",
            Self::RepairAsked { .. } => "repair-asked",
            Self::AttemptEnded(_) => "attempt-ended",
            Self::AttemptLost { .. } => "attempt-lost",
            Self::RetryPlanned { .. } => "retry-planned",
            Self::Asked { .. } => "asked",
            Self::Answered { .. } => "answered",
            Self::QuestionsCancelled { .. } => "questions-cancelled",
            Self::FannedOut { .. } => "fanned-out",
            Self::FrameOpened { .. } => "frame-opened",
            Self::FrameEnded { .. } => "frame-ended",
            Self::WorkspacePlanned { .. } => "workspace-planned",
            Self::WorkspaceOpened { .. } => "workspace-opened",
            Self::WorkspaceFailed { .. } => "workspace-failed",
            Self::MergeQueued { .. } => "fold-queued",
            Self::WorkspaceMerged { .. } => "workspace-folded",
            Self::WorkspaceDropped { .. } => "workspace-dropped",
            Self::FannedIn { .. } => "fanned-in",
            Self::TransitionTaken(_) => "moved",
            Self::StepFailed { .. } => "step-failed",
            Self::BudgetReached { .. } => "budget-reached",
            Self::CancelRequested { .. } => "cancel-requested",
            Self::RunStopped { .. } => "run-stopped",
            Self::ArtifactFailed { .. } => "artifact-failed",
            Self::RunEnded { .. } => "run-ended",
        }
    }
}

/// How a run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// Its id.
    pub run: String,
    /// The workflow's name.
    pub workflow: String,
    /// The workflow's version.
    pub version: u32,
    /// The hash of the bundle.
    pub bundle: String,
    /// The version of deciding.
    pub decide: u32,
    /// What it was given.
    pub inputs: Map<String, Value>,
    /// Who plays which agent.
    pub agents: BTreeMap<String, AssignedAgent>,
    /// What it may cost.
    pub budget: Budget,
    /// Where the work is done.
    pub repo: String,
    /// The files of the workflow that stand where the work is done, relative to it: no agent may
    /// change them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<String>,
    /// The commit that HEAD names there; none outside of git, or before the first commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

/// Who plays an agent of the workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssignedAgent {
    /// As it was given.
    pub spec: String,
    /// Whether a retry waits before it starts again.
    pub backs_off: bool,
    /// The model, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The version of the program, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// How long a workspace is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspaceLifetime {
    /// For one state, with all its retries; one whose attempt was lost is not used again.
    State,
    /// As long as its frame, with all that is done in it.
    Frame,
}

/// A question that was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AskedQuestion {
    /// Its id, unique while it is open.
    pub id: String,
    /// Its name among those asked together.
    pub name: String,
    /// The words.
    pub question: String,
    /// What an answer must be.
    pub form: Form,
    /// Whether it is cancelled once all others are answered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// An item of a fan-out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedItem {
    /// Its key.
    pub key: String,
    /// The item.
    pub value: Value,
    /// The keys of those before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Its rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<i64>,
}

/// A transition that was taken, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransitionTaken {
    /// The frame.
    pub frame: String,
    /// From this state.
    pub from: String,
    /// To this one.
    pub to: String,
    /// The trouble it answers, if it does.
    #[serde(rename = "trouble", default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureKind>,
    /// The guard that held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<String>,
    /// The values that this guard and those before it saw.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub saw: Map<String, Value>,
    /// What was assigned.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Value>,
    /// The counters that changed, with their new values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
    /// The limits that were set back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resets: Vec<String>,
    /// The limit that was used up, if that is why it leads here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exhausted: Option<String>,
    /// The iteration that begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u64>,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What starts there does not start before this time, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<i64>,
    /// What was asked for by going round again, to see whether anything moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}
