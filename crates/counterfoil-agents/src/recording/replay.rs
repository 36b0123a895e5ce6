//! Replays recorded replies with the same parsers, result selection and contracts as in a run.

use super::{Attempt, RecordedOutcome, RecordedViolation, Reply, Rule, exit_from_number};
use crate::adapters::{Adapter, ParsedReply, StreamEnd, UsageMeter, Verdict, adapter, adapters};
use crate::agent::ReplyStatus;
use crate::cli_runner::{reply_status, structured_output};
use crate::line_buffer::LineBuffer;
use crate::result_selection::{ResultCandidates, ResultSelector};
use crate::submissions::Submission;
use counterfoil_contract::expr::{Expression, Scope, Type};
use counterfoil_contract::text::pluralize;
use counterfoil_contract::{Contract, Status};
use counterfoil_flow::{AttemptOutcome, BoundRule, Channel, Usage};
use serde_json::Value;
use std::sync::Arc;

/// The recorded output for one prompt.
#[derive(Clone, Default)]
pub struct RecordedOutput {
    /// The program whose events the output contains; none if the output is the text itself.
    pub adapter: Option<&'static dyn Adapter>,
    /// The prompt.
    pub prompt: String,
    /// Standard output.
    pub output: Vec<u8>,
    /// The end of standard error.
    pub errors: String,
    /// The submissions through the tool.
    pub submissions: Vec<Submission>,
}

