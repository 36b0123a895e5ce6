//! What follows from a reply: accept its result, ask for a repair, or end the attempt.

use super::AttemptInput;
use counterfoil_agents::agent::{AgentReply, Message, ReplyStatus};
use counterfoil_contract::claim::{ClaimReport, Verdict};
use counterfoil_contract::text::truncate;
use counterfoil_contract::{Code, Report, Status, Violation};
use counterfoil_flow::{AttemptOutcome, Ended, Reply, Usage};
use serde_json::Value;

/// A reply that is not complete.
pub(super) struct Failure {
    pub(super) outcome: AttemptOutcome,
    pub(super) reason: String,
    pub(super) reset_at: Option<i64>,
    /// Whether the program had returned a result before, through the tool or as structured output.
    /// It counts if it is accepted: what happens afterwards is no part of it.
    pub(super) follows_result: bool,
}

impl Failure {
    /// Why a reply is not complete, if it is not.
    pub(super) fn of(answer: &AgentReply) -> Option<Self> {
        let ReplyStatus::Failed { outcome, reason, reset_at } = &answer.status else { return None };
        let may_count = matches!(
            outcome,
            AttemptOutcome::Agent
                | AttemptOutcome::Limit
                | AttemptOutcome::Timeout
                | AttemptOutcome::Transport
        );
        let details = &answer.details;
        let has_result = details.structured.is_some() || !details.submissions.is_empty();
        Some(Self {
            outcome: *outcome,
            reason: reason.clone(),
            reset_at: *reset_at,
            follows_result: may_count && has_result,
        })
    }
}

/// The end of an attempt that needed permissions it did not have.
pub(super) fn permission_denied(denied: &[String], ended: Ended) -> Ended {
    let mut actions: Vec<&str> = denied.iter().map(String::as_str).collect();
    actions.dedup();
    let more = actions.len().saturating_sub(3);
    actions.truncate(3);
    let more = if more == 0 { String::new() } else { format!(", and {more} more") };
    let why = if ended.reason.is_empty() { String::new() } else { format!("; {}", ended.reason) };
    Ended { reason: format!("permission denied: {}{more}{why}", actions.join(", ")), ..ended }
}

/// What to do after a reply.
pub(super) enum NextStep {
    Accept(Value),
    Repair(Message),
    GiveUp(Box<Report>),
    Refute(Value),
}

pub(super) fn next_step(
    report: Report,
    blocking: &[ClaimReport],
    repairs: u32,
    max_repairs: u32,
) -> NextStep {
    let is_repairable = blocking.iter().all(ClaimReport::is_repairable);
    match report.value {
        Some(value) if blocking.is_empty() => NextStep::Accept(value),
        Some(_) if is_repairable && repairs < max_repairs => {
            NextStep::Repair(Message::Reconsider(blocking.to_vec()))
        }
        Some(value) => NextStep::Refute(value),
        None if repairs < max_repairs => NextStep::Repair(Message::Correct(Box::new(report))),
        None => NextStep::GiveUp(Box::new(report)),
    }
}

/// The reason for an attempt whose result satisfies its contract but has claims that block.
pub(super) fn blocking_reason(blocking: &[ClaimReport], repairs: u32) -> String {
    let (refuted, unknown): (Vec<_>, Vec<_>) =
        blocking.iter().partition(|claim| claim.verdict == Verdict::Refuted);
    let part = |what: &str, claims: Vec<&ClaimReport>| {
        let reasons: Vec<String> =
            claims.iter().map(|one| format!("{}: {}", one.claim, one.reason)).collect();
        (!reasons.is_empty()).then(|| format!("{what}: {}", reasons.join("; ")))
    };
    let parts = [part("refuted", refuted), part("cannot be verified", unknown)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{}{}", parts.join("; "), after_repairs(repairs))
}

/// A violation as one line: the message, with its location unless the message names fields itself.
pub(super) fn violation_text(violation: &Violation) -> String {
    match violation.pointer.as_str() {
        pointer if !pointer.is_empty() && !violation.message.contains('`') => {
            format!("{pointer}: {}", violation.message)
        }
        _ => violation.message.clone(),
    }
}

pub(super) fn status_name(status: Status) -> &'static str {
    match status {
        Status::Accepted => "accepted",
        Status::Rejected => "rejected",
        Status::Absent => "absent",
    }
}

pub(super) fn ended(
    input: &AttemptInput,
    outcome: AttemptOutcome,
    reply: Reply,
    usage: Usage,
) -> Ended {
    Ended { reply: Some(reply), usage, ..Ended::new(&input.attempt, outcome) }
}

pub(super) fn rejected(
    input: &AttemptInput,
    report: Report,
    reply: Reply,
    usage: Usage,
    repairs: u32,
) -> Ended {
    let what = match report.status {
        Status::Absent => "no result was found in the reply",
        _ => "the result does not satisfy the contract",
    };
    let why = match report.violations.first() {
        // It says itself that there is none.
        Some(violation) if violation.code == Code::NoResult => violation.message.clone(),
        Some(violation) => format!("{what}: {}", violation.message),
        None => what.to_owned(),
    };
    let repairs = after_repairs(repairs);
    let violations = report
        .violations
        .iter()
        .filter_map(|violation| serde_json::to_value(violation).ok())
        .collect();
    Ended {
        reason: format!("{why}{repairs}"),
        partial: report.partial,
        violations,
        ..ended(input, AttemptOutcome::Contract, reply, usage)
    }
}

pub(super) fn after_repairs(repairs: u32) -> String {
    match repairs {
        0 => String::new(),
        1 => " (after 1 repair)".to_owned(),
        more => format!(" (after {more} repairs)"),
    }
}

/// The most characters of what an agent said instead of a result.
const MAX_SAID_CHARS: usize = 160;

/// The first line of a text that says something, shortened.
pub(super) fn first_line(text: &[u8]) -> String {
    let start = &text[..text.len().min(64 << 10)];
    let text = String::from_utf8_lossy(start);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    truncate(line, MAX_SAID_CHARS).into_owned()
}
