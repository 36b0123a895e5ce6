//! The functions on lists.

use super::json::key;
use super::{
    Given, LONGEST_RANGE, arguments, clamped, failed, given_list, int_of, items_of, wrong_kind,
};
use cel::ExecutionError;
use cel::common::types::{CelDouble, CelInt};
use cel::common::value::{CowVal, Val};
use std::collections::HashSet;

/// The items of all the lists in a list.
pub(super) fn flatten<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    let [list] = arguments(args)?;
    let mut flat: Vec<&Box<dyn Val + 'v>> = Vec::new();
    for inner in items_of("flatten", list.as_ref())? {
        flat.extend(items_of("flatten", inner.as_ref())?);
    }
    given_list("flatten", flat.into_iter().cloned())
}

/// The first of those that are equal.
pub(super) fn distinct<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    let [list] = arguments(args)?;
    let mut seen = HashSet::new();
    let mut first: Vec<Box<dyn Val + 'v>> = Vec::new();
    for item in items_of("distinct", list.as_ref())? {
        if seen.insert(key("distinct", item.as_ref())?) {
            first.push(item.clone());
        }
    }
    given_list("distinct", first.into_iter())
}

/// The items from one place up to another.
pub(super) fn slice<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    let [list, from, to] = arguments(args)?;
    let items = items_of("slice", list.as_ref())?;
    let from = clamped(int_of("slice", from.as_ref())?, items.len());
    let to = clamped(int_of("slice", to.as_ref())?, items.len());
    given_list("slice", items.get(from..to).unwrap_or_default().iter().cloned())
}

/// The integers from 0, so many.
pub(super) fn range<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    let [count] = arguments(args)?;
    let count = int_of("range", count.as_ref())?;
    if count > LONGEST_RANGE {
        return Err(failed("range", format!("range() gives at most 10,000 items, not {count}")));
    }
    given_list("range", (0..count).map(|at| Box::new(CelInt::from(at)) as Box<dyn Val + 'v>))
}

/// The sum of integers; of numbers, if there is none among them.
pub(super) fn sum<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    let [list] = arguments(args)?;
    let items = items_of("sum", list.as_ref())?;
    let mut total: i64 = 0;
    let mut numbers = 0;
    for item in items {
        if let Some(int) = item.downcast_ref::<CelInt>() {
            total = total.checked_add(*int.inner()).ok_or_else(too_large)?;
        } else if item.downcast_ref::<CelDouble>().is_some() {
            numbers += 1;
        } else {
            return Err(wrong_kind("sum", "numbers", item.as_ref()));
        }
    }
    match numbers {
        0 => Ok(CowVal::owned(CelInt::from(total))),
        all if all == items.len() => added(items),
        // An integer that does not fit is a number.
        _ => Err(too_large()),
    }
}

pub(super) fn sum_of_numbers<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    let [list] = arguments(args)?;
    added(items_of("sum", list.as_ref())?)
}

fn added<'b, 'v>(items: &[Box<dyn Val + 'v>]) -> Given<'b, 'v> {
    let mut total = 0.0;
    for item in items {
        let number = item.downcast_ref::<CelDouble>();
        total += number.ok_or_else(|| wrong_kind("sum", "numbers", item.as_ref()))?.inner();
    }
    Ok(CowVal::owned(CelDouble::from(total)))
}

fn too_large() -> ExecutionError {
    failed("sum", "a number is too large to calculate with")
}