impl RecordedOutput {
    /// Reads the output from the content of its files. Lines that are not submissions are skipped.
    pub fn from_files(
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

/// The replay of one reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplayedReply {
    /// The status: accepted, rejected, absent, or the kind of failure.
    pub status: String,
    /// The result, if it is accepted.
    pub value: Option<Value>,
    /// The violations.
    pub violations: Vec<RecordedViolation>,
    /// The channel of the result.
    pub channel: Option<String>,
    /// The final text, if the output contains events.
    pub text: Option<String>,
    /// The usage, if the output reports it.
    pub usage: Option<Usage>,
    /// The denied actions.
    pub denied: Vec<String>,
    /// The reason of a failure, as text.
    pub reason: String,
    /// Further notes.
    pub notes: Vec<String>,
}

/// The status of a reply without a contract.
pub const NOT_VALIDATED: &str = "unjudged";

/// A recorded rule that does not fit a contract.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the rule '{rule}' of its step does not fit {contract}: {why}")]
pub struct RuleMismatch {
    /// The id of the rule.
    pub rule: String,
    /// The contract, as `id@version`.
    pub contract: String,
    /// The error of the expression.
    pub why: String,
}

/// Replays one reply. `meter` is the usage of its conversation before it.
fn replay_reply(
    contract: Option<&Contract>,
    selector: Option<&mut ResultSelector<'_>>,
    reply: &Reply,
    output: &RecordedOutput,
    meter: &mut UsageMeter,
) -> ReplayedReply {
    let known = reply.context.clone().map(Arc::new);
    let Some(adapter) = output.adapter else {
        // A timeout, a stop or a scripted failure is not visible in the output.
        if is_failure(&reply.status) {
            let (status, channel) = (reply.status.clone(), reply.channel.clone());
            return ReplayedReply { status, channel, ..ReplayedReply::default() };
        }
        let candidates = ResultCandidates {
            text: &output.output,
            messages: None,
            submissions: &output.submissions,
            structured: None,
            context: known.as_ref(),
        };
        return validate(selector, candidates);
    };
    let (mut parsed, usage) = parse_output(adapter, reply, output, meter);
    let base = ReplayedReply {
        text: Some(parsed.text.clone()),
        usage: Some(usage),
        denied: parsed.denied.clone(),
        notes: parsed.anomalies.clone(),
        ..ReplayedReply::default()
    };
    let stopped = [AttemptOutcome::Timeout, AttemptOutcome::Cancelled].map(AttemptOutcome::name);
    if stopped.contains(&reply.status.as_str()) {
        return ReplayedReply {
            status: reply.status.clone(),
            channel: reply.channel.clone(),
            ..base
        };
    }
    let exit = exit_from_number(reply.exit.unwrap_or_default());
    // If the reply counted although the program failed, we ended the program after its final
    // event.
    let ended_by_us = !reply.status.is_empty() && !is_failure(&reply.status);
    let status = reply_status(adapter.name(), &parsed, exit, ended_by_us, output.errors.as_bytes());
    // A result that was submitted counts whatever the program did afterwards.
    let counts = ended_by_us && (!output.submissions.is_empty() || parsed.structured.is_some());
    if let ReplyStatus::Failed { outcome, reason, .. } = status
        && !counts
    {
        return ReplayedReply { status: outcome.name().to_owned(), reason, ..base };
    }
    let native = contract.filter(|_| reply.schema || parsed.structured.is_some());
    let native = native.and_then(|contract| structured_output(contract, adapter, &mut parsed));
    let messages = parsed.messages();
    let candidates = ResultCandidates {
        text: parsed.text.as_bytes(),
        messages: messages.as_deref().map(str::as_bytes),
        structured: native.as_ref(),
        submissions: &output.submissions,
        context: known.as_ref(),
    };
    let validated = validate(selector, candidates);
    let notes = base.notes.into_iter().chain(validated.notes).collect();
    ReplayedReply { text: base.text, usage: base.usage, denied: base.denied, notes, ..validated }
}

/// Selects and validates the result of a complete reply.
fn validate(
    selector: Option<&mut ResultSelector<'_>>,
    candidates: ResultCandidates<'_>,
) -> ReplayedReply {
    let Some(selector) = selector else {
        return ReplayedReply { status: NOT_VALIDATED.to_owned(), ..ReplayedReply::default() };
    };
    let selected = selector.select(candidates);
    let report = selected.report;
    ReplayedReply {
        status: status_name(report.status).to_owned(),
        violations: report.violations.iter().map(RecordedViolation::from).collect(),
        value: report.value,
        channel: Some(selected.channel.name().to_owned()),
        notes: selected.notes,
        ..ReplayedReply::default()
    }
}

/// Parses the events of a program, and returns the reply and its usage.
fn parse_output(
    adapter: &dyn Adapter,
    reply: &Reply,
    recorded: &RecordedOutput,
    meter: &mut UsageMeter,
) -> (ParsedReply, Usage) {
    // The time only matters for reset times, which are not compared.
    let exit = exit_from_number(reply.exit.unwrap_or_default());
    let end = StreamEnd { exit, errors: &recorded.errors, at: 0 };
    let (parsed, first_end) = parse_stream(adapter, &recorded.output, &end);
    let mut usage_since_last = |parsed: &ParsedReply| {
        let before = std::mem::replace(meter, parsed.meter);
        parsed.meter.since(&before)
    };
    if first_end < recorded.output.len() {
        // After a rejected schema the prompt was sent again without it. The transcript contains
        // both.
        let (first, _) = parse_stream(adapter, &recorded.output[..first_end], &end);
        let (second, _) = parse_stream(adapter, &recorded.output[first_end..], &end);
        let schema_rejected =
            matches!(&first.verdict, Verdict::Failed(failure) if failure.schema_rejected);
        if schema_rejected && second.verdict != Verdict::Missing {
            let mut usage = usage_since_last(&first);
            usage += usage_since_last(&second);
            return (second, usage);
        }
    }
    let usage = usage_since_last(&parsed);
    (parsed, usage)
}

/// Parses a stream, and returns the reply and the offset after the first final event.
fn parse_stream(adapter: &dyn Adapter, output: &[u8], end: &StreamEnd<'_>) -> (ParsedReply, usize) {
    let (mut parser, mut lines) = (adapter.parser(), LineBuffer::default());
    let (mut first_end, mut offset) = (None, 0);
    for line in output.split_inclusive(|byte| *byte == b'\n') {
        lines.push(line, |line| drop(parser.on_line(line)));
        offset += line.len();
        if first_end.is_none() && parser.finished() {
            first_end = Some(offset);
        }
    }
    lines.end(|line| drop(parser.on_line(line)));
    let mut parsed = parser.finish(end);
    if lines.too_long > 0 {
        let lines = pluralize(lines.too_long, "line");
        parsed.anomalies.push(format!("{lines} of its output did not count: too long"));
    }
    (parsed, first_end.unwrap_or(output.len()))
}

/// The programs whose events an output may contain: those whose parsers find a conversation and
/// nothing unexpected.
pub fn detect_programs(output: &[u8]) -> Vec<&'static dyn Adapter> {
    let end = StreamEnd { exit: exit_from_number(0), errors: "", at: 0 };
    let fits = |adapter: &&&'static dyn Adapter| {
        let (parsed, _) = parse_stream(**adapter, output, &end);
        parsed.conversation.is_some() && parsed.anomalies.is_empty()
    };
    adapters().iter().filter(fits).copied().collect()
}

