//! The processes that belong to a child on systems without `/proc`: its process group only.

use super::scan::ScanResult;
use super::watchdog::KnownProcess;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// The process group of a child.
#[derive(Debug)]
pub(super) struct ProcessSet {
    group: Option<Pid>,
    gone: bool,
    killed: usize,
}

impl ProcessSet {
    /// The group that a child of this process leads.
    pub(super) fn for_child(pid: i32, _marker: &str) -> Self {
        Self { group: Pid::from_raw(pid), gone: false, killed: 0 }
    }

    /// An empty set: the environment of other processes cannot be read here.
    pub(super) fn for_marker(_marker: &str) -> Self {
        Self { group: None, gone: true, killed: 0 }
    }

    /// The leader of the group.
    pub(super) fn known(&self) -> impl Iterator<Item = KnownProcess> {
        self.group.map(|group| (group.as_raw_nonzero().get(), 0)).into_iter()
    }

    /// Adds the leader of a group.
    pub(super) fn add(&mut self, known: &[KnownProcess]) {
        if let Some((pid, _)) = known.first() {
            self.group = Pid::from_raw(*pid);
        }
    }

    /// Whether the set may contain a process.
    pub(super) fn may_exist(&mut self) -> bool {
        self.group.is_some()
    }

    /// The child was reaped. Other processes may still be in the group.
    pub(super) fn child_reaped(&mut self) {
        self.gone = true;
    }

    /// 1 if the group had to be killed after the child exited: its members cannot be counted.
    pub(super) fn killed(&self) -> usize {
        self.killed
    }

    /// Whether it is certain that no process is left. Without a scan it never is.
    pub(super) fn is_empty(&mut self) -> bool {
        false
    }

    /// Sends a signal to the group, if one is given, and reports whether the group still exists.
    pub(super) fn scan(&mut self, signal: Option<Signal>) -> ScanResult {
        let Some(group) = self.group else { return ScanResult { alive: 0, settled: true } };
        let there = match signal {
            Some(signal) => kill_process_group(group, signal),
            None => test_kill_process_group(group),
        };
        if there.is_ok() && signal == Some(Signal::KILL) && self.gone {
            self.killed = 1;
        }
        // A child that is dead but not reaped keeps its group alive. It is not waited for here.
        ScanResult { alive: usize::from(there.is_ok() && self.gone), settled: true }
    }
}
