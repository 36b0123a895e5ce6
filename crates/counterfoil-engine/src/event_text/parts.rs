//! Parts of the lines of events: the title of an attempt, its result, reasons, and who decided.

use super::OutputMode;
use super::pieces::{abbreviate, one_line};
use crate::visits::Visit;
use counterfoil_contract::Code;
use counterfoil_contract::text::{list_values, pluralize};
use counterfoil_flow::amount::duration;
use counterfoil_flow::{AskedQuestion, BuiltinStep, Form, Origin, Reply, TransitionTaken};
use serde_json::Value;
use std::fmt::Write;

/// The title of an attempt: its path, its agent or built-in step, and the number of the visit and of
/// the attempt in it, if it is not the first.
pub fn attempt_title(
    path: &str,
    agent: Option<&str>,
    builtin: Option<&BuiltinStep>,
    visit: Visit,
) -> String {
    let performer = match (agent, builtin) {
        // An agent is often named like its state.
        (Some(agent), _) if path.rsplit('/').next() == Some(agent) => String::new(),
        (Some(agent), _) => format!(": {agent}"),
        (None, Some(builtin)) => format!(": {builtin}"),
        (None, None) => ": command".to_owned(),
    };
    format!("{path}{performer}{visit}")
}

/// The result of a built-in step that did not fail.
pub(super) fn builtin_result(builtin: &BuiltinStep, path: &str, value: &Value) -> String {
    let count = |name: &str| match value[name].as_array() {
        Some(list) => list.len(),
        None => value[name].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(0),
    };
    let files = pluralize(count("files"), "file");
    match builtin {
        // Checks have no result.
        BuiltinStep::Read(_) | BuiltinStep::Checks(_) | BuiltinStep::BaseChecks(_) => {
            format!("✓ {path}: accepted")
        }
        BuiltinStep::Changes(_) => {
            let (added, removed) = (count("added"), count("removed"));
            let chunks = pluralize(count("chunks"), "chunk");
            format!(
                "✓ {path}: {files}, {} added, {removed} removed, {chunks}",
                pluralize(added, "line")
            )
        }
        BuiltinStep::Commit(_) => match value["commit"].as_str().unwrap_or_default() {
            "" => format!("✓ {path}: nothing to commit"),
            commit => {
                format!("✓ {path}: committed {}, {files}", commit.get(..12).unwrap_or(commit))
            }
        },
    }
}

/// The last non-blank line of a command's output.
pub(super) fn last_line(value: Option<&Value>) -> &str {
    let output = value.and_then(|value| value["output"].as_str()).unwrap_or_default();
    output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default()
}

/// The exit code of a command; none for another step.
pub(super) fn exit_code(
    agent: Option<&str>,
    builtin: Option<&BuiltinStep>,
    value: Option<&Value>,
) -> Option<i64> {
    let value = value.filter(|_| agent.is_none() && builtin.is_none())?;
    value.get("ok").and(value.get("exit_code"))?.as_i64()
}

/// Why a reply was not accepted.
pub(super) fn problem(reply: &Reply) -> String {
    let codes = if reply.codes.is_empty() {
        String::new()
    } else {
        format!(" ({})", reply.codes.join(", "))
    };
    match reply.status.as_str() {
        "absent" => match absence(reply) {
            Some(why) => format!("{why}{codes}"),
            None => format!("no result found{codes}{}", said(reply)),
        },
        _ if reply.why.is_empty() => format!("the result does not satisfy its contract{codes}"),
        _ => format!("{}{codes}", one_line(&reply.why)),
    }
}

/// Why a text that is not just without a result has none: it repeats an example, is empty, or the
/// result is in its thinking.
fn absence(reply: &Reply) -> Option<String> {
    let code: Code = reply.codes.first()?.parse().ok()?;
    match code {
        Code::NoResult => None,
        // Journals of older versions have only the code.
        _ if reply.why.is_empty() => Some(code.title().to_owned()),
        _ => Some(one_line(&reply.why)),
    }
}

/// What an agent said instead of a result.
pub(super) fn said(reply: &Reply) -> String {
    if reply.said.is_empty() {
        return String::new();
    }
    format!("; it said: \"{}\"", one_line(&reply.said))
}

