//! All processes that belong to a child, killed to the last one. Scans and kills in rounds, since a
//! fork can race with a scan.

use super::launch::SpawnError;
use super::membership::KnownProcess;
use super::own_children;
use super::platform::ProcessSet;
use super::scan::ScanResult;
use super::unended;
use super::watchdog::WatchedChild;
use process_wrap::tokio::ChildWrapper;
use rustix::process::Signal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The largest number of rounds: about three seconds with the longest wait between two of them.
const MAX_ROUNDS: u32 = 300;
const MAX_WAIT: Duration = Duration::from_millis(10);
/// How often to scan again when no process was found but some came and went during the scan.
const MAX_UNSETTLED_SCANS: u32 = 3;

/// The most rounds in which a tree is suspended.
const MAX_SUSPEND_ROUNDS: u32 = 50;

/// How long a swept process may take to exit after SIGTERM.
const SWEEP_GRACE: Duration = Duration::from_secs(1);

/// The process tree of one child. Dropping it before it is cleared kills it synchronously.
#[derive(Debug)]
pub(super) struct ProcessTree {
    processes: ProcessSet,
    /// The process id of the child until it is reaped.
    child: Option<i32>,
    cleared: bool,
    /// After the processes: the child is watched until they are gone.
    watched: WatchedChild,
}

impl ProcessTree {
    /// The child was reaped. From here on its process id may be reused.
    pub(super) fn child_reaped(&mut self) {
        self.processes.child_reaped();
        self.forget_child();
    }

    fn forget_child(&mut self) {
        if let Some(pid) = self.child.take() {
            own_children::lock().reaped(pid);
        }
    }

    /// How many descendants were killed.
    pub(super) fn killed(&self) -> usize {
        self.processes.killed()
    }

    /// Sends SIGTERM to each process that has not received it yet. How many are alive.
    pub(super) fn terminate(&mut self) -> usize {
        self.scan_with(Some(Signal::TERM))
    }

    /// Suspends all processes. In rounds, since a process can start another one before the signal
    /// reaches it.
    pub(super) fn suspend(&mut self) {
        let mut before = None;
        for _ in 0..MAX_SUSPEND_ROUNDS {
            let ScanResult { alive, settled } = self.processes.scan(Some(Signal::STOP));
            self.watched.knows(self.processes.known());
            if settled && before == Some(alive) {
                return;
            }
            before = Some(alive);
        }
        tracing::warn!(
            "processes of an agent were still starting others while they were suspended"
        );
    }

    /// Lets suspended processes go on.
    pub(super) fn resume(&mut self) {
        self.scan_with(Some(Signal::CONT));
    }

    /// Sends SIGTERM and waits until no process is left, or until the grace period is over. Suspended
    /// processes go on, to receive it.
    pub(super) fn terminate_now(&mut self, grace: Duration) {
        if !self.cleared {
            self.terminate();
            self.resume();
            terminate(&mut self.processes, grace);
        }
    }

    /// Records the processes of the tree and reaps the dead. How many are alive.
    pub(super) fn scan(&mut self) -> usize {
        self.scan_with(None)
    }

    fn scan_with(&mut self, signal: Option<Signal>) -> usize {
        let alive = self.processes.scan(signal).alive;
        self.watched.knows(self.processes.known());
        alive
    }

    /// Kills until no process is left.
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
        rounds.remember_left(&self.processes);
        self.cleared = true;
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        if !self.cleared {
            clear_now(&mut self.processes);
        }
        self.forget_child();
        own_children::lock().cleared();
    }
}

/// Held while a child is started and tagged: what it starts before it is tagged is told from the
/// processes of other children, which are tagged.
static STARTING: Mutex<()> = Mutex::new(());

/// Starts a child and registers it at once, so that it is not taken for an orphan.
pub(super) fn start(
    marker: &str,
    launch: impl FnOnce() -> Result<(Box<dyn ChildWrapper>, String), SpawnError>,
) -> Result<(Box<dyn ChildWrapper>, String, ProcessTree), SpawnError> {
    // Before the child exists: if this process is killed meanwhile, nothing is left unwatched.
    let watched = WatchedChild::begin(marker);
    let starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    // Locked during the start: a scan that sees the child waits here to learn who started it.
    let mut started = own_children::lock();
    let (child, program) = launch()?;
    // A child keeps its process id until it is waited for, which has not happened yet.
    let pid = child.id().unwrap_or_default().cast_signed();
    started.started(pid);
    drop(started);
    let processes = ProcessSet::for_child(pid, marker);
    drop(starting);
    watched.knows(processes.known());
    let tree = ProcessTree { processes, child: Some(pid), cleared: false, watched };
    Ok((child, program, tree))
}

/// Ends all processes that carry a marker. How many were ended.
pub(super) fn sweep(marker: &str) -> usize {
    // No child is started with such a marker.
    if marker.is_empty() || marker.contains('\0') {
        return 0;
    }
    let mut processes = ProcessSet::for_marker(marker);
    if !processes.may_exist() {
        return 0;
    }
    terminate(&mut processes, SWEEP_GRACE);
    clear_now(&mut processes);
    processes.killed()
}

/// Ends what is left of a child whose supervisor is gone: the processes that it knew, their
/// descendants, and those that carry the marker. How many were ended.
pub(super) fn end_left(marker: &str, known: &[KnownProcess]) -> usize {
    let mut processes = ProcessSet::for_marker(marker);
    processes.add(known);
    terminate(&mut processes, SWEEP_GRACE);
    clear_now(&mut processes);
    processes.killed()
}

/// Sends SIGTERM and waits for the processes to exit: a killed process, such as git, leaves its
/// lock files behind.
fn terminate(processes: &mut ProcessSet, grace: Duration) {
    let since = Instant::now();
    while processes.scan(Some(Signal::TERM)).alive > 0 && since.elapsed() < grace {
        std::thread::sleep(MAX_WAIT);
    }
}

fn clear_now(processes: &mut ProcessSet) {
    let mut rounds = Rounds::default();
    while let Some(wait) = rounds.after(processes.scan(Some(Signal::KILL))) {
        std::thread::sleep(wait);
    }
    rounds.remember_left(processes);
}

/// Counts the rounds of killing a tree.
#[derive(Debug, Default)]
struct Rounds {
    round: u32,
    doubts: u32,
}

impl Rounds {
    /// Remembers what is left after the last round.
    fn remember_left(&self, processes: &ProcessSet) {
        if self.round >= MAX_ROUNDS {
            unended::remember(processes.known().map(|(pid, _)| pid));
        }
    }

    /// How long to wait before the next round. `None` when no further round is needed.
    fn after(&mut self, scan: ScanResult) -> Option<Duration> {
        self.round += 1;
        self.doubts = if scan.alive == 0 { self.doubts + 1 } else { 0 };
        if scan.alive == 0 && (scan.settled || self.doubts > MAX_UNSETTLED_SCANS) {
            return None;
        }
        if self.round >= MAX_ROUNDS {
            tracing::warn!(
                alive = scan.alive,
                "processes are still alive after SIGKILL; they may be blocked in the kernel"
            );
            return None;
        }
        // After an unsettled scan, scan again at once.
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
