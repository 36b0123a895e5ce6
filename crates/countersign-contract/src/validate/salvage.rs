//! What can be kept of a rejected result: the good items of the lists a contract names. Nothing is dropped silently:
//! every item left out stands in the report with its reasons.

use crate::json::escape;
use crate::report::{RejectedItem, Violation};
use serde_json::Value;

/// The salvaged value and the items left out of it.
pub(crate) fn salvage(value: &Value, violations: &[Violation], lists: &[String]) -> (Option<Value>, Vec<RejectedItem>) {
    if lists.is_empty() || !(value.is_object() || value.is_array()) {
        return (None, Vec::new());
    }
    let mut partial = value.clone();
    let mut rejected = Vec::new();
    for list in lists {
        let Some(target) = partial.pointer_mut(list) else { continue };
        match target {
            Value::Array(items) => {
                let mut index = 0;
                items.retain(|_| take_item(&format!("{list}/{index}"), violations, &mut rejected, &mut index));
            }
            Value::Object(members) if list.is_empty() => {
                members.retain(|name, _| take_item(&format!("/{}", escape(name)), violations, &mut rejected, &mut 0));
            }
            _ => {}
        }
    }
    (Some(partial), rejected)
}

/// Whether the item is good; a bad one is written down.
fn take_item(pointer: &str, violations: &[Violation], rejected: &mut Vec<RejectedItem>, index: &mut usize) -> bool {
    *index += 1;
    let inside = |violation: &&Violation| {
        violation.pointer == pointer || violation.pointer.strip_prefix(pointer).is_some_and(|rest| rest.starts_with('/'))
    };
    let own: Vec<Violation> = violations.iter().filter(inside).cloned().collect();
    let good = own.is_empty();
    if !good {
        rejected.push(RejectedItem { pointer: pointer.to_owned(), violations: own });
    }
    good
}
