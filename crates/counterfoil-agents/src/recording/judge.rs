//! Judging again what was recorded, as it is judged in a run: the same readers, the same ladder,
//! the same contracts.

use super::{Attempt, Came, Reply, Rule, Violated, exit};
use crate::agent::adapter::{Adapter, End, Heard, Meter, Verdict, adapter, adapters};
use crate::agent::lines::Lines;
use crate::agent::{How, combined, structured};
use crate::echo::without;
use crate::ladder::{Offered, weigh};
use crate::submit::Submission;
use counterfoil_contract::expr::{Expression, Scope, Type};
use counterfoil_contract::render::prompt;
use counterfoil_contract::{Contract, Status};
use counterfoil_flow::{AttemptOutcome, BoundRule, Channel, Usage};
use serde_json::Value;
use std::sync::Arc;

/// What was received for one prompt.
#[derive(Clone, Default)]
pub struct Said {
    /// The program whose events the output holds; none if the output is the text itself.
    pub adapter: Option<&'static dyn Adapter>,
    /// What was asked.
    pub prompt: String,
    /// Everything that came on standard output.
    pub output: Vec<u8>,
    /// The end of what came on standard error.
    pub errors: String,
    /// What was handed in through the tool.
    pub submissions: Vec<Submission>,
}

impl Said {
    /// From the files it was kept in. Lines that are no submissions are passed over.
    pub fn of(
        program: Option<&str>,
        output: Vec<u8>,
        prompt: &[u8],
        errors: &[u8],
        submissions: &[u8],
    ) -> Self {
        let lines = submissions.split(|byte| *byte == b'\n');
        Self {
            adapter: program.and_then(adapter),
            prompt: String::from_utf8_lossy(prompt).into_owned(),
            output,
            errors: String::from_utf8_lossy(errors).into_owned(),
            submissions: lines.filter_map(|line| serde_json::from_slice(line).ok()).collect(),
        }
    }
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
    /// What it was not allowed to do.
    pub denied: Vec<String>,
    /// Why it failed, in words.
    pub reason: String,
    /// What else there is to say.
    pub notes: Vec<String>,
}

/// The status of a reply that no contract was there for.
pub const UNJUDGED: &str = "unjudged";

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

/// Judges a reply by itself, as it was recorded; `meter` is what its conversation had used before.
fn judge(
    contract: Option<&Contract>,
    rules: &[BoundRule],
    reply: &Reply,
    said: &Said,
    meter: &mut Meter,
) -> Judged {
    let Some(adapter) = said.adapter else {
        // What a clock, a stop or a script made of it does not stand in what was said.
        if is_fate(&reply.status) {
            let (status, channel) = (reply.status.clone(), reply.channel.clone());
            return Judged { status, channel, ..Judged::default() };
        }
        let offered =
            Offered { text: &said.output, submissions: &said.submissions, structured: None };
        return weighed(contract, rules, &said.prompt, offered);
    };
    let (mut heard, usage) = heard(adapter, reply, said, meter);
    let heard_of = Judged {
        text: Some(heard.text.clone()),
        usage: Some(usage),
        denied: heard.denied.clone(),
        notes: heard.odd.clone(),
        ..Judged::default()
    };
    let stopped = [AttemptOutcome::Timeout, AttemptOutcome::Cancelled].map(AttemptOutcome::name);
    if stopped.contains(&reply.status.as_str()) {
        return Judged { status: reply.status.clone(), channel: reply.channel.clone(), ..heard_of };
    }
    let code = exit(reply.exit.unwrap_or_default());
    // One that counted although its program did not end well was ended by us, behind its last
    // event.
    let ours = !reply.status.is_empty() && !is_fate(&reply.status);
    let how = combined(adapter.name(), &heard, code, ours, said.errors.as_bytes());
    if let How::Failed { outcome, reason, .. } = how {
        return Judged { status: outcome.name().to_owned(), reason, ..heard_of };
    }
    let native = contract.filter(|_| reply.schema || heard.structured.is_some());
    let native = native.and_then(|contract| structured(contract, adapter, &mut heard));
    let offered = Offered {
        text: heard.text.as_bytes(),
        structured: native.as_ref(),
        submissions: &said.submissions,
    };
    let weighed = weighed(contract, rules, &said.prompt, offered);
    let notes = heard_of.notes.into_iter().chain(weighed.notes).collect();
    Judged { text: heard_of.text, usage: heard_of.usage, denied: heard_of.denied, notes, ..weighed }
}

