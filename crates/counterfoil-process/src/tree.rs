//! Everyone who belongs to a child, killed to the last: looks and kills in rounds, since a fork can
//! race with a look.

use super::Containment;
#[cfg(not(target_os = "linux"))]
use super::group::Kin;
#[cfg(target_os = "linux")]
use super::kin::Kin;
use super::launch::SpawnError;
use process_wrap::tokio::ChildWrapper;
use rustix::process::Signal;
use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// With the longest wait between two rounds, some three seconds.
const ROUNDS: u32 = 300;
const LONGEST_WAIT: Duration = Duration::from_millis(10);
/// How often to look again where nobody was found but processes came and went meanwhile.
const DOUBTS: u32 = 3;

/// How long someone who is swept may take to end by themselves.
const ASKED: Duration = Duration::from_secs(1);

/// What one look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pass {
    /// How many were alive.
    pub(super) alive: usize,
    /// Whether the look can be relied on.
    pub(super) settled: bool,
}

/// The tree of one child. Dropped before it is cleared, it is killed on the spot.
#[derive(Debug)]
pub(super) struct Tree {
    kin: Kin,
    /// Until it is reaped.
    child: Option<i32>,
    cleared: bool,
}

impl Tree {
    /// The child is reaped; from here on its number may be another's.
    pub(super) fn child_is_gone(&mut self) {
        self.kin.child_is_gone();
        self.forget_child();
    }

    fn forget_child(&mut self) {
        if let Some(pid) = self.child.take() {
            started().remove(&pid);
        }
    }

    /// How many descendants were killed.
    pub(super) fn killed(&self) -> usize {
        self.kin.killed()
    }

    /// Asks everyone to end who was not asked yet. How many are alive.
    pub(super) fn ask_to_end(&mut self) -> usize {
        self.kin.pass(Some(Signal::TERM)).alive
    }

    /// Looks who is there, so that they are known later, and reaps the dead. How many are alive.
    pub(super) fn look(&mut self) -> usize {
        self.kin.pass(None).alive
    }

    /// Kills until nobody is left.
    pub(super) async fn clear(&mut self) {
        if self.kin.is_nobody_left() {
            self.cleared = true;
            return;
        }
        let mut rounds = Rounds::default();
        while let Some(wait) = rounds.after(self.kin.pass(Some(Signal::KILL))) {
            if wait.is_zero() {
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep(wait).await;
            }
        }
        self.cleared = true;
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if !self.cleared {
            clear_now(&mut self.kin);
        }
        self.forget_child();
    }
}

/// The children started here that are not reaped yet.
fn started() -> MutexGuard<'static, HashSet<i32>> {
    static STARTED: LazyLock<Mutex<HashSet<i32>>> = LazyLock::new(Mutex::default);
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this is a child started here that is not reaped yet.
#[cfg(target_os = "linux")]
pub(super) fn is_started_here(pid: i32) -> bool {
    started().contains(&pid)
}

/// Starts a child, and knows it as ours from its first moment, so that nobody takes it for an
/// orphan.
pub(super) fn start(
    marker: &str,
    launch: impl FnOnce() -> Result<(Box<dyn ChildWrapper>, String), SpawnError>,
) -> Result<(Box<dyn ChildWrapper>, String, Tree), SpawnError> {
    // Held over the start: whoever sees the child meanwhile waits here to learn whose it is.
    let mut started = started();
    let (child, program) = launch()?;
    // A child has its number until it is waited for, which nobody did yet.
    let pid = child.id().unwrap_or_default().cast_signed();
    started.insert(pid);
    drop(started);
    let tree = Tree { kin: Kin::of_child(pid, marker), child: Some(pid), cleared: false };
    Ok((child, program, tree))
}

/// Makes us the parent of descendants whose own parent ends, so that they stay in sight and can be
/// reaped.
pub(super) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    super::orphans::adopt();
}

/// By what means a tree is found.
pub(super) fn containment() -> Containment {
    #[cfg(target_os = "linux")]
    let containment = if super::cgroup::works() { Containment::Cgroup } else { Containment::Walk };
    #[cfg(not(target_os = "linux"))]
    let containment = Containment::ProcessGroup;
    containment
}

/// Ends everyone who carries a marker; how many.
pub(super) fn sweep(marker: &str) -> usize {
    // No child was ever started with such a marker.
    if marker.is_empty() || marker.contains('\0') {
        return 0;
    }
    let mut kin = Kin::of_marker(marker);
    if !kin.may_be_there() {
        return 0;
    }
    ask_to_end(&mut kin);
    clear_now(&mut kin);
    kin.killed()
}

/// Asks everyone to end, and waits a little for those who do: one that is killed leaves its locks
/// behind, as git does.
fn ask_to_end(kin: &mut Kin) {
    let since = Instant::now();
    while kin.pass(Some(Signal::TERM)).alive > 0 && since.elapsed() < ASKED {
        std::thread::sleep(LONGEST_WAIT);
    }
}

fn clear_now(kin: &mut Kin) {
    let mut rounds = Rounds::default();
    while let Some(wait) = rounds.after(kin.pass(Some(Signal::KILL))) {
        std::thread::sleep(wait);
    }
}

/// Counts the rounds of a clearing.
#[derive(Debug, Default)]
struct Rounds {
    round: u32,
    doubts: u32,
}

impl Rounds {
    /// How long to wait before the next round, or nothing when it is over.
    fn after(&mut self, pass: Pass) -> Option<Duration> {
        self.round += 1;
        self.doubts = if pass.alive == 0 { self.doubts + 1 } else { 0 };
        if pass.alive == 0 && (pass.settled || self.doubts > DOUBTS) {
            return None;
        }
        if self.round >= ROUNDS {
            tracing::warn!(
                alive = pass.alive,
                "processes are still there after SIGKILL; they may hang in the kernel"
            );
            return None;
        }
        // In doubt there is nothing to wait for but another look.
        let wait = if pass.alive == 0 { 0 } else { u64::from(self.round) };
        Some(Duration::from_millis(wait).min(LONGEST_WAIT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds_until_over(pass: Pass) -> u32 {
        let mut rounds = Rounds::default();
        while rounds.after(pass).is_some() {}
        rounds.round
    }

    #[test]
    fn a_clearing_always_comes_to_an_end() {
        assert_eq!(rounds_until_over(Pass { alive: 0, settled: true }), 1);
        assert_eq!(rounds_until_over(Pass { alive: 0, settled: false }), DOUBTS + 1);
        assert_eq!(rounds_until_over(Pass { alive: 1, settled: true }), ROUNDS);
    }
}
