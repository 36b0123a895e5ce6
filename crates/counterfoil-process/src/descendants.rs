//! The processes that belong to a child, on Linux: its descendants, the members of sessions that it
//! or a descendant opened, processes that carry its marker, processes in its control group, and
//! processes that belonged to it in an earlier scan.

use super::cgroup::CgroupScope;
use super::orphans;
use super::own_children;
use super::rlimit_tag::RlimitTag;
use super::scan::ScanResult;
use super::table::{
    Id, Marked, Process, SignalResult, State, Table, environment_contains, process_ids, variable,
};
use super::watchdog::KnownProcess;
use rustix::process::{Pid, Signal, getpid, getuid, kill_process_group};
use std::collections::{HashMap, HashSet};

/// The set of processes that belong to a child or carry a marker.
#[derive(Debug)]
pub(super) struct ProcessSet {
    target: Target,
    /// The marker as it appears in an environment.
    variable: Vec<u8>,
    /// The marker as a tag that survives a cleared environment.
    tag: RlimitTag,
    /// The control groups of the child or marker.
    cgroup: CgroupScope,
    /// Processes that started earlier do not belong to the set.
    since: u64,
    supervisor: Supervisor,
    known: HashMap<Id, FirstSeen>,
    /// Sessions opened by members. The id of a session is not reused while a process is in it.
    sessions: HashSet<i32>,
    /// The processes that received SIGTERM.
    terminated: HashSet<Id>,
    killed: HashSet<Id>,
    denied: HashSet<Id>,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// A child of this process that is not reaped yet, so that its process id is valid.
    Child(i32),
    /// A child of this process that was reaped.
    Reaped,
    /// All processes that carry the marker.
    Marker,
}

/// How a process was first seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstSeen {
    /// With another parent than this process. If this process is its parent later, it was adopted.
    WithOtherParent,
    /// As a child of this process: adopted before the scan, or to be waited for by other code.
    AsOurChild,
}

#[derive(Clone, Copy, Debug)]
struct Supervisor {
    pid: i32,
    session: i32,
    user: u32,
}

impl Supervisor {
    fn read() -> Self {
        let pid = getpid().as_raw_nonzero().get();
        // In a container the leader of our session may live outside. The session id is 0 then,
        // which the process table shows and `getsid` does not.
        let session = Process::read(pid).map_or(0, |supervisor| supervisor.session);
        Self { pid, session, user: getuid().as_raw() }
    }
}

impl ProcessSet {
    /// The processes of a child that leads a session and is not reaped yet.
    pub(super) fn for_child(pid: i32, marker: &str) -> Self {
        let mut set = Self::new(Target::Child(pid), marker, CgroupScope::none());
        if let Some(child) = Process::read(pid) {
            set.tag.apply_to(&child);
            set.cgroup = CgroupScope::for_child(child, marker);
            set.since = child.id.start;
            own_children::lock().began(child.id.start);
            set.known.insert(child.id, FirstSeen::AsOurChild);
            set.sessions.insert(pid);
        }
        set
    }

    /// The processes that carry a marker, with their descendants.
    pub(super) fn for_marker(marker: &str) -> Self {
        Self::new(Target::Marker, marker, CgroupScope::for_marker(marker))
    }

    /// The processes that are known to belong to the set.
    pub(super) fn known(&self) -> impl Iterator<Item = KnownProcess> {
        self.known.keys().map(|id| (id.pid, id.start))
    }

    /// Adds processes that belong to the set.
    pub(super) fn add(&mut self, known: &[KnownProcess]) {
        let ids = known.iter().map(|(pid, start)| Id { pid: *pid, start: *start });
        self.known.extend(ids.map(|id| (id, FirstSeen::WithOtherParent)));
    }

    /// Whether a process may carry the marker. Cheaper than a scan.
    pub(super) fn may_exist(&mut self) -> bool {
        self.cgroup.is_populated() || any_marked(&self.variable, self.tag)
    }

