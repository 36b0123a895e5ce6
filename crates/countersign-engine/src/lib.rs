//! Runs workflows: the journal, the agents, the loop between them.

pub mod journal;
pub mod process;
