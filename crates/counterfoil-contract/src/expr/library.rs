//! Functions of the expression language beyond CEL's standard library. The `cel` crate offers some
//! of them as extensions, but those fail on positions past the end and do not limit the size of
//! their results.
//!
//! The type checker has already checked the arguments. Type errors at run time occur only for
//! values of unknown type.

mod json;
mod list;
mod object;
mod text;
mod wording;

pub(super) use text::{PATTERN_FUNCTION, check_pattern};

use super::meter::{
    self, METER_COLLECTED, METER_CONTAINER, METER_JOINED, METER_OPERAND, METER_RANGE,
    meter_collected, meter_container, meter_joined, meter_operand, meter_range,
};
use cel::common::functions::Function;
use cel::common::types::{CelInt, CelList, CelNull, CelString, DYN_TYPE, Kind};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

/// The maximum size of a string that a function returns.
const MAX_TEXT_BYTES: usize = 4 << 20;

/// The maximum number of items in a list that a function returns.
const MAX_ITEMS: usize = 1_000_000;

/// The maximum length of a list that `range` returns.
pub(super) const MAX_RANGE: i64 = 10_000;

/// The internal function that sums doubles, including an empty list of them.
pub(super) const SUM_OF_NUMBERS: &str = "@sum";

/// The internal function for `matches`, which compiles each pattern once.
pub(super) const MATCHES: &str = "@matches";

/// The internal function that reads a member of an object, or null if it is missing.
pub(super) const MEMBER_OR_NULL: &str = "@member_or_null";

type FunctionResult<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

/// Adds the functions to an environment.
pub(super) fn add_to(env: &mut Env) -> Result<(), DeclarationError> {
    let methods: [(&str, usize, Function); 19] = [
        ("split", 1, text::split),
        ("lines", 0, text::lines),
        ("openTasks", 0, text::open_tasks),
        ("tickedTasks", 0, text::ticked_tasks),
        ("trim", 0, text::trim),
        ("lowerAscii", 0, text::lower_ascii),
        ("upperAscii", 0, text::upper_ascii),
        ("replace", 2, text::replace),
        ("slug", 0, text::slug),
        ("indexOf", 1, text::index_of),
        ("substring", 2, text::substring),
        ("findAll", 1, text::find_all),
        ("join", 1, text::join),
        ("flatten", 0, list::flatten),
        ("distinct", 0, list::distinct),
        ("slice", 2, list::slice),
        ("sum", 0, list::sum),
        ("put", 2, object::put),
        (SUM_OF_NUMBERS, 0, list::sum_of_numbers),
    ];
    let any = |count: usize| (0..count).map(|_| DYN_TYPE).collect::<Vec<_>>();
    for (name, arguments, function) in methods {
        env.add_member_overload(name, name, DYN_TYPE, any(arguments), function)?;
    }
    let functions: [(&str, usize, Function); 14] = [
        (MATCHES, 2, text::matches),
        ("range", 1, list::range),
        ("json", 1, json::json),
        ("leavesOutSevere", 2, wording::leaves_out_severe),
        ("reportsFailure", 1, wording::reports_failure),
        ("reportsNothing", 1, wording::reports_nothing),
        ("reportsRejection", 1, wording::reports_rejection),
        ("reportsSevere", 1, wording::reports_severe),
        (MEMBER_OR_NULL, 2, member_or_null),
        (METER_RANGE, 2, meter_range),
        (METER_OPERAND, 1, meter_operand),
        (METER_JOINED, 1, meter_joined),
        (METER_CONTAINER, 1, meter_container),
        (METER_COLLECTED, 1, meter_collected),
    ];
    for (name, arguments, function) in functions {
        env.add_overload(name, name, any(arguments), function)?;
    }
    Ok(())
}

