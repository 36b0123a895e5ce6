//! Parses a candidate: strict JSON, repaired JSON, or a block of `key: value` lines whose types the
//! contract gives.

mod block;

pub(crate) use block::{entries as block_entries, read as block, read_cut_off as block_cut_off};

use crate::code::Code;
use crate::edit::{self, Edit, OffsetMap};
use crate::extract::doubt::Refusal;
use crate::extract::prose;
use crate::extract::repair::MAX_EDITS;
use crate::json::{self, Fault, ParseFault};
use crate::policy::Policy;
use crate::report::Violation;
use crate::source::Source;
use crate::validate::{Detail, ParsedValue, ValueSpans, bare_violation, parse_violation};
use crate::work;
use std::borrow::Cow;

/// The text between two offsets with blanks in place of the quote markers of its lines, of which
/// there are `depth` on each. The first line has them only if it `starts_line`. Offsets stay as they
/// are.
pub(crate) fn blank_quotes(
    source: &Source<'_>,
    (start, end): (usize, usize),
    depth: u8,
    starts_line: bool,
) -> String {
    let text = source.slice(start, end);
    work::count_text(text.len());
    let mut blanked = String::with_capacity(text.len());
    let mut copied = 0;
    let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
    for line in starts_line.then_some(0).into_iter().chain(breaks) {
        let mut left = depth;
        for (offset, byte) in text.bytes().enumerate().skip(line) {
            match byte {
                b' ' | b'\t' => {}
                b'>' if left > 0 => {
                    left -= 1;
                    blanked.push_str(text.get(copied..offset).unwrap_or(""));
                    blanked.push(' ');
                    copied = offset + 1;
                }
                _ => break,
            }
        }
    }
    blanked.push_str(text.get(copied..).unwrap_or(""));
    blanked
}

/// The quote depth of the line of an offset.
pub(crate) fn quote_depth_at(source: &Source<'_>, at: usize) -> u8 {
    prose::quote_depth(source.bytes(), source.base(), at - source.base())
}

/// The text between two offsets without the quote markers of its lines.
pub(crate) fn without_quotes(source: &Source<'_>, start: usize, end: usize) -> String {
    blank_quotes(source, (start, end), quote_depth_at(source, start), false)
}

/// Parses the JSON between two offsets, with edits applied.
pub(crate) fn json<'t>(
    source: &Source<'t>,
    start: usize,
    end: usize,
    edits: &[Edit],
    policy: &Policy,
    detail: Detail,
) -> Result<ParsedValue<'t>, Option<Box<Violation>>> {
    let raw = source.slice(start, end);
    let (text, map) = if edits.is_empty() {
        (Cow::Borrowed(raw), OffsetMap::identity(start))
    } else {
        (Cow::Owned(edit::apply(raw, start, edits)), OffsetMap::from_edits(start, edits))
    };
    mapped_json(source, text, map, end, policy, detail)
}

/// Parses the JSON between two offsets without the quote markers of its lines.
pub(crate) fn quoted_json<'t>(
    source: &Source<'t>,
    (start, end): (usize, usize),
    depth: u8,
    starts_line: bool,
    policy: &Policy,
    detail: Detail,
) -> Result<ParsedValue<'t>, Option<Box<Violation>>> {
    let text = blank_quotes(source, (start, end), depth, starts_line);
    mapped_json(source, text.into(), OffsetMap::identity(start), end, policy, detail)
}

