//! Which processes belong to a child where there is no `/proc`: its process group, and no more.

use super::scan::ScanResult;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// The process group of a child.
#[derive(Debug)]
pub(super) struct ProcessSet {
    group: Option<Pid>,
    gone: bool,
    killed: usize,
}

impl ProcessSet {
    /// The group that a child of ours leads.
    pub(super) fn for_child(pid: i32, _marker: &str) -> Self {
        Self { group: Pid::from_raw(pid), gone: false, killed: 0 }
    }

    /// Nobody: the environment of other processes cannot be read here.
    pub(super) fn for_marker(_marker: &str) -> Self {
        Self { group: None, gone: true, killed: 0 }
    }

    /// Whether there may be anyone.
    pub(super) fn may_exist(&mut self) -> bool {
        self.group.is_some()
    }

    /// The child is reaped; the group may still have others.
    pub(super) fn child_reaped(&mut self) {
        self.gone = true;
    }

    /// One if something of the group had to be killed after the child, since the members cannot be
    /// counted.
    pub(super) fn killed(&self) -> usize {
        self.killed
    }

    /// Whether a child that has ended surely left nobody, which cannot be told without a look.
    pub(super) fn is_empty(&mut self) -> bool {
        false
    }

    /// Signals the group if asked to, and says whether anyone is in it.
    pub(super) fn scan(&mut self, signal: Option<Signal>) -> ScanResult {
        let Some(group) = self.group else { return ScanResult { alive: 0, settled: true } };
        let there = match signal {
            Some(signal) => kill_process_group(group, signal),
            None => test_kill_process_group(group),
        };
        if there.is_ok() && signal == Some(Signal::KILL) && self.gone {
            self.killed = 1;
        }
        // A child that is dead but not reaped keeps its group; it is not waited for here.
        ScanResult { alive: usize::from(there.is_ok() && self.gone), settled: true }
    }
}
