//! Processes that should have ended and could not be ended: they run as another user, or are blocked
//! in the kernel. They are remembered, so that nobody believes that nothing is left.

use rustix::process::{Pid, test_kill_process};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

static UNENDED: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Remembers processes that could not be ended.
pub(crate) fn remember(pids: impl IntoIterator<Item = i32>) {
    UNENDED.lock().unwrap_or_else(PoisonError::into_inner).extend(pids);
}

/// The processes that could not be ended by this process and still exist.
pub fn could_not_be_ended() -> Vec<i32> {
    let unended = UNENDED.lock().unwrap_or_else(PoisonError::into_inner);
    unended.iter().copied().filter(|pid| exists(*pid)).collect()
}

fn exists(pid: i32) -> bool {
    // A process of another user exists, although it cannot be signalled.
    Pid::from_raw(pid)
        .is_some_and(|pid| !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_are_gone_are_not_named() {
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let alive = std::process::id().cast_signed();
        remember([alive, gone.id().cast_signed()]);
        let named = could_not_be_ended();
        assert!(named.contains(&alive) && !named.contains(&gone.id().cast_signed()), "{named:?}");
    }
}