/// What the ladder makes of a reply that is whole.
fn weighed(
    contract: Option<&Contract>,
    rules: &[BoundRule],
    asked: &str,
    offered: Offered<'_>,
) -> Judged {
    let Some(contract) = contract else {
        return Judged { status: UNJUDGED.to_owned(), ..Judged::default() };
    };
    let text = without(offered.text, &[asked, &prompt::suffix(contract)]);
    let weighed = weigh(contract, rules, Offered { text: &text, ..offered });
    let report = weighed.report;
    Judged {
        status: status(report.status).to_owned(),
        violations: report.violations.iter().map(Violated::from).collect(),
        value: report.value,
        channel: Some(weighed.channel.name().to_owned()),
        notes: weighed.notes,
        ..Judged::default()
    }
}

/// What a program's events say, and what they cost.
fn heard(adapter: &dyn Adapter, reply: &Reply, said: &Said, meter: &mut Meter) -> (Heard, Usage) {
    // When a limit is lifted is told from it, and not compared.
    let end = End { exit: exit(reply.exit.unwrap_or_default()), errors: &said.errors, at: 0 };
    let (heard, behind) = listen(adapter, &said.output, &end);
    let mut spent = |heard: &Heard| {
        let before = std::mem::replace(meter, heard.meter);
        heard.meter.since(&before)
    };
    if behind < said.output.len() {
        // A program that refused the schema was asked again without: both are in one transcript.
        let (first, _) = listen(adapter, &said.output[..behind], &end);
        let (second, _) = listen(adapter, &said.output[behind..], &end);
        let refused = matches!(&first.verdict, Verdict::Failed(failure) if failure.schema);
        if refused && second.verdict != Verdict::Missing {
            let mut usage = spent(&first);
            usage += spent(&second);
            return (second, usage);
        }
    }
    let usage = spent(&heard);
    (heard, usage)
}

/// Reads a stream, and says how many bytes it has up to the first event that ends it.
fn listen(adapter: &dyn Adapter, output: &[u8], end: &End<'_>) -> (Heard, usize) {
    let (mut reader, mut lines) = (adapter.reader(), Lines::default());
    let (mut behind, mut at) = (None, 0);
    for line in output.split_inclusive(|byte| *byte == b'\n') {
        lines.push(line, |line| drop(reader.line(line)));
        at += line.len();
        if behind.is_none() && reader.finished() {
            behind = Some(at);
        }
    }
    lines.end(|line| drop(reader.line(line)));
    let mut heard = reader.read(end);
    if lines.too_long > 0 {
        heard.odd.push(format!("{} lines of its output were too long to be read", lines.too_long));
    }
    (heard, behind.unwrap_or(output.len()))
}

/// The programs whose events an output holds, as far as they can tell: those that find a
/// conversation or an end in it, and nothing that is odd.
pub fn spoken_by(output: &[u8]) -> Vec<&'static dyn Adapter> {
    let end = End { exit: exit(0), errors: "", at: 0 };
    let known = |adapter: &&&'static dyn Adapter| {
        let (heard, _) = listen(**adapter, output, &end);
        heard.conversation.is_some() && heard.odd.is_empty()
    };
    adapters().iter().filter(known).copied().collect()
}

/// An attempt as it comes out now. `said` are its replies, in order; without a contract, they are
/// only read.
pub fn replayed(
    attempt: &Attempt,
    contract: Option<&Contract>,
    said: &[Said],
) -> Result<(Attempt, Vec<Judged>), Unruly> {
    let rules = match contract {
        Some(contract) => {
            attempt.rules.iter().map(|rule| held(rule, contract)).collect::<Result<Vec<_>, _>>()?
        }
        None => Vec::new(),
    };
    let (mut judged, mut replies) = (Vec::new(), Vec::new());
    let (mut meter, mut conversation) = (Meter::default(), None);
    for (reply, said) in attempt.replies.iter().zip(said) {
        if conversation != reply.conversation {
            meter = Meter::default();
            conversation.clone_from(&reply.conversation);
        }
        let one = judge(contract, &rules, reply, said, &mut meter);
        replies.push(again(reply, &one));
        judged.push(one);
    }
    let after = Attempt {
        contract: contract.map(|contract| contract.reference().to_owned()),
        came: came(attempt, &replies, &judged),
        replies,
        ..attempt.clone()
    };
    Ok((after, judged))
}

