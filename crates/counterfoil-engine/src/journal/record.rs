//! The records of the journal.

use std::borrow::Cow;

/// An event to append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    /// The time of the event, in milliseconds since 1970.
    pub at: i64,
    /// The kind of the event.
    pub kind: Cow<'static, str>,
    /// The serialised event.
    pub body: Vec<u8>,
}

/// The content of one append. It is written completely or not at all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// The events, in order.
    pub events: Vec<NewEvent>,
    /// The state of the run after the last of these events.
    pub snapshot: Option<Vec<u8>>,
    /// The new summary of the run.
    pub summary: Option<Summary>,
    /// The ids of messages to remove from the inbox, because these events handle them.
    pub consumed: Vec<i64>,
}

/// The summary of a run for lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// The outcome of the run; none while it is open.
    pub outcome: Option<String>,
    /// The cause of a failure.
    pub cause: Option<String>,
    /// The state the run is in.
    pub state: String,
    /// The reason for the outcome, as text.
    pub reason: String,
    /// The number of iterations.
    pub iterations: u64,
    /// Tokens read by models.
    pub input_tokens: u64,
    /// Tokens written by models.
    pub output_tokens: u64,
    /// The cost in US dollars.
    pub cost_usd: f64,
    /// The duration in milliseconds.
    pub wall_ms: u64,
    /// The number of open questions.
    pub questions: u64,
}

/// A run to create.
#[derive(Clone, Copy, Debug)]
pub struct NewRun<'a> {
    /// The run's id: letters, digits, `.`, `_` and `-`.
    pub id: &'a str,
    /// The name of the workflow.
    pub workflow: &'a str,
    /// The version of the workflow.
    pub version: u32,
    /// The workflow with its contracts. Runs with the same bundle share one copy.
    pub bundle: &'a [u8],
    /// When the run was started, in milliseconds since 1970.
    pub at: i64,
}

/// An event as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// The sequence number in the run, from 1 without gaps.
    pub seq: u64,
    /// The time of the event, in milliseconds since 1970.
    pub at: i64,
    /// The kind of the event.
    pub kind: String,
    /// The serialised event.
    pub body: Vec<u8>,
}

/// The information about a run that is available without reading its events.
#[derive(Clone, Debug, PartialEq)]
pub struct RunInfo {
    /// The run's id.
    pub id: String,
    /// The name of the workflow.
    pub workflow: String,
    /// The version of the workflow.
    pub version: u32,
    /// The SHA-256 hash of its bundle, in hex.
    pub bundle: String,
    /// When the run was created, in milliseconds since 1970.
    pub created_at: i64,
    /// The time of its last event.
    pub updated_at: i64,
    /// The latest summary.
    pub summary: Summary,
    /// The sequence number of its last event; 0 if there is none.
    pub last_seq: u64,
    /// The process that drives it, or did last.
    pub driver: Option<Driver>,
    /// Whether another program has altered this information.
    pub altered: bool,
}

impl RunInfo {
    /// Whether a live process drives the run.
    pub fn is_driven(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.live)
    }

    /// Whether the run has not ended and needs the answer to an open question. One that was answered
    /// goes on when it is resumed, also without the answers to questions that are still open: those
    /// are optional, or of another item.
    pub fn needs_answer(&self) -> bool {
        match self.summary.outcome.as_deref() {
            Some("waiting") => true,
            None | Some("interrupted") => self.summary.questions > 0,
            Some(_) => false,
        }
    }

    /// Whether the run has ended, so that it only goes on if it is reopened.
    pub fn has_ended(&self) -> bool {
        let outcome = self.summary.outcome.as_deref();
        outcome.is_some_and(|outcome| !matches!(outcome, "waiting" | "answered" | "interrupted"))
    }

    /// The outcome of the run; `running` or `interrupted` if it has none, and `altered` if another
    /// program has altered this information.
    pub fn outcome(&self) -> &str {
        match &self.summary.outcome {
            _ if self.altered => "altered",
            Some(outcome) => outcome,
            None if self.is_driven() => "running",
            None => "interrupted",
        }
    }
}

/// The process that holds a run's lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    /// The process id.
    pub pid: u32,
    /// When it acquired the lease, in milliseconds since 1970.
    pub since: i64,
    /// The last heartbeat, in milliseconds since 1970.
    pub heartbeat: i64,
    /// Whether the lease is valid. The lease of a dead or unresponsive process is not.
    pub live: bool,
}

/// A stored state of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The sequence number of the last event that it includes.
    pub seq: u64,
    /// The serialised state.
    pub body: Vec<u8>,
}

/// A run whose lease was acquired.
#[derive(Clone, Debug, PartialEq)]
pub struct AcquiredRun {
    /// The information about the run.
    pub info: RunInfo,
    /// The latest snapshot, if there is a valid one.
    pub snapshot: Option<Snapshot>,
}

/// A message to the driver of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessage {
    /// The id, with which a batch removes it from the inbox.
    pub id: i64,
    /// When it was sent, in milliseconds since 1970.
    pub at: i64,
    /// The kind of the message.
    pub kind: String,
    /// The serialised message.
    pub body: Vec<u8>,
}
