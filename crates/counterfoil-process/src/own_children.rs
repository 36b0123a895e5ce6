//! The children that this process started through the supervisor and has not reaped yet.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// Locks the set of process ids of children that are not reaped yet.
pub(super) fn lock() -> MutexGuard<'static, HashSet<i32>> {
    static STARTED: LazyLock<Mutex<HashSet<i32>>> = LazyLock::new(Mutex::default);
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the process is a child that a supervisor here started and has not reaped yet.
#[cfg(target_os = "linux")]
pub(super) fn contains(pid: i32) -> bool {
    lock().contains(&pid)
}
