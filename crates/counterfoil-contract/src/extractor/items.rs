//! What can be read of the attempts in a text, and the items of the lists that the contract salvages.
//! An attempt may be in another form than the contract asks for, it may break off, and a later one may
//! replace it.

use super::outside::{Form, Outside, OutsideAttempt};
use crate::code::Code;
use crate::contract::Contract;
use crate::edit;
use crate::extract::block::BlockScan;
use crate::extract::repair::Attempt;
use crate::extract::repair_scan::BlockRepairer;
use crate::extract::strict_scan::StrictScan;
use crate::json::{self, Beginning};
use crate::nothing;
use crate::policy::{Policy, UnknownFields, matches};
use crate::read;
use crate::report::{RefusedResult, RejectedItem, SalvagedItems};
use crate::shown::Shown;
use crate::source::Source;
use crate::validate::{
    Detail, ParsedValue, ValidationOutcome, ValueSpans, bare_violation, innermost, select, validate,
};
use serde_json::Value;
use std::collections::HashSet;

/// How often each byte of a text may be examined before nothing is repaired any more.
const MAX_EXAMINED: u64 = 8;

/// The items of every attempt in a text that does not repeat what the agent was shown, and how many
/// bytes were examined to find them.
pub(crate) fn items_of_text(
    contract: &Contract,
    text: &str,
    policy: &Policy,
    shown: &Shown,
) -> (SalvagedItems, u64) {
    let mut items = SalvagedItems::default();
    let is_read = !policy.salvage.is_empty() || policy.unknown_fields == UnknownFields::Refuse;
    if !is_read || text.len() > policy.max_bytes {
        return (items, 0);
    }
    let source = Source::whole(text);
    let mut repairer = BlockRepairer::new(false);
    let (attempts, mut examined) = attempts(contract, shown, &source);
    let mut read_to = 0;
    for attempt in attempts {
        // What is inside of a value that could be read is a part of it.
        if attempt.start < read_to {
            continue;
        }
        examined += (attempt.end - attempt.start) as u64;
        let (outcome, open) = match attempt.form {
            Form::Block => (read_block(contract, policy, &attempt, &source), Vec::new()),
            Form::Json => {
                // A repair may reach to the end of the text, from every attempt.
                let may_repair = examined <= MAX_EXAMINED * text.len() as u64;
                let repairer = may_repair.then_some(&mut repairer);
                let Some((mut read, end)) = read_json(&attempt, &source, policy, repairer) else {
                    continue;
                };
                examined += (end - attempt.start) as u64;
                if read.is_whole {
                    read_to = end;
                }
                let cut_off = take_open_item(&mut read, &policy.salvage);
                items.rejected.extend(cut_off.filter(|item| has_text(&item.value)));
                (validate_parsed(contract, policy, read.value), read.open)
            }
        };
        add_items(&outcome, &open, policy, &mut items);
        let ValidationOutcome { value, violations, .. } = outcome;
        let (violations, _) = violations.into_parts();
        items.results.push(RefusedResult { value, violations });
    }
    (items, examined + repairer.examined())
}

/// The attempts in a text, in any form, that are not in a thinking section that has ended, and how
/// many bytes were examined.
fn attempts(contract: &Contract, shown: &Shown, source: &Source<'_>) -> (Vec<OutsideAttempt>, u64) {
    let keys = &contract.attempt_keys;
    let mut outside = Outside::default();
    let mut strict = StrictScan::new(0);
    loop {
        let is_done = strict.feed(source.bytes(), source.base(), true, &|key| keys.may_know(key));
        outside.add_json(&mut strict, contract, Some(shown), source);
        if is_done {
            break;
        }
    }
    let mut blocks = BlockScan::new(0);
    blocks.feed(source.bytes(), source.base(), true);
    outside.add_blocks(&mut blocks, keys, Some(shown), source, true);
    let counts = |one: &&OutsideAttempt| !outside.is_thinking(one.start);
    let attempts = outside.attempts.iter().filter(counts).copied().collect();
    (attempts, strict.examined() + blocks.examined)
}

/// Reads the lines of an output block. The last one may be cut off by the end of the text.
fn read_block(
    contract: &Contract,
    policy: &Policy,
    attempt: &OutsideAttempt,
    source: &Source<'_>,
) -> ValidationOutcome {
    let lines = source.slice(attempt.start, attempt.end);
    let end = match lines.rfind('\n') {
        Some(newline) if attempt.end == source.end() => attempt.start + newline + 1,
        _ => attempt.end,
    };
    let parsed = read::block(contract, source, attempt.start, end, policy);
    validate(contract, policy, parsed, source, Detail::Full)
}

