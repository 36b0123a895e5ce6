//! Why a run cannot be started, driven or read.

use crate::journal;
use counterfoil_agents::assignment::AssignmentError;
use counterfoil_agents::spec::SpecError;
use counterfoil_contract::text::display_path;
use counterfoil_flow::{AnswerError, DECIDE, Rejected, ReopenError};
use counterfoil_workspace::workspaces;
use std::path::PathBuf;

/// Why a run cannot be started, driven or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// The stored workflow of a run does not pass the checker of this version.
    #[error("the workflow of this run does not pass the checker of this version:\n{0}")]
    Rejected(#[from] Box<Rejected>),
    /// The programs assigned to agents cannot be used.
    #[error(transparent)]
    Assignment(#[from] AssignmentError),
    /// An input of the workflow is unknown, invalid or missing.
    #[error(transparent)]
    Input(#[from] InputError),
    /// An answer was not accepted.
    #[error(transparent)]
    Refused(#[from] AnswerError),
    /// The run has ended and cannot be continued.
    #[error("run {run} ended as {outcome}; start a new one")]
    Ended {
        /// The run's id.
        run: String,
        /// The outcome of the run.
        outcome: String,
    },
    /// The run has ended, so it has no open question and nothing to cancel.
    #[error("run {run} ended as {outcome}: there is nothing to answer or cancel")]
    NotOpen {
        /// The run's id.
        run: String,
        /// The outcome of the run.
        outcome: String,
    },
    /// What the run changed was undone.
    #[error(
        "run {run} was undone by {by}: it would be resumed without the work of its completed steps; start a new one"
    )]
    Undone {
        /// The run's id.
        run: String,
        /// The person or program that undid it.
        by: String,
    },
    /// The run has not ended, so what it changed cannot be undone.
    #[error(
        "run {run} has not ended: it would be resumed without the work of its completed steps; cancel it first"
    )]
    NotEnded {
        /// The run's id.
        run: String,
    },
    /// Files that a run changed cannot be put back.
    #[error(transparent)]
    Workspaces(#[from] workspaces::Error),
    /// A run that ended cannot be reopened.
    #[error("run {run} cannot be reopened: {why}")]
    Reopen {
        /// The run's id.
        run: String,
        /// Why not.
        why: ReopenError,
    },
    /// A limit that was named does not exist.
    #[error(transparent)]
    Limits(ReopenError),
    /// The folder that a run works in does not exist.
    #[error(
        "run {run} works in {}, which does not exist; restore the folder first",
        display_path(repo)
    )]
    NoRepository {
        /// The run's id.
        run: String,
        /// The missing folder.
        repo: PathBuf,
    },
    /// The configuration changed while an agent was at work, and nobody has looked at it since.
    #[error(
        "counterfoil.toml changed since run {run} began, and the run was interrupted while an agent could write it; look at the file, then resume the run with --accept-config"
    )]
    ConfigChanged {
        /// The run's id.
        run: String,
    },
    /// An event cannot be read by this version.
    #[error(
        "event {seq} of run {run} cannot be read: {why}; use the version that wrote it, or a newer one"
    )]
    Unreadable {
        /// The run's id.
        run: String,
        /// The sequence number of the event.
        seq: u64,
        /// Why the event cannot be read.
        why: String,
    },
    /// The run was started with decision rules that this version does not know.
    #[error(
        "run {run} was started with decision rules {found}, but this version supports up to {DECIDE}; upgrade it"
    )]
    Newer {
        /// The run's id.
        run: String,
        /// The version of the decision rules.
        found: u32,
    },
    /// The task that drove the run ended early, for example because the runtime shut down. The run
    /// can be resumed.
    #[error("run {run} was interrupted; it can be resumed")]
    Interrupted {
        /// The run's id.
        run: String,
    },
    /// An event cannot be serialised.
    #[error("an event could not be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl From<SpecError> for Error {
    fn from(error: SpecError) -> Self {
        Self::Assignment(error.into())
    }
}

/// Why the inputs of a run are not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The workflow has no such input.
    #[error(
        "the workflow has no input '{name}'; {}",
        similar.clone().unwrap_or_else(|| format!("its inputs: {}", known.join(", ")))
    )]
    Unknown {
        /// The name that was given.
        name: String,
        /// A suggestion for a similar name.
        similar: Option<String>,
        /// The inputs of the workflow.
        known: Vec<String>,
    },
    /// The value does not have the type of the input.
    #[error("input '{name}': {why}")]
    Invalid {
        /// The input's name.
        name: String,
        /// What is wrong with the value.
        why: String,
    },
    /// A text that agents are given is blank.
    #[error("the input '{name}' is empty, and agents are given it")]
    Empty {
        /// The input's name.
        name: String,
    },
    /// The workflow needs an input that was not given.
    #[error("the workflow needs the input '{name}'")]
    Missing {
        /// The input's name.
        name: String,
    },
}
