//! A clock that never goes back, even if the wall clock does.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A monotonic clock in milliseconds since 1970.
#[derive(Debug)]
pub(crate) struct Clock {
    last: i64,
    read: Instant,
}

impl Clock {
    /// Creates a clock that starts at this time or at the wall clock, whichever is later.
    pub(crate) fn from(last: i64) -> Self {
        Self { last: last.max(wall()), read: Instant::now() }
    }

    /// The current time. If the wall clock was set back, time continues from its last value. If the
    /// machine was suspended, it catches up.
    pub(crate) fn now(&mut self) -> i64 {
        let read = Instant::now();
        let passed = i64::try_from(read.duration_since(self.read).as_millis()).unwrap_or(0);
        // The instant only advances by whole milliseconds, so that no remainder is lost.
        if passed > 0 {
            self.read = read;
        }
        self.last = self.last.saturating_add(passed).max(wall());
        self.last
    }
}

/// The wall clock, in milliseconds since 1970.
pub(crate) fn wall() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_clock_that_was_set_back_does_not_take_time_back() {
        let ahead = wall() + 3_600_000;
        let mut clock = Clock::from(ahead);
        let first = clock.now();
        assert!(first >= ahead);
        std::thread::sleep(std::time::Duration::from_millis(5));
        let second = clock.now();
        assert!((4..1000).contains(&(second - first)), "{}", second - first);
    }
}
