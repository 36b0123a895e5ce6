//! The process table in `/proc`, and the safe way to signal one of its entries.

use crate::MARKER;
use crate::membership::{Id, Marked, Process, SignalResult, State, Table};
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs::{File, read_dir};
use std::io::{self, Read};

/// An upper bound for the size of an environment: the kernel allows at most 6 MiB.
const MAX_ENVIRONMENT: usize = 8 << 20;
/// `PF_KTHREAD`: a kernel thread, which has no environment.
const KERNEL_THREAD: u64 = 0x0020_0000;
/// `PF_EXITING`: the process is exiting.
const EXITING: u64 = 0x0000_0004;
/// The buffer grows by this size, which is enough for most environments.
const ENVIRONMENT_CHUNK: usize = 64 << 10;

impl Table {
    pub(super) fn read() -> io::Result<Self> {
        let mut table = Self::default();
        for entry in read_dir("/proc")? {
            let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            match Process::read(pid) {
                Some(process) => table.processes.push(process),
                None => table.moved = true,
            }
        }
        table.processes.sort_unstable_by_key(|process| process.id.pid);
        Ok(table)
    }
}

impl Process {
    pub(super) fn read(pid: i32) -> Option<Self> {
        // The line has about fifty numbers and a name of at most 64 bytes, so one read returns all
        // of it.
        let mut line = [0; 2048];
        let length = File::open(format!("/proc/{pid}/stat"))
            .and_then(|mut file| file.read(&mut line))
            .ok()?;
        Self::parse(pid, line.get(..length)?)
    }

    fn parse(pid: i32, line: &[u8]) -> Option<Self> {
        // The name is in parentheses and may itself contain some. The numbers start after the last
        // one.
        let name_end = line.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(line.get(name_end + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().take(20).collect();
        // Counted as in proc(5), where the state is field 3.
        let field = |number: usize| fields.get(number - 3).copied();
        let flags: u64 = field(9)?.parse().ok()?;
        let threads: u64 = field(20)?.parse().ok()?;
        // Both describe the main thread. The process lives on while it has other threads.
        let state = match field(3)? {
            _ if threads > 1 => State::Alive,
            "Z" | "X" | "x" => State::Dead,
            _ if flags & EXITING != 0 => State::Exiting,
            _ => State::Alive,
        };
        Some(Self {
            id: Id { pid, start: field(22)?.parse().ok()? },
            parent: field(4)?.parse().ok()?,
            session: field(6)?.parse().ok()?,
            state,
            kernel: flags & KERNEL_THREAD != 0,
        })
    }

    /// Whether its environment contains `wanted`, a complete `NAME=value`.
    pub(super) fn environment_contains(&self, wanted: &[u8], buffer: &mut Vec<u8>) -> Marked {
        environment_contains(self.id.pid, wanted, buffer)
    }

    /// Its current descendants, at most this many. Empty where the kernel does not provide the
    /// list.
    pub(super) fn descendants(&self, most: usize) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        let mut parent = Some(self.id.pid);
        for at in 0..most {
            let Some(pid) = parent else { break };
            let children = children(pid).unwrap_or_default().into_iter().filter_map(Self::read);
            found.extend(
                children.filter(|child| child.parent == pid).take(most.saturating_sub(found.len())),
            );
            parent = found.get(at).map(|next| next.id.pid);
        }
        found
    }

    /// The id of the user it runs as.
    pub(super) fn user(&self) -> Option<u32> {
        let status = std::fs::read(format!("/proc/{}/status", self.id.pid)).ok()?;
        let line =
            status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Uid:"))?;
        std::str::from_utf8(line).ok()?.split_ascii_whitespace().next()?.parse().ok()
    }

    /// Sends a signal to exactly this process: the pidfd pins the process id, and the start time
    /// must match.
    pub(super) fn signal(&self, signal: Signal) -> SignalResult {
        let Some(pid) = rustix::process::Pid::from_raw(self.id.pid) else {
            return SignalResult::Gone;
        };
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => Some(handle),
            Err(rustix::io::Errno::SRCH) => return SignalResult::Gone,
            // Kernels before 5.3 have no pidfd, or no file descriptor is left: the check below must
            // do.
            Err(_) => None,
        };
        if Self::read(self.id.pid).is_none_or(|now| now.id != self.id) {
            return SignalResult::Gone;
        }
        let sent = match &handle {
            Some(handle) => pidfd_send_signal(handle, signal),
            None => rustix::process::kill_process(pid, signal),
        };
        match sent {
            Ok(()) => SignalResult::Sent,
            Err(rustix::io::Errno::PERM) => SignalResult::Denied,
            Err(_) => SignalResult::Gone,
        }
    }
}

