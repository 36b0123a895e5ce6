//! The time that one check may take. The work of every part is bounded by counters; the clock is
//! the last resort, for what no counter foresees.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The longest time that extraction and validation of one text may take.
pub(crate) const MAX_CHECK_TIME: Duration = Duration::from_mins(1);

/// The most processor time that reading and compiling one contract or one workflow may take. A busy
/// machine is no reason to refuse a file.
pub const MAX_COMPILE_TIME: Duration =
    Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 2 });

thread_local! {
    /// The steps of the work on this thread, for tests that compare texts of different lengths.
    static STEPS: Cell<u64> = const { Cell::new(0) };

    /// When the check that runs on this thread must end. It is thread-local because the functions
    /// that `cel` calls carry no state of their own.
    static UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };

    /// The processor time of this thread at which the work on it must end.
    static PROCESSOR_UNTIL: Cell<Option<Duration>> = const { Cell::new(None) };

    /// Whether the caller has stopped the check that runs on this thread.
    static IS_STOPPED: RefCell<Option<Rc<dyn Fn() -> bool>>> = const { RefCell::new(None) };
}

/// Runs checks that end early: when a time has come, or when `is_stopped` says so, which is asked at
/// intervals. A check that ends early accepts nothing; its report has the code C0129.
///
/// A program that must react while a large text is read uses this:
///
/// ```
/// use counterfoil_contract::work::interruptible;
/// use counterfoil_contract::{Contract, Framing, Policy};
/// use std::time::{Duration, Instant};
///
/// let schema = serde_json::json!({ "type": "object" });
/// let contract = Contract::from_schema(&schema, Framing::default(), Policy::default())?;
/// let until = Instant::now() + Duration::from_secs(5);
/// let report = interruptible(until, || false, || contract.check("{}"));
/// assert!(report.is_accepted());
/// # Ok::<(), counterfoil_contract::LoadError>(())
/// ```
pub fn interruptible<T>(
    until: Instant,
    is_stopped: impl Fn() -> bool + 'static,
    run: impl FnOnce() -> T,
) -> T {
    let before = IS_STOPPED.replace(Some(Rc::new(is_stopped)));
    let limit = now().map(|now| until.saturating_duration_since(now));
    let value = match limit {
        Some(limit) => within(limit, run),
        None => run(),
    };
    IS_STOPPED.replace(before);
    value
}

/// Runs something that must end within a time. Inside of something else, the earlier end counts.
pub fn within<T>(limit: Duration, run: impl FnOnce() -> T) -> T {
    let before = UNTIL.get();
    let until = now().and_then(|now| now.checked_add(limit));
    UNTIL.set(before.map_or(until, |before| Some(until.map_or(before, |until| until.min(before)))));
    let value = run();
    UNTIL.set(before);
    value
}

/// Runs something that may use this much processor time, and ten times as much time on the clock.
/// Inside of something else, the earlier end counts.
pub fn within_processor_time<T>(limit: Duration, run: impl FnOnce() -> T) -> T {
    let before = PROCESSOR_UNTIL.get();
    let until = processor_time().map(|used| used + limit);
    let earlier = [before, until].into_iter().flatten().min();
    PROCESSOR_UNTIL.set(earlier);
    let value = within(limit * if until.is_some() { 10 } else { 1 }, run);
    PROCESSOR_UNTIL.set(before);
    value
}

/// Counts steps of work: values that are visited, names that are compared, pieces of text that are
/// read.
pub(crate) fn count(steps: usize) {
    STEPS.set(STEPS.get().wrapping_add(steps as u64));
}

/// Counts the steps of reading a text.
pub(crate) fn count_text(bytes: usize) {
    count(bytes / 64 + 1);
}

/// Runs something and returns how many steps it took.
pub(crate) fn counted<T>(run: impl FnOnce() -> T) -> (T, u64) {
    let before = STEPS.get();
    let value = run();
    (value, STEPS.get().wrapping_sub(before))
}

/// Whether the time is over, or the caller has stopped the check. Ask at intervals: it reads the clock.
pub fn is_over() -> bool {
    let is_stopped = IS_STOPPED.with_borrow(Clone::clone);
    is_stopped.is_some_and(|is_stopped| is_stopped())
        || UNTIL.get().zip(now()).is_some_and(|(until, now)| now >= until)
        || PROCESSOR_UNTIL.get().zip(processor_time()).is_some_and(|(until, used)| used >= until)
}

/// The processor time that this thread has used. `None` where the system does not tell.
#[cfg(not(target_family = "wasm"))]
fn processor_time() -> Option<Duration> {
    cpu_time::ThreadTime::try_now().ok().map(|used| used.as_duration())
}

#[cfg(target_family = "wasm")]
fn processor_time() -> Option<Duration> {
    None
}

/// The time. `None` where there is no clock: a browser's WebAssembly has none without JavaScript.
fn now() -> Option<Instant> {
    let has_clock = !cfg!(all(target_family = "wasm", target_os = "unknown"));
    has_clock.then(Instant::now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_uses_no_processor_time() {
        let limit = Duration::from_millis(20);
        within_processor_time(limit, || {
            std::thread::sleep(limit * 2);
            assert!(!is_over());
            within_processor_time(Duration::ZERO, || assert!(is_over()));
            assert!(!is_over());
        });
    }

    #[test]
    fn a_caller_can_stop_a_check() {
        let later = Instant::now() + Duration::from_mins(1);
        assert!(interruptible(later, || true, is_over));
        assert!(!interruptible(later, || false, is_over));
        assert!(interruptible(Instant::now(), || false, is_over));
        assert!(!is_over());
    }

    #[test]
    fn the_time_is_over_only_inside_and_the_earlier_end_counts() {
        assert!(!is_over());
        within(Duration::ZERO, || {
            assert!(is_over());
            within(Duration::from_mins(1), || assert!(is_over()));
        });
        within(Duration::from_mins(1), || {
            assert!(!is_over());
            within(Duration::ZERO, || assert!(is_over()));
            assert!(!is_over());
        });
    }
}
