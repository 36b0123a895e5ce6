//! What macOS uses, tested on this system: the decisions with tables that a test writes, the reading
//! and signalling with real processes.

use super::*;
use crate::membership::{Supervisor, Target};
use crate::scan::ScanResult;
use std::collections::HashMap;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// This process in the tables of the tests: 50, in the session of the shell 40.
const SUPERVISOR: Supervisor = Supervisor { pid: 50, session: 40, user: 501 };
const MARK: &str = "run/step#1";

/// A machine whose processes a test writes. SIGKILL removes a process, and so does SIGTERM unless
/// it is stubborn. What a removed process leaves behind goes to process 1.
#[derive(Default)]
struct Written {
    /// By process id: parent, session, start.
    processes: HashMap<i32, (i32, i32, u64)>,
    marked: Vec<i32>,
    stubborn: Vec<i32>,
    foreign: Vec<i32>,
    /// What a process starts just before it is killed: the child, and whether it opens a session.
    forks: HashMap<i32, (i32, bool)>,
    unreadable: bool,
    signals: Vec<(i32, Signal)>,
}

impl Written {
    fn new(lines: &[(i32, i32, i32, u64)]) -> Self {
        let mut all = vec![(1, 0, 1, 0), (40, 1, 40, 1), (50, 40, 40, 5)];
        all.extend_from_slice(lines);
        let processes =
            all.into_iter().map(|(pid, parent, session, start)| (pid, (parent, session, start)));
        Self { processes: processes.collect(), ..Self::default() }
    }

    fn marked(mut self, pids: &[i32]) -> Self {
        self.marked = pids.to_vec();
        self
    }
}

impl ProcessSource for Written {
    fn table(&mut self) -> io::Result<Table> {
        if self.unreadable {
            return Err(io::Error::other("no table"));
        }
        let process = |(pid, (parent, session, start)): (&i32, &(i32, i32, u64))| Process {
            id: Id { pid: *pid, start: *start },
            parent: *parent,
            session: *session,
            state: State::Alive,
            kernel: false,
        };
        let mut processes: Vec<Process> = self.processes.iter().map(process).collect();
        processes.sort_unstable_by_key(|process| process.id.pid);
        Ok(Table { processes, moved: false })
    }

    fn environment_contains(&self, process: &Process, wanted: &[u8]) -> Marked {
        let is_wanted = wanted == format!("{MARKER}={MARK}").as_bytes();
        if is_wanted && self.marked.contains(&process.id.pid) { Marked::Yes } else { Marked::No }
    }

    fn user(&self, process: &Process) -> Option<u32> {
        Some(if self.foreign.contains(&process.id.pid) { 0 } else { SUPERVISOR.user })
    }

    fn signal(&mut self, process: &Process, signal: Signal) -> SignalResult {
        let pid = process.id.pid;
        if self.foreign.contains(&pid) {
            return SignalResult::Denied;
        }
        self.signals.push((pid, signal));
        if let Some((child, opens)) = self.forks.remove(&pid) {
            let session = if opens { child } else { process.session };
            self.processes.insert(child, (pid, session, process.id.start + 1));
            if self.marked.contains(&pid) {
                self.marked.push(child);
            }
        }
        if signal == Signal::KILL || !self.stubborn.contains(&pid) {
            self.processes.remove(&pid);
            for (parent, _, _) in self.processes.values_mut().filter(|other| other.0 == pid) {
                *parent = 1;
            }
        }
        SignalResult::Sent
    }
}

fn child_set(source: Written) -> ProcessSet<Written> {
    ProcessSet::new(source, Target::Child(100), MARK, SUPERVISOR).with_child(100)
}

fn marker_set(source: Written) -> ProcessSet<Written> {
    ProcessSet::new(source, Target::Marker, MARK, SUPERVISOR)
}

fn pids(set: &ProcessSet<Written>) -> Vec<i32> {
    let mut pids: Vec<i32> = set.known().map(|(pid, _)| pid).collect();
    pids.sort_unstable();
    pids
}

#[test]
fn who_belongs_to_a_child() {
    type Case<'c> = (&'c str, &'c [(i32, i32, i32, u64)], &'c [i32], &'c [i32]);
    let cases: [Case<'_>; 8] = [
        ("alone", &[(100, 50, 100, 10)], &[], &[100]),
        (
            "descendants",
            &[(100, 50, 100, 10), (101, 100, 100, 11), (102, 101, 100, 11)],
            &[],
            &[100, 101, 102],
        ),
        (
            "a descendant in a session of its own",
            &[(100, 50, 100, 10), (101, 100, 101, 11)],
            &[],
            &[100, 101],
        ),
        (
            "an orphan in the child's session",
            &[(100, 50, 100, 10), (101, 1, 100, 11)],
            &[],
            &[100, 101],
        ),
        (
            "an orphan that left, by its mark",
            &[(100, 50, 100, 10), (101, 1, 101, 11)],
            &[101],
            &[100, 101],
        ),
        (
            "an orphan that left and hides its mark",
            &[(100, 50, 100, 10), (101, 1, 101, 11)],
            &[],
            &[100],
        ),
        ("an older process with the mark", &[(100, 50, 100, 10), (90, 1, 90, 9)], &[90], &[100]),
        ("ourselves and our forebears, marked", &[(100, 50, 100, 10)], &[1, 40, 50], &[100]),
    ];
    for (name, lines, marked, expected) in cases {
        let mut set = child_set(Written::new(lines).marked(marked));
        set.scan(None);
        assert_eq!(pids(&set), expected, "{name}");
    }
}

