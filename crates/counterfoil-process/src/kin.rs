//! Which processes belong to a child, on Linux: those that descend from it, those in a session that
//! it or a descendant opened, those that carry its marker, those in its control group, and those
//! that were seen to belong before.

use super::brand::Brand;
use super::cgroup::Room;
use super::orphans;
use super::table::{Carries, Id, Process, Sent, State, Table, anyone_carries, variable};
use super::tree::Pass;
use rustix::process::{Pid, Signal, getpid, getuid, kill_process_group};
use std::collections::{HashMap, HashSet};

/// The kin of a child, or of a marker.
#[derive(Debug)]
pub(super) struct Kin {
    of: Of,
    /// The marker, as the environment shows it.
    variable: Vec<u8>,
    /// The marker, as a number that outlives the environment.
    brand: Brand,
    /// The control groups that belong to it.
    room: Room,
    /// Nothing older belongs.
    since: u64,
    us: Us,
    known: HashMap<Id, Met>,
    /// Sessions opened by members; a session keeps its number from being given away while anyone
    /// is in it.
    sessions: HashSet<i32>,
    /// Those that got a SIGTERM.
    asked: HashSet<Id>,
    killed: HashSet<Id>,
    denied: HashSet<Id>,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// A child of ours that is not reaped yet, so that its number is surely its own.
    Child(i32),
    /// A child of ours that is gone.
    Gone,
    /// Whoever carries the marker.
    Marker,
}

/// How a process was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Met {
    /// With another parent than us: if we are its parent later, then by adoption.
    Elsewhere,
    /// As our child: adopted before we looked, or someone else's to wait for.
    AsChild,
}

#[derive(Clone, Copy, Debug)]
struct Us {
    pid: i32,
    session: i32,
    user: u32,
}

impl Us {
    fn look() -> Self {
        let pid = getpid().as_raw_nonzero().get();
        // In a container the leader of our session may live outside, and then the session's number
        // is 0, which is no number of a process; the table says so plainly, and `getsid`
        // cannot.
        let session = Process::read(pid).map_or(0, |us| us.session);
        Self { pid, session, user: getuid().as_raw() }
    }
}

impl Kin {
    /// The kin of a child of ours that leads a session and is not reaped yet.
    pub(super) fn of_child(pid: i32, marker: &str) -> Self {
        let mut kin = Self::new(Of::Child(pid), marker, Room::none());
        if let Some(child) = Process::read(pid) {
            kin.brand.mark(&child);
            kin.room = Room::of_child(child, marker);
            kin.since = child.id.start;
            kin.known.insert(child.id, Met::AsChild);
            kin.sessions.insert(pid);
        }
        kin
    }

    /// The kin of everyone who carries a marker.
    pub(super) fn of_marker(marker: &str) -> Self {
        Self::new(Of::Marker, marker, Room::of_marker(marker))
    }

    /// Whether there may be anyone at all who carries the marker: cheaper than a look.
    pub(super) fn may_be_there(&mut self) -> bool {
        self.room.is_populated() || anyone_carries(&self.variable, self.brand)
    }

    fn new(of: Of, marker: &str, room: Room) -> Self {
        Self {
            of,
            variable: variable(marker),
            brand: Brand::of(marker),
            room,
            since: 0,
            us: Us::look(),
            known: HashMap::new(),
            sessions: HashSet::new(),
            asked: HashSet::new(),
            killed: HashSet::new(),
            denied: HashSet::new(),
            buffer: Vec::new(),
        }
    }

    /// The child is reaped; from here on its number may be another's.
    pub(super) fn child_is_gone(&mut self) {
        self.of = Of::Gone;
    }

    /// How many were killed, the child itself not counted.
    pub(super) fn killed(&self) -> usize {
        self.killed.len()
    }

    /// Whether a child that has ended surely left nobody: cheaper than a look, and what nearly
    /// always is the case.
    pub(super) fn is_nobody_left(&mut self) -> bool {
        self.of == Of::Gone
            && self.known.len() <= 1
            && !self.room.is_populated()
            && orphans::are_none_of(self.since, self.us.session)
    }

