//! Orphans on Linux: descendants whose own parent ended become our children, so that they stay in
//! sight; and when they die they are ours to reap, without taking the end of a child from whoever
//! started it.

use super::own_children;
use super::table::{Process, children};
use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};
use std::collections::HashSet;
use std::sync::LazyLock;

/// Makes us the parent of orphaned descendants, once; whether we are.
pub(super) fn adopt() -> bool {
    static ADOPTED: LazyLock<bool> = LazyLock::new(|| {
        let adopted = set_child_subreaper(Some(getpid()));
        if let Err(error) = &adopted {
            tracing::warn!(%error, "orphans cannot be adopted; they are found by their marker only");
        }
        adopted.is_ok()
    });
    *ADOPTED
}

/// Whether all our children are surely others' than what a child that has ended left behind:
/// started here, in our session, or older than it. A descendant of it would be one of our children,
/// or descend from one.
pub(super) fn none_started_since(since: u64, our_session: i32) -> bool {
    let us = getpid().as_raw_nonzero().get();
    let ours = |pid: i32| {
        let other = |process: Process| process.session == our_session || process.id.start < since;
        own_children::contains(pid) || Process::read(pid).is_some_and(other)
    };
    // Where one goes away while they are listed, another may be passed over; then the list is
    // another the next time.
    let scan = || children(us).ok().filter(|children| children.iter().all(|pid| ours(*pid)));
    adopt() && scan().is_some_and(|first| scan() == Some(first))
}

/// The children of our first thread: all orphans, since the kernel gives them to it, and what it
/// started itself. Nobody where the kernel does not tell.
pub(super) fn children_of_first_thread() -> HashSet<i32> {
    let pid = getpid();
    let children =
        std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Whether a child of ours was adopted, for all that can be seen of it.
pub(super) fn is_adopted(
    process: &Process,
    our_session: i32,
    children_of_first_thread: &HashSet<i32>,
) -> bool {
    if process.session == our_session || process.session == 0 {
        return false;
    }
    // Who we started is in our session or leads its own.
    if process.session != process.id.pid {
        return true;
    }
    // One that leads its own was started by a supervisor here, or by other code, in any thread, or
    // it is an orphan. What the first thread starts itself, it should start in our session or
    // through a supervisor.
    children_of_first_thread.contains(&process.id.pid) && !own_children::contains(process.id.pid)
}

/// Reaps one dead child by its number; asking for any child would take those of others.
pub(super) fn reap(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid)
        && let Err(error) = waitpid(Some(pid), WaitOptions::NOHANG)
    {
        tracing::debug!(%error, %pid, "an adopted orphan is already reaped");
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::{Id, State};
    use super::*;

    /// A child of ours, in session 40 if it is ours too, and whether it would be reaped as an
    /// orphan.
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
