//! macOS: the process table as `sysinfo` reads it. It has parents, sessions, start times to the second
//! and environments (`KERN_PROCARGS2`), except those that the system hides.
//!
//! Unlike on Linux, nobody adopts orphans, no mark but the environment is inherited, and a process id
//! cannot be pinned: between the look at a process and the signal, its id may be given to another
//! process that started in the same second.

mod process_set;
#[cfg(test)]
mod tests;

pub(crate) use process_set::ProcessSet;

use super::{Ancestor, ProcessLife};
use crate::membership::{Id, Marked, Process, SignalResult, State, Table};
use crate::{Containment, MARKER};
use process_set::ProcessSource;
use rustix::fs::{FileType, fstat};
use rustix::process::{Pid, Signal, getpid, kill_process};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use sysinfo::{ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System, UpdateKind};

/// More ancestors than any process has. The bound holds if ids are reused in a circle.
const MAX_ANCESTORS: usize = 4096;
/// The command that reads a setting of the kernel, where the system has it.
const SYSCTL: &str = "/usr/sbin/sysctl";

/// The processes of this machine, at the last time they were read.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    /// None before the first look, and if the system cannot be asked.
    system: Option<System>,
}

impl Machine {
    /// Reads all processes, or those with these ids.
    fn read(pids: Option<&[i32]>) -> Self {
        let kind = ProcessRefreshKind::nothing()
            .without_tasks()
            .with_user(UpdateKind::Always)
            .with_exe(UpdateKind::Always)
            .with_cmd(UpdateKind::Always)
            .with_environ(UpdateKind::Always);
        let pids = pids.map(|pids| {
            let unsigned = pids.iter().filter_map(|pid| u32::try_from(*pid).ok());
            unsigned.map(sysinfo::Pid::from_u32).collect::<Vec<_>>()
        });
        let which = pids.as_deref().map_or(ProcessesToUpdate::All, ProcessesToUpdate::Some);
        let mut system = System::new()
            .inspect_err(|error| tracing::warn!(%error, "the processes cannot be read"))
            .ok();
        if let Some(system) = &mut system {
            system.refresh_processes_specifics(which, true, kind);
        }
        Self { system }
    }

    fn entry(&self, pid: i32) -> Option<&sysinfo::Process> {
        self.system.as_ref()?.process(sysinfo::Pid::from_u32(u32::try_from(pid).ok()?))
    }

    fn process(&self, pid: i32) -> Option<Process> {
        self.entry(pid).map(process)
    }

    fn carries(&self, pid: i32, is_wanted: impl Fn(&[u8]) -> bool) -> bool {
        let environment = self.entry(pid).map(sysinfo::Process::environ).unwrap_or_default();
        environment.iter().any(|variable| is_wanted(variable.as_bytes()))
    }
}

impl ProcessSource for Machine {
    fn table(&mut self) -> io::Result<Table> {
        *self = Self::read(None);
        let all = self.system.iter().flat_map(|system| system.processes().values());
        let mut processes: Vec<Process> = all.map(process).collect();
        if processes.is_empty() {
            return Err(io::Error::other("the system shows no process"));
        }
        processes.sort_unstable_by_key(|process| process.id.pid);
        Ok(Table { processes, moved: false })
    }

    /// An environment that is hidden looks like an empty one, so nothing is in doubt.
    fn environment_contains(&self, process: &Process, wanted: &[u8]) -> Marked {
        let carries = self.carries(process.id.pid, |variable| variable == wanted);
        if carries { Marked::Yes } else { Marked::No }
    }

    fn user(&self, process: &Process) -> Option<u32> {
        self.entry(process.id.pid).and_then(sysinfo::Process::user_id).map(|user| **user)
    }

    fn signal(&mut self, process: &Process, signal: Signal) -> SignalResult {
        let Some(pid) = Pid::from_raw(process.id.pid) else { return SignalResult::Gone };
        let now = Self::read(Some(&[process.id.pid])).process(process.id.pid);
        if now.is_none_or(|now| now.id != process.id) {
            return SignalResult::Gone;
        }
        match kill_process(pid, signal) {
            Ok(()) => SignalResult::Sent,
            Err(rustix::io::Errno::PERM) => SignalResult::Denied,
            Err(_) => SignalResult::Gone,
        }
    }
}

fn process(entry: &sysinfo::Process) -> Process {
    let pid = |pid: sysinfo::Pid| pid.as_u32().cast_signed();
    let state = match entry.status() {
        ProcessStatus::Zombie | ProcessStatus::Dead => State::Dead,
        _ => State::Alive,
    };
    Process {
        id: Id { pid: pid(entry.pid()), start: entry.start_time() },
        parent: entry.parent().map_or(0, pid),
        session: entry.session_id().map_or(0, pid),
        state,
        kernel: false,
    }
}

