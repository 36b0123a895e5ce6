//! What one evaluation may cost. Loops stand inside of loops and `range` needs no data, so a short
//! expression can ask for more than a machine has; it is told so instead.

use super::library::arguments;
use cel::ExecutionError;
use cel::common::types::{CelList, CelMap, CelString};
use cel::common::value::{CowVal, Val};
use std::cell::Cell;

/// The most rounds of all loops, and what functions read: each item of a list and each 64 bytes of
/// a text is one.
const MOST_STEPS: usize = 10_000_000;

/// The most that all `map` loops collect, in bytes.
const MOST_KEPT: usize = 64 << 20;

/// What a value weighs besides its text.
const VALUE: usize = 32;

#[derive(Clone, Copy, Default)]
struct Spent {
    steps: usize,
    kept: usize,
}

thread_local! {
    /// What the evaluation at work on this thread has spent: the functions that `cel` calls hold nothing of their own.
    static SPENT: Cell<Spent> = const { Cell::new(Spent { steps: 0, kept: 0 }) };
}

/// Evaluates something with nothing spent yet.
pub(super) fn metered<T>(evaluate: impl FnOnce() -> T) -> T {
    let before = SPENT.take();
    let value = evaluate();
    SPENT.set(before);
    value
}

/// Counts steps.
pub(super) fn steps(count: usize) -> Result<(), ExecutionError> {
    let mut spent = SPENT.get();
    spent.steps = spent.steps.saturating_add(count);
    SPENT.set(spent);
    if spent.steps > MOST_STEPS {
        return Err(ExecutionError::function_error(
            OVER,
            "it takes more than 10,000,000 steps: loop over less, or over fewer lists inside of each other",
        ));
    }
    Ok(())
}

/// Counts the steps of reading a text.
pub(super) fn reads_text(bytes: usize) -> Result<(), ExecutionError> {
    steps(bytes / 64 + 1)
}

/// The function that stands around what a loop goes over.
pub(super) const OVER: &str = "@over";

/// Counts the items of a list or an object and hands it on.
pub(super) fn over<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [range] = arguments(args)?;
    let size = range.as_sizer().map_or(0, |sizer| *sizer.size().inner());
    steps(usize::try_from(size).unwrap_or(usize::MAX).saturating_add(1))?;
    Ok(range)
}

/// The function that stands around what something is looked for in.
pub(super) const AMONG: &str = "@among";

/// Counts the items of a list and hands it on; the keys of an object are found without looking at
/// each.
pub(super) fn among<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [container] = arguments(args)?;
    steps(container.downcast_ref::<CelList>().map_or(0, |list| list.inner().len()) + 1)?;
    Ok(container)
}

/// The function that stands around what a loop collects.
pub(super) const KEPT: &str = "@kept";

/// Weighs a value and hands it on.
pub(super) fn kept<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [value] = arguments(args)?;
    let mut spent = SPENT.get();
    spent.kept = spent.kept.saturating_add(weight(value.as_ref()));
    SPENT.set(spent);
    if spent.kept > MOST_KEPT {
        return Err(ExecutionError::function_error(
            KEPT,
            "it collects more than 64 MB: collect less, or in fewer loops",
        ));
    }
    Ok(value)
}

/// How much room a value takes, about.
fn weight(value: &dyn Val) -> usize {
    let inside = if let Some(text) = value.downcast_ref::<CelString>() {
        text.inner().len()
    } else if let Some(list) = value.downcast_ref::<CelList>() {
        list.inner().iter().map(|item| weight(item.as_ref())).sum()
    } else if let Some(map) = value.downcast_ref::<CelMap>() {
        map.inner().iter().map(|(key, value)| weight(key.inner()) + weight(value.as_ref())).sum()
    } else {
        0
    };
    VALUE + inside
}
