//! The ancestors of this process, and the traces that a supervisor left on them.

use super::super::Ancestor;
use super::{cgroup, rlimit_tag, table};
use crate::membership::Process;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// More ancestors than any process has. The bound holds if ids are reused in a circle.
const MAX_ANCESTORS: usize = 4096;

/// The first process that shows that this one runs inside of a supervised child: this process or an
/// ancestor.
pub(crate) fn enclosing_ancestor(supervisor: &str) -> Option<Ancestor> {
    let this = rustix::process::getpid().as_raw_nonzero().get();
    let own_program = program_file(this);
    let mut buffer = Vec::new();
    let mut next = Process::read(this);
    for _ in 0..MAX_ANCESTORS {
        let process = next?;
        let pid = process.id.pid;
        if table::is_marked(pid, &mut buffer)
            || rlimit_tag::is_tagged(pid)
            || cgroup::is_in_child_group(pid)
        {
            return Some(Ancestor::Marked(pid));
        }
        if pid != this && is_program(pid, supervisor, own_program) && !is_dashboard(pid) {
            return Some(Ancestor::Supervisor(pid));
        }
        next = Process::read(process.parent);
    }
    None
}

/// Whether a process named itself a dashboard: one of these drives no run. It was refused inside of
/// attempts itself, and whatever is above it is looked at as well.
fn is_dashboard(pid: i32) -> bool {
    let name = std::fs::read(format!("/proc/{pid}/comm"));
    name.is_ok_and(|name| name.trim_ascii_end() == super::DASHBOARD_NAME.to_bytes())
}

/// Whether a process runs the program of this process, or one with this file name. It has
/// that name also after the file was replaced by another version.
fn is_program(pid: i32, name: &str, own: Option<(u64, u64)>) -> bool {
    if own.is_some() && program_file(pid) == own {
        return true;
    }
    let Ok(program) = std::fs::read_link(link(pid)) else { return false };
    let file = program.file_name().map(|file| file.to_string_lossy().into_owned());
    file.is_some_and(|file| file.strip_suffix(" (deleted)").unwrap_or(&file) == name)
}

/// The device and the number of the file that a process executes.
fn program_file(pid: i32) -> Option<(u64, u64)> {
    Path::new(&link(pid)).metadata().ok().map(|file| (file.dev(), file.ino()))
}

fn link(pid: i32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/exe"))
}
