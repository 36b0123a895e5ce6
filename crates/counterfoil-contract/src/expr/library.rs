//! The functions that expressions have besides those of CEL's standard library. The `cel` crate has
//! some of them as extensions, but those fail on places past the end and their results have no
//! bounds.
//!
//! The checker has seen the types of all arguments; what is said of wrong ones here is for values
//! whose type nobody knows.

mod json;
mod list;
mod object;
mod text;

use super::meter::{self, AMONG, KEPT, OVER, among, kept, over};
use cel::common::functions::Function;
use cel::common::types::{CelInt, CelList, CelNull, CelString, DYN_TYPE, Kind};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

/// The largest text that a function gives, in bytes.
const MOST_TEXT: usize = 4 << 20;

/// The most items that a function gives.
const MOST_ITEMS: usize = 1_000_000;

/// The longest list of numbers that `range` gives.
pub(super) const LONGEST_RANGE: i64 = 10_000;

/// The sum of numbers that are not integers, also of none.
pub(super) const SUM_OF_NUMBERS: &str = "@sum";

/// A member of an object, null if it is missing.
pub(super) const MEMBER: &str = "@member";

type Given<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

/// Adds the functions to an environment.
pub(super) fn add_to(env: &mut Env) -> Result<(), DeclarationError> {
    let methods: [(&str, usize, Function); 16] = [
        ("split", 1, text::split),
        ("lines", 0, text::lines),
        ("trim", 0, text::trim),
        ("lowerAscii", 0, text::lower_ascii),
        ("upperAscii", 0, text::upper_ascii),
        ("replace", 2, text::replace),
        ("slug", 0, text::slug),
        ("indexOf", 1, text::index_of),
        ("substring", 2, text::substring),
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
    let functions: [(&str, usize, Function); 6] = [
        ("range", 1, list::range),
        ("json", 1, json::json),
        (MEMBER, 2, member),
        (OVER, 1, over),
        (AMONG, 1, among),
        (KEPT, 1, kept),
    ];
    for (name, arguments, function) in functions {
        env.add_overload(name, name, any(arguments), function)?;
    }
    Ok(())
}

/// The arguments of a call, as many as the function takes.
pub(super) fn arguments<'b, 'v, const N: usize>(
    args: Vec<CowVal<'b, 'v>>,
) -> Result<[CowVal<'b, 'v>; N], ExecutionError> {
    args.try_into().map_err(|args: Vec<_>| ExecutionError::invalid_argument_count(N, args.len()))
}

fn member<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    let [object, name] = arguments(args)?;
    let Some(indexer) = object.as_indexer() else {
        return Err(failed(MEMBER, format!("{} has no fields", named(object.as_ref()))));
    };
    match indexer.get(name.as_ref()) {
        Ok(member) => Ok(CowVal::Owned(member.into_owned())),
        Err(ExecutionError::NoSuchKey(_)) => Ok(CowVal::owned(CelNull)),
        Err(error) => Err(error),
    }
}

/// An error of a function, in words.
fn failed(function: &str, why: impl ToString) -> ExecutionError {
    ExecutionError::function_error(function, why)
}

fn wrong_kind(function: &str, wanted: &str, found: &dyn Val) -> ExecutionError {
    failed(function, format!("{function}() works on {wanted}, not on {}", named(found)))
}

/// A value by its kind, in words.
fn named(value: &dyn Val) -> &'static str {
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

/// A text that a function is given.
fn text_of<'a>(function: &str, value: &'a dyn Val) -> Result<&'a str, ExecutionError> {
    let text = value
        .downcast_ref::<CelString>()
        .ok_or_else(|| wrong_kind(function, "strings", value))?
        .inner();
    meter::reads_text(text.len())?;
    Ok(text)
}

/// An integer that a function is given.
fn int_of(function: &str, value: &dyn Val) -> Result<i64, ExecutionError> {
    value.downcast_ref::<CelInt>().map(|int| *int.inner()).ok_or_else(|| {
        failed(function, format!("{function}() takes integers, not {}", named(value)))
    })
}

/// A list that a function is given.
fn items_of<'a, 'v>(
    function: &str,
    value: &'a (dyn Val + 'v),
) -> Result<&'a [Box<dyn Val + 'v>], ExecutionError> {
    let items = value
        .downcast_ref::<CelList>()
        .ok_or_else(|| wrong_kind(function, "lists", value))?
        .inner();
    meter::steps(items.len() + 1)?;
    Ok(items)
}

/// A place in a sequence so long: what lies before or behind it is its start or its end.
fn clamped(place: i64, length: usize) -> usize {
    usize::try_from(place.max(0)).map_or(length, |place| place.min(length))
}

/// A text that a function gives, of a length that was looked at.
fn given_text<'b, 'v>(function: &str, text: impl Into<String>) -> Given<'b, 'v> {
    let text = text.into();
    bounded_text(function, text.len())?;
    Ok(CowVal::owned(CelString::from(text)))
}

fn bounded_text(function: &str, bytes: usize) -> Result<(), ExecutionError> {
    if bytes > MOST_TEXT {
        return Err(failed(function, format!("{function}() gives more than 4 MB of text")));
    }
    Ok(())
}

/// A list that a function gives.
fn given_list<'b, 'v>(
    function: &str,
    items: impl Iterator<Item = Box<dyn Val + 'v>>,
) -> Given<'b, 'v> {
    let items: Vec<Box<dyn Val + 'v>> = items.take(MOST_ITEMS + 1).collect();
    if items.len() > MOST_ITEMS {
        return Err(failed(function, format!("{function}() gives more than 1,000,000 items")));
    }
    Ok(CowVal::owned(CelList::from(items)))
}
