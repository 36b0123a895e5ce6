//! Which processes belong to a child where there is no `/proc`: its process group, and no more.

use super::tree::Pass;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// The process group of a child.
#[derive(Debug)]
pub(super) struct Kin {
    group: Option<Pid>,
    gone: bool,
    killed: usize,
}

impl Kin {
    /// The group that a child of ours leads.
    pub(super) fn of_child(pid: i32, _marker: &str) -> Self {
        Self { group: Pid::from_raw(pid), gone: false, killed: 0 }
    }

    /// Nobody: the environment of other processes cannot be read here.
    pub(super) fn of_marker(_marker: &str) -> Self {
        Self { group: None, gone: true, killed: 0 }
    }

    /// Whether there may be anyone.
    pub(super) fn may_be_there(&mut self) -> bool {
        self.group.is_some()
    }

    /// The child is reaped; the group may still have others.
    pub(super) fn child_is_gone(&mut self) {
        self.gone = true;
    }

    /// One if something of the group had to be killed after the child, since the members cannot be
    /// counted.
    pub(super) fn killed(&self) -> usize {
        self.killed
    }

    /// Whether a child that has ended surely left nobody, which cannot be told without a look.
    pub(super) fn is_nobody_left(&mut self) -> bool {
        false
    }

    /// Signals the group if asked to, and says whether anyone is in it.
    pub(super) fn pass(&mut self, signal: Option<Signal>) -> Pass {
        let Some(group) = self.group else { return Pass { alive: 0, settled: true } };
        let there = match signal {
            Some(signal) => kill_process_group(group, signal),
            None => test_kill_process_group(group),
        };
        if there.is_ok() && signal == Some(Signal::KILL) && self.gone {
            self.killed = 1;
        }
        // A child that is dead but not reaped keeps its group; it is not waited for here.
        Pass { alive: usize::from(there.is_ok() && self.gone), settled: true }
    }
}