/// Replays an attempt. `outputs` are its replies in order. Without a contract they are only parsed.
///
/// # Errors
///
/// A recorded rule does not fit the contract.
pub fn replay_attempt(
    attempt: &Attempt,
    contract: Option<&Contract>,
    outputs: &[RecordedOutput],
) -> Result<(Attempt, Vec<ReplayedReply>), RuleMismatch> {
    let rules = match contract {
        Some(contract) => attempt
            .rules
            .iter()
            .map(|rule| bind_rule(rule, contract))
            .collect::<Result<Vec<_>, _>>()?,
        None => Vec::new(),
    };
    let (mut replayed, mut replies) = (Vec::new(), Vec::new());
    let (mut meter, mut conversation) = (UsageMeter::default(), None);
    let first_prompt = outputs.first().map(|output| output.prompt.as_str()).unwrap_or_default();
    let mut selector = contract.map(|contract| {
        let selector = ResultSelector::new(contract, &rules, first_prompt, &attempt.quotes);
        if attempt.unknown_fields.are_kept() {
            return selector;
        }
        selector.with_unknown_fields(attempt.unknown_fields)
    });
    for (reply, output) in attempt.replies.iter().zip(outputs) {
        if conversation != reply.conversation {
            meter = UsageMeter::default();
            conversation.clone_from(&reply.conversation);
        }
        let one = replay_reply(contract, selector.as_mut(), reply, output, &mut meter);
        replies.push(updated_reply(reply, &one));
        replayed.push(one);
    }
    let after = Attempt {
        contract: contract.map(|contract| contract.reference().to_owned()),
        result: outcome(attempt, &replies, &replayed),
        replies,
        ..attempt.clone()
    };
    Ok((after, replayed))
}

/// A recorded reply with the results of its replay.
fn updated_reply(reply: &Reply, replayed: &ReplayedReply) -> Reply {
    // Claims cannot be verified again. A refuted result stays refuted as long as it is valid.
    let refuted = reply.status == "refuted" && replayed.status == "accepted";
    let mut codes: Vec<String> = Vec::new();
    for violated in &replayed.violations {
        if !codes.contains(&violated.code) {
            codes.push(violated.code.clone());
        }
    }
    Reply {
        status: if refuted { reply.status.clone() } else { replayed.status.clone() },
        codes,
        // The text is the default channel and is not recorded.
        channel: replayed.channel.clone().filter(|channel| channel != Channel::Text.name()),
        denied: replayed.denied.clone(),
        ..reply.clone()
    }
}

/// The outcome of a replayed attempt. If no reply changed, the outcome is the recorded one, because
/// budgets, claims and stops also affect it and are not replayed.
fn outcome(attempt: &Attempt, replies: &[Reply], replayed: &[ReplayedReply]) -> RecordedOutcome {
    let same = attempt.result.outcome.is_some()
        && attempt.replies.iter().zip(replies).all(|(before, after)| before.status == after.status);
    let accepted = replies.iter().position(|reply| reply.status == "accepted");
    let outcome = match (&attempt.result.outcome, accepted.or(replies.len().checked_sub(1))) {
        (Some(outcome), _) if same => outcome.clone(),
        (_, Some(last)) => {
            let denied = replies.iter().any(|reply| !reply.denied.is_empty());
            outcome_for(&replies[last].status, denied).to_owned()
        }
        (recorded, None) => {
            recorded.clone().unwrap_or_else(|| AttemptOutcome::Agent.name().to_owned())
        }
    };
    let last = accepted.and_then(|at| replayed.get(at)).or(replayed.last());
    let usages = replayed.iter().filter_map(|reply| reply.usage);
    RecordedOutcome {
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
            .map_or(attempt.result.usage, |usage| Usage {
                wall_ms: attempt.result.usage.wall_ms,
                ..usage
            }),
        outcome: Some(outcome),
    }
}

/// Whether a status is a kind of failure, rather than the outcome of validation.
fn is_failure(status: &str) -> bool {
    !matches!(status, "" | "accepted" | "rejected" | "absent" | "refuted")
}

/// The outcome of an attempt whose last reply has this status. Without a result, a denied action
/// counts as the cause.
fn outcome_for(status: &str, denied: bool) -> &str {
    match status {
        "rejected" | "absent" if denied => AttemptOutcome::Permission.name(),
        "rejected" | "absent" => AttemptOutcome::Contract.name(),
        "refuted" => AttemptOutcome::Claim.name(),
        other => other,
    }
}