    /// Looks once for everyone, signals them if asked to, and reaps the dead that we adopted.
    pub(super) fn pass(&mut self, signal: Option<Signal>) -> Pass {
        if signal == Some(Signal::KILL) {
            self.kill_orphans();
        }
        let table = match Table::read() {
            Ok(table) => table,
            Err(error) => {
                tracing::warn!(%error, "cannot read /proc; only the process group is signalled");
                self.signal_group(signal);
                return Pass { alive: 0, settled: true };
            }
        };
        let mut settled = !table.moved;
        // Asked after the table is read: who died since, and whose number went to another, is known
        // by its start.
        let held = self.room.members();
        let members = self.members(&table, &held, &mut settled);
        settled &= !self.reap(&table);
        self.remember(&table, &members);
        let mut alive = 0;
        for process in members {
            let strange = self.of == Of::Marker && process.user() != Some(self.us.user);
            if process.state == State::Dead || strange || self.denied.contains(&process.id) {
                continue;
            }
            alive += 1;
            let Some(signal) = signal else { continue };
            // Who is on its way out was not left behind, and some programs take a second request
            // for impatience.
            let asked = signal == Signal::TERM && !self.asked.insert(process.id);
            if process.state == State::Exiting || asked {
                continue;
            }
            match process.signal(signal) {
                Sent::Yes if self.counts(signal, process.id.pid) => {
                    self.killed.insert(process.id);
                }
                Sent::Yes | Sent::Gone => {}
                Sent::Denied => {
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
            self.room.kill();
            // A child that is killed while it is put into its group may have just started someone
            // there.
            let entering = matches!(self.of, Of::Child(_)) && self.room.is_entering();
            if alive == 0 && (entering || self.room.is_populated()) {
                alive = 1;
            }
        }
        Pass { alive, settled }
    }

    /// Whether someone who got a signal counts as killed: whoever is swept, and of a tree those
    /// that did not end when asked.
    fn counts(&self, signal: Signal, pid: i32) -> bool {
        self.of == Of::Marker || (signal == Signal::KILL && self.of != Of::Child(pid))
    }

    fn signal_group(&self, signal: Option<Signal>) {
        if let (Of::Child(pid), Some(signal)) = (self.of, signal)
            && let Some(group) = Pid::from_raw(pid)
            && let Err(error) = kill_process_group(group, signal)
        {
            tracing::debug!(%error, "the process group cannot be signalled");
        }
    }

    fn members(&mut self, table: &Table, held: &HashSet<i32>, settled: &mut bool) -> Vec<Process> {
        let spared = spared(table, self.us.pid);
        // A number that went to a stranger no longer names a session of ours.
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
                    || self.of == Of::Child(pid)
                    || held.contains(&pid)
            })
            .map(|process| process.id.pid)
            .collect();
        grow(table, &spared, self.us.session, &mut members, &mut self.sessions);
        for process in &table.processes {
            let pid = process.id.pid;
            let old = process.id.start < self.since;
            if old
                || process.state == State::Dead
                || process.kernel
                || spared.contains(&pid)
                || members.contains(&pid)
            {
                continue;
            }
            match self.is_marked(process) {
                Carries::Yes => {
                    members.insert(pid);
                }
                // An orphan in the middle of becoming another program would be missed.
                Carries::Unclear
                    if process.parent == self.us.pid && process.session != self.us.session =>
                {
                    *settled = false;
                }
                _ => {}
            }
        }
        grow(table, &spared, self.us.session, &mut members, &mut self.sessions);
        table
            .processes
            .iter()
            .filter(|process| members.contains(&process.id.pid))
            .copied()
            .collect()
    }

    fn remember(&mut self, table: &Table, members: &[Process]) {
        self.known.retain(|id, _| table.find(id.pid).is_some_and(|process| process.id == *id));
        for member in members {
            let met = if member.parent == self.us.pid { Met::AsChild } else { Met::Elsewhere };
            let before = self.known.entry(member.id).or_insert(met);
            if met == Met::Elsewhere {
                *before = met;
            }
        }
    }

    /// Reaps the dead that are ours by adoption; whether a member was among them.
    fn reap(&self, table: &Table) -> bool {
        let of_first_thread = orphans::of_first_thread();
        let mut found = false;
        for process in table
            .processes
            .iter()
            .filter(|process| process.state == State::Dead && process.parent == self.us.pid)
        {
            if self.of == Of::Child(process.id.pid) {
                continue;
            }
            let member = match self.known.get(&process.id) {
                Some(Met::Elsewhere) => true,
                Some(Met::AsChild) => self.of != Of::Marker,
                None => false,
            };
            if member || orphans::is_adopted(process, self.us.session, &of_first_thread) {
                found |= member || process.id.start >= self.since;
                orphans::reap(process.id.pid);
            }
        }
        found
    }

