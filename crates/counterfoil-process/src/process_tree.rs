//! Everyone who belongs to a child, killed to the last: looks and kills in rounds, since a fork can
//! race with a look.

use super::Containment;
#[cfg(target_os = "linux")]
use super::descendants::ProcessSet;
use super::launch::SpawnError;
use super::own_children;
#[cfg(not(target_os = "linux"))]
use super::process_group::ProcessSet;
use super::scan::ScanResult;
use process_wrap::tokio::ChildWrapper;
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// With the longest wait between two rounds, some three seconds.
const MAX_ROUNDS: u32 = 300;
const MAX_WAIT: Duration = Duration::from_millis(10);
/// How often to look again where nobody was found but processes came and went meanwhile.
const MAX_UNSETTLED_SCANS: u32 = 3;

/// How long someone who is swept may take to end by themselves.
const SWEEP_GRACE: Duration = Duration::from_secs(1);

/// The tree of one child. Dropped before it is cleared, it is killed on the spot.
#[derive(Debug)]
pub(super) struct ProcessTree {
    processes: ProcessSet,
    /// Until it is reaped.
    child: Option<i32>,
    cleared: bool,
}

impl ProcessTree {
    /// The child is reaped; from here on its number may be another's.
    pub(super) fn child_reaped(&mut self) {
        self.processes.child_reaped();
        self.forget_child();
    }

    fn forget_child(&mut self) {
        if let Some(pid) = self.child.take() {
            own_children::lock().remove(&pid);
        }
    }

    /// How many descendants were killed.
    pub(super) fn killed(&self) -> usize {
        self.processes.killed()
    }

    /// Asks everyone to end who was not asked yet. How many are alive.
    pub(super) fn terminate(&mut self) -> usize {
        self.processes.scan(Some(Signal::TERM)).alive
    }

    /// Looks who is there, so that they are known later, and reaps the dead. How many are alive.
    pub(super) fn scan(&mut self) -> usize {
        self.processes.scan(None).alive
    }

    /// Kills until nobody is left.
    pub(super) async fn clear(&mut self) {
        if self.processes.is_empty() {
            self.cleared = true;
            return;
        }
        let mut rounds = Rounds::default();
        while let Some(wait) = rounds.after(self.processes.scan(Some(Signal::KILL))) {
            if wait.is_zero() {
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep(wait).await;
            }
        }
        self.cleared = true;
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        if !self.cleared {
            clear_now(&mut self.processes);
        }
        self.forget_child();
    }
}

/// Starts a child, and knows it as ours from its first moment, so that nobody takes it for an
/// orphan.
pub(super) fn start(
    marker: &str,
    launch: impl FnOnce() -> Result<(Box<dyn ChildWrapper>, String), SpawnError>,
) -> Result<(Box<dyn ChildWrapper>, String, ProcessTree), SpawnError> {
    // Held over the start: whoever sees the child meanwhile waits here to learn whose it is.
    let mut started = own_children::lock();
    let (child, program) = launch()?;
    // A child has its number until it is waited for, which nobody did yet.
    let pid = child.id().unwrap_or_default().cast_signed();
    started.insert(pid);
    drop(started);
    let tree = ProcessTree {
        processes: ProcessSet::for_child(pid, marker),
        child: Some(pid),
        cleared: false,
    };
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
    let mut processes = ProcessSet::for_marker(marker);
    if !processes.may_exist() {
        return 0;
    }
    terminate(&mut processes);
    clear_now(&mut processes);
    processes.killed()
}

/// Asks everyone to end, and waits a little for those who do: one that is killed leaves its locks
/// behind, as git does.
fn terminate(processes: &mut ProcessSet) {
    let since = Instant::now();
    while processes.scan(Some(Signal::TERM)).alive > 0 && since.elapsed() < SWEEP_GRACE {
        std::thread::sleep(MAX_WAIT);
    }
}

fn clear_now(processes: &mut ProcessSet) {
    let mut rounds = Rounds::default();
    while let Some(wait) = rounds.after(processes.scan(Some(Signal::KILL))) {
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
    fn after(&mut self, scan: ScanResult) -> Option<Duration> {
        self.round += 1;
        self.doubts = if scan.alive == 0 { self.doubts + 1 } else { 0 };
        if scan.alive == 0 && (scan.settled || self.doubts > MAX_UNSETTLED_SCANS) {
            return None;
        }
        if self.round >= MAX_ROUNDS {
            tracing::warn!(
                alive = scan.alive,
                "processes are still there after SIGKILL; they may hang in the kernel"
            );
            return None;
        }
        // In doubt there is nothing to wait for but another look.
        let wait = if scan.alive == 0 { 0 } else { u64::from(self.round) };
        Some(Duration::from_millis(wait).min(MAX_WAIT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds_until_over(scan: ScanResult) -> u32 {
        let mut rounds = Rounds::default();
        while rounds.after(scan).is_some() {}
        rounds.round
    }

    #[test]
    fn a_clearing_always_comes_to_an_end() {
        assert_eq!(rounds_until_over(ScanResult { alive: 0, settled: true }), 1);
        assert_eq!(
            rounds_until_over(ScanResult { alive: 0, settled: false }),
            MAX_UNSETTLED_SCANS + 1
        );
        assert_eq!(rounds_until_over(ScanResult { alive: 1, settled: true }), MAX_ROUNDS);
    }
}
