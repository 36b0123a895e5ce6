//! What happened in a run. A run is a journal of these and nothing else.

use crate::workflow::{Budget, End, Form, Trouble};
use countersign_contract::ClaimReport;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The version of [`crate::decide`] that a run begins under. A run keeps its version; a newer program that decides
/// otherwise must still decide the old way for it.
pub const DECIDE: u32 = 1;

/// One thing that happened. Written as `{"kind": {…}}`: a tag among the fields would have to be read into a buffer first,
/// and numbers that keep all their digits do not survive that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The run began.
    RunStarted(Box<Started>),
    /// A process took the run up again.
    RunResumed {
        /// Who.
        by: String,
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
    },
    /// An attempt will be started again.
    RetryPlanned {
        /// The frame.
        frame: String,
        /// Why.
        trouble: Trouble,
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
        questions: Vec<Asked>,
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
        items: Vec<Planned>,
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
    },
    /// All items that will run have run.
    FannedIn {
        /// The frame.
        frame: String,
    },
    /// A transition was taken.
    Moved(Box<Moved>),
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
            Self::FannedIn { .. } => "fanned-in",
            Self::Moved(_) => "moved",
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
    pub agents: BTreeMap<String, Player>,
    /// What it may cost.
    pub budget: Budget,
    /// Where the work is done.
    pub repo: String,
}

/// Who plays an agent of the workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Player {
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

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// The attempt.
    pub attempt: String,
    /// How.
    pub outcome: AttemptOutcome,
    /// The result, if accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// What could be salvaged of a result that was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Value>,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What was wrong with the last reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Value>,
    /// What became of its claims.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimReport>,
    /// What it changed, whatever became of its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Changed>,
    /// The last reply; those before it stand in their own events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Reply>,
    /// What the last reply cost.
    #[serde(default)]
    pub usage: Usage,
    /// When a limit is lifted, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<i64>,
    /// A fingerprint of the work tree behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}

/// What an attempt changed in its workspace. Long lists are cut; `total` counts all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Changed {
    /// Files that were not there before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// Files whose bytes or mode differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modified: Vec<String>,
    /// Files that are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deleted: Vec<String>,
    /// Files that are there under another name: from, to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renamed: Vec<(String, String)>,
    /// How many files.
    pub total: u64,
    /// What could not be seen, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// How an attempt can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttemptOutcome {
    /// A result that satisfies its contract.
    Accepted,
    /// None, after all repairs.
    Contract,
    /// A claim that had to hold was refuted.
    Claim,
    /// The agent failed.
    Agent,
    /// It could not be reached.
    Transport,
    /// A rate or quota is used up.
    Limit,
    /// It was not allowed to do what it had to.
    Permission,
    /// It took too long.
    Timeout,
    /// It was stopped.
    Cancelled,
}

impl AttemptOutcome {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Cancelled => "cancelled",
            Self::Contract => "contract",
            Self::Claim => "claim",
            Self::Agent => "agent",
            Self::Transport => "transport",
            Self::Limit => "limit",
            Self::Permission => "permission",
            Self::Timeout => "timeout",
        }
    }

    /// The trouble it is; none for one that was accepted or stopped.
    pub fn trouble(self) -> Option<Trouble> {
        match self {
            Self::Accepted | Self::Cancelled => None,
            Self::Contract => Some(Trouble::Contract),
            Self::Claim => Some(Trouble::Claim),
            Self::Agent => Some(Trouble::Agent),
            Self::Transport => Some(Trouble::Transport),
            Self::Limit => Some(Trouble::Limit),
            Self::Permission => Some(Trouble::Permission),
            Self::Timeout => Some(Trouble::Timeout),
        }
    }
}

/// One reply of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The file with everything that was received.
    pub transcript: String,
    /// Its hash.
    pub sha256: String,
    /// What came of it: accepted, rejected, absent, or how it failed.
    pub status: String,
    /// The codes of what was wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<String>,
    /// Which of its recorded replies this was, for an agent that plays them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub played: Option<u32>,
}

/// What was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens in.
    pub input_tokens: u64,
    /// Tokens out.
    pub output_tokens: u64,
    /// Money.
    #[serde(deserialize_with = "crate::value::amount")]
    pub cost_usd: f64,
    /// Time, in milliseconds.
    pub wall_ms: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cost_usd += other.cost_usd;
        self.wall_ms = self.wall_ms.saturating_add(other.wall_ms);
    }
}

/// A question that was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
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
pub struct Planned {
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
pub struct Moved {
    /// The frame.
    pub frame: String,
    /// From this state.
    pub from: String,
    /// To this one.
    pub to: String,
    /// The trouble it answers, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Trouble>,
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
    /// What was asked for by going round again, to see whether anything moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The work is done.
    Done,
    /// It cannot go on without somebody.
    Blocked,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// It tried as often as it may, or nothing moved.
    Exhausted,
    /// It spent what it may.
    Budget,
}

impl Outcome {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Exhausted => "exhausted",
            Self::Budget => "budget",
        }
    }
}

impl From<End> for Outcome {
    fn from(end: End) -> Self {
        match end {
            End::Done => Self::Done,
            End::Blocked => Self::Blocked,
            End::Failed => Self::Failed,
            End::Exhausted => Self::Exhausted,
        }
    }
}

/// Why something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// No result that satisfies the contract.
    Contract,
    /// A claim was refuted.
    Claim,
    /// The agent failed.
    Agent,
    /// It could not be reached.
    Transport,
    /// A rate or quota is used up.
    Limit,
    /// It was not allowed to do what it had to.
    Permission,
    /// It took too long.
    Timeout,
    /// The same thing was asked for again and again and nothing changed.
    NoProgress,
}

impl Cause {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Contract => "contract",
            Self::Claim => "claim",
            Self::Agent => "agent",
            Self::Transport => "transport",
            Self::Limit => "limit",
            Self::Permission => "permission",
            Self::Timeout => "timeout",
            Self::NoProgress => "no-progress",
        }
    }

    /// The cause that a trouble is.
    pub fn of(trouble: Trouble) -> Option<Self> {
        match trouble {
            Trouble::Contract => Some(Self::Contract),
            Trouble::Claim => Some(Self::Claim),
            Trouble::Agent => Some(Self::Agent),
            Trouble::Transport => Some(Self::Transport),
            Trouble::Limit => Some(Self::Limit),
            Trouble::Permission => Some(Self::Permission),
            Trouble::Timeout => Some(Self::Timeout),
            Trouble::Blocked | Trouble::Failed | Trouble::Exhausted | Trouble::Order | Trouble::Any => None,
        }
    }
}