/// Reads JSON: as it is, with repairs, or up to where it breaks off. Also returns its end.
fn read_json(
    attempt: &OutsideAttempt,
    source: &Source<'_>,
    policy: &Policy,
    repairer: Option<&mut BlockRepairer>,
) -> Option<(Beginning, usize)> {
    let text = read::without_quotes(source, attempt.start, attempt.end);
    let beginning = json::parse_beginning(&text, policy.limits())?;
    let repaired = match repairer.filter(|_| !beginning.is_whole) {
        Some(repairer) => repairer.repair(source.bytes(), source.base(), attempt.start),
        None => return Some((beginning, attempt.end)),
    };
    let (end, edits) = match repaired {
        Attempt::Done { end, edits } | Attempt::Refused { end, edits, .. } => (end, edits),
        Attempt::Failed { .. } | Attempt::More => return Some((beginning, attempt.end)),
    };
    let repaired = edit::apply(source.slice(attempt.start, end), attempt.start, &edits);
    let repaired = json::parse_beginning(&repaired, policy.limits());
    Some((repaired.filter(|repaired| repaired.is_whole).unwrap_or(beginning), end))
}

/// Takes the item out that is not complete.
fn take_open_item(read: &mut Beginning, lists: &[String]) -> Option<RejectedItem> {
    let open = &read.open;
    for list in innermost(lists) {
        let pattern = format!("{list}/*");
        let length = pattern.matches('/').count();
        // An envelope may be around the result.
        let found = (0..open.len()).find(|from| {
            let inner = open.get(*from..*from + length);
            inner.is_some_and(|inner| matches(&pattern, &format!("/{}", inner.join("/"))))
        });
        let Some(from) = found else { continue };
        let Some((item, around)) = open[..from + length].split_last() else { continue };
        let value = match read.value.pointer_mut(&pointer_of(around)) {
            Some(Value::Array(items)) => items.pop(),
            Some(Value::Object(members)) => members.shift_remove(item),
            _ => None,
        };
        let pointer = pointer_of(&open[from..from + length]);
        let message = "it is cut off".to_owned();
        let violations = vec![bare_violation(Code::Truncated, &pointer, message)];
        return Some(RejectedItem { pointer, violations, value: value? });
    }
    None
}

/// Whether a value says anything in words.
fn has_text(value: &Value) -> bool {
    match value {
        Value::String(_) => !nothing::is_empty(value),
        Value::Array(items) => items.iter().any(has_text),
        Value::Object(members) => members.values().any(has_text),
        _ => false,
    }
}

fn pointer_of(path: &[String]) -> String {
    path.iter().map(|token| format!("/{}", json::escape(token))).collect()
}

fn validate_parsed(contract: &Contract, policy: &Policy, value: Value) -> ValidationOutcome {
    let parsed = ParsedValue::new(value, ValueSpans::none());
    validate(contract, policy, parsed, &Source::whole(""), Detail::Full)
}

/// Adds the items of one attempt. What is around an item that is not complete is not complete
/// either, so its violations say nothing about the items in it.
fn add_items(
    outcome: &ValidationOutcome,
    open: &[String],
    policy: &Policy,
    items: &mut SalvagedItems,
) {
    let open = pointer_of(open.get(outcome.unwrapped.len()..).unwrap_or_default());
    let is_inside = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let salvaged = &outcome.salvaged;
    let rejected: Vec<_> =
        salvaged.rejected_items.iter().filter(|one| !is_inside(&open, &one.pointer)).collect();
    let others = salvaged.others.iter().filter(|one| !is_inside(&open, one));
    let wrong: HashSet<&str> =
        rejected.iter().map(|one| one.pointer.as_str()).chain(others.map(String::as_str)).collect();
    let is_wrong = |pointer: &str| {
        let ends = pointer.match_indices('/').map(|(at, _)| at).chain([pointer.len()]);
        ends.map(|end| &pointer[..end]).any(|outer| wrong.contains(outer))
    };
    for list in innermost(&policy.salvage) {
        let found = select(&outcome.value, &format!("{list}/*")).into_iter();
        let valid = found.filter(|(pointer, _)| !is_wrong(pointer));
        items.valid.extend(valid.map(|(_, item)| item.clone()));
    }
    items.rejected.extend(rejected.into_iter().cloned());
}