/// A reply with what came of it now.
fn again(reply: &Reply, judged: &Judged) -> Reply {
    // Claims were held against a world that is gone: what was refuted is, as long as it is a result
    // at all.
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
        // A text that nobody handed in otherwise is not worth a word.
        channel: judged.channel.clone().filter(|channel| channel != Channel::Text.name()),
        denied: judged.denied.clone(),
        ..reply.clone()
    }
}

/// What comes of an attempt. Where each reply comes to what it came to, so does the attempt:
/// budgets, claims and stops decide too, and are not decided again.
fn came(attempt: &Attempt, replies: &[Reply], judged: &[Judged]) -> Came {
    let same = attempt.came.outcome.is_some()
        && attempt.replies.iter().zip(replies).all(|(before, after)| before.status == after.status);
    let taken = replies.iter().position(|reply| reply.status == "accepted");
    let outcome = match (&attempt.came.outcome, taken.or(replies.len().checked_sub(1))) {
        (Some(outcome), _) if same => outcome.clone(),
        (_, Some(last)) => {
            let denied = replies.iter().any(|reply| !reply.denied.is_empty());
            outcome_of(&replies[last].status, denied).to_owned()
        }
        (recorded, None) => {
            recorded.clone().unwrap_or_else(|| AttemptOutcome::Agent.name().to_owned())
        }
    };
    let last = taken.and_then(|at| judged.get(at)).or(judged.last());
    let usages = judged.iter().filter_map(|judged| judged.usage);
    Came {
        value: last.and_then(|last| last.value.clone()).filter(|_| outcome == "accepted"),
        violations: match outcome.as_str() {
            "contract" | "permission" => {
                last.map(|last| last.violations.clone()).unwrap_or_default()
            }
            _ => Vec::new(),
        },
        usage: usages
            .reduce(|mut sum, one| {
                sum += one;
                sum
            })
            .map_or(attempt.came.usage, |usage| Usage {
                wall_ms: attempt.came.usage.wall_ms,
                ..usage
            }),
        outcome: Some(outcome),
    }
}

/// Whether a status says how a reply failed, rather than what stood in it.
fn is_fate(status: &str) -> bool {
    !matches!(status, "" | "accepted" | "rejected" | "absent" | "refuted")
}

/// How an attempt ends whose last reply comes to this. One that was not allowed to do something and
/// has no result could not.
fn outcome_of(status: &str, denied: bool) -> &str {
    match status {
        "rejected" | "absent" if denied => AttemptOutcome::Permission.name(),
        "rejected" | "absent" => AttemptOutcome::Contract.name(),
        "refuted" => AttemptOutcome::Claim.name(),
        other => other,
    }
}

/// A rule as it is held. Its values are what they are: their types went with the workflow.
fn held(rule: &Rule, contract: &Contract) -> Result<BoundRule, Unruly> {
    let scope = Scope::for_variable("result", contract.ty().clone());
    let scope = rule.known.keys().fold(scope, |scope, name| scope.with(name, Type::Any));
    let check = Expression::compile(&rule.check, &scope).map_err(|problems| Unruly {
        rule: rule.id.clone(),
        contract: contract.reference().to_owned(),
        why: problems.first().map(|problem| problem.message.clone()).unwrap_or_default(),
    })?;
    Ok(BoundRule {
        id: rule.id.clone(),
        check: Arc::new(check),
        message: rule.message.clone(),
        at: rule.at.clone(),
        known: rule
            .known
            .iter()
            .map(|(name, value)| (name.clone(), value.clone(), Type::Any))
            .collect(),
    })
}

