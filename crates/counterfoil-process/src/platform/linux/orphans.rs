//! Orphans on Linux: descendants whose own parent exited become children of this process, so that
//! scans still find them. This process also reaps them, without taking the exit status of a child
//! from the code that started it.

use super::table::children;
use crate::membership::Process;
use crate::own_children;
use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};
use std::collections::HashSet;
use std::sync::LazyLock;

/// Makes this process the parent of orphaned descendants, once. Whether that worked.
pub(super) fn adopt() -> bool {
    static ADOPTED: LazyLock<bool> = LazyLock::new(|| {
        let adopted = set_child_subreaper(Some(getpid()));
        if let Err(error) = &adopted {
            tracing::warn!(%error, "cannot adopt orphans; they are found only by their marker");
        }
        adopted.is_ok()
    });
    *ADOPTED
}

/// Whether it is certain that no child of this process was left behind by a child that has exited:
/// each was started here, is in our session, or is older than that child. A descendant of it would
/// be one of our children, or descend from one.
pub(super) fn none_started_since(since: u64, our_session: i32) -> bool {
    let us = getpid().as_raw_nonzero().get();
    let ours = |pid: i32| {
        let other = |process: Process| process.session == our_session || process.id.start < since;
        own_children::contains(pid) || Process::read(pid).is_some_and(other)
    };
    // If a child exits while the list is read, another may be skipped. The second list differs
    // then.
    let scan = || children(us).ok().filter(|children| children.iter().all(|pid| ours(*pid)));
    adopt() && scan().is_some_and(|first| scan() == Some(first))
}

/// The children of the main thread: all orphans, which the kernel assigns to it, and what it
/// started itself. Empty where the kernel does not provide the list.
pub(super) fn children_of_first_thread() -> HashSet<i32> {
    let pid = getpid();
    let children =
        std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Whether a child of this process was adopted, as far as is known.
pub(super) fn is_adopted(
    process: &Process,
    our_session: i32,
    children_of_first_thread: &HashSet<i32>,
) -> bool {
    if process.session == our_session || process.session == 0 {
        return false;
    }
    // A process that this process started is in our session or leads its own.
    if process.session != process.id.pid {
        return true;
    }
    // A session leader was started by a supervisor here, by other code in any thread, or is an
    // orphan. Children that the main thread starts itself must be in our session or be supervised.
    children_of_first_thread.contains(&process.id.pid) && !own_children::contains(process.id.pid)
}

/// The adopted children of this process that were started since then.
pub(super) fn adopted_since(since: u64, our_session: i32) -> Vec<Process> {
    let of_first_thread = children_of_first_thread();
    let processes = of_first_thread.iter().filter_map(|pid| Process::read(*pid));
    let is_orphan = |process: &Process| {
        process.id.start >= since && is_adopted(process, our_session, &of_first_thread)
    };
    processes.filter(is_orphan).collect()
}

/// Reaps one dead child by its process id. Waiting for any child would take those of other code.
pub(super) fn reap(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid)
        && let Err(error) = waitpid(Some(pid), WaitOptions::NOHANG)
    {
        tracing::debug!(%error, %pid, "an adopted orphan was already reaped");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::{Id, State};

    /// Whether a child would be reaped as an orphan. Our session is 40.
    fn adopted(pid: i32, session: i32) -> bool {
        let process = Process {
            id: Id { pid, start: 0 },
            parent: 50,
            session,
            state: State::Dead,
            kernel: false,
        };
        is_adopted(&process, 40, &HashSet::from([200, 201, 202]))
    }

    #[test]
    fn what_someone_here_started_is_never_taken_for_an_orphan() {
        assert!(!adopted(200, 40), "in our session");
        assert!(!adopted(100, 100), "a session of its own, started by another thread");
    }

    #[test]
    fn an_orphan_is_known_by_a_session_that_is_neither_ours_nor_its_own_or_by_its_thread() {
        assert!(adopted(100, 99));
        assert!(adopted(201, 201));
    }
}
