//! Signalling the members of a process set: who receives a signal, who counts as killed, and who cannot
//! be signalled. The same on every system; the caller sends.

use crate::membership::{Id, Process, SignalResult, State, Target};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::HashSet;

/// The processes of a set that were signalled.
#[derive(Debug, Default)]
pub(crate) struct Signalled {
    /// The processes that received SIGTERM.
    terminated: HashSet<Id>,
    killed: HashSet<Id>,
    denied: HashSet<Id>,
}

impl Signalled {
    /// How many processes were killed, not counting the child itself.
    pub(crate) fn killed(&self) -> usize {
        self.killed.len()
    }

    /// Counts a process that was killed.
    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "only Linux kills outside of scans")
    )]
    pub(crate) fn add_killed(&mut self, id: Id) {
        self.killed.insert(id);
    }

    /// Sends a signal, if one is given, to the members of a scan. Returns how many of them are alive
    /// and can be signalled. `is_ours` tells whether a process runs as our user; a sweep leaves others
    /// alone.
    pub(crate) fn signal(
        &mut self,
        members: Vec<Process>,
        target: Target,
        signal: Option<Signal>,
        is_ours: impl Fn(&Process) -> bool,
        mut send: impl FnMut(&Process, Signal) -> SignalResult,
    ) -> usize {
        let mut alive = 0;
        for process in members {
            let strange = target == Target::Marker && !is_ours(&process);
            if process.state == State::Dead || strange || self.denied.contains(&process.id) {
                continue;
            }
            alive += 1;
            let Some(signal) = signal else { continue };
            // A process that is exiting was not left behind. SIGTERM is sent once: some programs
            // treat a second one as a request to abort.
            let terminated = signal == Signal::TERM && !self.terminated.insert(process.id);
            if process.state == State::Exiting || terminated {
                continue;
            }
            match send(&process, signal) {
                SignalResult::Sent if counts(target, signal, process.id.pid) => {
                    self.killed.insert(process.id);
                }
                SignalResult::Sent | SignalResult::Gone => {}
                SignalResult::Denied => {
                    tracing::warn!(
                        pid = process.id.pid,
                        "a descendant runs as another user and cannot be signalled"
                    );
                    self.denied.insert(process.id);
                    crate::unended::remember([process.id.pid]);
                    alive -= 1;
                }
            }
        }
        alive
    }
}

/// Whether a process that received a signal counts as killed: in a sweep always, in a process tree if
/// it needed SIGKILL.
fn counts(target: Target, signal: Signal, pid: i32) -> bool {
    target == Target::Marker || (signal == Signal::KILL && target != Target::Child(pid))
}

/// Signals the process group of a child, where the processes cannot be read.
pub(crate) fn signal_group(target: Target, signal: Option<Signal>) {
    if let (Target::Child(pid), Some(signal)) = (target, signal)
        && let Some(group) = Pid::from_raw(pid)
        && let Err(error) = kill_process_group(group, signal)
    {
        tracing::debug!(%error, "the process group cannot be signalled");
    }
}
