//! The run-time environment of templates: filters and tests, conversion of JSON to template values,
//! and output, all within limits.

use minijinja::value::{
    Enumerator, Kwargs, Object, Rest, StringInput, ValueKind, ValueOrKwargs, from_args,
};
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value as Data,
    filters,
};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use super::syntax;

/// The maximum length of a rendered text.
pub(super) const MAX_OUTPUT_BYTES: usize = 16 << 20;
/// The maximum number of parts that `batch` and `slice` accept.
const MAX_LIST_PARTS: usize = 10_000;
/// The key of the counter of bytes written by expressions.
const WRITTEN_KEY: &str = "counterfoil.written";
/// The key of the counter of bytes that filters made.
const MADE_KEY: &str = "counterfoil.made";
/// The maximum length of all the texts that filters make while a template is rendered: a list or the
/// variables of a template can hold many of them at once.
const MAX_MADE_BYTES: usize = 128 << 20;

/// An environment without templates: plain text, no escaping, strict about missing values.
pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_syntax(syntax::config());
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    // A missing value can be tested for truth; any other use is an error.
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.set_formatter(write);
    environment.set_unknown_method_callback(method);
    // A missing field and a null value are both absent, so that one guard covers both.
    environment.add_test("none", is_absent);
    environment.add_test("undefined", is_absent);
    environment.add_test("defined", |value: &Data| !is_absent(value));
    environment.add_filter("default", or_default);
    environment.add_filter("d", or_default);
    environment.add_filter("tojson", to_json);
    environment.add_filter("replace", replace);
    environment.add_filter("join", join);
    environment.add_filter("indent", indent);
    environment.add_filter("batch", batch);
    environment.add_filter("slice", slice);
    environment.add_filter("format", format);
    environment.add_filter("chain", chain);
    environment
        .add_filter("pprint", |state: &mut State, value: &Data| made(state, json(value, Some(2))?));
    environment.add_filter("upper", |state: &mut State, text: StringInput<'_>| {
        made_value(state, filters::upper(text))
    });
    environment.add_filter("lower", |state: &mut State, text: StringInput<'_>| {
        made_value(state, filters::lower(text))
    });
    environment.add_filter("title", |state: &mut State, text: Cow<'_, str>| {
        made(state, filters::title(text))
    });
    environment.add_filter("capitalize", |state: &mut State, text: StringInput<'_>| {
        made_value(state, filters::capitalize(text))
    });
    environment.add_filter(
        "trim",
        |state: &mut State, text: StringInput<'_>, ends: Option<Cow<'_, str>>| {
            made_value(state, filters::trim(text, ends))
        },
    );
    environment.add_test("divisibleby", is_divisible);
    environment.add_function("range", range);
    // `namespace` would let a loop double a text repeatedly, and `debug` prints internals.
    environment.remove_global("namespace");
    environment.remove_global("debug");
    environment
}

/// Converts JSON to a template value. Objects keep the order of their members.
pub(super) fn data(value: &Value) -> Data {
    match value {
        Value::Null => Data::from(()),
        Value::Bool(flag) => Data::from(*flag),
        Value::String(text) => Data::from(text.as_str()),
        Value::Number(number) => {
            match (number.as_i64(), number.as_f64().filter(|float| float.is_finite())) {
                (Some(int), _) => Data::from(int),
                (None, float) => match (number.to_string().parse::<i128>(), float) {
                    (Ok(int), _) => Data::from(int),
                    (Err(_), Some(float)) => Data::from(float),
                    (Err(_), None) => Data::from(number.to_string()),
                },
            }
        }
        Value::Array(items) => Data::from(items.iter().map(data).collect::<Vec<_>>()),
        Value::Object(members) => Data::from_object(Members {
            names: members.keys().map(|name| Data::from(name.as_str())).collect(),
            values: members.iter().map(|(name, value)| (name.clone(), data(value))).collect(),
        }),
    }
}

/// A JSON object that keeps the order of its members.
#[derive(Debug)]
struct Members {
    names: Vec<Data>,
    values: HashMap<String, Data>,
}

impl Object for Members {
    fn get_value(self: &Arc<Self>, key: &Data) -> Option<Data> {
        self.values.get(key.as_str()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.names.clone())
    }
}

/// Collects the rendered text up to the maximum length.
#[derive(Debug, Default)]
pub(super) struct BoundedOutput {
    pub(super) text: Vec<u8>,
}

