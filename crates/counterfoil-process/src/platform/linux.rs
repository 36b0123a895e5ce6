//! Linux: `/proc`, control groups, adopted orphans, pidfds, a tag in the resource limits and the
//! kinds of file systems.

mod ancestors;
mod cgroup;
mod descendants;
mod file_system;
mod orphans;
mod output_files;
mod rlimit_tag;
mod table;

pub(crate) use ancestors::enclosing_ancestor;
pub(crate) use descendants::ProcessSet;
pub use file_system::is_without_modes;
pub(crate) use output_files::files_of;
pub(crate) use rlimit_tag::tag_this_process;

use super::ProcessLife;
use crate::Containment;
use crate::membership::{Process, State};
use std::fs;
use std::os::fd::AsFd;

/// The capacity requested for the stdout pipe of a child. This is the largest one that an
/// unprivileged process may request.
const PIPE_CAPACITY: usize = 1024 * 1024;
/// How readily the kernel kills this process if memory runs out.
const OOM_SCORE: &str = "/proc/self/oom_score_adj";
/// The name of the watchdog, at most 15 bytes.
const WATCHDOG_NAME: &std::ffi::CStr = c"agent-watchdog";

/// The name of a dashboard, at most 15 bytes.
const DASHBOARD_NAME: &std::ffi::CStr = c"run-dashboard";

/// Gives this process the name of a dashboard. Only the main thread can.
pub(crate) fn name_dashboard() {
    if let Err(error) = rustix::thread::set_name(DASHBOARD_NAME) {
        tracing::debug!(%error, "the dashboard keeps the name of its program");
    }
}

/// Makes this process the parent of orphaned descendants, so that scans find them and they can be
/// reaped.
pub(crate) fn adopt_orphans() {
    orphans::adopt();
}

/// The containment that is available.
pub(crate) fn containment() -> Containment {
    if cgroup::works() { Containment::Cgroup } else { Containment::Walk }
}

/// Enlarges the pipe of a child, where possible.
pub(crate) fn enlarge_pipe(pipe: impl AsFd) {
    if let Err(error) = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_CAPACITY) {
        tracing::debug!(%error, "the pipe of the child keeps its default capacity");
    }
}

/// Makes this process a watchdog that survives its supervisor: it has a name of its own, so `pkill` with
/// the name of the supervisor does not end it, and the kernel kills others first if memory runs out.
pub(crate) fn protect_watchdog() {
    if let Err(error) = rustix::thread::set_name(WATCHDOG_NAME) {
        tracing::debug!(%error, "the watchdog keeps the name of its program");
    }
    // Without privileges, only what the supervisor was given on top can be taken back.
    let lowered = ["-1000", "0"].iter().any(|score| fs::write(OOM_SCORE, score).is_ok());
    if !lowered {
        tracing::debug!("the watchdog may be killed like any other process if memory runs out");
    }
}

/// What is known about a process; `None` if it does not exist or is hidden.
pub fn process_life(pid: u32) -> Option<ProcessLife> {
    let process = Process::read(pid.cast_signed())?;
    let started = i64::try_from(process.id.start).unwrap_or(0);
    Some(ProcessLife { started, is_dead: process.state == State::Dead })
}

/// Identifies the time since the last start of the machine; empty if unknown.
pub fn boot_id() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    boot.trim().to_owned()
}

/// Identifies the name space in which process ids are valid; empty if unknown.
pub fn process_namespace() -> String {
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    namespace.to_string_lossy().into_owned()
}

/// The name of the program that a process runs; empty where it is not known.
pub fn program_name(pid: i32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}
