//! What became of the violations of a reply: what the agent was asked then, and what came back.

use crate::format::{self, Mark};
use askama::Template;
use counterfoil_contract::Violation;
use counterfoil_engine::{Attempt, TranscriptError};
use counterfoil_flow::Reply;
use serde_json::Value;

/// The most characters of a request that is shown beside the violations. Its reply has the whole.
pub(super) const MAX_REQUEST: usize = 4000;

/// What was asked after a reply, and the reply to that.
#[derive(Template)]
#[template(path = "attempt-repair.html")]
pub(super) struct Repair {
    /// The number of the reply that came back.
    number: usize,
    /// The page with that reply.
    address: String,
    mark: Mark,
    why: String,
    request: String,
    is_cut: bool,
}

impl Repair {
    /// The reply of a number that followed one with violations, and the beginning of what was asked.
    pub(super) fn new(
        number: usize,
        reply: &Reply,
        address: &str,
        request: Result<(String, bool), TranscriptError>,
    ) -> Self {
        let (request, is_cut) = match request {
            Ok((request, is_cut)) => (format::text(&request), is_cut),
            Err(why) => (format::text(&format!("It cannot be read: {why}")), false),
        };
        Self {
            number,
            address: format!("{address}?reply={number}"),
            mark: format::reply(&reply.status),
            why: format::text(&reply.why),
            request,
            is_cut,
        }
    }
}

/// Whether the reply after a reply still has a violation; none if that is not known.
pub(super) fn fate(attempt: &Attempt, number: usize, violation: &Violation) -> Option<Mark> {
    let next = attempt.replies.get(number)?;
    if next.status == "accepted" {
        return Some(format::REPAIRED);
    }
    // Only those of the last reply are recorded.
    if number + 1 != attempt.replies.len() || attempt.violations.is_empty() {
        return None;
    }
    let is_same = |other: &Value| {
        other["code"] == violation.code.as_str() && other["pointer"] == violation.pointer
    };
    let stayed = attempt.violations.iter().any(is_same);
    Some(if stayed { format::NOT_REPAIRED } else { format::REPAIRED })
}