/// Orphans go to the first process of the system here.
pub(crate) fn adopt_orphans() {}

/// The containment that is available.
pub(crate) fn containment() -> Containment {
    Containment::Table
}

/// The capacity of a pipe cannot be chosen here.
pub(crate) fn enlarge_pipe(_pipe: impl AsFd) {}

/// Neither the name of a process nor its fate without memory can be chosen here.
pub(crate) fn protect_watchdog() {}

/// There is no mark that children inherit whatever they do.
pub(crate) fn tag_this_process(_marker: &str) {}

/// The first process that shows that this one runs inside of a supervised child: this process or an
/// ancestor.
pub(crate) fn enclosing_ancestor(supervisor: &str) -> Option<Ancestor> {
    let machine = Machine::read(None);
    let this = getpid().as_raw_nonzero().get();
    let own = machine.entry(this).and_then(sysinfo::Process::exe);
    let is_marker = |variable: &[u8]| {
        let value =
            variable.strip_prefix(MARKER.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        value.is_some_and(|value| !value.is_empty())
    };
    let mut pid = this;
    for _ in 0..MAX_ANCESTORS {
        let entry = machine.entry(pid)?;
        if machine.carries(pid, is_marker) {
            return Some(Ancestor::Marked(pid));
        }
        let exe = entry.exe();
        let has_name = exe.and_then(|exe| exe.file_name()) == Some(OsStr::new(supervisor));
        // A dashboard drives no run, and was refused inside of attempts itself.
        let is_dashboard = entry.cmd().get(1).is_some_and(|word| word == "ui" || word == "serve");
        if pid != this && (has_name || (own.is_some() && exe == own)) && !is_dashboard {
            return Some(Ancestor::Supervisor(pid));
        }
        pid = entry.parent()?.as_u32().cast_signed();
    }
    None
}

/// The command line says what a dashboard is.
pub(crate) fn name_dashboard() {}

/// The regular file that output goes to. Pipes are not followed here.
pub(crate) fn files_of(output: BorrowedFd<'_>) -> Vec<PathBuf> {
    let kind = fstat(output).map(|stat| FileType::from_raw_mode(stat.st_mode));
    if kind != Ok(FileType::RegularFile) {
        return Vec::new();
    }
    path_of(output).into_iter().collect()
}

#[cfg(target_vendor = "apple")]
fn path_of(file: BorrowedFd<'_>) -> Option<PathBuf> {
    let path = rustix::fs::getpath(file).ok()?;
    Some(PathBuf::from(OsStr::from_bytes(path.as_bytes())))
}

#[cfg(not(target_vendor = "apple"))]
fn path_of(_: BorrowedFd<'_>) -> Option<PathBuf> {
    None
}

/// The kind of a file system is not looked at here, so none is known to have no executable bits.
pub fn is_without_modes(_folder: &Path) -> bool {
    false
}

/// What is known about a process; `None` if it does not exist or is hidden.
pub fn process_life(pid: u32) -> Option<ProcessLife> {
    let process = Machine::read(Some(&[pid.cast_signed()])).process(pid.cast_signed())?;
    let started = i64::try_from(process.id.start).unwrap_or(0);
    Some(ProcessLife { started, is_dead: process.state == State::Dead })
}

/// Identifies the time since the last start of the machine; empty if unknown.
pub fn boot_id() -> String {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        let mut command = std::process::Command::new(SYSCTL);
        let output = command.args(["-n", "kern.bootsessionuuid"]).env_clear().output();
        let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
        boot_session(&String::from_utf8_lossy(&text.unwrap_or_default()))
    })
    .clone()
}

/// The id in the output of the command; empty if it is none.
fn boot_session(output: &str) -> String {
    let id = output.trim();
    let is_id = id.len() >= 32 && id.chars().all(|char| char.is_ascii_hexdigit() || char == '-');
    if is_id { id.to_owned() } else { String::new() }
}

/// Process ids are valid on the whole machine.
pub fn process_namespace() -> String {
    "machine".to_owned()
}

/// The name of the program that a process runs; empty where it is not known.
pub fn program_name(pid: i32) -> String {
    let machine = Machine::read(Some(&[pid]));
    let name = machine.entry(pid).map(|entry| entry.name().to_string_lossy().into_owned());
    name.unwrap_or_default()
}