    fn new(target: Target, marker: &str, cgroup: CgroupScope) -> Self {
        Self {
            target,
            variable: variable(marker),
            tag: RlimitTag::for_marker(marker),
            cgroup,
            since: 0,
            supervisor: Supervisor::read(),
            known: HashMap::new(),
            sessions: HashSet::new(),
            terminated: HashSet::new(),
            killed: HashSet::new(),
            denied: HashSet::new(),
            buffer: Vec::new(),
        }
    }

    /// The child was reaped. From here on its process id may be reused.
    pub(super) fn child_reaped(&mut self) {
        self.target = Target::Reaped;
    }

    /// How many processes were killed, not counting the child itself.
    pub(super) fn killed(&self) -> usize {
        self.killed.len()
    }

    /// Whether it is certain that a child that has exited left no process. Cheaper than a scan, and
    /// true nearly always.
    pub(super) fn is_empty(&mut self) -> bool {
        self.target == Target::Reaped
            && self.known.len() <= 1
            && !self.cgroup.is_populated()
            && orphans::none_started_since(self.since, self.supervisor.session)
    }

    /// Scans once for all processes of the set, sends them a signal if one is given, and reaps
    /// adopted dead ones.
    pub(super) fn scan(&mut self, signal: Option<Signal>) -> ScanResult {
        if signal == Some(Signal::KILL) {
            self.kill_orphans();
        }
        let table = match Table::read() {
            Ok(table) => table,
            Err(error) => {
                tracing::warn!(%error, "cannot read /proc; only the process group is signalled");
                self.signal_group(signal);
                return ScanResult { alive: 0, settled: true };
            }
        };
        let mut settled = !table.moved;
        // Read after the table: a process that died since then, and whose id was reused, is
        // recognised by its start time.
        let cgroup_members = self.cgroup.members();
        let members = self.members(&table, &cgroup_members, &mut settled);
        settled &= !self.reap(&table);
        self.remember(&table, &members);
        let mut alive = 0;
        for process in members {
            let strange =
                self.target == Target::Marker && process.user() != Some(self.supervisor.user);
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
            match process.signal(signal) {
                SignalResult::Sent if self.counts(signal, process.id.pid) => {
                    self.killed.insert(process.id);
                }
                SignalResult::Sent | SignalResult::Gone => {}
                SignalResult::Denied => {
                    tracing::warn!(
                        pid = process.id.pid,
                        "a descendant runs as another user and cannot be signalled"
                    );
                    self.denied.insert(process.id);
                    alive -= 1;
                }
            }
        }
        if signal == Some(Signal::KILL) {
            self.cgroup.kill();
            // A child that is killed while it is added to its group may have just started a process
            // there.
            let entering = matches!(self.target, Target::Child(_)) && self.cgroup.is_entering();
            if alive == 0 && (entering || self.cgroup.is_populated()) {
                alive = 1;
            }
        }
        ScanResult { alive, settled }
    }

    /// Whether a process that received a signal counts as killed: in a sweep always, in a process
    /// tree if it needed SIGKILL.
    fn counts(&self, signal: Signal, pid: i32) -> bool {
        self.target == Target::Marker
            || (signal == Signal::KILL && self.target != Target::Child(pid))
    }

    fn signal_group(&self, signal: Option<Signal>) {
        if let (Target::Child(pid), Some(signal)) = (self.target, signal)
            && let Some(group) = Pid::from_raw(pid)
            && let Err(error) = kill_process_group(group, signal)
        {
            tracing::debug!(%error, "the process group cannot be signalled");
        }
    }

