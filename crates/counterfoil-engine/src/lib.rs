//! Runs workflows: the journal, the agents, the loop between them.
//!
//! An [`Engine`] keeps its runs in a state folder. [`Engine::start`] drives a checked workflow
//! until it ends, waits for somebody or is stopped; [`Engine::resume`] goes on after anything. What
//! happens is decided by `counterfoil-flow`; here is the I/O: the [`journal`], [`process`]
//! supervision, [`agent`]s, files.

pub mod agent;
mod attempt;
pub mod base;
mod cast;
pub mod claims;
mod clock;
pub mod config;
mod deed;
mod drive;
mod engine;
mod examine;
mod folder;
mod git;
mod given;
pub mod inventory;
pub mod journal;
pub mod ladder;
pub mod ledger;
mod left;
pub mod observed;
pub mod process;
pub mod protect;
mod publish;
pub mod recording;
mod shell;
mod story;
pub mod submit;
pub mod tree;
mod wording;
pub mod workspace;
mod yaml;

pub use attempt::{Completed, Handle, Kept, Request, attempt};
pub use cast::{Cast, CastError};
pub use drive::{Unwatched, Watcher};
pub use engine::{Cancelled, Engine, Error, Launch, Recast, Stopped};
pub use folder::Folder;
pub use story::{Attempt, Question, Report, Step};
