//! The clock of a run. Its times are those of the wall clock, but never go back, and it knows how much
//! of the time that went by was really spent.
//!
//! The time that a run takes is measured by the monotonic clock of the system, which nobody can set
//! and which stands still while the machine sleeps (on Linux `CLOCK_MONOTONIC`, on macOS
//! `CLOCK_UPTIME_RAW`): an agent does nothing meanwhile, and its own timeout stands still too.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// By how many milliseconds the wall clock must be ahead before the clock of a run follows it.
/// Below that, the clock of a run goes by the monotonic clock alone.
const TOLERANCE_MS: i64 = 1000;

/// Where a clock reads the time.
pub(crate) trait TimeSource: Send {
    /// The wall clock, in milliseconds since 1970.
    fn wall(&self) -> i64;
    /// The monotonic clock, since any fixed moment.
    fn monotonic(&self) -> Duration;
}

/// The clocks of the system.
#[derive(Debug)]
struct System {
    origin: Instant,
}

impl TimeSource for System {
    fn wall(&self) -> i64 {
        wall()
    }

    fn monotonic(&self) -> Duration {
        self.origin.elapsed()
    }
}

/// A monotonic clock in milliseconds since 1970.
pub(crate) struct Clock {
    source: Box<dyn TimeSource>,
    last: i64,
    read: Duration,
    skipped: u64,
}

impl Clock {
    /// Creates a clock that starts at this time or at the wall clock, whichever is later.
    pub(crate) fn from(last: i64) -> Self {
        Self::with_source(last, Box::new(System { origin: Instant::now() }))
    }

    fn with_source(last: i64, source: Box<dyn TimeSource>) -> Self {
        Self { last: last.max(source.wall()), read: source.monotonic(), skipped: 0, source }
    }

    /// The current time. If the wall clock was set back, time continues from its last value. If it
    /// was set forward, or the machine slept, time follows it, and what it went ahead is added to
    /// the skipped time.
    pub(crate) fn now(&mut self) -> i64 {
        let read = self.source.monotonic();
        // Only whole milliseconds are taken, so that no remainder is lost.
        let passed = u64::try_from(read.saturating_sub(self.read).as_millis()).unwrap_or(0);
        self.read += Duration::from_millis(passed);
        self.last = self.last.saturating_add(i64::try_from(passed).unwrap_or(i64::MAX));
        let ahead = self.source.wall().saturating_sub(self.last);
        if ahead > TOLERANCE_MS {
            self.last = self.last.saturating_add(ahead);
            self.skipped = self.skipped.saturating_add(ahead.unsigned_abs());
        }
        self.last
    }

    /// The time in milliseconds by which the clock went ahead of the time that was really spent, since
    /// the last call.
    pub(crate) fn take_skipped(&mut self) -> Option<u64> {
        Some(std::mem::take(&mut self.skipped)).filter(|skipped| *skipped > 0)
    }
}

/// The wall clock, in milliseconds since 1970.
pub(crate) fn wall() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
