//! The events of a run. The journal of a run consists of them, and they alone define its state.

mod attempt;
mod builtin;
mod checks;
mod decided_by;
mod outcome;
mod reopened;
mod started;
mod undone;

pub use attempt::{
    AttemptOutcome, ChangedFiles, Channel, Ended, RejectedPart, Reply, Usage, is_verified_at_end,
};
pub use builtin::BuiltinStep;
pub use checks::{CheckDefinition, CheckProgram, CheckReport, CheckStatus, PlannedChecks};
pub use decided_by::{DecidedBy, Origin};
pub use outcome::{Cause, Outcome};
pub use reopened::{Changes, Reopened};
pub use started::{Resumed, Started};
pub use undone::Undone;

use crate::workflow::{End, FailureKind, Form};
use counterfoil_contract::claim::ClaimReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The version of the decision rules that new runs start with. A run keeps its version: a newer
/// program must still decide by the old rules for it.
pub const DECIDE: u32 = 4;
/// The first version that verifies claims, restricts the paths that agents may write, and gives
/// agents their own worktrees.
pub(crate) const CLAIMS_VERIFIED: u32 = 2;
/// The first version that repeats the first step of a frame in a fresh workspace after its attempt
/// was lost.
pub(crate) const FRESH_WORKSPACE: u32 = 3;
/// The first version in which a wrong result does not count as lack of progress if the workflow
/// continues without it, and in which an exhausted limit is applied first.
pub(crate) const CONTINUES_WITHOUT_RESULT: u32 = 3;
/// The first version in which the verdicts on a result stand until another result is verified, also
/// if the attempt is lost or fails while it repairs the result. It also tells a claim of the engine
/// from that of a field with its name, and says how an item without a reason ended.
pub(crate) const VERDICTS_STAND: u32 = 4;

