//! The built-in steps: `read` reads a file, `changes` reads the changes since a revision, `commit`
//! commits. Each is an attempt without an agent.
//!
//! A built-in step decides no transition: it returns a result, or the reason why there is none.

pub(crate) mod changes;
pub(crate) mod commit;
mod merge_base;
mod patch;
mod paths;
pub(crate) mod read;
mod trusted_programs;

use crate::attempt::{AttemptContext, AttemptResult};
use counterfoil_flow::{AttemptOutcome, Ended, Usage};
use counterfoil_process::StopRequest;
use serde_json::Value;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The default name of the state folder.
const STATE: &str = ".counterfoil";

/// The outcome of a built-in step.
pub(super) enum BuiltinOutcome {
    /// The step has a result.
    Value(Value),
    /// A precondition is not met, for this reason.
    Blocked(String),
    /// The content does not satisfy its contract.
    Rejected {
        /// A one-line summary.
        reason: String,
        /// The violations, as JSON.
        violations: Vec<Value>,
        /// The part of the value that is valid.
        partial: Option<Value>,
    },
    /// The step was stopped.
    Stopped,
}

impl BuiltinOutcome {
    /// Turns the outcome into the end of the attempt.
    fn into_ended(self, attempt: &str, since: Instant) -> Ended {
        let wall_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let ended = |outcome| Ended {
            usage: Usage { wall_ms, ..Usage::default() },
            ..Ended::new(attempt, outcome)
        };
        match self {
            Self::Value(value) => Ended { value: Some(value), ..ended(AttemptOutcome::Accepted) },
            Self::Blocked(reason) => Ended { reason, ..ended(AttemptOutcome::Blocked) },
            Self::Rejected { reason, violations, partial } => {
                Ended { reason, violations, partial, ..ended(AttemptOutcome::Contract) }
            }
            Self::Stopped => {
                Ended { reason: "stopped".to_owned(), ..ended(AttemptOutcome::Cancelled) }
            }
        }
    }
}

/// Runs a step that only reads, on a blocking thread. A stop request does not wait for it, since it
/// changes nothing.
pub(crate) async fn run_read_only(
    attempt: String,
    context: Arc<dyn AttemptContext>,
    step: impl FnOnce() -> BuiltinOutcome + Send + 'static,
) -> AttemptResult {
    let since = Instant::now();
    let mut stop = context.stop();
    let outcome = tokio::select! {
        joined = tokio::task::spawn_blocking(step) => match joined {
            Ok(outcome) => outcome,
            Err(error) => {
                return AttemptResult::failed(&attempt, format!("the step panicked: {error}"));
            }
        },
        () = stopped(&mut stop) => BuiltinOutcome::Stopped,
    };
    AttemptResult::new(outcome.into_ended(&attempt, since))
}

/// Waits for a stop request. It never returns if the sender is gone.
async fn stopped(stop: &mut tokio::sync::watch::Receiver<StopRequest>) {
    if stop.wait_for(|stop| *stop != StopRequest::None).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The names in a NUL-terminated list of git.
fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0).filter(|name| !name.is_empty())
}

/// Literal pathspecs of these names, as a NUL-terminated list.
fn literal_pathspecs<'n>(names: impl IntoIterator<Item = &'n Vec<u8>>) -> Vec<u8> {
    let specs = names.into_iter().flat_map(|name| [b":(literal)", name.as_slice(), b"\0"]);
    specs.collect::<Vec<_>>().concat()
}

/// Names as a NUL-terminated list.
fn nul_list<'n>(names: impl IntoIterator<Item = &'n Vec<u8>>) -> Vec<u8> {
    names.into_iter().flat_map(|name| [name.as_slice(), b"\0"]).collect::<Vec<_>>().concat()
}

/// The state folders, relative to a folder. They are not part of the work.
fn state_folders(folder: &Path, state: &Path) -> Vec<Vec<u8>> {
    let mut own = vec![STATE.as_bytes().to_vec()];
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let below: Option<PathBuf> = real(state).strip_prefix(real(folder)).ok().map(Path::to_owned);
    if let Some(below) =
        below.filter(|below| !below.as_os_str().is_empty() && below != Path::new(STATE))
    {
        own.push(OsString::from(below).into_vec());
    }
    own
}

/// Whether a name is the name of a folder or of something in it.
fn is_in(name: &[u8], folder: &[u8]) -> bool {
    name.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}
