//! Runs workflows: the journal, the agents, the loop between them.
//!
//! An [`Engine`] keeps its runs in a state folder. [`Engine::start`] drives a checked workflow until it ends, waits for
//! somebody or is stopped; [`Engine::resume`] goes on after anything. What happens is decided by `counterfoil-flow`; here is the
//! I/O: the [`journal`] and the driver. Attempts are performed by `counterfoil-worker`.

mod clock;
pub mod config;
mod drive;
mod engine;
mod folder;
mod given;
pub mod journal;
pub mod ledger;
mod publish;
mod story;

pub use counterfoil_agents::cast::{Cast, CastError};
pub use drive::{Unwatched, Watcher};
pub use engine::{Cancelled, Engine, Error, Launch, Recast, Stopped};
pub use folder::Folder;
pub use story::{Attempt, Question, Report, Step};
