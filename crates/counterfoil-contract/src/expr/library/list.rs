//! Functions on lists.

use super::json::key;
use super::{
    FunctionResult, MAX_RANGE, arguments, clamped, function_error, int_arg, list_arg, list_result,
    wrong_type_error,
};
use cel::ExecutionError;
use cel::common::types::{CelDouble, CelInt};
use cel::common::value::{CowVal, Val};
use std::collections::HashSet;

/// `flatten`: the items of all lists in a list.
pub(super) fn flatten<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    let [list] = arguments(args)?;
    let mut flat: Vec<&Box<dyn Val + 'v>> = Vec::new();
    for inner in list_arg("flatten", list.as_ref())? {
        flat.extend(list_arg("flatten", inner.as_ref())?);
    }
    list_result("flatten", flat.into_iter().cloned())
}

/// `distinct`: the list without repeated items.
pub(super) fn distinct<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    let [list] = arguments(args)?;
    let mut seen = HashSet::new();
    let mut first: Vec<Box<dyn Val + 'v>> = Vec::new();
    for item in list_arg("distinct", list.as_ref())? {
        if seen.insert(key("distinct", item.as_ref())?) {
            first.push(item.clone());
        }
    }
    list_result("distinct", first.into_iter())
}

/// `slice`: the items from one position up to another.
pub(super) fn slice<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    let [list, from, to] = arguments(args)?;
    let items = list_arg("slice", list.as_ref())?;
    let from = clamped(int_arg("slice", from.as_ref())?, items.len());
    let to = clamped(int_arg("slice", to.as_ref())?, items.len());
    list_result("slice", items.get(from..to).unwrap_or_default().iter().cloned())
}

/// `range`: the integers from 0 up to the count.
pub(super) fn range<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    let [count] = arguments(args)?;
    let count = int_arg("range", count.as_ref())?;
    if count > MAX_RANGE {
        return Err(function_error(
            "range",
            format!("range() gives at most 10,000 items, not {count}"),
        ));
    }
    list_result("range", (0..count).map(|at| Box::new(CelInt::from(at)) as Box<dyn Val + 'v>))
}

/// `sum`: the sum of integers, or of doubles if all items are doubles.
pub(super) fn sum<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    let [list] = arguments(args)?;
    let items = list_arg("sum", list.as_ref())?;
    let mut total: i64 = 0;
    let mut numbers = 0;
    for item in items {
        if let Some(int) = item.downcast_ref::<CelInt>() {
            total = total.checked_add(*int.inner()).ok_or_else(too_large)?;
        } else if item.downcast_ref::<CelDouble>().is_some() {
            numbers += 1;
        } else {
            return Err(wrong_type_error("sum", "numbers", item.as_ref()));
        }
    }
    match numbers {
        0 => Ok(CowVal::owned(CelInt::from(total))),
        all if all == items.len() => sum_doubles(items),
        // An integer that does not fit into 64 bits became a double.
        _ => Err(too_large()),
    }
}

pub(super) fn sum_of_numbers<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    let [list] = arguments(args)?;
    sum_doubles(list_arg("sum", list.as_ref())?)
}

fn sum_doubles<'b, 'v>(items: &[Box<dyn Val + 'v>]) -> FunctionResult<'b, 'v> {
    let mut total = 0.0;
    for item in items {
        let number = item.downcast_ref::<CelDouble>();
        total += number.ok_or_else(|| wrong_type_error("sum", "numbers", item.as_ref()))?.inner();
    }
    Ok(CowVal::owned(CelDouble::from(total)))
}

fn too_large() -> ExecutionError {
    function_error("sum", "a number is too large to calculate with")
}