    fn members(
        &mut self,
        table: &Table,
        cgroup_members: &HashSet<i32>,
        settled: &mut bool,
    ) -> Vec<Process> {
        let protected_pids = protected_pids(table, self.supervisor.pid);
        // A session id that was reused does not name a session of a member any more.
        self.sessions.retain(|session| {
            let leader = table.find(*session);
            leader.is_none_or(|leader| self.known.contains_key(&leader.id))
                && table.processes.iter().any(|process| process.session == *session)
        });
        let mut members: HashSet<i32> = table
            .processes
            .iter()
            .filter(|process| {
                let pid = process.id.pid;
                self.known.contains_key(&process.id)
                    || self.target == Target::Child(pid)
                    || cgroup_members.contains(&pid)
            })
            .map(|process| process.id.pid)
            .collect();
        members.extend(self.unmarked_orphans(table));
        add_descendants(
            table,
            &protected_pids,
            self.supervisor.session,
            &mut members,
            &mut self.sessions,
        );
        for process in &table.processes {
            let pid = process.id.pid;
            let old = process.id.start < self.since;
            if old
                || process.state == State::Dead
                || process.kernel
                || protected_pids.contains(&pid)
                || members.contains(&pid)
            {
                continue;
            }
            match self.is_marked(process) {
                Marked::Yes => {
                    members.insert(pid);
                }
                // An orphan that is executing another program right now would be missed.
                Marked::Unclear
                    if process.parent == self.supervisor.pid
                        && process.session != self.supervisor.session =>
                {
                    *settled = false;
                }
                _ => {}
            }
        }
        add_descendants(
            table,
            &protected_pids,
            self.supervisor.session,
            &mut members,
            &mut self.sessions,
        );
        table
            .processes
            .iter()
            .filter(|process| members.contains(&process.id.pid))
            .copied()
            .collect()
    }

    /// Orphans that belong to this child although nothing marks them: it started them before it was
    /// marked, or they took every mark off. With several children at a time it is not known whose they
    /// are, until one is left.
    fn unmarked_orphans(&self, table: &Table) -> Vec<i32> {
        let since = own_children::lock().last_tree_since();
        let Some(since) = since.filter(|_| self.target != Target::Marker) else {
            return Vec::new();
        };
        let of_first_thread = orphans::children_of_first_thread();
        let is_orphan = |process: &&Process| {
            process.parent == self.supervisor.pid
                && process.id.start >= since
                && self.target != Target::Child(process.id.pid)
                && orphans::is_adopted(process, self.supervisor.session, &of_first_thread)
        };
        table.processes.iter().filter(is_orphan).map(|process| process.id.pid).collect()
    }

    fn remember(&mut self, table: &Table, members: &[Process]) {
        self.known.retain(|id, _| table.find(id.pid).is_some_and(|process| process.id == *id));
        for member in members {
            let met = if member.parent == self.supervisor.pid {
                FirstSeen::AsOurChild
            } else {
                FirstSeen::WithOtherParent
            };
            let before = self.known.entry(member.id).or_insert(met);
            if met == FirstSeen::WithOtherParent {
                *before = met;
            }
        }
    }

    /// Reaps dead adopted children. Whether a member was among them.
    fn reap(&self, table: &Table) -> bool {
        let children_of_first_thread = orphans::children_of_first_thread();
        let mut found = false;
        for process in table
            .processes
            .iter()
            .filter(|process| process.state == State::Dead && process.parent == self.supervisor.pid)
        {
            if self.target == Target::Child(process.id.pid) {
                continue;
            }
            let member = match self.known.get(&process.id) {
                Some(FirstSeen::WithOtherParent) => true,
                Some(FirstSeen::AsOurChild) => self.target != Target::Marker,
                None => false,
            };
            if member
                || orphans::is_adopted(process, self.supervisor.session, &children_of_first_thread)
            {
                found |= member || process.id.start >= self.since;
                orphans::reap(process.id.pid);
            }
        }
        found
    }

    /// Kills the orphans that carry the marker without reading the whole table: a process that
    /// forks and exits all the time would be gone by then.
    fn kill_orphans(&mut self) {
        for pid in orphans::children_of_first_thread() {
            let Some(process) = Process::read(pid) else { continue };
            let other = self.target == Target::Child(pid)
                || process.state != State::Alive
                || process.id.start < self.since;
            if !other
                && self.is_marked(&process) == Marked::Yes
                && process.signal(Signal::KILL) == SignalResult::Sent
            {
                self.known.entry(process.id).or_insert(FirstSeen::AsOurChild);
                self.killed.insert(process.id);
            }
        }
    }