impl io::Write for BoundedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.text.len() + bytes.len() > MAX_OUTPUT_BYTES {
            return Err(io::Error::other("too long"));
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn too_long(what: &str) -> Error {
    Error::new(
        ErrorKind::WriteFailure,
        format!("{what} is longer than {} MiB", MAX_OUTPUT_BYTES >> 20),
    )
}

/// Counts a text that a filter made.
fn made(state: &mut State, text: String) -> Result<String, Error> {
    count_made(state, text.len())?;
    Ok(text)
}

/// Counts a text that a filter made.
fn made_value(state: &mut State, text: Data) -> Result<Data, Error> {
    count_made(state, text.as_str().map_or(0, str::len))?;
    Ok(text)
}

fn count_made(state: &mut State, bytes: usize) -> Result<(), Error> {
    let before = state.get_temp(MADE_KEY).and_then(|count| count.as_usize()).unwrap_or(0);
    let all = before.saturating_add(bytes);
    if all > MAX_MADE_BYTES {
        return Err(Error::new(
            ErrorKind::WriteFailure,
            format!("what the filters make is longer than {} MiB", MAX_MADE_BYTES >> 20),
        ));
    }
    state.set_temp(MADE_KEY, Data::from(all));
    Ok(())
}

fn within_output_limit<T>(length: usize, what: &str, text: impl FnOnce() -> T) -> Result<T, Error> {
    if length > MAX_OUTPUT_BYTES { Err(too_long(what)) } else { Ok(text()) }
}

/// Formats a value: lists and objects as compact JSON, booleans as in JSON, an absent value as an
/// empty string.
fn write(out: &mut Output, state: &mut State, value: &Data) -> Result<(), Error> {
    let text = match value.kind() {
        ValueKind::Undefined | ValueKind::None => return Ok(()),
        ValueKind::Map | ValueKind::Seq | ValueKind::Iterable => json(value, None)?,
        ValueKind::Bool => value.is_true().to_string(),
        _ => match value.as_str() {
            Some(text) => return emit(out, state, text),
            None => value.to_string(),
        },
    };
    emit(out, state, &text)
}

/// Writes a text and counts its bytes, including text that a block captures.
fn emit(out: &mut Output, state: &mut State, text: &str) -> Result<(), Error> {
    let before = state.get_temp(WRITTEN_KEY).and_then(|count| count.as_usize()).unwrap_or(0);
    let written = before.saturating_add(text.len());
    if written > 2 * MAX_OUTPUT_BYTES {
        return Err(too_long("the rendered text"));
    }
    state.set_temp(WRITTEN_KEY, Data::from(written));
    Ok(out.write_str(text)?)
}

fn json(value: &Data, indent: Option<usize>) -> Result<String, Error> {
    use serde::Serialize as _;
    let mut bytes = BoundedOutput::default();
    let done = match indent {
        None => serde_json::to_writer(&mut bytes, value),
        Some(width) => {
            let unit = " ".repeat(width);
            let style = serde_json::ser::PrettyFormatter::with_indent(unit.as_bytes());
            value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, style))
        }
    };
    done.map_err(|error| match error.classify() {
        serde_json::error::Category::Io => too_long("the JSON"),
        _ => Error::new(
            ErrorKind::BadSerialization,
            format!("the value cannot be written as JSON: {error}"),
        ),
    })?;
    String::from_utf8(bytes.text)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
}

fn is_absent(value: &Data) -> bool {
    value.is_undefined() || value.is_none()
}

/// `default(other)` replaces an absent value, `default(other, true)` also one that is empty, zero or
/// false.
fn or_default(value: &Data, other: Option<Data>, empty_too: Option<bool>) -> Data {
    if is_absent(value) || (empty_too.unwrap_or(false) && !value.is_true()) {
        other.unwrap_or_else(|| Data::from(""))
    } else {
        value.clone()
    }
}

/// JSON without HTML escapes. `indent` is a number of spaces, or true for two.
#[allow(clippy::needless_pass_by_value)] // Required by the signature of filters.
fn to_json(
    state: &mut State,
    value: &Data,
    indent: Option<Data>,
    named: Kwargs,
) -> Result<String, Error> {
    let indent = match indent {
        Some(indent) => Some(indent),
        None => named.get::<Option<Data>>("indent")?,
    };
    named.assert_all_used()?;
    let width = match indent {
        None => None,
        Some(indent) if indent.kind() == ValueKind::Bool => indent.is_true().then_some(2),
        Some(indent) => match indent.as_usize() {
            Some(width) if width <= 16 => Some(width),
            _ => {
                let message = format!("tojson indents by 0 to 16 spaces, not by {indent}");
                return Err(Error::new(ErrorKind::InvalidOperation, message));
            }
        },
    };
    made(state, json(value, width)?)
}

#[allow(clippy::needless_pass_by_value)] // As above.
fn replace(state: &mut State, value: String, from: String, to: String) -> Result<String, Error> {
    let occurrences = value.matches(from.as_str()).count();
    let text = within_output_limit(
        value.len().saturating_add(occurrences.saturating_mul(to.len())),
        "the replaced text",
        || value.replace(from.as_str(), &to),
    )?;
    made(state, text)
}

#[allow(clippy::needless_pass_by_value)] // As above.
fn join(
    state: &mut State,
    value: &Data,
    between: Option<String>,
    named: Kwargs,
) -> Result<String, Error> {
    let between = match between {
        Some(between) => between,
        None => named.get::<Option<String>>("d")?.unwrap_or_default(),
    };
    let attribute = named.get::<Option<String>>("attribute")?;
    named.assert_all_used()?;
    let mut text = String::new();
    for (index, item) in value.try_iter()?.enumerate() {
        let item = match &attribute {
            Some(path) => path.split('.').try_fold(item, |item, name| item.get_attr(name))?,
            None => item,
        };
        if index > 0 {
            text.push_str(&between);
        }
        match item.as_str() {
            Some(item) => text.push_str(item),
            None if is_absent(&item) => {}
            None => text.push_str(&json(&item, None)?),
        }
        if text.len() > MAX_OUTPUT_BYTES {
            return Err(too_long("the joined text"));
        }
    }
    made(state, text)
}

