//! What depends on the operating system: the process table, the marks that descendants inherit, the
//! files and pipes of this process, and the kinds of file systems. Both systems have the same
//! functions; everything else is written against them.
//!
//! What macOS uses is compiled for the tests on Linux too, and tested there: the crate that it reads
//! processes with offers the same on both systems.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(not(target_os = "linux"), test))]
#[cfg_attr(target_os = "linux", allow(dead_code, unreachable_pub))]
mod macos;

#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(not(target_os = "linux"))]
pub use macos::*;

/// A process among the ancestors of this one that shows that it runs inside of a supervised child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ancestor {
    /// It carries a mark of a supervised child.
    Marked(i32),
    /// It is a supervisor.
    Supervisor(i32),
}

/// What is known about a process that may have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessLife {
    /// When it started, in a unit of the system; 0 if unknown. Ids are reused, the pair is not.
    pub started: i64,
    /// Whether it has exited and was not reaped yet.
    pub is_dead: bool,
}