#[test]
fn who_was_seen_once_belongs_after_leaving_everything() {
    let mut set = child_set(Written::new(&[(100, 50, 100, 10), (101, 100, 101, 11)]));
    set.scan(None);
    // Its parent exits, and it hides its environment.
    set.source.processes.remove(&100);
    set.source.processes.insert(101, (1, 101, 11));
    set.child_reaped();
    assert_eq!(set.scan(Some(Signal::KILL)).alive, 1);
    assert_eq!(set.source.signals, [(101, Signal::KILL)]);
    // Another process with the same id is left alone.
    set.source.processes.insert(101, (1, 101, 12));
    assert_eq!(set.scan(Some(Signal::KILL)).alive, 0);
    assert_eq!(set.source.signals.len(), 1);
}

#[test]
fn a_child_that_is_not_reaped_yet_is_killed_until_it_is_gone() {
    let mut set = child_set(Written::new(&[(100, 50, 100, 10), (101, 100, 100, 11)]));
    assert_eq!(set.scan(Some(Signal::KILL)), ScanResult { alive: 2, settled: false });
    // It is looked for a second time before it counts as gone.
    assert_eq!(set.scan(Some(Signal::KILL)), ScanResult { alive: 0, settled: false });
    assert_eq!(set.scan(Some(Signal::KILL)), ScanResult { alive: 0, settled: true });
    assert_eq!(set.killed(), 1, "the child itself was not left behind");
}

#[test]
fn a_process_that_is_started_during_the_kill_is_found_by_the_second_look() {
    for opens in [false, true] {
        let mut source = Written::new(&[(100, 50, 100, 10), (101, 100, 100, 11)]).marked(&[101]);
        source.forks.insert(101, (102, opens));
        let mut set = child_set(source);
        while set.scan(Some(Signal::KILL)) != (ScanResult { alive: 0, settled: true }) {}
        assert!(!set.source.processes.contains_key(&102), "opens a session: {opens}");
        assert!(set.source.processes.contains_key(&50));
    }
}

#[test]
fn sigterm_is_sent_once_to_each() {
    let mut source = Written::new(&[(100, 50, 100, 10), (101, 100, 100, 11)]);
    source.stubborn = vec![100, 101];
    let mut set = child_set(source);
    for _ in 0..5 {
        assert_eq!(set.scan(Some(Signal::TERM)).alive, 2);
    }
    let mut signals = set.source.signals.clone();
    signals.sort_unstable_by_key(|(pid, _)| *pid);
    assert_eq!(signals, [(100, Signal::TERM), (101, Signal::TERM)]);
}

#[test]
fn a_sweep_finds_the_marked_and_their_descendants_and_nobody_else() {
    let lines = [
        (100, 1, 100, 10),
        (101, 100, 100, 11),
        (102, 101, 102, 12),
        (200, 1, 200, 10),
        (201, 40, 40, 10),
    ];
    let mut set = marker_set(Written::new(&lines).marked(&[100]));
    assert!(set.may_exist());
    set.scan(Some(Signal::KILL));
    assert_eq!(set.killed(), 3);
    assert!(set.source.processes.contains_key(&200) && set.source.processes.contains_key(&201));
    assert!(!marker_set(Written::new(&lines)).may_exist());
    // Another user's process with the mark is not ours to end.
    let mut source = Written::new(&lines).marked(&[100]);
    source.foreign = vec![100];
    let mut set = marker_set(source);
    assert_eq!((set.scan(Some(Signal::KILL)).alive, set.killed()), (0, 0));
}

#[test]
fn a_watchdog_ends_what_it_was_told_although_nothing_marks_it() {
    let lines = [(100, 1, 100, 10), (101, 100, 101, 11), (102, 1, 102, 12)];
    let mut set = marker_set(Written::new(&lines));
    set.add(&[(100, 10), (102, 99)]);
    set.scan(Some(Signal::KILL));
    let mut ended: Vec<i32> = set.source.signals.iter().map(|(pid, _)| *pid).collect();
    ended.sort_unstable();
    assert_eq!(ended, [100, 101], "102 is another process than the one it was told about");
}

#[test]
fn without_a_table_a_scan_ends() {
    let mut source = Written::new(&[]);
    source.unreadable = true;
    let mut set = marker_set(source);
    assert!(set.may_exist());
    assert_eq!(set.scan(Some(Signal::KILL)), ScanResult { alive: 0, settled: true });
}