pub(super) fn question_line(question: &AskedQuestion) -> String {
    let form = match &question.form {
        Form::Choices(choices) => format!(" [{}]", list_values(choices)),
        Form::Pattern(_) | Form::Text => String::new(),
    };
    let optional = if question.optional { " (optional)" } else { "" };
    // A text of several lines is shown as it was written.
    let mut text = question.question.trim().lines();
    let first = text.next().unwrap_or_default();
    let mut line = format!("? {}: {first}", question.id);
    for more in text {
        let _ = write!(line, "\n  {}", more.trim_end());
    }
    line + &form + optional
}

pub(super) fn transition_line(transition: &TransitionTaken, at: i64, mode: OutputMode) -> String {
    let path =
        if transition.frame.is_empty() { String::new() } else { format!("{}: ", transition.frame) };
    let reason = match (&transition.exhausted, transition.failure, &transition.guard) {
        (Some(limit), _, _) => format!(", because the limit '{limit}' is reached"),
        (None, Some(failure), _) => format!(", on {}", failure.name()),
        // The timeline prints the guard here and the reason below.
        (None, None, _) if mode == OutputMode::Live && !transition.reason.is_empty() => {
            reason_suffix(&transition.reason)
        }
        (None, None, Some(guard)) => format!(", because {}", one_line(guard)),
        (None, None, None) if transition.saw.is_empty() => String::new(),
        (None, None, None) => format!(", otherwise ({})", guard_values(transition)),
    };
    let mut line = format!("→ {path}{} to {}{reason}", transition.from, transition.to);
    for (name, count) in &transition.counts {
        let _ = write!(line, ", {name} = {count}");
    }
    if let Some(ms) =
        transition.not_before.and_then(|time| u64::try_from(time - at).ok()).filter(|ms| *ms > 0)
    {
        let _ = write!(line, ", in {}", duration(ms));
    }
    line
}

/// The values that the guards read.
pub fn guard_values(transition: &TransitionTaken) -> String {
    transition
        .saw
        .iter()
        .map(|(path, value)| format!("{path} = {}", abbreviate(value)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The path of the state that asks a question, from the question's id: `gate/approve`, `gate/approve#2`
/// or, if the state asks several, `gate/approve.name`.
pub(super) fn state_of_question(id: &str) -> String {
    let (outer, name) = id.rfind('/').map_or(("", id), |at| id.split_at(at + 1));
    let state = name.split(['.', '#']).next().unwrap_or(name);
    format!("{outer}{state}")
}

/// Who decided something, and from where: the name in the person's environment, then the account,
/// the machine and the terminal, or without a terminal the program that gave the command.
pub(crate) fn decided_by(by: &str, from: Option<&Origin>) -> String {
    let Some(from) = from else { return by.to_owned() };
    let place = match (&from.terminal, from.program.as_str()) {
        (Some(terminal), _) => format!(" at {terminal}"),
        (None, "") => String::new(),
        (None, program) => format!(" from {}", one_line(program)),
    };
    let account = if by == from.user { String::new() } else { format!(" as {}", from.user) };
    one_line(&format!("{by}{account}@{}{place}", from.host))
}

/// A reason, preceded by a colon.
pub(super) fn reason_suffix(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {}", one_line(reason)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_have_no_result_has_its_reason() {
        let absent = |code: &str, why: &str, said: &str| Reply {
            status: "absent".to_owned(),
            codes: vec![code.to_owned()],
            why: why.to_owned(),
            said: said.to_owned(),
            ..Reply::default()
        };
        let copied = "the answer repeats an example";
        for (reply, expected) in [
            (
                absent("C0101", "no result was found: expected a JSON value", "All done."),
                "no result found (C0101); it said: \"All done.\"",
            ),
            (absent("C0102", "the text is empty", ""), "the text is empty (C0102)"),
            (absent("C0116", copied, "{"), "the answer repeats an example (C0116)"),
            (absent("C0116", "", "{"), "the only result repeats what the agent was shown (C0116)"),
            (absent("C0109", "", ""), "the only result is in a thinking section (C0109)"),
            // A code of a later version.
            (absent("C0199", "unknown", "x"), "no result found (C0199); it said: \"x\""),
        ] {
            assert_eq!(problem(&reply), expected);
        }
    }
}
