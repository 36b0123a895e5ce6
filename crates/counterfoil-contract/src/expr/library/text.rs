//! Functions on strings. Positions count characters, as everywhere in CEL.

use super::{
    FunctionResult, MAX_TEXT_BYTES, arguments, check_text_size, clamped, function_error, int_arg,
    list_arg, list_result, string_arg, string_result,
};
use crate::task_list;
use cel::ExecutionError;
use cel::common::types::{CelBool, CelInt, CelString};
use cel::common::value::{CowVal, Val};
use regex::Regex;
use std::cell::RefCell;
use std::collections::HashMap;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The maximum length of a slug.
const MAX_SLUG_CHARS: usize = 60;

fn boxed<'v>(part: &str) -> Box<dyn Val + 'v> {
    Box::new(CelString::from(part.to_owned()))
}

/// `split`: the parts between separators; with an empty separator, the characters.
pub(super) fn split<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    let [text, separator] = arguments(args)?;
    let (text, separator) =
        (string_arg("split", text.as_ref())?, string_arg("split", separator.as_ref())?);
    check_text_size("split", text.len())?;
    if separator.is_empty() {
        return list_result(
            "split",
            text.chars().map(|character| boxed(character.encode_utf8(&mut [0; 4]))),
        );
    }
    list_result("split", text.split(separator).map(boxed))
}

/// `lines`: the lines without their line breaks.
pub(super) fn lines<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    let [text] = arguments(args)?;
    let text = string_arg("lines", text.as_ref())?;
    check_text_size("lines", text.len())?;
    list_result("lines", text.lines().map(boxed))
}

pub(super) fn open_tasks<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    tasks("openTasks", args, task_list::open_tasks)
}

pub(super) fn ticked_tasks<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    tasks("tickedTasks", args, task_list::ticked_tasks)
}

fn tasks<'b, 'v>(
    function: &'static str,
    args: Vec<CowVal<'b, 'v>>,
    read: fn(&str) -> Vec<String>,
) -> FunctionResult<'b, 'v> {
    let [text] = arguments(args)?;
    let text = string_arg(function, text.as_ref())?;
    check_text_size(function, text.len())?;
    list_result(function, read(text).iter().map(|id| boxed(id)))
}

pub(super) fn trim<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    let [text] = arguments(args)?;
    string_result("trim", string_arg("trim", text.as_ref())?.trim())
}

/// The number of compiled patterns that are kept; all are dropped when there are more.
const MAX_PATTERNS: usize = 256;

thread_local! {
    /// The patterns that were compiled. A guard matches the same ones many times.
    static PATTERNS: RefCell<HashMap<String, Regex>> = RefCell::default();
}

/// `matches`: whether a text has a match of a regular expression.
pub(super) fn matches<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    let [text, pattern] = arguments(args)?;
    let text = string_arg("matches", text.as_ref())?;
    let pattern = compiled(string_arg("matches", pattern.as_ref())?)?;
    Ok(CowVal::owned(CelBool::from(pattern.is_match(text))))
}

/// `findAll`: the matches of a regular expression in a text, or what its first group matches.
pub(super) fn find_all<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    let [text, pattern] = arguments(args)?;
    let text = string_arg("findAll", text.as_ref())?;
    let pattern = compiled(string_arg("findAll", pattern.as_ref())?)?;
    let found = pattern.captures_iter(text).filter_map(|found| found.get(1).or(found.get(0)));
    check_text_size("findAll", text.len())?;
    list_result("findAll", found.map(|found| boxed(found.as_str())))
}

/// The function that errors about patterns name: `matches` and `findAll` share it.
pub(in crate::expr) const PATTERN_FUNCTION: &str = "@pattern";

/// Checks that a text is a regular expression.
pub(in crate::expr) fn check_pattern(pattern: &str) -> Result<(), ExecutionError> {
    compiled(pattern).map(|_| ())
}

