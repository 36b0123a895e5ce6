//! What can be read of the attempts in a text: the items of the lists that the contract salvages. An
//! attempt may be in another form than the contract asks for, it may break off, and a later one may
//! replace it.

use super::outside::{Form, Outside, OutsideAttempt};
use crate::contract::Contract;
use crate::edit;
use crate::extract::block::BlockScan;
use crate::extract::repair::Attempt;
use crate::extract::repair_scan::BlockRepairer;
use crate::extract::strict_scan::StrictScan;
use crate::json::{self, Beginning};
use crate::policy::{Policy, matches};
use crate::read;
use crate::report::SalvagedItems;
use crate::shown::Shown;
use crate::source::Source;
use crate::validate::{
    Detail, ParsedValue, ValidationOutcome, ValueSpans, innermost, select, validate,
};
use serde_json::Value;

/// The items of every attempt in a text that does not repeat what the agent was shown.
pub(crate) fn items_of_text(
    contract: &Contract,
    text: &str,
    policy: &Policy,
    shown: &Shown,
) -> SalvagedItems {
    let mut items = SalvagedItems::default();
    if policy.salvage.is_empty() || text.len() > policy.max_bytes {
        return items;
    }
    let source = Source::whole(text);
    let mut repairer = BlockRepairer::new(false);
    for attempt in attempts(contract, shown, &source) {
        let (outcome, open) = match attempt.form {
            Form::Block => (read_block(contract, policy, &attempt, &source), Vec::new()),
            Form::Json => {
                let Some(read) = read_json(&attempt, &source, policy, &mut repairer) else {
                    continue;
                };
                let value = without_open_item(read.value, &read.open, &policy.salvage);
                (validate_parsed(contract, policy, value), read.open)
            }
        };
        add_items(&outcome, &open, policy, &mut items);
    }
    items
}

/// The attempts in a text, in any form, that are not in a thinking section that has ended.
fn attempts(contract: &Contract, shown: &Shown, source: &Source<'_>) -> Vec<OutsideAttempt> {
    let keys = &contract.attempt_keys;
    let mut outside = Outside::default();
    let mut strict = StrictScan::new(0);
    strict.feed(source.bytes(), source.base(), true, &|key| keys.may_know(key));
    outside.add_json(&mut strict, contract, Some(shown), source);
    let mut blocks = BlockScan::new(0);
    blocks.feed(source.bytes(), source.base(), true);
    outside.add_blocks(&mut blocks, keys, Some(shown), source, true);
    let counts = |one: &&OutsideAttempt| !outside.is_thinking(one.start);
    outside.attempts.iter().filter(counts).copied().collect()
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

/// Reads JSON: as it is, with repairs, or up to where it breaks off.
fn read_json(
    attempt: &OutsideAttempt,
    source: &Source<'_>,
    policy: &Policy,
    repairer: &mut BlockRepairer,
) -> Option<Beginning> {
    let text = read::without_quotes(source, attempt.start, attempt.end);
    let beginning = json::parse_beginning(&text, policy.max_depth)?;
    if beginning.is_whole {
        return Some(beginning);
    }
    let repaired = match repairer.repair(source.bytes(), source.base(), attempt.start) {
        Attempt::Done { end, edits } | Attempt::Refused { end, edits, .. } => {
            let raw = source.slice(attempt.start, end);
            json::parse_beginning(&edit::apply(raw, attempt.start, &edits), policy.max_depth)
        }
        Attempt::Failed { .. } | Attempt::More => None,
    };
    Some(repaired.filter(|repaired| repaired.is_whole).unwrap_or(beginning))
}

/// The value without the item that is not complete.
fn without_open_item(mut value: Value, open: &[String], lists: &[String]) -> Value {
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
        match value.pointer_mut(&pointer_of(around)) {
            Some(Value::Array(items)) => drop(items.pop()),
            Some(Value::Object(members)) => drop(members.shift_remove(item)),
            _ => {}
        }
        break;
    }
    value
}

fn pointer_of(path: &[String]) -> String {
    path.iter().map(|token| format!("/{}", json::escape(token))).collect()
}

fn validate_parsed(contract: &Contract, policy: &Policy, value: Value) -> ValidationOutcome {
    let parsed = ParsedValue {
        value,
        spans: ValueSpans::none(),
        violations: Vec::new(),
        warnings: Vec::new(),
        coercions: Vec::new(),
    };
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
    let rejected: Vec<_> =
        outcome.rejected_items.iter().filter(|one| !is_inside(&open, &one.pointer)).collect();
    for list in innermost(&policy.salvage) {
        let found = select(&outcome.value, &format!("{list}/*")).into_iter();
        let valid = found
            .filter(|(pointer, _)| !rejected.iter().any(|one| is_inside(pointer, &one.pointer)));
        items.valid.extend(valid.map(|(_, item)| item.clone()));
    }
    items.rejected.extend(rejected.into_iter().cloned());
}
