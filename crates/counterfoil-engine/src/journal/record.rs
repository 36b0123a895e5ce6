//! What goes into a journal and what comes out of it.

use std::borrow::Cow;

/// One event to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// When it happened, in Unix milliseconds.
    pub at: i64,
    /// What kind of event it is.
    pub kind: Cow<'static, str>,
    /// The event itself.
    pub body: Vec<u8>,
}

/// What one append writes, all of it or nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// The events, in order.
    pub rows: Vec<Row>,
    /// The fold of all events up to the last of these.
    pub snapshot: Option<Vec<u8>>,
    /// What a listing shows of the run from now on.
    pub summary: Option<Summary>,
    /// Posted messages that these events account for: they leave the inbox.
    pub consumed: Vec<i64>,
}

/// What a listing shows of a run. It can be had from the events again, so no digest covers it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// How the run ended; none while it is open.
    pub outcome: Option<String>,
    /// Why it ended so.
    pub cause: Option<String>,
    /// The state the run is in.
    pub state: String,
    /// Why it is in that state.
    pub reason: String,
    /// How many rounds were made.
    pub iterations: u64,
    /// Tokens read by models.
    pub input_tokens: u64,
    /// Tokens written by models.
    pub output_tokens: u64,
    /// What it cost, in US dollars.
    pub cost_usd: f64,
    /// How long it took, in milliseconds.
    pub wall_ms: u64,
    /// How many questions wait for an answer.
    pub questions: u64,
}

/// A run to be made.
#[derive(Clone, Copy, Debug)]
pub struct NewRun<'a> {
    /// Its id: letters, digits, `.`, `_` and `-`.
    pub id: &'a str,
    /// The workflow it follows.
    pub workflow: &'a str,
    /// The workflow's version.
    pub version: u32,
    /// All that the run starts from, stored once however many runs share it.
    pub bundle: &'a [u8],
    /// When it was asked for, in Unix milliseconds.
    pub at: i64,
}

/// One event as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its place in the run, from 1 and without a gap.
    pub seq: u64,
    /// When it happened, in Unix milliseconds.
    pub at: i64,
    /// What kind of event it is.
    pub kind: String,
    /// The event itself.
    pub body: Vec<u8>,
}

/// What the journal knows of a run without reading its events.
#[derive(Clone, Debug, PartialEq)]
pub struct RunInfo {
    /// Its id.
    pub id: String,
    /// The workflow it follows.
    pub workflow: String,
    /// The workflow's version.
    pub version: u32,
    /// SHA-256 of its bundle, in hex.
    pub bundle: String,
    /// When it was made, in Unix milliseconds.
    pub created_at: i64,
    /// The time of its newest event.
    pub updated_at: i64,
    /// The newest summary.
    pub summary: Summary,
    /// The place of its last event; 0 if there is none.
    pub last_seq: u64,
    /// Who drives it, or did when it was last heard of.
    pub driver: Option<Driver>,
}

/// The process that holds a run's lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    /// Its process id.
    pub pid: u32,
    /// When it took the run, in Unix milliseconds.
    pub since: i64,
    /// When it was last heard of, in Unix milliseconds.
    pub heartbeat: i64,
    /// Whether it still holds the run: a dead or silent driver does not.
    pub live: bool,
}

/// The fold of a run's first events, as it was handed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The last event it covers: go on with the one behind.
    pub seq: u64,
    /// The fold.
    pub body: Vec<u8>,
}

/// Where a run that was taken stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// What the journal knows of it.
    pub info: RunInfo,
    /// The newest snapshot, if there is a sound one.
    pub snapshot: Option<Snapshot>,
}

/// A message somebody left for whoever drives the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// Its number: name it in a batch to take it out of the inbox.
    pub id: i64,
    /// When it was posted, in Unix milliseconds.
    pub at: i64,
    /// What kind of message it is.
    pub kind: String,
    /// The message itself.
    pub body: Vec<u8>,
}