/// A pattern, compiled once.
fn compiled(pattern: &str) -> Result<Regex, ExecutionError> {
    PATTERNS.with_borrow_mut(|patterns| {
        if let Some(known) = patterns.get(pattern) {
            return Ok(known.clone());
        }
        let compiled = Regex::new(pattern).map_err(|error| {
            function_error(PATTERN_FUNCTION, format!("'{pattern}' not a valid regex:\n{error}"))
        })?;
        if patterns.len() >= MAX_PATTERNS {
            patterns.clear();
        }
        Ok(patterns.entry(pattern.to_owned()).or_insert(compiled).clone())
    })
}

pub(super) fn lower_ascii<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    let [text] = arguments(args)?;
    string_result("lowerAscii", string_arg("lowerAscii", text.as_ref())?.to_ascii_lowercase())
}

pub(super) fn upper_ascii<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    let [text] = arguments(args)?;
    string_result("upperAscii", string_arg("upperAscii", text.as_ref())?.to_ascii_uppercase())
}

/// `replace`: replaces every occurrence. The empty string matches around each character, as in
/// CEL's own extension.
pub(super) fn replace<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    let [text, part, by] = arguments(args)?;
    let (text, part) =
        (string_arg("replace", text.as_ref())?, string_arg("replace", part.as_ref())?);
    let by = string_arg("replace", by.as_ref())?;
    // Checked before the string is built: two small strings can produce a very large one.
    let times = text.matches(part).count();
    check_text_size(
        "replace",
        (text.len() - times * part.len()).saturating_add(times.saturating_mul(by.len())),
    )?;
    string_result("replace", text.replace(part, by))
}

/// `slug`: a name for files and branches, made of lower-case ASCII letters and digits in words
/// joined by `-`; never empty. Accents are removed; other characters separate words. Words beyond
/// the maximum length are dropped, and a first word that is too long is truncated.
pub(super) fn slug<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    let [text] = arguments(args)?;
    let text = string_arg("slug", text.as_ref())?;
    let mut slug = String::new();
    let mut word = String::new();
    let plain = text.nfkd().filter(|character| !is_combining_mark(*character));
    for character in plain.chain([' ']) {
        if character.is_ascii_alphanumeric() {
            // Characters beyond the limit are not needed.
            if word.len() <= MAX_SLUG_CHARS {
                word.push(character.to_ascii_lowercase());
            }
        } else if !word.is_empty() {
            if slug.is_empty() {
                word.truncate(MAX_SLUG_CHARS);
                slug = std::mem::take(&mut word);
            } else if slug.len() + 1 + word.len() <= MAX_SLUG_CHARS {
                slug.push('-');
                slug.push_str(&word);
                word.clear();
            } else {
                break;
            }
        }
    }
    string_result("slug", if slug.is_empty() { "item".to_owned() } else { slug })
}

/// `indexOf`: the position of the first occurrence, or -1.
pub(super) fn index_of<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    let [text, part] = arguments(args)?;
    let (text, part) =
        (string_arg("indexOf", text.as_ref())?, string_arg("indexOf", part.as_ref())?);
    let position = text.find(part).map(|bytes| text[..bytes].chars().count());
    let position = position.map_or(-1, |position| i64::try_from(position).unwrap_or(i64::MAX));
    Ok(CowVal::owned(CelInt::from(position)))
}

/// `substring`: the characters from one position up to another.
pub(super) fn substring<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    let [text, from, to] = arguments(args)?;
    let text = string_arg("substring", text.as_ref())?;
    let from = clamped(int_arg("substring", from.as_ref())?, text.len());
    let to = clamped(int_arg("substring", to.as_ref())?, text.len());
    let long = to.saturating_sub(from);
    let rest = text.char_indices().nth(from).map_or("", |(bytes, _)| &text[bytes..]);
    let part = rest.char_indices().nth(long).map_or(rest, |(bytes, _)| &rest[..bytes]);
    string_result("substring", part)
}

/// `join`: the strings of a list with a separator between them.
pub(super) fn join<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    let [list, separator] = arguments(args)?;
    let (items, separator) =
        (list_arg("join", list.as_ref())?, string_arg("join", separator.as_ref())?);
    let mut joined = String::new();
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            joined.push_str(separator);
        }
        joined.push_str(string_arg("join", item.as_ref())?);
        if joined.len() > MAX_TEXT_BYTES {
            break;
        }
    }
    string_result("join", joined)
}