/// The children of all threads of a process. An error where the kernel does not provide the list.
pub(super) fn children(pid: i32) -> io::Result<Vec<i32>> {
    let mut children = Vec::new();
    for thread in read_dir(format!("/proc/{pid}/task"))? {
        let thread = thread?.path();
        match std::fs::read_to_string(thread.join("children")) {
            Ok(list) => children.extend(list.split_ascii_whitespace().flat_map(str::parse::<i32>)),
            // A thread that has ended passed its children to another one.
            Err(_) if !thread.exists() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(children)
}

pub(super) fn environment_contains(pid: i32, wanted: &[u8], buffer: &mut Vec<u8>) -> Marked {
    match read_environment(pid, buffer) {
        Ok([]) => Marked::Unclear,
        Ok(all) if all.split(|byte| *byte == 0).any(|variable| variable == wanted) => Marked::Yes,
        _ => Marked::No,
    }
}

/// Whether the environment of a process carries a marker, whatever its value.
pub(super) fn is_marked(pid: i32, buffer: &mut Vec<u8>) -> bool {
    let is_marker = |variable: &[u8]| {
        let value =
            variable.strip_prefix(MARKER.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        value.is_some_and(|value| !value.is_empty())
    };
    read_environment(pid, buffer).is_ok_and(|all| all.split(|byte| *byte == 0).any(is_marker))
}

fn read_environment(pid: i32, buffer: &mut Vec<u8>) -> io::Result<&[u8]> {
    let mut file = File::open(format!("/proc/{pid}/environ"))?;
    let mut filled = 0;
    while filled < MAX_ENVIRONMENT {
        if buffer.len() == filled {
            buffer.resize(filled + ENVIRONMENT_CHUNK, 0);
        }
        let room = buffer.get_mut(filled..).unwrap_or_default();
        let read = file.read(room)?;
        filled += read;
        // The kernel fills the buffer as long as there is data.
        if read < room.len() {
            break;
        }
    }
    Ok(buffer.get(..filled).unwrap_or_default())
}

/// The ids of all processes. An error if `/proc` cannot be read.
pub(super) fn process_ids() -> io::Result<impl Iterator<Item = i32>> {
    Ok(read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()))
}

/// The marker variable as it appears in an environment.
pub(super) fn variable(marker: &str) -> Vec<u8> {
    format!("{MARKER}={marker}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_brackets_and_spaces() {
        let line = b"42 (a) Z (b) S 7 42 40 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        let process = Process::parse(42, line).unwrap();
        assert_eq!(process.id, Id { pid: 42, start: 12345 });
        assert_eq!(
            (process.parent, process.session, process.state, process.kernel),
            (7, 40, State::Alive, false)
        );
    }

    #[test]
    fn a_process_lives_while_it_has_another_thread() {
        let state = |letter: &str, flags: u64, threads: u64| {
            let line = format!(
                "42 (x) {letter} 7 42 40 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 {threads} 0 12345 0 0"
            );
            Process::parse(42, line.as_bytes()).unwrap().state
        };
        assert_eq!((state("Z", EXITING, 1), state("Z", EXITING, 2)), (State::Dead, State::Alive));
        assert_eq!(
            (state("R", EXITING, 1), state("R", EXITING, 2)),
            (State::Exiting, State::Alive)
        );
        assert_eq!(state("S", 0, 1), State::Alive);
    }

    #[test]
    fn descendants_are_told_with_their_own_and_no_more_than_asked_for() {
        let mut child = std::process::Command::new("sh");
        child
            .args(["-c", "sh -c 'sh -c \"read end; :\"; :'; :"])
            .stdin(std::process::Stdio::piped());
        let mut child = child.spawn().unwrap();
        let process = Process::read(child.id().cast_signed()).unwrap();
        while process.descendants(8).len() < 2 {
            std::thread::yield_now();
        }
        let found: Vec<(i32, i32)> =
            process.descendants(8).iter().map(|process| (process.id.pid, process.parent)).collect();
        let [(son, by), (_, by_son)] = *found else { panic!("{found:?}") };
        assert_eq!((by, by_son), (process.id.pid, son));
        assert_eq!(process.descendants(1).len(), 1);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn half_a_line_is_no_process() {
        for line in [
            "",
            "42",
            "42 (x",
            "42 (x)",
            "42 (x) S 7 42 40",
            "42 (x) S a b c d e f g h i j k l m n o p q r s t",
        ] {
            assert_eq!(Process::parse(42, line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn another_start_is_another_process() {
        let me = Process::read(rustix::process::getpid().as_raw_nonzero().get()).unwrap();
        let other = Process { id: Id { start: me.id.start + 1, ..me.id }, ..me };
        assert_eq!(other.signal(Signal::KILL), SignalResult::Gone);
    }
}
