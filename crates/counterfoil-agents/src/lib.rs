//! The programs that play agents: how each is called, what its output means, which of the results
//! it handed back counts, and what is kept of it.

pub mod agent;
pub mod cast;
pub mod config;
pub mod echo;
pub mod ladder;
pub mod recording;
pub mod submit;
pub mod transcript;
mod wording;
