//! The children that this process started through the supervisor.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The children of this process that are supervised.
#[derive(Debug, Default)]
pub(super) struct OwnChildren {
    /// The process ids of those that are not reaped yet.
    pids: Option<HashSet<i32>>,
    /// How many process trees are not cleared yet.
    trees: usize,
    /// When the first of these trees began, in ticks since boot.
    since: Option<u64>,
}

static STARTED: Mutex<OwnChildren> = Mutex::new(OwnChildren { pids: None, trees: 0, since: None });

/// Locks the list of children.
pub(super) fn lock() -> MutexGuard<'static, OwnChildren> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OwnChildren {
    /// A child was started, and its tree begins.
    pub(super) fn started(&mut self, pid: i32) {
        self.pids.get_or_insert_default().insert(pid);
        self.trees += 1;
    }

    /// A child was reaped: its process id may be reused.
    pub(super) fn reaped(&mut self, pid: i32) {
        if let Some(pids) = &mut self.pids {
            pids.remove(&pid);
        }
    }

    /// A process tree was cleared.
    pub(super) fn cleared(&mut self) {
        self.trees = self.trees.saturating_sub(1);
        if self.trees == 0 {
            self.since = None;
        }
    }
}

#[cfg(target_os = "linux")]
impl OwnChildren {
    /// A tree that was started began at this time.
    pub(super) fn began(&mut self, start: u64) {
        self.since = Some(self.since.map_or(start, |since| since.min(start)));
    }

    /// If one tree is left: when the first of those began that were there at the same time. An orphan
    /// that is younger belongs to one of them, whatever marks it lacks.
    pub(super) fn last_tree_since(&self) -> Option<u64> {
        self.since.filter(|_| self.trees == 1)
    }
}

/// Whether the process is a child that a supervisor here started and has not reaped yet.
#[cfg(target_os = "linux")]
pub(super) fn contains(pid: i32) -> bool {
    lock().pids.as_ref().is_some_and(|pids| pids.contains(&pid))
}
