//! Settings of a contract's policy that have no effect.

use crate::code::Code;
use crate::policy::{Policy, RepairPolicy, Truncated};
use crate::problem::Problem;

/// A result that is cut off is closed by a repair, so it is rejected where nothing may be repaired.
pub(super) fn check(policy: &Policy) -> Option<Problem> {
    if policy.truncated != Truncated::Accept || policy.accepts_truncated() {
        return None;
    }
    let (why, hint) = if policy.repair == RepairPolicy::Syntax {
        ("with `strict: true`", "remove `strict: true`, or remove `truncated: accept`")
    } else {
        ("without `repair: syntax`", "add `repair: syntax`, or remove `truncated: accept`")
    };
    Some(Problem::new(
        Code::NoEffect,
        "policy.truncated",
        format!("`truncated: accept` has no effect {why}: a result that is cut off is rejected"),
        hint,
    ))
}