/// An event of a run. The form is `{"kind": {…}}`: with an internal tag, serde would buffer the
/// fields, and numbers of arbitrary precision do not survive buffering.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The run started.
    RunStarted(Box<Started>),
    /// A process resumed the run.
    RunResumed(Box<Resumed>),
    /// A run that had ended was reopened.
    RunReopened(Box<Reopened>),
    /// Files that a run changed are put back to what they were. A run that this is said of is not
    /// reopened: it would go on without the work of its completed steps.
    RunUndone(Box<Undone>),
    /// The driver checked whether the files that a step needs exist, and read how its checks are
    /// configured.
    ContextChecked {
        /// The frame.
        frame: String,
        /// The files that do not exist.
        missing: Vec<String>,
        /// The checks of the step as they are configured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checks: Option<PlannedChecks>,
    },
    /// An attempt is about to start.
    AttemptStarted {
        /// The id of the attempt. Facts about other attempts are ignored.
        attempt: String,
        /// The frame that the attempt works for.
        frame: String,
        /// The path of the step: a state, or a state, an item key and an inner state.
        path: Vec<String>,
        /// The agent; none for a command or a built-in step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// The number of the attempt on this path, from 1.
        n: u32,
        /// The contract of the result, as `id@version`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        contract: Option<String>,
        /// The built-in step; none for an agent or a command.
        #[serde(rename = "deed", default, skip_serializing_if = "Option::is_none")]
        builtin: Option<BuiltinStep>,
    },
    /// A reply was rejected, and the agent was asked to repair it.
    RepairAsked {
        /// The attempt.
        attempt: String,
        /// The rejected reply.
        reply: Reply,
        /// What the reply cost.
        usage: Usage,
        /// The verdicts on its claims, if they are the reason.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        claims: Vec<ClaimReport>,
    },
    /// An attempt ended.
    AttemptEnded(Box<Ended>),
    /// The program of an attempt told the id of its conversation.
    ConversationOpened {
        /// The attempt.
        attempt: String,
        /// The agent.
        agent: String,
        /// The id of the conversation.
        conversation: String,
    },
    /// An attempt was in flight when its process ended. Later facts about it are ignored.
    AttemptLost {
        /// The attempt.
        attempt: String,
        /// What it used that no other event counts, as far as its program recorded it.
        #[serde(default, skip_serializing_if = "Usage::is_zero")]
        usage: Usage,
        /// The files that were written since it started, as far as known.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<String>,
    },
    /// A step will be retried.
    RetryPlanned {
        /// The frame.
        frame: String,
        /// The kind of failure.
        #[serde(rename = "trouble")]
        failure: FailureKind,
        /// The number of the retry, from 1.
        retry: u32,
        /// The delay before the retry, in milliseconds.
        after_ms: u64,
        /// The earliest start time, in milliseconds since 1970.
        not_before: i64,
    },
    /// The run asks a person.
    Asked {
        /// The frame.
        frame: String,
        /// The questions.
        questions: Vec<AskedQuestion>,
    },
    /// A person answered a question.
    Answered {
        /// The question.
        question: String,
        /// The answer.
        answer: String,
        /// The person or program that answered.
        by: String,
        /// From where, as far as it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Box<Origin>>,
    },
    /// Optional questions were cancelled because all others are answered.
    QuestionsCancelled {
        /// The frame.
        frame: String,
        /// The ids of the questions.
        questions: Vec<String>,
    },
    /// A fan-out over a list started.
    FannedOut {
        /// The frame.
        frame: String,
        /// Its items, in the order of the list.
        items: Vec<PlannedItem>,
        /// How many run at once.
        parallel: u32,
        /// Whether an item that is not done ends the state.
        strict: bool,
        /// Why the items have no valid order, if they have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        problem: Option<String>,
    },
    /// A frame was opened for the run, an item or a sub-workflow.
    FrameOpened {
        /// The new frame.
        frame: String,
        /// The parent frame; none for the run itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
        /// The sub-workflow that it runs, empty for the workflow itself; for an item that runs an
        /// agent, that of its parent.
        machine: String,
        /// The key of the item.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        item: Option<String>,
        /// The first state; for an item that runs an agent, the state of the fan-out.
        state: String,
        /// The inputs; for an item that runs an agent, the item.
        inputs: Map<String, Value>,
        /// The initial variables.
        variables: Map<String, Value>,
        /// The counters that the first state increments.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        counts: BTreeMap<String, u64>,
        /// The iteration that starts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        iteration: Option<u64>,
    },
    /// The frame of an item or a sub-workflow ended.
    FrameEnded {
        /// The frame.
        frame: String,
        /// The outcome.
        outcome: End,
        /// The cause of a failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
        /// The reason, as text.
        reason: String,
        /// The result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Value>,
        /// Whether it failed because its work conflicts with the repository.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        conflict: bool,
    },
    /// A frame, or its current state, gets a worktree of its own.
    WorkspacePlanned {
        /// The frame.
        frame: String,
        /// The id of the workspace. Facts about other workspaces are ignored.
        workspace: String,
        /// How long the workspace is kept.
        #[serde(rename = "tenure")]
        lifetime: WorkspaceLifetime,
    },
    /// A workspace was opened.
    WorkspaceOpened {
        /// The frame.
        frame: String,
        /// The id of the workspace.
        workspace: String,
        /// Notes on how it differs from the repository.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    /// A workspace could not be opened, merged or discarded.
    WorkspaceFailed {
        /// The frame.
        frame: String,
        /// The id of the workspace.
        workspace: String,
        /// The reason, as text.
        reason: String,
    },
    /// An item is done and waits until the items that started before it are merged.
    #[serde(rename = "fold-queued")]
    MergeQueued {
        /// The frame.
        frame: String,
    },
    /// The work in a workspace was merged into the repository; with conflicts, nothing was merged.
    /// The workspace was removed.
    #[serde(rename = "workspace-folded")]
    WorkspaceMerged {
        /// The frame.
        frame: String,
        /// The id of the workspace.
        workspace: String,
        /// The number of files that the merge changed in the repository.
        changed: u64,
        /// The files with conflicts. If there are any, the repository did not change.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        conflicts: Vec<String>,
        /// The patch with the work, if it was not merged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<String>,
        /// Further notes on the merge.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    /// A workspace was discarded without merging its work.
    WorkspaceDropped {
        /// The frame.
        frame: String,
        /// The id of the workspace.
        workspace: String,
        /// The patch with the work, if there was any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<String>,
    },
    /// The fan-out is over: no further item will start.
    FannedIn {
        /// The frame.
        frame: String,
    },
    /// A transition was taken.
    #[serde(rename = "moved")]
    TransitionTaken(Box<TransitionTaken>),
    /// An expression or template failed on the values of the run.
    StepFailed {
        /// The frame.
        frame: String,
        /// The reason, as text.
        reason: String,
    },
    /// A budget of the run is used up.
    BudgetReached {
        /// The budget and its consumption, as text.
        what: String,
    },
    /// A person or program asked to cancel the run.
    CancelRequested {
        /// The person or program that asked.
        by: String,
        /// From where, as far as it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Box<Origin>>,
    },
    /// The run was stopped and can be resumed.
    RunStopped {
        /// The reason, as text.
        reason: String,
    },
    /// The clock of the events went on by time that does not count as time of the run: it was set,
    /// the machine slept, or nobody drove the run. Always before the other events of its turn.
    TimeSkipped {
        /// The time that does not count, in milliseconds.
        ms: u64,
    },
    /// An artifact could not be written.
    ArtifactFailed {
        /// The path of the artifact.
        path: String,
        /// The reason, as text.
        reason: String,
    },
    /// The run ended.
    RunEnded {
        /// The outcome.
        outcome: Outcome,
        /// The cause of a failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
        /// The reason, as text.
        reason: String,
        /// The state of the main workflow.
        state: String,
        /// The exit code that the end state asks for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<u8>,
    },
}

impl Event {
    /// The tag of the event in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::RunStarted(_) => "run-started",
            Self::RunResumed(_) => "run-resumed",
            Self::RunReopened(_) => "run-reopened",
            Self::RunUndone(_) => "run-undone",
            Self::ContextChecked { .. } => "context-checked",
            Self::AttemptStarted { .. } => "attempt-started",
            Self::RepairAsked { .. } => "repair-asked",
            Self::AttemptEnded(_) => "attempt-ended",
            Self::ConversationOpened { .. } => "conversation-opened",
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
            Self::TimeSkipped { .. } => "time-skipped",
            Self::ArtifactFailed { .. } => "artifact-failed",
            Self::RunEnded { .. } => "run-ended",
        }
    }
}