/// A shell that leads a session, as supervised children do, and prints the ids of what it starts.
fn shell(script: &str, mark: &str) -> Child {
    let mut command = Command::new("setsid");
    command.args(["sh", "-c", script]).env(MARKER, mark).stdout(Stdio::piped());
    command.spawn().unwrap()
}

fn lines(child: &mut Child, count: usize) -> Vec<i32> {
    use std::io::BufRead as _;
    let output = child.stdout.take().unwrap();
    let lines = io::BufReader::new(output).lines().take(count);
    lines.map(|line| line.unwrap().trim().parse().unwrap()).collect()
}

fn exists(pid: i32) -> bool {
    Machine::read(Some(&[pid])).process(pid).is_some_and(|process| process.state == State::Alive)
}

fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is() {
        assert!(since.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn real_processes_are_read_with_parents_sessions_and_environments() {
    let mut child = shell("sleep 60 & echo $!; wait", "macos/read");
    let pid = child.id().cast_signed();
    let inner = lines(&mut child, 1)[0];
    let mut machine = Machine::default();
    let table = machine.table().unwrap();
    let this = table.find(getpid().as_raw_nonzero().get()).unwrap();
    let (shell, sleeper) = (*table.find(pid).unwrap(), *table.find(inner).unwrap());
    assert_eq!((shell.parent, sleeper.parent), (this.id.pid, pid));
    assert_eq!((shell.session, sleeper.session), (pid, pid));
    assert!(this.id.start <= shell.id.start && shell.id.start <= sleeper.id.start);
    let wanted = format!("{MARKER}=macos/read").into_bytes();
    assert_eq!(machine.environment_contains(&sleeper, &wanted), Marked::Yes);
    assert_eq!(machine.environment_contains(&sleeper, b"COUNTERFOIL_ATTEMPT=macos"), Marked::No);
    assert_eq!(machine.user(&sleeper), Some(rustix::process::getuid().as_raw()));
    let other = Process { id: Id { start: sleeper.id.start + 1, ..sleeper.id }, ..sleeper };
    assert_eq!(machine.signal(&other, Signal::KILL), SignalResult::Gone);
    assert_eq!(machine.signal(&sleeper, Signal::KILL), SignalResult::Sent);
    child.wait().unwrap();
    assert_eq!(machine.signal(&shell, Signal::KILL), SignalResult::Gone);
}

#[test]
fn a_real_daemon_that_left_the_session_is_swept_by_its_mark() {
    let mark = format!("macos/sweep{}", std::process::id());
    let mut child = shell("setsid sh -c 'echo $$; exec sleep 60' & wait $!", &mark);
    let daemon = lines(&mut child, 1)[0];
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(exists(daemon));
    let mut set = ProcessSet::for_marker(&mark);
    assert!(set.may_exist());
    wait_until("the daemon is killed", || set.scan(Some(Signal::KILL)).alive == 0);
    assert!(!exists(daemon));
    assert!(!ProcessSet::for_marker(&mark).may_exist());
}

#[test]
fn a_real_tree_is_killed_to_the_last_one() {
    let mark = format!("macos/tree{}", std::process::id());
    let script = "sleep 60 & echo $!; setsid env -i sleep 61 & echo $!; wait";
    let mut child = shell(script, &mark);
    let pid = child.id().cast_signed();
    let inner = lines(&mut child, 2);
    let mut set = ProcessSet::for_child(pid, &mark);
    wait_until("both are seen", || {
        set.scan(None);
        inner.iter().all(|pid| set.known().any(|(known, _)| known == *pid))
    });
    set.scan(Some(Signal::KILL));
    child.wait().unwrap();
    set.child_reaped();
    wait_until("the tree is gone", || set.scan(Some(Signal::KILL)).alive == 0);
    assert!(inner.iter().all(|pid| !exists(*pid)));
    assert_eq!(set.killed(), 2);
}

#[test]
fn the_life_of_a_process_is_known_by_its_start() {
    let pid = std::process::id();
    let life = process_life(pid).unwrap();
    assert!(life.started > 0 && !life.is_dead);
    assert_eq!(process_life(pid), Some(life));
    assert_eq!(process_life(u32::MAX), None);
    assert!(!program_name(pid.cast_signed()).is_empty());
}

#[test]
fn only_an_id_is_a_boot_id() {
    let id = "6A1C3E6E-4E0B-4C3A-9A64-9D5C1B0F2E11";
    assert_eq!(boot_session(&format!("{id}\n")), id);
    for output in ["", "\n", "sysctl: unknown oid 'kern.bootsessionuuid'", "0"] {
        assert_eq!(boot_session(output), "", "{output}");
    }
    assert_eq!(boot_id(), boot_id());
}

#[test]
fn no_folder_is_known_to_have_no_modes() {
    for folder in ["/", "/a/folder/that/does/not/exist"] {
        assert!(!is_without_modes(Path::new(folder)), "{folder}");
    }
}
