//! Limits on the cost of one evaluation. Loops can be nested and `range` needs no data, so a short
//! expression could exhaust time or memory; it fails with an error instead.

use super::library::arguments;
use crate::work;
use cel::ExecutionError;
use cel::common::types::{CelInt, CelList, CelMap, CelString};
use cel::common::value::{CowVal, Val};
use std::cell::Cell;

/// The maximum number of steps: one for each four parts of the body of a loop in each iteration, for
/// each list item and for each 64 bytes of text that a function or an operator reads.
const MAX_STEPS: usize = 10_000_000;

/// So many parts of the body of a loop are one step.
const PARTS_OF_A_STEP: i64 = 4;

/// The clock is read after so many steps.
const STEPS_BETWEEN_LOOKS: usize = 100_000;

/// The maximum size of everything that loops collect and that operators put together, in bytes.
const MAX_COLLECTED_BYTES: usize = 64 << 20;

/// The size of a value without its content, in bytes.
const VALUE_OVERHEAD_BYTES: usize = 32;

#[derive(Clone, Copy, Default)]
struct Usage {
    steps: usize,
    collected_bytes: usize,
    /// The steps of the evaluations that share a limit, without those of this one.
    earlier_steps: usize,
}

thread_local! {
    /// The usage of the evaluation that runs on this thread. It is thread-local because functions
    /// called by `cel` carry no state of their own.
    static USAGE: Cell<Usage> =
        const { Cell::new(Usage { steps: 0, collected_bytes: 0, earlier_steps: 0 }) };
}

/// Runs an evaluation with fresh counters and restores the previous ones afterwards.
pub(super) fn metered<T>(evaluate: impl FnOnce() -> T) -> T {
    let before = USAGE.take();
    let value = evaluate();
    USAGE.set(before);
    value
}

/// Evaluations that share the limit on steps: the rules of one contract on one result.
#[derive(Debug, Default)]
pub(crate) struct SharedMeter {
    steps: Cell<usize>,
}

impl SharedMeter {
    /// Runs one of the evaluations.
    pub(super) fn metered<T>(&self, evaluate: impl FnOnce() -> T) -> T {
        let before = USAGE.take();
        USAGE.set(Usage { earlier_steps: self.steps.get(), ..Usage::default() });
        let value = evaluate();
        self.count(USAGE.get().steps);
        USAGE.set(before);
        value
    }

    /// Adds steps that are taken outside of an evaluation.
    pub(crate) fn count(&self, steps: usize) {
        self.steps.set(self.steps.get().saturating_add(steps));
    }

    /// Whether the limit is exceeded.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.steps.get() > MAX_STEPS
    }
}

/// Adds steps to the usage.
///
/// Fails when the limit is exceeded.
pub(super) fn count_steps(count: usize) -> Result<(), ExecutionError> {
    let mut usage = USAGE.get();
    let before = usage.steps;
    usage.steps = usage.steps.saturating_add(count);
    USAGE.set(usage);
    let is_late =
        || usage.steps / STEPS_BETWEEN_LOOKS > before / STEPS_BETWEEN_LOOKS && work::is_over();
    if usage.steps.saturating_add(usage.earlier_steps) > MAX_STEPS || is_late() {
        return Err(ExecutionError::function_error(
            METER_RANGE,
            "it takes more than 10,000,000 steps: use smaller lists or fewer nested loops",
        ));
    }
    Ok(())
}

/// Adds the steps for reading a text.
pub(super) fn count_text_read(bytes: usize) -> Result<(), ExecutionError> {
    count_steps(bytes / 64 + 1)
}

/// The internal function that wraps the range of a loop.
pub(super) const METER_RANGE: &str = "@meter_range";

/// Counts the items of a list or an object, each with the parts of the body of the loop, and returns
/// the value unchanged.
pub(super) fn meter_range<'b, 'v>(
    args: Vec<CowVal<'b, 'v>>,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [range, parts] = arguments(args)?;
    let size = range.as_sizer().map_or(0, |sizer| *sizer.size().inner());
    let parts = parts.downcast_ref::<CelInt>().map_or(1, |parts| *parts.inner());
    let steps =
        size.saturating_add(1).saturating_mul((parts.saturating_add(3) / PARTS_OF_A_STEP).max(1));
    count_steps(usize::try_from(steps).unwrap_or(usize::MAX))?;
    Ok(range)
}

/// The internal function that wraps an operand that is read as a whole.
pub(super) const METER_OPERAND: &str = "@meter_operand";

/// Counts the size of a text, a list or an object as steps and returns the value unchanged.
pub(super) fn meter_operand<'b, 'v>(
    args: Vec<CowVal<'b, 'v>>,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [value] = arguments(args)?;
    if is_large_kind(value.as_ref()) {
        count_text_read(value_bytes(value.as_ref()))?;
    }
    Ok(value)
}

/// The internal function that wraps an operand of `+`.
pub(super) const METER_JOINED: &str = "@meter_joined";

/// Counts the size of a text or a list that an operator copies, and returns the value unchanged.
pub(super) fn meter_joined<'b, 'v>(
    args: Vec<CowVal<'b, 'v>>,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [value] = arguments(args)?;
    if !is_large_kind(value.as_ref()) {
        return Ok(value);
    }
    count_text_read(value_bytes(value.as_ref()))?;
    meter_collected(vec![value])
}

fn is_large_kind(value: &dyn Val) -> bool {
    value.downcast_ref::<CelString>().is_some()
        || value.downcast_ref::<CelList>().is_some()
        || value.downcast_ref::<CelMap>().is_some()
}

/// The internal function that wraps the right-hand side of `in`.
pub(super) const METER_CONTAINER: &str = "@meter_container";

/// Counts the items of a list as steps and returns the value unchanged. Looking up the key of an
/// object does not scan its keys.
pub(super) fn meter_container<'b, 'v>(
    args: Vec<CowVal<'b, 'v>>,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [container] = arguments(args)?;
    count_steps(container.downcast_ref::<CelList>().map_or(0, |list| list.inner().len()) + 1)?;
    Ok(container)
}

/// The internal function that wraps each value a loop collects.
pub(super) const METER_COLLECTED: &str = "@meter_collected";

/// Adds the size of a value to the usage and returns the value unchanged.
pub(super) fn meter_collected<'b, 'v>(
    args: Vec<CowVal<'b, 'v>>,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [value] = arguments(args)?;
    let mut usage = USAGE.get();
    usage.collected_bytes = usage.collected_bytes.saturating_add(value_bytes(value.as_ref()));
    USAGE.set(usage);
    if usage.collected_bytes > MAX_COLLECTED_BYTES {
        return Err(ExecutionError::function_error(
            METER_COLLECTED,
            "it collects more than 64 MiB: collect less, or in fewer loops",
        ));
    }
    Ok(value)
}

/// The approximate size of a value, in bytes.
fn value_bytes(value: &dyn Val) -> usize {
    let inside = if let Some(text) = value.downcast_ref::<CelString>() {
        text.inner().len()
    } else if let Some(list) = value.downcast_ref::<CelList>() {
        list.inner().iter().map(|item| value_bytes(item.as_ref())).sum()
    } else if let Some(map) = value.downcast_ref::<CelMap>() {
        map.inner()
            .iter()
            .map(|(key, value)| value_bytes(key.inner()) + value_bytes(value.as_ref()))
            .sum()
    } else {
        0
    };
    VALUE_OVERHEAD_BYTES + inside
}
