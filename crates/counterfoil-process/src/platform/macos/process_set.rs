//! The processes that belong to a child, found by scans of the process table alone: its descendants,
//! the members of sessions that it or a descendant opened, processes that carry its marker, and
//! processes that belonged to it in an earlier scan.

use super::Machine;
use crate::MARKER;
use crate::membership::{
    Id, KnownProcess, Marked, Members, Membership, Process, SignalResult, Supervisor, Table, Target,
};
use crate::scan::ScanResult;
use crate::signalling::{Signalled, signal_group};
use rustix::process::{Signal, getpid, getuid};
use std::collections::HashSet;
use std::io;

/// Where a set reads and signals processes.
pub(crate) trait ProcessSource {
    /// Reads all processes.
    fn table(&mut self) -> io::Result<Table>;
    /// Whether the environment of a process, as it was when the table was read, contains `wanted`, a
    /// complete `NAME=value`.
    fn environment_contains(&self, process: &Process, wanted: &[u8]) -> Marked;
    /// The user that a process of the table runs as.
    fn user(&self, process: &Process) -> Option<u32>;
    /// Sends a signal to a process, if it is still the same.
    fn signal(&mut self, process: &Process, signal: Signal) -> SignalResult;
}

/// The set of processes that belong to a child or carry a marker.
#[derive(Debug)]
pub(crate) struct ProcessSet<S = Machine> {
    pub(super) source: S,
    membership: Membership,
    /// The marker as it appears in an environment.
    variable: Vec<u8>,
    signalled: Signalled,
}

impl ProcessSet {
    /// The processes of a child that leads a session and is not reaped yet.
    pub(crate) fn for_child(pid: i32, marker: &str) -> Self {
        let set = Self::new(Machine::default(), Target::Child(pid), marker, supervisor());
        set.with_child(pid)
    }

    /// The processes that carry a marker, with their descendants.
    pub(crate) fn for_marker(marker: &str) -> Self {
        Self::new(Machine::default(), Target::Marker, marker, supervisor())
    }
}

impl<S: ProcessSource> ProcessSet<S> {
    pub(super) fn new(source: S, target: Target, marker: &str, supervisor: Supervisor) -> Self {
        Self {
            source,
            membership: Membership::new(target, supervisor),
            variable: format!("{MARKER}={marker}").into_bytes(),
            signalled: Signalled::default(),
        }
    }

    /// Begins with the child itself, if it is in the table.
    pub(super) fn with_child(mut self, pid: i32) -> Self {
        let table = self.source.table().unwrap_or_default();
        if let Some(child) = table.find(pid) {
            self.membership.begin(child.id);
        }
        self
    }

    /// The processes that are known to belong to the set.
    pub(crate) fn known(&self) -> impl Iterator<Item = KnownProcess> {
        self.membership.known()
    }

    /// Adds processes that belong to the set.
    pub(crate) fn add(&mut self, known: &[KnownProcess]) {
        self.membership.add(known);
    }

    /// Whether a process carries the marker.
    pub(crate) fn may_exist(&mut self) -> bool {
        let Ok(table) = self.source.table() else { return true };
        let carries = |process: &Process| {
            self.source.environment_contains(process, &self.variable) != Marked::No
        };
        table.processes.iter().any(carries)
    }

    /// The child was reaped. From here on its process id may be reused.
    pub(crate) fn child_reaped(&mut self) {
        self.membership.target = Target::Reaped;
    }

    /// How many processes were killed, not counting the child itself.
    pub(crate) fn killed(&self) -> usize {
        self.signalled.killed()
    }

    /// Whether it is certain that no process is left. Without a scan it never is: nobody adopts
    /// orphans here.
    #[allow(clippy::unused_self)]
    pub(crate) fn is_empty(&mut self) -> bool {
        false
    }

    /// Scans once for all processes of the set and sends them a signal, if one is given. The result
    /// is settled if no member came or went since the scan before: a process that was started
    /// meanwhile may be missing from this table, and is in the next one.
    pub(crate) fn scan(&mut self, signal: Option<Signal>) -> ScanResult {
        let table = match self.source.table() {
            Ok(table) => table,
            Err(error) => {
                tracing::warn!(%error, "cannot read the processes; only the process group is signalled");
                signal_group(self.membership.target, signal);
                return ScanResult { alive: 0, settled: true };
            }
        };
        let Self { membership, source, variable, .. } = self;
        let user = membership.supervisor.user;
        let is_marked = |process: &Process| match source.environment_contains(process, variable) {
            Marked::Yes if source.user(process) != Some(user) => Marked::No,
            marked => marked,
        };
        let Members { processes, mut settled } =
            membership.members(&table, &HashSet::new(), is_marked);
        settled &= !membership.remember(&table, &processes) && !table.moved;
        // Users are those of the table; sending reads processes anew.
        let ours: HashSet<Id> = processes
            .iter()
            .filter(|process| self.source.user(process) == Some(user))
            .map(|process| process.id)
            .collect();
        let alive = self.signalled.signal(
            processes,
            self.membership.target,
            signal,
            |process| ours.contains(&process.id),
            |process, signal| self.source.signal(process, signal),
        );
        ScanResult { alive, settled }
    }
}

fn supervisor() -> Supervisor {
    let pid = getpid().as_raw_nonzero().get();
    // `getsid` of rustix panics if the leader of our session lives outside of our container.
    let session = Machine::read(Some(&[pid])).process(pid).map_or(0, |this| this.session);
    Supervisor { pid, session, user: getuid().as_raw() }
}
