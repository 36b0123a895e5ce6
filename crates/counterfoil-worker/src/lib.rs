//! Performs one attempt of any kind: an agent, a command, a step that the engine runs itself, an
//! operation on a workspace. It knows neither the journal nor the workflow: a driver hands in a
//! [`PerformRequest`], and what comes of it goes back through the [`Handle`] and [`Completed`].

mod active_folders;
mod attempt;
mod deed;
mod errands;
mod examine;
mod perform;
mod shell;

pub use attempt::{Completed, Handle, Kept};
pub use errands::{failed, of, run as perform_workspace_op};
pub use perform::{Contracts, PerformRequest, SCRATCH, WorkerContext, contracts_of, perform};
