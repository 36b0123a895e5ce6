//! The holder of a lease, and whether its process is alive.
//!
//! A process is identified by its id and start time, within one boot of the machine and one process
//! namespace. Where that is not sufficient (another namespace, hidden processes), the age of the
//! heartbeat decides. A journal is never shared between machines, since the log of `SQLite` needs
//! shared memory; another boot id means that this machine was restarted.

use counterfoil_process::{boot_id, process_life, process_namespace};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// The identity of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// When it started, in a unit of the system; 0 if unknown.
    pub(super) started: i64,
    /// The boot id; empty if unknown.
    pub(super) boot: String,
    /// The process namespace; empty if unknown.
    pub(super) namespace: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Alive,
    Dead,
    Unknown,
}

/// The holder of a lease, as the journal stores it.
#[derive(Clone, Debug)]
pub(super) struct LeaseHolder {
    pub(super) process: Process,
    pub(super) since: i64,
    pub(super) heartbeat: i64,
}

impl Process {
    pub(super) fn this() -> Self {
        let pid = std::process::id();
        Self {
            pid,
            started: process_life(pid).map_or(0, |life| life.started),
            boot: boot_id(),
            namespace: process_namespace(),
        }
    }

    fn life(&self, here: &Self) -> Life {
        if self.boot.is_empty() || here.boot.is_empty() {
            return Life::Unknown;
        }
        if self.boot != here.boot {
            return Life::Dead;
        }
        if self.namespace.is_empty() || self.namespace != here.namespace {
            return Life::Unknown;
        }
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else {
            return Life::Dead;
        };
        // Checked first, since the processes of other users may be hidden.
        if test_kill_process(pid) == Err(Errno::SRCH) {
            return Life::Dead;
        }
        match process_life(self.pid) {
            Some(life) if life.is_dead => Life::Dead,
            Some(life) if self.started != 0 && life.started != self.started => Life::Dead,
            Some(_) if self.started != 0 => Life::Alive,
            _ => Life::Unknown,
        }
    }
}

impl LeaseHolder {
    /// Whether the lease is still valid.
    ///
    /// A heartbeat in the future (the clock was set back) is valid if the process is alive. If that
    /// is not known, it may be at most `stale_after` ahead; otherwise the lease could stay forever.
    pub(super) fn is_valid(&self, here: &Process, now: i64, stale_after: i64) -> bool {
        let age = now.saturating_sub(self.heartbeat);
        match self.process.life(here) {
            Life::Dead => false,
            Life::Alive => age <= stale_after,
            Life::Unknown => age <= stale_after && age >= stale_after.saturating_neg(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALE: i64 = 30_000;

    fn lease_holder(change: impl FnOnce(&mut Process), heartbeat: i64) -> LeaseHolder {
        let mut process = Process::this();
        change(&mut process);
        LeaseHolder { process, since: 0, heartbeat }
    }

    fn is_valid(lease_holder: &LeaseHolder, now: i64) -> bool {
        lease_holder.is_valid(&Process::this(), now, STALE)
    }

    #[test]
    fn a_live_process_holds_until_its_heartbeat_is_stale() {
        let lease_holder = lease_holder(|_| {}, 100_000);
        assert!(is_valid(&lease_holder, 100_000 + STALE));
        assert!(!is_valid(&lease_holder, 100_000 + STALE + 1));
        assert!(
            is_valid(&lease_holder, -1_000_000_000),
            "a clock set back does not free a live holder"
        );
    }

    #[test]
    fn a_process_that_is_gone_or_another_holds_nothing() {
        assert!(
            !is_valid(&lease_holder(|process| process.started += 1, 0), 0),
            "the id was given to another process"
        );
        assert!(
            !is_valid(&lease_holder(|process| process.boot = "another".to_owned(), 0), 0),
            "the machine was restarted"
        );
        assert!(!is_valid(&lease_holder(|process| process.pid = 0, 0), 0));
        assert!(!is_valid(&lease_holder(|process| process.pid = u32::MAX, 0), 0));
    }

    #[test]
    fn where_life_cannot_be_told_the_heartbeat_decides_in_both_directions() {
        let lease_holder =
            lease_holder(|process| process.namespace = "pid:[1]".to_owned(), 100_000);
        assert!(is_valid(&lease_holder, 100_000 + STALE));
        assert!(!is_valid(&lease_holder, 100_000 + STALE + 1));
        assert!(is_valid(&lease_holder, 100_000 - STALE));
        assert!(!is_valid(&lease_holder, 100_000 - STALE - 1));
    }
}