/// Parses JSON whose offsets a map turns into those of the source, up to `end` there.
fn mapped_json<'t>(
    source: &Source<'t>,
    text: Cow<'t, str>,
    map: OffsetMap,
    end: usize,
    policy: &Policy,
    detail: Detail,
) -> Result<ParsedValue<'t>, Option<Box<Violation>>> {
    let parsed = match json::parse(&text, policy.limits()) {
        Ok(parsed) => parsed,
        Err(fault) => {
            if detail == Detail::Probe {
                return Err(None);
            }
            let (at, _) = map.range(fault.at, fault.at);
            return Err(Some(Box::new(syntax_violation(
                source,
                &ParseFault { at, ..fault },
                end,
                policy,
            ))));
        }
    };
    let mut reading = ParsedValue::new(parsed.value, ValueSpans::none());
    if parsed.duplicates {
        note_duplicates(&mut reading, &text, &map, source, policy);
    }
    reading.spans = ValueSpans::from_json(text, map);
    Ok(reading)
}

/// Reports the keys that appear twice in one object: nobody knows which of two different values is
/// meant, so they are a violation.
fn note_duplicates(
    reading: &mut ParsedValue<'_>,
    text: &str,
    map: &OffsetMap,
    source: &Source<'_>,
    policy: &Policy,
) {
    for duplicate in json::duplicate_keys(text, policy.limits()) {
        let violation = policy.strict || duplicate.differs;
        let describe = || {
            let key = duplicate.pointer.rsplit('/').next().unwrap_or_default();
            let code = if violation { Code::DuplicateKey } else { Code::DuplicateKeyNote };
            let values = if duplicate.differs { "different values" } else { "the same value" };
            let message = format!("the key `{key}` appears twice in one object, with {values}");
            let mut note = bare_violation(code, &duplicate.pointer, message);
            let (start, end) = map.range(duplicate.key.0, duplicate.key.1);
            note.span = Some(source.span(start, end));
            note.expected = "each key once".into();
            note.received = format!("`{key}` again");
            note.hint = format!("write `{key}` once, with the value that is meant");
            note
        };
        let notes = if violation { &mut reading.violations } else { &mut reading.warnings };
        notes.push(describe);
    }
}

/// The violation of a value that could be repaired, but is not.
pub(crate) fn refusal_violation(
    source: &Source<'_>,
    refusal: &Refusal,
    end: usize,
    policy: &Policy,
) -> Violation {
    match refusal {
        Refusal::Truncated { at } => {
            let fault = ParseFault { fault: Fault::Truncated, at: *at };
            syntax_violation(source, &fault, end, policy)
        }
        Refusal::TooMany { at } => {
            let message = format!("the result needs more than {MAX_EDITS} repairs");
            let mut violation = bare_violation(Code::WorkLimit, "", message);
            violation.span = Some(source.span(*at, end));
            violation.expected = "JSON that needs few repairs".into();
            violation.received = "more repairs than the limit".into();
            violation.hint = "write strict JSON, or a shorter result".into();
            violation
        }
        Refusal::Ambiguous(found) => {
            let [first, second] = &found.readings;
            let message = format!("the result can be read in two ways: {first}; or {second}");
            let mut violation = bare_violation(Code::Ambiguous, "", message);
            violation.span = Some(source.span(found.start, found.end));
            violation.expected = "JSON with one reading".into();
            violation.received = format!("{first}; or {second}");
            violation.hint = found.hint.into();
            violation
        }
    }
}

/// The violation of a text that is not JSON; `fault.at` is an offset of the raw text.
pub(crate) fn syntax_violation(
    source: &Source<'_>,
    fault: &ParseFault,
    end: usize,
    policy: &Policy,
) -> Violation {
    let at = fault.at.min(end);
    let near: String =
        source.slice(at, end.min(at + 120)).chars().take(24).take_while(|c| *c != '\n').collect();
    let length = source.slice(at, end).chars().next().map_or(0, char::len_utf8);
    let near = if near.is_empty() && length > 0 { "a line break" } else { near.trim_end() };
    let template = fault.fault == Fault::Placeholder && !policy.placeholders;
    let syntax = ParseFault { fault: Fault::Syntax("expected a comma or the end".into()), at };
    parse_violation(
        if template { &syntax } else { fault },
        source.span(at, at + length),
        near,
        policy.limits(),
    )
}
