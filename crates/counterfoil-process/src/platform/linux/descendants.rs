//! The processes that belong to a child, on Linux: its descendants, the members of sessions that it
//! or a descendant opened, processes that carry its marker, processes in its control group, and
//! processes that belonged to it in an earlier scan.

use super::cgroup::CgroupScope;
use super::orphans;
use super::rlimit_tag::RlimitTag;
use super::table::{environment_contains, process_ids, variable};
use crate::membership::{
    FirstSeen, KnownProcess, Marked, Members, Membership, Process, SignalResult, State, Supervisor,
    Table, Target,
};
use crate::own_children;
use crate::scan::ScanResult;
use crate::signalling::{Signalled, signal_group};
use rustix::process::{Signal, getpid, getuid};

/// The set of processes that belong to a child or carry a marker.
#[derive(Debug)]
pub(crate) struct ProcessSet {
    membership: Membership,
    /// The marker as it appears in an environment.
    variable: Vec<u8>,
    /// The marker as a tag that survives a cleared environment.
    tag: RlimitTag,
    /// The control groups of the child or marker.
    cgroup: CgroupScope,
    signalled: Signalled,
    buffer: Vec<u8>,
}

fn supervisor() -> Supervisor {
    let pid = getpid().as_raw_nonzero().get();
    // In a container the leader of our session may live outside. The session id is 0 then,
    // which the process table shows and `getsid` does not.
    let session = Process::read(pid).map_or(0, |supervisor| supervisor.session);
    Supervisor { pid, session, user: getuid().as_raw() }
}

impl ProcessSet {
    /// The processes of a child that leads a session and is not reaped yet.
    pub(crate) fn for_child(pid: i32, marker: &str) -> Self {
        let mut set = Self::new(Target::Child(pid), marker, CgroupScope::none());
        if let Some(child) = Process::read(pid) {
            set.tag.apply_to(&child, set.membership.supervisor.session);
            set.cgroup = CgroupScope::for_child(child, marker);
            own_children::lock().began(child.id.start);
            set.membership.begin(child.id);
        }
        set
    }

    /// The processes that carry a marker, with their descendants.
    pub(crate) fn for_marker(marker: &str) -> Self {
        Self::new(Target::Marker, marker, CgroupScope::for_marker(marker))
    }

    /// The processes that are known to belong to the set.
    pub(crate) fn known(&self) -> impl Iterator<Item = KnownProcess> {
        self.membership.known()
    }

    /// Adds processes that belong to the set.
    pub(crate) fn add(&mut self, known: &[KnownProcess]) {
        self.membership.add(known);
    }

    /// Whether a process may carry the marker. Cheaper than a scan.
    pub(crate) fn may_exist(&mut self) -> bool {
        self.cgroup.is_populated() || any_marked(&self.variable, self.tag)
    }

    fn new(target: Target, marker: &str, cgroup: CgroupScope) -> Self {
        Self {
            membership: Membership::new(target, supervisor()),
            variable: variable(marker),
            tag: RlimitTag::for_marker(marker),
            cgroup,
            signalled: Signalled::default(),
            buffer: Vec::new(),
        }
    }

    /// The child was reaped. From here on its process id may be reused.
    pub(crate) fn child_reaped(&mut self) {
        self.membership.target = Target::Reaped;
    }

    /// How many processes were killed, not counting the child itself.
    pub(crate) fn killed(&self) -> usize {
        self.signalled.killed()
    }

    /// Whether it is certain that a child that has exited left no process. Cheaper than a scan, and
    /// true nearly always.
    pub(crate) fn is_empty(&mut self) -> bool {
        self.membership.target == Target::Reaped
            && self.membership.known.len() <= 1
            && !self.cgroup.is_populated()
            && orphans::none_started_since(
                self.membership.since,
                self.membership.supervisor.session,
            )
    }