/// The program that is assigned to an agent of the workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AssignedAgent {
    /// The specification as the user wrote it.
    pub spec: String,
    /// Whether a retry waits before it starts.
    pub backs_off: bool,
    /// How a retry waits, by kind of failure, where the user has set it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub retry: BTreeMap<FailureKind, RetryRule>,
    /// The model, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The version of the program, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// How often and how long an agent's step waits for its service. What is not set is as the workflow
/// or the engine has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RetryRule {
    /// The number of retries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// The delay before the first retry, in milliseconds. Each further delay is twice as long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_ms: Option<u64>,
    /// The longest delay, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_ms: Option<u64>,
}

/// How long a workspace is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspaceLifetime {
    /// For one state, including its retries. It is not reused after an attempt was lost.
    State,
    /// For the whole frame.
    Frame,
}

/// A question that was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AskedQuestion {
    /// The id, unique while the question is open.
    pub id: String,
    /// The name, unique among questions that are asked together.
    pub name: String,
    /// The text of the question.
    pub question: String,
    /// The form that an answer must have.
    pub form: Form,
    /// Whether it is cancelled when all other questions are answered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// An item of a fan-out that is about to start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedItem {
    /// Its key.
    pub key: String,
    /// The item.
    pub value: Value,
    /// The keys of the items that must be done before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// The rank; items with a smaller rank start earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<i64>,
}

/// A transition that was taken, and the reason for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransitionTaken {
    /// The frame.
    pub frame: String,
    /// The state that it leaves.
    pub from: String,
    /// The state that it enters.
    pub to: String,
    /// The failure that it handles, if it is an `on:` transition.
    #[serde(rename = "trouble", default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureKind>,
    /// The guard that was true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<String>,
    /// The values that this guard and the guards before it read.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub saw: Map<String, Value>,
    /// The assigned variables.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Value>,
    /// The counters that changed, with their new values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
    /// The limits that were reset.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resets: Vec<String>,
    /// The exhausted limit, if the transition was redirected by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exhausted: Option<String>,
    /// The iteration that starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u64>,
    /// The reason, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The earliest start time of the next step, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<i64>,
    /// A digest of what the next iteration is asked to do, to detect lack of progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}
