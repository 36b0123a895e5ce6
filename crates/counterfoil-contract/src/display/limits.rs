//! What keeps a display template small: without variables of its own and with filters whose output
//! is bounded, what it makes is at most as large as the result, once for each name in the template.

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, StringInput};
use minijinja::{Environment, Error, ErrorKind, State, Value as Data, filters};
use serde_json::Value;

/// The longest template.
const MAX_SOURCE_BYTES: usize = 4 << 10;
/// The largest result that is rendered.
const MAX_RESULT_BYTES: usize = 8 << 20;
/// The most bytes that a template can make of a result.
const MAX_MADE_BYTES: usize = 128 << 20;
/// The most bytes that all filters of a template add to their input.
const MAX_ADDED_BYTES: usize = 1 << 20;
/// Under which name they are counted.
const ADDED: &str = "added";
/// The tags that make no value.
const TAGS: [&str; 8] = ["if", "elif", "else", "endif", "for", "endfor", "raw", "endraw"];

/// Filters that repeat, pad or copy.
const REMOVED_FILTERS: [&str; 12] = [
    "batch",
    "chain",
    "e",
    "escape",
    "format",
    "groupby",
    "indent",
    "pprint",
    "slice",
    "tojson",
    "urlencode",
    "zip",
];
const REMOVED_FUNCTIONS: [&str; 4] = ["debug", "dict", "namespace", "range"];

/// Checks the syntax of a template that keeps it small. Returns the number of its names.
pub(super) fn check(template: &str) -> Result<usize, String> {
    if template.len() > MAX_SOURCE_BYTES {
        let (bytes, most) = (template.len(), MAX_SOURCE_BYTES >> 10);
        return Err(format!("the template has {bytes} bytes, more than {most} KiB"));
    }
    let (mut names, mut opens_tag) = (0, false);
    for token in tokenize(template, false, SyntaxConfig::default()) {
        let (token, _) = token.map_err(|error| error.to_string())?;
        match token {
            Token::Ident(tag) if opens_tag && !TAGS.contains(&tag) => {
                return Err(format!("a display has no tag '{tag}': it has if and for"));
            }
            Token::Ident("recursive") => {
                return Err("a display has no recursive loop".to_owned());
            }
            Token::Ident(_) => names += 1,
            Token::Mul | Token::Pow => {
                return Err("a display does not multiply: it could repeat a text".to_owned());
            }
            _ => {}
        }
        opens_tag = matches!(token, Token::BlockStart);
    }
    Ok(names)
}

/// Refuses a result of which a template with this many names could make too much.
pub(super) fn check_result(result: &Value, names: usize) -> Result<(), String> {
    let bytes = bytes(result);
    let most = MAX_RESULT_BYTES.min(MAX_MADE_BYTES / names.max(1));
    if bytes <= most {
        return Ok(());
    }
    Err(format!("the result has {} MiB, more than {} MiB", bytes >> 20, most >> 20))
}

/// About how many bytes a value has as text.
fn bytes(value: &Value) -> usize {
    1 + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes).sum(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| key.len() + bytes(value)).sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
    }
}

/// An environment without the filters and functions that make long texts of short ones.
pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    for name in REMOVED_FILTERS {
        environment.remove_filter(name);
    }
    for name in REMOVED_FUNCTIONS {
        environment.remove_global(name);
    }
    environment.add_filter("join", join);
    environment.add_filter("replace", replace);
    environment
}

fn join(
    state: &mut State,
    list: &Data,
    joiner: Option<StringInput<'_>>,
    attribute: Option<&str>,
    named: Kwargs,
) -> Result<Data, Error> {
    let between = match &joiner {
        Some(joiner) => joiner.as_str().len(),
        None => named.peek::<Option<&str>>("d")?.map_or(0, str::len),
    };
    let items = match list.len() {
        Some(items) => items,
        None => list.try_iter()?.count(),
    };
    count_added(state, between.saturating_mul(items))?;
    filters::join(state, list, joiner, attribute, named)
}

fn replace(
    state: &mut State,
    text: StringInput<'_>,
    from: StringInput<'_>,
    to: StringInput<'_>,
) -> Result<Data, Error> {
    let found = text.as_str().matches(from.as_str()).count();
    count_added(state, found.saturating_mul(to.as_str().len()))?;
    filters::replace(state, text, from, to)
}

/// Counts what a filter adds, and refuses more than all of them may.
fn count_added(state: &mut State, bytes: usize) -> Result<(), Error> {
    let before = state.get_temp(ADDED).and_then(|count| count.as_usize()).unwrap_or(0);
    let all = before.saturating_add(bytes);
    if all > MAX_ADDED_BYTES {
        let message = format!("the filters add more than {} MiB", MAX_ADDED_BYTES >> 20);
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    state.set_temp(ADDED, Data::from(all));
    Ok(())
}