    /// Scans once for all processes of the set, sends them a signal if one is given, and reaps
    /// adopted dead ones.
    pub(crate) fn scan(&mut self, signal: Option<Signal>) -> ScanResult {
        if signal == Some(Signal::KILL) {
            self.kill_orphans();
        }
        let table = match Table::read() {
            Ok(table) => table,
            Err(error) => {
                tracing::warn!(%error, "cannot read /proc; only the process group is signalled");
                signal_group(self.membership.target, signal);
                return ScanResult { alive: 0, settled: true };
            }
        };
        // Read after the table: a process that died since then, and whose id was reused, is
        // recognised by its start time.
        let mut seeds = self.cgroup.members();
        seeds.extend(self.unmarked_orphans(&table));
        let Self { membership, variable, tag, buffer, .. } = self;
        let user = membership.supervisor.user;
        let Members { processes: members, mut settled } =
            membership.members(&table, &seeds, |process| {
                is_marked(process, variable, *tag, user, buffer)
            });
        settled &= !table.moved;
        settled &= !self.reap(&table);
        self.membership.remember(&table, &members);
        let mut alive = self.signalled.signal(
            members,
            self.membership.target,
            signal,
            |process| process.user() == Some(user),
            Process::signal,
        );
        if signal == Some(Signal::KILL) {
            self.cgroup.kill();
            // A child that is killed while it is added to its group may have just started a process
            // there.
            let entering =
                matches!(self.membership.target, Target::Child(_)) && self.cgroup.is_entering();
            if alive == 0 && (entering || self.cgroup.is_populated()) {
                alive = 1;
            }
        }
        ScanResult { alive, settled }
    }

    /// Orphans that belong to this child although nothing marks them: it started them before it was
    /// marked, or they took every mark off. With several children at a time it is not known whose they
    /// are, until one is left.
    fn unmarked_orphans(&self, table: &Table) -> Vec<i32> {
        let since = own_children::lock().last_tree_since();
        let Some(since) = since.filter(|_| self.membership.target != Target::Marker) else {
            return Vec::new();
        };
        let of_first_thread = orphans::children_of_first_thread();
        let is_orphan = |process: &&Process| {
            process.parent == self.membership.supervisor.pid
                && process.id.start >= since
                && self.membership.target != Target::Child(process.id.pid)
                && orphans::is_adopted(
                    process,
                    self.membership.supervisor.session,
                    &of_first_thread,
                )
        };
        table.processes.iter().filter(is_orphan).map(|process| process.id.pid).collect()
    }

    /// Reaps dead adopted children. Whether a member was among them.
    fn reap(&self, table: &Table) -> bool {
        let children_of_first_thread = orphans::children_of_first_thread();
        let mut found = false;
        for process in table.processes.iter().filter(|process| {
            process.state == State::Dead && process.parent == self.membership.supervisor.pid
        }) {
            if self.membership.target == Target::Child(process.id.pid) {
                continue;
            }
            let member = match self.membership.known.get(&process.id) {
                Some(FirstSeen::WithOtherParent) => true,
                Some(FirstSeen::AsOurChild) => self.membership.target != Target::Marker,
                None => false,
            };
            if member
                || orphans::is_adopted(
                    process,
                    self.membership.supervisor.session,
                    &children_of_first_thread,
                )
            {
                found |= member || process.id.start >= self.membership.since;
                orphans::reap(process.id.pid);
            }
        }
        found
    }

    /// Kills the orphans that carry the marker without reading the whole table: a process that
    /// forks and exits all the time would be gone by then.
    fn kill_orphans(&mut self) {
        let user = self.membership.supervisor.user;
        for pid in orphans::children_of_first_thread() {
            let Some(process) = Process::read(pid) else { continue };
            let other = self.membership.target == Target::Child(pid)
                || process.state != State::Alive
                || process.id.start < self.membership.since;
            if !other
                && is_marked(&process, &self.variable, self.tag, user, &mut self.buffer)
                    == Marked::Yes
                && process.signal(Signal::KILL) == SignalResult::Sent
            {
                self.membership.known.entry(process.id).or_insert(FirstSeen::AsOurChild);
                self.signalled.add_killed(process.id);
            }
        }
    }
}

/// Whether a process carries the marker and runs as our user.
fn is_marked(
    process: &Process,
    variable: &[u8],
    tag: RlimitTag,
    user: u32,
    buffer: &mut Vec<u8>,
) -> Marked {
    let marked = match process.environment_contains(variable, buffer) {
        Marked::Yes => Marked::Yes,
        _ if tag.is_set_on(process.id.pid) => Marked::Yes,
        marked => marked,
    };
    match marked {
        Marked::Yes if process.user() != Some(user) => Marked::No,
        marked => marked,
    }
}

/// Whether any process may carry the marker. Cheaper than a scan of the whole table, which is not
/// needed if none does.
fn any_marked(wanted: &[u8], tag: RlimitTag) -> bool {
    let mut buffer = Vec::new();
    let Ok(mut pids) = process_ids() else { return true };
    pids.any(|pid| match environment_contains(pid, wanted, &mut buffer) {
        Marked::Yes => true,
        _ if tag.is_set_on(pid) => true,
        Marked::No => false,
        Marked::Unclear => Process::read(pid)
            .is_some_and(|process| !process.kernel && process.state == State::Alive),
    })
}