/// A recorded rule, compiled for a contract. The types of its values were not recorded.
fn bind_rule(rule: &Rule, contract: &Contract) -> Result<BoundRule, RuleMismatch> {
    let scope = Scope::for_variable("result", contract.ty().clone());
    let scope = rule.known.keys().fold(scope, |scope, name| scope.with(name, Type::Any));
    let check = Expression::compile(&rule.check, &scope).map_err(|problems| RuleMismatch {
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

fn status_name(status: Status) -> &'static str {
    match status {
        Status::Accepted => "accepted",
        Status::Rejected => "rejected",
        Status::Absent => "absent",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_contract::policy::UnknownFields;
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

    /// An attempt with an outcome, and the text and status of each reply.
    fn attempt(outcome: &str, replies: &[(&str, &str)]) -> (Attempt, Vec<RecordedOutput>) {
        let reply = |status: &str| Reply { status: status.to_owned(), ..Reply::default() };
        let attempt = Attempt {
            result: RecordedOutcome {
                outcome: Some(outcome.to_owned()),
                ..RecordedOutcome::default()
            },
            replies: replies.iter().map(|(_, status)| reply(status)).collect(),
            ..Attempt::default()
        };
        let output = |text: &str| RecordedOutput {
            output: text.as_bytes().to_vec(),
            ..RecordedOutput::default()
        };
        (attempt, replies.iter().map(|(text, _)| output(text)).collect())
    }

    #[test]
    fn a_field_that_was_refused_is_refused_again() {
        let hidden = r#"{"ok": true, "findings": ["critical"]}"#;
        let (mut attempt, output) = attempt("contract", &[(hidden, "rejected")]);
        let outcome = |attempt: &Attempt| {
            let (after, _) = replay_attempt(attempt, Some(&contract(&["ok"])), &output).unwrap();
            after.result.outcome
        };
        assert_eq!(outcome(&attempt).as_deref(), Some("accepted"));
        attempt.unknown_fields = UnknownFields::Refuse;
        assert_eq!(outcome(&attempt).as_deref(), Some("contract"));
        let recorded = serde_json::to_value(&attempt).unwrap();
        assert_eq!(recorded["unknown_fields"], "refuse");
        let older = serde_json::to_value(Attempt::default()).unwrap();
        assert!(older.get("unknown_fields").is_none());
    }

    /// The outcome and the statuses of the replies.
    fn replay(outcome: &str, replies: &[(&str, &str)]) -> (String, Vec<String>, Option<Value>) {
        let (attempt, output) = attempt(outcome, replies);
        let (after, _) = replay_attempt(&attempt, Some(&contract(&["ok"])), &output).unwrap();
        let statuses = after.replies.into_iter().map(|reply| reply.status).collect();
        (after.result.outcome.unwrap(), statuses, after.result.value)
    }

    #[test]
    fn an_attempt_ends_with_the_first_reply_that_is_accepted() {
        let (outcome, statuses, value) = replay(
            "accepted",
            &[(r#"{"ok": false}"#, "rejected"), (r#"{"ok": true, "proof": "x"}"#, "accepted")],
        );
        assert_eq!((outcome.as_str(), value), ("accepted", Some(json!({"ok": false}))));
        assert_eq!(statuses, ["accepted", "accepted"]);
    }

    #[test]
    fn outcomes_that_do_not_depend_on_the_output_are_kept() {
        // A budget was exceeded, a claim was refuted, a timeout expired, a script failed.
        for (outcome, text, status) in [
            ("cancelled", "no result", "absent"),
            ("claim", r#"{"ok": true}"#, "refuted"),
            ("timeout", r#"{"ok": true}"#, "timeout"),
            ("transport", "", "transport"),
        ] {
            let (now, statuses, value) = replay(outcome, &[(text, status)]);
            assert_eq!((now.as_str(), value, statuses), (outcome, None, vec![status.to_owned()]));
        }
    }

    #[test]
    fn a_result_that_became_invalid_violates_the_contract() {
        let (outcome, statuses, value) = replay("claim", &[(r#"{"proof": "x"}"#, "refuted")]);
        assert_eq!(
            (outcome.as_str(), value, statuses),
            ("contract", None, vec!["rejected".to_owned()])
        );
    }

    #[test]
    fn an_echo_of_the_prompt_is_not_a_result() {
        let (attempt, mut output) = attempt(
            "contract",
            &[("> Say whether it works,\n> for example {\"ok\": true}.\nNo.", "absent")],
        );
        output[0].prompt = "Say whether it works, for example {\"ok\": true}.".to_owned();
        let (after, _) = replay_attempt(&attempt, Some(&contract(&["ok"])), &output).unwrap();
        assert_eq!(after.replies[0].status, "absent");
    }

    #[test]
    fn a_rule_that_does_not_fit_its_contract_is_an_error() {
        let (mut attempt, output) = attempt("accepted", &[(r#"{"ok": true}"#, "accepted")]);
        let rule = |check: &str| Rule {
            id: "r".to_owned(),
            check: check.to_owned(),
            message: "no".to_owned(),
            at: String::new(),
            known: json!({"wanted": [true]}).as_object().unwrap().clone(),
        };
        attempt.rules = vec![rule("result.ok in wanted")];
        let (after, _) = replay_attempt(&attempt, Some(&contract(&["ok"])), &output).unwrap();
        assert_eq!(after.result.outcome.as_deref(), Some("accepted"));
        attempt.rules = vec![rule("result.gone == wanted")];
        let error =
            replay_attempt(&attempt, Some(&contract(&["ok"])), &output).unwrap_err().to_string();
        assert!(
            error.starts_with("the rule 'r' of its step does not fit acme/step@1: "),
            "{error}"
        );
    }
}
