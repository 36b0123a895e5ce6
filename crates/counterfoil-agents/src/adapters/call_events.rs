//! What the events of programs tell of tool calls, for displays.

use super::common::truncate;
use jiff::Timestamp;

/// The longest name of a tool, in characters.
const MAX_TOOL_CHARS: usize = 80;
/// The longest target of a call, in characters.
const MAX_TARGET_CHARS: usize = 160;
/// The longest id of a call, in bytes. A call with a longer one has no known outcome.
const MAX_ID_BYTES: usize = 256;

/// Something that a stream tells of tool calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallEvent {
    /// A call begins, or more is known about one that began.
    Called(Call),
    /// A call ended.
    Ended {
        /// Its id.
        id: String,
        /// How it ended.
        outcome: CallOutcome,
        /// When, in milliseconds since 1970, if the event has a time.
        at: Option<i64>,
    },
    /// The ids of calls begin anew: a call that follows is none of those before.
    IdsBeginAnew,
}

/// A call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// The name of the tool.
    pub tool: String,
    /// What it is called with, in short: a file, a command. Empty if that is not known.
    pub target: String,
    /// When it began, in milliseconds since 1970, if the event has a time.
    pub at: Option<i64>,
}

/// How a call of a tool ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// It has a result.
    Succeeded,
    /// It reports an error.
    Failed,
    /// It was not permitted.
    Denied,
}

impl Call {
    /// A call, with names of bounded length.
    pub(crate) fn new(id: Option<&str>, tool: &str, target: Option<&str>) -> Self {
        Self {
            id: id.filter(|id| !id.is_empty() && id.len() <= MAX_ID_BYTES).map(str::to_owned),
            tool: truncate(tool, MAX_TOOL_CHARS),
            target: truncate(target.unwrap_or_default(), MAX_TARGET_CHARS),
            at: None,
        }
    }

    /// The same call with the time of its event.
    pub(crate) fn at(mut self, time: Option<&String>) -> Self {
        self.at = milliseconds(time);
        self
    }
}

/// The end of a call. None if its id is too long to be remembered.
pub(crate) fn ended(id: &str, outcome: CallOutcome, time: Option<&String>) -> Option<CallEvent> {
    let at = milliseconds(time);
    (id.len() <= MAX_ID_BYTES).then(|| CallEvent::Ended { id: id.to_owned(), outcome, at })
}

fn milliseconds(time: Option<&String>) -> Option<i64> {
    time?.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}