fn status(status: Status) -> &'static str {
    match status {
        Status::Accepted => "accepted",
        Status::Rejected => "rejected",
        Status::Absent => "absent",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_contract::{Definition, Framing};
    use serde_json::json;

    fn contract(required: &[&str]) -> Contract {
        let schema = json!({
            "type": "object",
            "properties": {"ok": {"type": "boolean"}, "proof": {"type": "string"}},
            "required": required,
        });
        Contract::compile(Definition::new("acme/step", 1, Framing::AnyJson, schema)).unwrap()
    }

    /// An attempt that ended so, with what each reply said and came to.
    fn attempt(outcome: &str, replies: &[(&str, &str)]) -> (Attempt, Vec<Said>) {
        let reply = |status: &str| Reply { status: status.to_owned(), ..Reply::default() };
        let attempt = Attempt {
            came: Came { outcome: Some(outcome.to_owned()), ..Came::default() },
            replies: replies.iter().map(|(_, status)| reply(status)).collect(),
            ..Attempt::default()
        };
        let said = |text: &str| Said { output: text.as_bytes().to_vec(), ..Said::default() };
        (attempt, replies.iter().map(|(text, _)| said(text)).collect())
    }

    /// The outcome and the statuses of the replies.
    fn again(outcome: &str, replies: &[(&str, &str)]) -> (String, Vec<String>, Option<Value>) {
        let (attempt, said) = attempt(outcome, replies);
        let (after, _) = replayed(&attempt, Some(&contract(&["ok"])), &said).unwrap();
        let statuses = after.replies.into_iter().map(|reply| reply.status).collect();
        (after.came.outcome.unwrap(), statuses, after.came.value)
    }

    #[test]
    fn an_attempt_ends_with_the_first_reply_that_is_accepted() {
        let (outcome, statuses, value) = again(
            "accepted",
            &[(r#"{"ok": false}"#, "rejected"), (r#"{"ok": true, "proof": "x"}"#, "accepted")],
        );
        assert_eq!((outcome.as_str(), value), ("accepted", Some(json!({"ok": false}))));
        assert_eq!(statuses, ["accepted", "accepted"]);
    }

    #[test]
    fn what_was_not_decided_by_what_was_said_is_not_decided_again() {
        // A budget was used up, a claim was refuted, a clock struck, a script said so.
        for (outcome, text, status) in [
            ("cancelled", "no result", "absent"),
            ("claim", r#"{"ok": true}"#, "refuted"),
            ("timeout", r#"{"ok": true}"#, "timeout"),
            ("transport", "", "transport"),
        ] {
            let (now, statuses, value) = again(outcome, &[(text, status)]);
            assert_eq!((now.as_str(), value, statuses), (outcome, None, vec![status.to_owned()]));
        }
    }

    #[test]
    fn what_is_no_result_any_more_ends_by_its_contract() {
        let (outcome, statuses, value) = again("claim", &[(r#"{"proof": "x"}"#, "refuted")]);
        assert_eq!(
            (outcome.as_str(), value, statuses),
            ("contract", None, vec!["rejected".to_owned()])
        );
    }

    #[test]
    fn an_echo_of_the_prompt_is_no_answer() {
        let (attempt, mut said) =
            attempt("contract", &[("Say {\"ok\": true}. Then: no.", "absent")]);
        said[0].prompt = "Say {\"ok\": true}.".to_owned();
        let (after, _) = replayed(&attempt, Some(&contract(&["ok"])), &said).unwrap();
        assert_eq!(after.replies[0].status, "absent");
    }

    #[test]
    fn a_rule_that_its_contract_does_not_know_is_said() {
        let (mut attempt, said) = attempt("accepted", &[(r#"{"ok": true}"#, "accepted")]);
        let rule = |check: &str| Rule {
            id: "r".to_owned(),
            check: check.to_owned(),
            message: "no".to_owned(),
            at: String::new(),
            known: json!({"wanted": [true]}).as_object().unwrap().clone(),
        };
        attempt.rules = vec![rule("result.ok in wanted")];
        let (after, _) = replayed(&attempt, Some(&contract(&["ok"])), &said).unwrap();
        assert_eq!(after.came.outcome.as_deref(), Some("accepted"));
        attempt.rules = vec![rule("result.gone == wanted")];
        let error = replayed(&attempt, Some(&contract(&["ok"])), &said).unwrap_err().to_string();
        assert!(
            error.starts_with("the rule 'r' of its step does not go together with acme/step@1: "),
            "{error}"
        );
    }
}
