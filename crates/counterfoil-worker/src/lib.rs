//! Performs one attempt of any kind: an agent session, a command, a built-in step, a workspace
//! operation.
//!
//! This crate does not know the journal and does not decide where a run goes. A driver passes a [`PerformRequest`] to
//! [`perform`], receives progress through its [`AttemptContext`] and gets an [`AttemptResult`].

mod active_folders;
mod agent_attempt;
mod attempt;
mod builtin;
mod check_server;
mod checks;
mod contracts;
mod left_behind;
mod output_files;
mod perform;
mod rejected_items;
mod run_start;
mod same_item;
mod shell;
mod slow_look;
mod verification;
mod workspace_ops;

pub use attempt::{AttemptContext, AttemptResult, TranscriptMode};
pub use check_server::MARKER_SUFFIX as RUN_CHECK_MARKER;
pub use contracts::{ContractLookup, bundle_contracts};
pub use left_behind::{files_before_step, put_files_forward};
pub use output_files::{add_output_files, output_files};
pub use perform::{PerformRequest, SCRATCH, WorkerContext, perform, scratch_folder};
pub use workspace_ops::{perform_workspace_op, workspace_of_fact, workspace_op_failed};