/// The arguments of a call as an array.
///
/// Fails if their number is wrong.
pub(super) fn arguments<'b, 'v, const N: usize>(
    args: Vec<CowVal<'b, 'v>>,
) -> Result<[CowVal<'b, 'v>; N], ExecutionError> {
    args.try_into().map_err(|args: Vec<_>| ExecutionError::invalid_argument_count(N, args.len()))
}

fn member_or_null<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    let [object, name] = arguments(args)?;
    let Some(indexer) = object.as_indexer() else {
        return Err(function_error(
            MEMBER_OR_NULL,
            format!("{} has no fields", kind_name(object.as_ref())),
        ));
    };
    match indexer.get(name.as_ref()) {
        Ok(member) => Ok(CowVal::Owned(member.into_owned())),
        Err(ExecutionError::NoSuchKey(_)) => Ok(CowVal::owned(CelNull)),
        Err(error) => Err(error),
    }
}

/// An error of a function with a message.
fn function_error(function: &str, why: impl ToString) -> ExecutionError {
    ExecutionError::function_error(function, why)
}

fn wrong_type_error(function: &str, wanted: &str, found: &dyn Val) -> ExecutionError {
    function_error(function, format!("{function}() works on {wanted}, not on {}", kind_name(found)))
}

/// The kind of a value, for messages.
fn kind_name(value: &dyn Val) -> &'static str {
    match value.get_type().kind() {
        Kind::NullType => "null",
        Kind::Boolean => "a boolean",
        Kind::Int => "an integer",
        Kind::Double => "a number",
        Kind::String => "a string",
        Kind::List => "a list",
        Kind::Map => "an object",
        _ => "something else",
    }
}

/// A string argument of a function.
fn string_arg<'a>(function: &str, value: &'a dyn Val) -> Result<&'a str, ExecutionError> {
    let text = value
        .downcast_ref::<CelString>()
        .ok_or_else(|| wrong_type_error(function, "strings", value))?
        .inner();
    meter::count_text_read(text.len())?;
    Ok(text)
}

/// An integer argument of a function.
fn int_arg(function: &str, value: &dyn Val) -> Result<i64, ExecutionError> {
    value.downcast_ref::<CelInt>().map(|int| *int.inner()).ok_or_else(|| {
        function_error(function, format!("{function}() takes integers, not {}", kind_name(value)))
    })
}

/// The items of a list argument of a function.
fn list_arg<'a, 'v>(
    function: &str,
    value: &'a (dyn Val + 'v),
) -> Result<&'a [Box<dyn Val + 'v>], ExecutionError> {
    let items = value
        .downcast_ref::<CelList>()
        .ok_or_else(|| wrong_type_error(function, "lists", value))?
        .inner();
    meter::count_steps(items.len() + 1)?;
    Ok(items)
}

/// A position clamped to a sequence of the given length.
fn clamped(position: i64, length: usize) -> usize {
    usize::try_from(position.max(0)).map_or(length, |position| position.min(length))
}

/// A string as the result of a function.
///
/// Fails if it is too long.
fn string_result<'b, 'v>(function: &str, text: impl Into<String>) -> FunctionResult<'b, 'v> {
    let text = text.into();
    check_text_size(function, text.len())?;
    Ok(CowVal::owned(CelString::from(text)))
}

fn check_text_size(function: &str, bytes: usize) -> Result<(), ExecutionError> {
    if bytes > MAX_TEXT_BYTES {
        return Err(function_error(
            function,
            format!("{function}() gives more than 4 MiB of text"),
        ));
    }
    Ok(())
}

/// A list as the result of a function.
///
/// Fails if it is too long.
fn list_result<'b, 'v>(
    function: &str,
    items: impl Iterator<Item = Box<dyn Val + 'v>>,
) -> FunctionResult<'b, 'v> {
    let items: Vec<Box<dyn Val + 'v>> = items.take(MAX_ITEMS + 1).collect();
    if items.len() > MAX_ITEMS {
        return Err(function_error(
            function,
            format!("{function}() gives more than 1,000,000 items"),
        ));
    }
    Ok(CowVal::owned(CelList::from(items)))
}
