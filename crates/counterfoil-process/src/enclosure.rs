//! Whether this process was started by a supervised child, directly or through others.
//!
//! Commands that only a person may give ask this. The environment is not enough: `env -i` empties
//! it. So the traces that a supervisor leaves on its children are looked for in this process and in
//! all its ancestors, and the supervisor itself among the ancestors: it adopts orphans, so that a
//! double fork leads to it.

use super::MARKER;

/// How it is known that this process runs inside of a supervised child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enclosure {
    /// Its own environment carries the marker.
    Environment {
        /// The value of the marker.
        marker: String,
    },
    /// It or an ancestor carries the marker, the tag or the control group of a supervised child.
    Marked {
        /// The process that carries it.
        pid: i32,
    },
    /// An ancestor is a supervisor.
    Supervisor {
        /// The process id of the supervisor.
        pid: i32,
    },
}

impl std::fmt::Display for Enclosure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Environment { marker } => write!(formatter, "{MARKER}={marker} is set"),
            Self::Marked { pid } => write!(formatter, "process {pid} belongs to an attempt"),
            Self::Supervisor { pid } => {
                write!(formatter, "process {pid}, which drives a run, started it")
            }
        }
    }
}

/// Whether this process runs inside of a supervised child. A supervisor is recognised by its
/// program: that of this process, or one with this file name.
///
/// Outside of Linux, where other processes cannot be examined, only the environment is.
#[must_use]
pub fn enclosure(supervisor: &str) -> Option<Enclosure> {
    if let Some(marker) = std::env::var_os(MARKER).filter(|marker| !marker.is_empty()) {
        return Some(Enclosure::Environment { marker: marker.to_string_lossy().into_owned() });
    }
    #[cfg(target_os = "linux")]
    let enclosure = ancestors::enclosure(supervisor);
    #[cfg(not(target_os = "linux"))]
    let enclosure = {
        let _ = supervisor;
        None
    };
    enclosure
}

#[cfg(target_os = "linux")]
mod ancestors {
    use super::super::table::Process;
    use super::super::{cgroup, rlimit_tag, table};
    use super::Enclosure;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::{Path, PathBuf};

    /// More ancestors than any process has. The bound holds if ids are reused in a circle.
    const MAX_ANCESTORS: usize = 4096;

    pub(super) fn enclosure(supervisor: &str) -> Option<Enclosure> {
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
                return Some(Enclosure::Marked { pid });
            }
            if pid != this && is_program(pid, supervisor, own_program) {
                return Some(Enclosure::Supervisor { pid });
            }
            next = Process::read(process.parent);
        }
        None
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
}
