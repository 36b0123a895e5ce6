//! What the engine does itself in a state, as an attempt without an agent: it reads a file, looks
//! at what changed, commits.
//!
//! Nothing here decides where a run goes: what was found is a result, and what kept it from being
//! found is told as it is.

pub(crate) mod changes;
pub(crate) mod commit;
mod patch;
mod paths;
pub(crate) mod read;

use crate::attempt::{Completed, Handle, bare};
use counterfoil_flow::{AttemptOutcome, Ended, Usage};
use counterfoil_process::StopRequest;
use serde_json::Value;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Where runs are kept unless somebody says otherwise.
const STATE: &str = ".counterfoil";

/// What came of something that was done.
pub(super) enum Done {
    /// A result.
    Given(Value),
    /// Something it needs is not there; why.
    Blocked(String),
    /// What is there does not satisfy its contract.
    Rejected {
        /// Why, in words.
        reason: String,
        /// What is wrong with it.
        violations: Vec<Value>,
        /// What could be salvaged.
        partial: Option<Value>,
    },
    /// It was stopped.
    Stopped,
}

impl Done {
    /// The end of the attempt.
    fn of(self, attempt: &str, since: Instant) -> Ended {
        let wall_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let ended = |outcome| Ended {
            usage: Usage { wall_ms, ..Usage::default() },
            ..bare(attempt, outcome)
        };
        match self {
            Self::Given(value) => Ended { value: Some(value), ..ended(AttemptOutcome::Accepted) },
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

/// Does something that only looks, on a thread where it may take its time. Who is stopped does not
/// wait for it: it changes nothing.
pub(crate) async fn look(
    attempt: String,
    handle: Arc<dyn Handle>,
    look: impl FnOnce() -> Done + Send + 'static,
) -> Completed {
    let since = Instant::now();
    let mut stop = handle.stop();
    let done = tokio::select! {
        done = tokio::task::spawn_blocking(look) => match done {
            Ok(done) => done,
            Err(error) => return Completed::failed(&attempt, format!("it broke off: {error}")),
        },
        () = stopped(&mut stop) => Done::Stopped,
    };
    Completed { ended: done.of(&attempt, since), used_up: None, unkept: None }
}

/// Waits until somebody wants an attempt to stop; for ever, if nobody can.
async fn stopped(stop: &mut tokio::sync::watch::Receiver<StopRequest>) {
    if stop.wait_for(|stop| *stop != StopRequest::None).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The names in a list of git's, each ended by a NUL.
fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0).filter(|name| !name.is_empty())
}

/// Pathspecs that mean exactly these names, as a list that is parted by NUL.
fn literally<'n>(names: impl IntoIterator<Item = &'n Vec<u8>>) -> Vec<u8> {
    let specs = names.into_iter().flat_map(|name| [b":(literal)", name.as_slice(), b"\0"]);
    specs.collect::<Vec<_>>().concat()
}

/// Names as a list that is parted by NUL.
fn listed<'n>(names: impl IntoIterator<Item = &'n Vec<u8>>) -> Vec<u8> {
    names.into_iter().flat_map(|name| [name.as_slice(), b"\0"]).collect::<Vec<_>>().concat()
}

/// Where runs are kept, as names below a folder: they are no part of the work.
fn own_folders(folder: &Path, state: &Path) -> Vec<Vec<u8>> {
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

/// Whether a name is that of a folder, or of something in it.
fn is_in(name: &[u8], folder: &[u8]) -> bool {
    name.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}