    /// Whether a process carries the marker and runs as our user.
    fn is_marked(&mut self, process: &Process) -> Marked {
        let marked = match process.environment_contains(&self.variable, &mut self.buffer) {
            Marked::Yes => Marked::Yes,
            _ if self.tag.is_set_on(process.id.pid) => Marked::Yes,
            marked => marked,
        };
        match marked {
            Marked::Yes if process.user() != Some(self.supervisor.user) => Marked::No,
            marked => marked,
        }
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

/// The processes that are never signalled: this process, its ancestors, and the first processes of
/// the system.
fn protected_pids(table: &Table, supervisor: i32) -> HashSet<i32> {
    let mut protected_pids = HashSet::from([0, 1, 2, supervisor]);
    let mut pid = supervisor;
    for _ in 0..table.processes.len() {
        let Some(process) = table.find(pid) else { break };
        pid = process.parent;
        protected_pids.insert(pid);
    }
    protected_pids
}

/// Adds the descendants of members and all members of the sessions they opened, until nothing
/// changes.
fn add_descendants(
    table: &Table,
    protected_pids: &HashSet<i32>,
    our_session: i32,
    members: &mut HashSet<i32>,
    sessions: &mut HashSet<i32>,
) {
    members.retain(|pid| !protected_pids.contains(pid));
    for _ in 0..=table.processes.len() {
        let before = (members.len(), sessions.len());
        for process in &table.processes {
            let pid = process.id.pid;
            if protected_pids.contains(&pid) || process.kernel {
                continue;
            }
            // A child is never older than the parent that started it. If it is, the parent adopted
            // it or the id of the parent was reused.
            let by_birth = members.contains(&process.parent)
                && table
                    .find(process.parent)
                    .is_some_and(|parent| parent.id.start <= process.id.start);
            if by_birth || sessions.contains(&process.session) {
                members.insert(pid);
            }
            if members.contains(&pid) && pid == process.session && pid != our_session {
                sessions.insert(pid);
            }
        }
        if (members.len(), sessions.len()) == before {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of (pid, parent, session, start).
    fn table(lines: &[(i32, i32, i32, u64)]) -> Table {
        let process = |&(pid, parent, session, start)| Process {
            id: Id { pid, start },
            parent,
            session,
            state: State::Alive,
            kernel: false,
        };
        Table { processes: lines.iter().map(process).collect(), moved: false }
    }

    /// The processes that belong to 100 if this process is 50, in session 40, under the shell 40.
    fn members_of(start: &[i32], lines: &[(i32, i32, i32, u64)]) -> Vec<i32> {
        let mut all = vec![(1, 0, 1, 0), (2, 0, 0, 0), (40, 1, 40, 1), (50, 40, 40, 5)];
        all.extend_from_slice(lines);
        let table = table(&all);
        let mut members = start.iter().copied().collect();
        add_descendants(&table, &protected_pids(&table, 50), 40, &mut members, &mut HashSet::new());
        let mut members: Vec<i32> = members.into_iter().collect();
        members.sort_unstable();
        members
    }

    #[test]
    fn descendants_belong_however_deep_and_whatever_their_number() {
        let lines =
            [(60, 101, 100, 12), (100, 50, 100, 10), (101, 100, 100, 11), (110, 50, 40, 10)];
        assert_eq!(members_of(&[100], &lines), [60, 100, 101]);
    }

    #[test]
    fn an_orphan_belongs_by_the_session_a_member_opened() {
        let lines =
            [(100, 50, 100, 10), (101, 100, 101, 11), (102, 50, 101, 12), (103, 50, 103, 12)];
        assert_eq!(members_of(&[100], &lines), [100, 101, 102]);
    }

    #[test]
    fn a_member_in_our_session_does_not_drag_it_in() {
        let lines = [(100, 40, 40, 10), (101, 100, 40, 11), (102, 40, 40, 12)];
        assert_eq!(members_of(&[100], &lines), [100, 101]);
    }

    #[test]
    fn we_and_our_forebears_are_spared_even_if_marked() {
        assert_eq!(members_of(&[1, 40, 50, 100], &[(100, 50, 40, 10), (101, 50, 40, 10)]), [100]);
    }

    #[test]
    fn a_process_older_than_its_parent_is_not_its_child() {
        assert_eq!(members_of(&[100], &[(100, 50, 100, 10), (101, 100, 101, 9)]), [100]);
    }
}
