//! Retries of a step whose agent failed, and how long they wait.

use crate::event::{Event, RetryRule};
use crate::problem::Problem;
use crate::run_state::{Frame, RunState};
use crate::workflow::{Dispatch, FailureKind};

/// The longest delay until a rate limit resets.
const MAX_RESET_MS: i64 = 24 * 60 * 60 * 1000;

/// The delays before retries: the first one doubles up to the longest one.
#[derive(Clone, Copy)]
struct Waits {
    first_ms: u64,
    most_ms: u64,
}

impl Waits {
    /// The delays after a failure of this kind.
    fn after(failure: FailureKind, rule: RetryRule) -> Self {
        let (first_ms, most_ms) = match failure {
            // An overload of a service takes minutes.
            FailureKind::Transport => (1_000, 5 * 60 * 1000),
            FailureKind::Limit => (30_000, 60 * 60 * 1000),
            _ => (0, 60 * 60 * 1000),
        };
        Self {
            first_ms: rule.first_ms.unwrap_or(first_ms),
            most_ms: rule.most_ms.unwrap_or(most_ms),
        }
    }

    /// The delay before the retry after `done` others.
    fn before(self, done: u32) -> u64 {
        self.first_ms.saturating_mul(1 << done.min(20)).min(self.most_ms)
    }

    /// All delays up to and including that one.
    fn until(self, done: u32) -> u64 {
        (0..=done).fold(0, |sum, retry| sum.saturating_add(self.before(retry)))
    }
}

/// The retry of a step after a failure, if it has one left. The delays for a service that does not
/// answer fit into the time of the step.
pub(super) fn planned(
    run: &RunState,
    id: &str,
    frame: &Frame,
    dispatch: &Dispatch,
    problem: &Problem,
) -> Option<Event> {
    let failure = problem.failure;
    let agent = run.agents.get(&dispatch.agent);
    let rule = agent.and_then(|agent| agent.retry.get(&failure).copied()).unwrap_or_default();
    let planned = dispatch.bounds.retries.get(&failure).copied().unwrap_or(0);
    let done = frame.tries.get(&failure).copied().unwrap_or(0);
    if done >= rule.times.unwrap_or(planned) {
        return None;
    }
    let waits = Waits::after(failure, rule);
    let after_ms = match problem.reset_at {
        _ if agent.is_some_and(|agent| !agent.backs_off) => 0,
        Some(reset) => {
            u64::try_from(reset.saturating_sub(run.last_at).clamp(0, MAX_RESET_MS)).unwrap_or(0)
        }
        None if failure == FailureKind::Transport
            && waits.until(done) > dispatch.bounds.timeout_ms =>
        {
            return None;
        }
        None => waits.before(done),
    };
    let not_before = run.last_at.saturating_add(i64::try_from(after_ms).unwrap_or(i64::MAX));
    Some(Event::RetryPlanned {
        frame: id.to_owned(),
        failure,
        retry: done + 1,
        after_ms,
        not_before,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_minutes() {
        let waits = Waits::after(FailureKind::Transport, RetryRule::default());
        let all: Vec<u64> = (0..11).map(|done| waits.before(done) / 1000).collect();
        assert_eq!(all, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(waits.until(9), 811_000);
        assert_eq!(waits.before(u32::MAX), 300_000);
        let limit = Waits::after(FailureKind::Limit, RetryRule::default());
        assert_eq!(
            [limit.before(0), limit.before(1), limit.before(30)],
            [30_000, 60_000, 3_600_000]
        );
        assert_eq!(Waits::after(FailureKind::Agent, RetryRule::default()).before(5), 0);
    }

    #[test]
    fn the_user_sets_the_delays() {
        let rule = RetryRule { times: None, first_ms: Some(200), most_ms: Some(500) };
        let waits = Waits::after(FailureKind::Transport, rule);
        assert_eq!([0, 1, 2, 3].map(|done| waits.before(done)), [200, 400, 500, 500]);
        let huge = RetryRule { times: None, first_ms: Some(u64::MAX), most_ms: Some(u64::MAX) };
        assert_eq!(Waits::after(FailureKind::Transport, huge).until(99), u64::MAX);
    }
}
