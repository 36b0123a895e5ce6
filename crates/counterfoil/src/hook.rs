//! Claude Code hooks, for people who use Claude Code without the engine: the payload of a hook, the
//! transcript, and the history of blocked turns.

mod block_history;
mod payload;
mod store;
mod transcript;

pub(crate) use block_history::BlockHistory;
pub(crate) use payload::{Event, MAX_PAYLOAD_BYTES, Payload};
pub(crate) use store::HistoryStore;
pub(crate) use transcript::{Speaker, TAIL_BYTES, last_message};
