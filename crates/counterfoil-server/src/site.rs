//! What all requests share.

use crate::access::{Hosts, Sessions, Token};
use crate::activity::Activity;
use crate::checking::Checks;
use crate::contracts::KnownContracts;
use crate::control::RunControl;
use crate::counted::CountedRuns;
use crate::diffs::Diffs;
use crate::folders::Folders;
use crate::idempotency::Repeats;
use crate::problem::Problem;
use crate::progress::KnownProgress;
use crate::revalidation::Revalidations;
use crate::shown_runs::ShownRuns;
use crate::summaries::Summaries;
use crate::tool_calls::ToolCallLogs;
use axum::http::StatusCode;
use counterfoil_engine::VerifiedTexts;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The state of a server.
pub(crate) struct Site {
    /// The port at which it listens.
    pub(crate) port: u16,
    /// The names by which it may be called.
    pub(crate) hosts: Hosts,
    /// The secret of programs.
    pub(crate) token: Token,
    /// The sessions of browsers.
    pub(crate) sessions: Sessions,
    /// The runs.
    pub(crate) folders: Folders,
    /// What was read of runs for lists.
    pub(crate) summaries: Summaries,
    /// When the agents at work wrote last.
    pub(crate) activity: Activity,
    /// What the inbox showed last.
    pub(crate) inbox: ShownRuns,
    /// How far runs have come.
    pub(crate) progress: KnownProgress,
    /// Whether the server stops: streams end then.
    pub(crate) is_stopping: AtomicBool,
    /// The writing requests that had a key.
    pub(crate) repeats: Repeats,
    /// The figures of all runs.
    pub(crate) counted: CountedRuns,
    /// The contracts against which texts can be checked.
    pub(crate) contracts: KnownContracts,
    /// The transcripts whose hashes were verified.
    pub(crate) verified: VerifiedTexts,
    /// The replies that were validated again.
    pub(crate) validated: Revalidations,
    /// The checks that are running.
    pub(crate) checks: Checks,
    /// What attempts changed in the files.
    pub(crate) diffs: Diffs,
    /// The tool calls of transcripts.
    pub(crate) tool_calls: ToolCallLogs,
    /// What changes runs.
    pub(crate) control: Option<Arc<dyn RunControl>>,
}

impl Site {
    /// Whether it records answers and cancels runs.
    pub(crate) fn may_change(&self) -> bool {
        self.control.is_some()
    }

    /// Whether it resumes runs.
    pub(crate) fn may_resume(&self) -> bool {
        self.control.as_ref().is_some_and(|control| control.may_resume())
    }

    /// Does work that reads files on a thread of its own.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce(&Arc<Self>) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let done = tokio::task::spawn_blocking(move || work(&self)).await;
        done.unwrap_or_else(|error| {
            tracing::error!(%error, "a request failed");
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            Err(Problem::new(status, "internal", "the server failed; its log says more"))
        })
    }
}