    /// Kills the orphans that carry the marker, at once: one that forks and ends all the time would
    /// be gone before the whole table is read.
    fn kill_orphans(&mut self) {
        for pid in orphans::of_first_thread() {
            let Some(process) = Process::read(pid) else { continue };
            let other = self.of == Of::Child(pid)
                || process.state != State::Alive
                || process.id.start < self.since;
            if !other
                && self.is_marked(&process) == Carries::Yes
                && process.signal(Signal::KILL) == Sent::Yes
            {
                self.known.entry(process.id).or_insert(Met::AsChild);
                self.killed.insert(process.id);
            }
        }
    }

    /// Whether a process carries the marker and is our user's.
    fn is_marked(&mut self, process: &Process) -> Carries {
        let carries = match process.carries(&self.variable, &mut self.buffer) {
            Carries::Yes => Carries::Yes,
            _ if self.brand.is_on(process.id.pid) => Carries::Yes,
            carries => carries,
        };
        match carries {
            Carries::Yes if process.user() != Some(self.us.user) => Carries::No,
            carries => carries,
        }
    }
}

/// Those never to be touched: us, whom we descend from, and the first processes of the machine.
fn spared(table: &Table, us: i32) -> HashSet<i32> {
    let mut spared = HashSet::from([0, 1, 2, us]);
    let mut pid = us;
    for _ in 0..table.processes.len() {
        let Some(process) = table.find(pid) else { break };
        pid = process.parent;
        spared.insert(pid);
    }
    spared
}

/// Adds the descendants of members, and all in the sessions they opened, until nobody is left to
/// add.
fn grow(
    table: &Table,
    spared: &HashSet<i32>,
    our_session: i32,
    members: &mut HashSet<i32>,
    sessions: &mut HashSet<i32>,
) {
    members.retain(|pid| !spared.contains(pid));
    for _ in 0..=table.processes.len() {
        let before = (members.len(), sessions.len());
        for process in &table.processes {
            let pid = process.id.pid;
            if spared.contains(&pid) || process.kernel {
                continue;
            }
            // Nobody is older than its parent by birth; one that is was adopted by it, or its
            // number went around.
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

    /// Who belongs to 100 if we are 50, in session 40, under the shell 40.
    fn kin_of(seeds: &[i32], lines: &[(i32, i32, i32, u64)]) -> Vec<i32> {
        let mut all = vec![(1, 0, 1, 0), (2, 0, 0, 0), (40, 1, 40, 1), (50, 40, 40, 5)];
        all.extend_from_slice(lines);
        let table = table(&all);
        let mut members = seeds.iter().copied().collect();
        grow(&table, &spared(&table, 50), 40, &mut members, &mut HashSet::new());
        let mut members: Vec<i32> = members.into_iter().collect();
        members.sort_unstable();
        members
    }

    #[test]
    fn descendants_belong_however_deep_and_whatever_their_number() {
        let lines =
            [(60, 101, 100, 12), (100, 50, 100, 10), (101, 100, 100, 11), (110, 50, 40, 10)];
        assert_eq!(kin_of(&[100], &lines), [60, 100, 101]);
    }

    #[test]
    fn an_orphan_belongs_by_the_session_a_member_opened() {
        let lines =
            [(100, 50, 100, 10), (101, 100, 101, 11), (102, 50, 101, 12), (103, 50, 103, 12)];
        assert_eq!(kin_of(&[100], &lines), [100, 101, 102]);
    }

    #[test]
    fn a_member_in_our_session_does_not_drag_it_in() {
        let lines = [(100, 40, 40, 10), (101, 100, 40, 11), (102, 40, 40, 12)];
        assert_eq!(kin_of(&[100], &lines), [100, 101]);
    }

    #[test]
    fn we_and_our_forebears_are_spared_even_if_marked() {
        assert_eq!(kin_of(&[1, 40, 50, 100], &[(100, 50, 40, 10), (101, 50, 40, 10)]), [100]);
    }

    #[test]
    fn a_process_older_than_its_parent_is_not_its_child() {
        assert_eq!(kin_of(&[100], &[(100, 50, 100, 10), (101, 100, 101, 9)]), [100]);
    }
}
