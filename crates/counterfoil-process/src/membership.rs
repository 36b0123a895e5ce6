//! Which processes belong to a child, given a table of all processes. This is the half of supervision
//! that is the same on every system: it decides, and neither reads nor signals a process.

use std::collections::{HashMap, HashSet};

/// Identifies a process: its id may be reused, the pair of id and start time may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Id {
    pub(crate) pid: i32,
    /// The start time. Its unit and origin depend on the system; it is only compared.
    pub(crate) start: u64,
}

/// A process of a child: its id, and its start time, since ids are reused.
pub(crate) type KnownProcess = (i32, u64);

/// One process of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) id: Id,
    pub(crate) parent: i32,
    pub(crate) session: i32,
    pub(crate) state: State,
    /// Whether it is a kernel thread.
    pub(crate) kernel: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Alive,
    /// It is exiting and does not execute its own code any more.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux shows it"))]
    Exiting,
    /// It has exited and was not reaped yet (a zombie).
    Dead,
}

/// Whether a process carries a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marked {
    Yes,
    No,
    /// Its environment is empty, which happens for a moment during `exec`.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux shows it"))]
    Unclear,
}

/// The result of sending a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalResult {
    Sent,
    /// The process does not exist any more.
    Gone,
    /// The process runs as another user.
    Denied,
}

/// All processes at about one point in time.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// Sorted by process id.
    pub(crate) processes: Vec<Process>,
    /// Whether a process exited while the table was read. Processes that it started may be missing
    /// then.
    pub(crate) moved: bool,
}

impl Table {
    pub(crate) fn find(&self, pid: i32) -> Option<&Process> {
        let found = self.processes.binary_search_by_key(&pid, |process| process.id.pid);
        found.ok().and_then(|index| self.processes.get(index))
    }
}

/// Whose processes are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Those of a child of this process that is not reaped yet, so that its process id is valid.
    Child(i32),
    /// Those of a child of this process that was reaped.
    Reaped,
    /// All that carry the marker.
    Marker,
}

/// How a process was first seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstSeen {
    /// With another parent than this process. If this process is its parent later, it was adopted.
    WithOtherParent,
    /// As a child of this process: adopted before the scan, or to be waited for by other code.
    AsOurChild,
}

/// The process that supervises.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Supervisor {
    pub(crate) pid: i32,
    pub(crate) session: i32,
    pub(crate) user: u32,
}

/// What is known about the processes of a child from earlier scans.
#[derive(Debug)]
pub(crate) struct Membership {
    pub(crate) target: Target,
    /// Processes that started earlier do not belong to the child.
    pub(crate) since: u64,
    pub(crate) supervisor: Supervisor,
    pub(crate) known: HashMap<Id, FirstSeen>,
    /// Sessions opened by members. The id of a session is not reused while a process is in it.
    sessions: HashSet<i32>,
}

/// The members of a table, and whether they are certain.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Members {
    pub(crate) processes: Vec<Process>,
    /// Whether it is known of every process whether it carries the marker.
    pub(crate) settled: bool,
}

impl Membership {
    pub(crate) fn new(target: Target, supervisor: Supervisor) -> Self {
        Self { target, since: 0, supervisor, known: HashMap::new(), sessions: HashSet::new() }
    }

    /// The child was seen for the first time: it leads a session.
    pub(crate) fn begin(&mut self, child: Id) {
        self.since = child.start;
        self.known.insert(child, FirstSeen::AsOurChild);
        self.sessions.insert(child.pid);
    }

    /// The processes that are known to belong to the child.
    pub(crate) fn known(&self) -> impl Iterator<Item = KnownProcess> {
        self.known.keys().map(|id| (id.pid, id.start))
    }

    /// Adds processes that belong to the child.
    pub(crate) fn add(&mut self, known: &[KnownProcess]) {
        let ids = known.iter().map(|(pid, start)| Id { pid: *pid, start: *start });
        self.known.extend(ids.map(|id| (id, FirstSeen::WithOtherParent)));
    }

    /// The processes that belong to the child: those that are known or among `seeds`, those that
    /// carry the marker, and from all of them the descendants and the members of the sessions that
    /// they opened.
    pub(crate) fn members(
        &mut self,
        table: &Table,
        seeds: &HashSet<i32>,
        mut is_marked: impl FnMut(&Process) -> Marked,
    ) -> Members {
        let mut settled = true;
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
                    || seeds.contains(&pid)
            })
            .map(|process| process.id.pid)
            .collect();
        let our_session = self.supervisor.session;
        add_descendants(table, &protected_pids, our_session, &mut members, &mut self.sessions);
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
            match is_marked(process) {
                Marked::Yes => {
                    members.insert(pid);
                }
                // An orphan that is executing another program right now would be missed.
                Marked::Unclear
                    if process.parent == self.supervisor.pid && process.session != our_session =>
                {
                    settled = false;
                }
                _ => {}
            }
        }
        add_descendants(table, &protected_pids, our_session, &mut members, &mut self.sessions);
        let belongs = |process: &&Process| members.contains(&process.id.pid);
        let processes = table.processes.iter().filter(belongs).copied().collect();
        Members { processes, settled }
    }

    /// Remembers the members, and forgets the processes that are gone. Whether any came or went.
    pub(crate) fn remember(&mut self, table: &Table, members: &[Process]) -> bool {
        let before = self.known.len();
        self.known.retain(|id, _| table.find(id.pid).is_some_and(|process| process.id == *id));
        let mut changed = self.known.len() != before;
        for member in members {
            let met = if member.parent == self.supervisor.pid {
                FirstSeen::AsOurChild
            } else {
                FirstSeen::WithOtherParent
            };
            let first = self.known.entry(member.id).or_insert_with(|| {
                changed = true;
                met
            });
            if met == FirstSeen::WithOtherParent {
                *first = met;
            }
        }
        changed
    }
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