#[allow(clippy::needless_pass_by_value)] // As above.
fn indent(state: &mut State, value: &Data, settings: Rest<Data>) -> Result<String, Error> {
    let (width, first, blank, named): (Option<usize>, Option<bool>, Option<bool>, Kwargs) =
        from_args(&settings)?;
    let width = match width {
        Some(width) => width,
        None => named.get::<Option<usize>>("width")?.unwrap_or(4),
    };
    let first = match first {
        Some(first) => first,
        None => named.get::<Option<bool>>("first")?.unwrap_or(false),
    };
    let blank = match blank {
        Some(blank) => blank,
        None => named.get::<Option<bool>>("blank")?.unwrap_or(false),
    };
    named.assert_all_used()?;
    let text = value.to_string();
    let lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let text = within_output_limit(
        text.len().saturating_add(lines.saturating_mul(width)),
        "the indented text",
        || {
            let margin = " ".repeat(width);
            let mut indented = String::with_capacity(text.len());
            for (index, line) in text.split_inclusive('\n').enumerate() {
                let is_blank = line.trim_end_matches(['\n', '\r']).is_empty();
                if (index > 0 || first) && (!is_blank || blank) {
                    indented.push_str(&margin);
                }
                indented.push_str(line);
            }
            indented
        },
    )?;
    made(state, text)
}

fn format(state: &mut State, pattern: &Data, values: Rest<ValueOrKwargs>) -> Result<Data, Error> {
    let widths = pattern.as_str().unwrap_or_default().split(|c: char| !c.is_ascii_digit());
    if widths.max_by_key(|digits| digits.len()).is_some_and(|digits| digits.len() > 4)
        || pattern.as_str().is_some_and(|pattern| pattern.contains('*'))
    {
        let message =
            "format pads to at most 9999 characters, and the width must be part of the pattern";
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    let text = filters::format(state, pattern, values)?;
    made_value(state, text)
}

/// Concatenates lists into a list of known length.
#[allow(clippy::needless_pass_by_value)] // As above.
fn chain(value: &Data, others: Rest<Data>) -> Result<Data, Error> {
    let mut items = Vec::new();
    for list in std::iter::once(value).chain(others.iter()) {
        items.extend(list.try_iter()?);
    }
    Ok(Data::from(items))
}

fn batch(state: &State, value: Data, count: usize, fill: Option<Data>) -> Result<Data, Error> {
    minijinja::filters::batch(state, value, list_parts(count)?, fill)
}

fn slice(state: &State, value: Data, count: usize, fill: Option<Data>) -> Result<Data, Error> {
    minijinja::filters::slice(state, value, list_parts(count)?, fill)
}

fn list_parts(count: usize) -> Result<usize, Error> {
    if (1..=MAX_LIST_PARTS).contains(&count) {
        Ok(count)
    } else {
        let message = format!("a list can be split into 1 to {MAX_LIST_PARTS} parts, not {count}");
        Err(Error::new(ErrorKind::InvalidOperation, message))
    }
}

/// Whether a number is a multiple of another. No number is a multiple of zero.
fn is_divisible(value: &Data, by: &Data) -> bool {
    match (value.as_i64(), by.as_i64()) {
        (Some(value), Some(by)) => value.checked_rem(by) == Some(0),
        _ => false,
    }
}

/// `range` with 32-bit arguments, so that no step can overflow.
fn range(lower: i32, upper: Option<i32>, step: Option<i32>) -> Result<Data, Error> {
    let wide = |number: i32| number as isize;
    minijinja::functions::range(wide(lower), upper.map(wide), step.map(wide))
}

/// The methods of objects: a subset of those of Python dictionaries.
fn method(state: &mut State, value: &Data, name: &str, args: &[Data]) -> Result<Data, Error> {
    if value.kind() != ValueKind::Map {
        return Err(Error::from(ErrorKind::UnknownMethod));
    }
    match name {
        "items" => {
            let () = from_args(args)?;
            state.apply_filter("items", std::slice::from_ref(value))
        }
        "keys" => {
            let () = from_args(args)?;
            Ok(value.try_iter()?.collect())
        }
        "values" => {
            let () = from_args(args)?;
            value
                .try_iter()?
                .map(|key| value.get_item(&key))
                .collect::<Result<Vec<_>, _>>()
                .map(Data::from)
        }
        "get" => {
            let (key, other): (&Data, Option<Data>) = from_args(args)?;
            let found = value.get_item(key)?;
            Ok(if found.is_undefined() { other.unwrap_or(Data::from(())) } else { found })
        }
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}
