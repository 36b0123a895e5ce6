//! Judging again what was recorded, as it is judged in a run: the same readers, the same ladder, the same contracts.

use super::{Attempt, Came, Reply, Rule, Violated};
use crate::attempt::without;
use countersign_contract::render::prompt;
use countersign_contract::{Contract, Expression, Scope, Status, Type};
use countersign_flow::{AttemptOutcome, HeldRule, Usage, hold};
use serde_json::Value;
use std::sync::Arc;

/// What was received for one prompt.
#[derive(Clone, Copy, Default)]
pub struct Said<'s> {
    /// What was asked.
    pub prompt: &'s str,
    /// Everything that came on standard output.
    pub output: &'s [u8],
}

/// What a reply comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// Accepted, rejected, absent, or how it failed.
    pub status: String,
    /// The result, if it was accepted.
    pub value: Option<Value>,
    /// What is wrong.
    pub violations: Vec<Violated>,
    /// By which way the result came.
    pub channel: Option<String>,
    /// The final text, where the output holds events.
    pub text: Option<String>,
    /// What it cost, where the output says so.
    pub usage: Option<Usage>,
}

/// A rule of a step that does not go together with a contract.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the rule '{rule}' of its step does not go together with {contract}: {why}")]
pub struct Unruly {
    /// The rule.
    pub rule: String,
    /// The contract, as `id@version`.
    pub contract: String,
    /// What is wrong.
    pub why: String,
}

/// Judges one reply.
pub fn judge(contract: &Contract, rules: &[HeldRule], said: &Said<'_>) -> Judged {
    let text = without(said.output, &[said.prompt, &prompt::suffix(contract)]);
    let mut report = contract.check_bytes(&text);
    hold(rules, contract, &mut report);
    Judged {
        status: status(report.status).to_owned(),
        violations: report.violations.iter().map(Violated::from).collect(),
        value: report.value,
        ..Judged::default()
    }
}

/// An attempt as it comes out now. `said` are its replies, in order.
pub fn replayed(
    attempt: &Attempt,
    contract: &Contract,
    said: &[Said<'_>],
) -> Result<(Attempt, Vec<Judged>), Unruly> {
    let rules = attempt.rules.iter().map(|rule| held(rule, contract)).collect::<Result<Vec<_>, _>>()?;
    let mut judged = Vec::new();
    let mut replies = Vec::new();
    for (reply, said) in attempt.replies.iter().zip(said) {
        // What a clock, a stop or a script made of it does not stand in what was said.
        let one = if is_fate(&reply.status) {
            Judged { status: reply.status.clone(), channel: reply.channel.clone(), ..Judged::default() }
        } else {
            judge(contract, &rules, said)
        };
        replies.push(again(reply, &one));
        judged.push(one);
    }
    let after = Attempt {
        contract: Some(contract.reference().to_owned()),
        came: came(attempt, &replies, &judged),
        replies,
        ..attempt.clone()
    };
    Ok((after, judged))
}

/// A reply with what came of it now.
fn again(reply: &Reply, judged: &Judged) -> Reply {
    // Claims were held against a world that is gone: what was refuted is, as long as it is a result at all.
    let refuted = reply.status == "refuted" && judged.status == "accepted";
    let mut codes: Vec<String> = Vec::new();
    for violated in &judged.violations {
        if !codes.contains(&violated.code) {
            codes.push(violated.code.clone());
        }
    }
    Reply {
        status: if refuted { reply.status.clone() } else { judged.status.clone() },
        codes,
        channel: judged.channel.clone(),
        ..reply.clone()
    }
}

/// What comes of an attempt. Where each reply comes to what it came to, so does the attempt: budgets, claims and stops decide
/// too, and are not decided again.
fn came(attempt: &Attempt, replies: &[Reply], judged: &[Judged]) -> Came {
    let same = attempt.came.outcome.is_some()
        && attempt.replies.iter().zip(replies).all(|(before, after)| before.status == after.status);
    let taken = replies.iter().position(|reply| reply.status == "accepted");
    let outcome = match (&attempt.came.outcome, taken.or(replies.len().checked_sub(1))) {
        (Some(outcome), _) if same => outcome.clone(),
        (_, Some(last)) => outcome_of(&replies[last].status).to_owned(),
        (recorded, None) => recorded.clone().unwrap_or_else(|| AttemptOutcome::Agent.name().to_owned()),
    };
    let last = taken.and_then(|at| judged.get(at)).or(judged.last());
    let usages = judged.iter().filter_map(|judged| judged.usage);
    Came {
        value: last.and_then(|last| last.value.clone()).filter(|_| outcome == "accepted"),
        violations: match outcome.as_str() {
            "contract" | "permission" => last.map(|last| last.violations.clone()).unwrap_or_default(),
            _ => Vec::new(),
        },
        usage: usages
            .reduce(|mut sum, one| {
                sum += one;
                sum
            })
            .map_or(attempt.came.usage, |usage| Usage { wall_ms: attempt.came.usage.wall_ms, ..usage }),
        outcome: Some(outcome),
    }
}

/// Whether a status says how a reply failed, rather than what stood in it.
fn is_fate(status: &str) -> bool {
    !matches!(status, "" | "accepted" | "rejected" | "absent" | "refuted")
}

/// How an attempt ends whose last reply comes to this.
fn outcome_of(status: &str) -> &str {
    match status {
        "rejected" | "absent" => AttemptOutcome::Contract.name(),
        "refuted" => AttemptOutcome::Claim.name(),
        other => other,
    }
}

/// A rule as it is held. Its values are what they are: their types went with the workflow.
fn held(rule: &Rule, contract: &Contract) -> Result<HeldRule, Unruly> {
    let scope = Scope::of("result", contract.ty().clone());
    let scope = rule.known.keys().fold(scope, |scope, name| scope.with(name, Type::Any));
    let check = Expression::compile(&rule.check, &scope).map_err(|problems| Unruly {
        rule: rule.id.clone(),
        contract: contract.reference().to_owned(),
        why: problems.first().map(|problem| problem.message.clone()).unwrap_or_default(),
    })?;
    Ok(HeldRule {
        id: rule.id.clone(),
        check: Arc::new(check),
        message: rule.message.clone(),
        at: rule.at.clone(),
        known: rule.known.iter().map(|(name, value)| (name.clone(), value.clone(), Type::Any)).collect(),
    })
}

fn status(status: Status) -> &'static str {
    match status {
        Status::Accepted => "accepted",
        Status::Rejected => "rejected",
        Status::Absent => "absent",
    }
}
