//! Hooks of Claude Code, for people who use it without our engine: what one is told, what it
//! remembers, what it answers.

mod memory;
mod payload;
mod store;
mod transcript;

pub(crate) use memory::Chain;
pub(crate) use payload::{Event, LONGEST, Payload};
pub(crate) use store::Store;
pub(crate) use transcript::{Speaker, TAIL, last_message};
