//! Why a run cannot be started, driven or read.

use crate::journal;
use counterfoil_agents::agent::SpecError;
use counterfoil_agents::cast::CastError;
use counterfoil_flow::{AnswerError, DECIDE, Rejected};
use std::path::PathBuf;

/// Why a run cannot be started, driven or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The journal.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// The workflow of a run does not pass any more.
    #[error("the workflow of this run does not pass the checker of this version:\n{0}")]
    Rejected(#[from] Box<Rejected>),
    /// Who plays the agents.
    #[error(transparent)]
    Cast(#[from] CastError),
    /// An input.
    #[error("{0}")]
    Input(String),
    /// An answer.
    #[error(transparent)]
    Refused(#[from] AnswerError),
    /// A run that ended.
    #[error("run {run} ended as {outcome}; start a new one")]
    Ended {
        /// Which.
        run: String,
        /// How.
        outcome: String,
    },
    /// The folder a run works in is gone.
    #[error("run {run} works in {}, which is not there any more; put it back, then `counterfoil resume {run}` goes on", repo.display())]
    NoRepository {
        /// Which.
        run: String,
        /// The folder.
        repo: PathBuf,
    },
    /// An event that this version cannot read.
    #[error(
        "event {seq} of run {run} cannot be read: {why}; use the version that wrote it, or a newer one"
    )]
    Unreadable {
        /// Which run.
        run: String,
        /// Which event.
        seq: u64,
        /// Why.
        why: String,
    },
    /// A run that began under a version of deciding which this program does not know.
    #[error(
        "run {run} began under decision rules {found}, and this program knows up to {DECIDE}: upgrade it"
    )]
    Newer {
        /// Which.
        run: String,
        /// The version.
        found: u32,
    },
    /// The runtime went away under the run.
    #[error("the run was broken off; `counterfoil resume` goes on")]
    Broken,
    /// Something that could not be written down.
    #[error("an event could not be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl From<SpecError> for Error {
    fn from(error: SpecError) -> Self {
        Self::Cast(error.into())
    }
}
