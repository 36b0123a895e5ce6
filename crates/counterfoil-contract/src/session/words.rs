//! What a session says when there is no candidate to speak of.

use super::Session;
use crate::code::Code;
use crate::contract::Contract;
use crate::policy::Framing;
use crate::report::{Report, Stage, Status, Violation};
use crate::source::{Source, Span};
use crate::validate::{Judgement, bare_violation};
use serde_json::Value;

/// A warning that something behind the result was passed over.
pub(super) fn later_broken(span: Span) -> Violation {
    let mut note = bare_violation(
        Code::LaterNeedsRepair,
        "",
        "behind the result stands something that looks like another one but is not strict JSON; it was passed over".into(),
    );
    note.span = Some(span);
    note.expected = "the result last".into();
    note.received = "text that would need repairs".into();
    note.hint = "if that was meant to be the result, ask for it again".into();
    note
}

impl Session<'_> {
    pub(super) fn absent(&self) -> Report {
        let mut violation = bare_violation(Code::NoResult, "", String::new());
        violation.received = "text without a result".into();
        let mut status = Status::Absent;
        violation.expected = match self.framing {
            Framing::JsonOnly => "one JSON value and nothing else",
            Framing::FencedJson => "JSON in a fenced code block labelled json",
            Framing::AnyJson => "a JSON value",
            Framing::OutputBlock => "a block between ---OUTPUT--- and ---END---",
        }
        .into();
        violation.message = format!("no result was found: expected {}", violation.expected);
        violation.hint = "end the answer with the result the contract asks for".into();
        if self.first_ink.is_none() {
            violation.code = Code::EmptyText;
            violation.message = "the text is empty".into();
            violation.received = "nothing".into();
        } else if self.tiers.iter().any(|tier| tier.thoughts > 0) {
            violation.code = Code::OnlyThinking;
            violation.message =
                "the only result stands in a thinking section, which is not an answer".into();
            violation.hint = "repeat the result behind the thinking section".into();
        } else if let Some(span) = self.unclosed {
            violation.code = Code::BlockNotClosed;
            violation.message = "the output block has no ---END---".into();
            violation.span = Some(span);
            violation.received = "---OUTPUT--- without ---END---".into();
            violation.hint = "close the block with ---END--- on a line of its own".into();
            status = Status::Rejected;
        } else if let (Some(span), Framing::OutputBlock) = (self.elsewhere, self.framing) {
            violation.span = Some(span);
            violation.received = "JSON, but no block".into();
            violation.hint = "write key: value lines between ---OUTPUT--- and ---END---".into();
        } else if let Some(span) = self.elsewhere {
            violation.code = Code::NotFenced;
            violation.message = "JSON stands in the text, but not in a fenced code block".into();
            violation.span = Some(span);
            violation.received = "JSON outside any fence".into();
            violation.hint = "put the JSON between ```json and ```".into();
        }
        let mut report = self.contract.report(
            Judgement::unreadable(Stage::Extraction, vec![violation]),
            self.contract.provenance(),
        );
        report.status = status;
        report
    }

    pub(crate) fn too_large(&self, length: usize) -> Report {
        let mut violation = too_large(length, self.policy.max_bytes, "text");
        violation.span = Some(Span { start: 0, end: length, line: 1, column: 1 });
        self.contract.report(
            Judgement::unreadable(Stage::Extraction, vec![violation]),
            self.contract.provenance(),
        )
    }
}

fn too_large(length: usize, most: usize, what: &str) -> Violation {
    let message = format!("the {what} has {length} bytes; the limit is {most}");
    let mut violation = bare_violation(Code::TextTooLarge, "", message);
    violation.expected = format!("at most {most} bytes");
    violation.received = format!("{length} bytes");
    violation.hint = "raise the limit, or have the agent say less".into();
    violation
}

/// What is said of a value that was parsed elsewhere and is larger or deeper than the contract
/// allows.
pub(crate) fn beyond(contract: &Contract, value: &Value) -> Option<Report> {
    let policy = contract.policy();
    let (violation, stage) = if deeper_than(value, policy.max_depth) {
        let most = policy.max_depth;
        let mut violation = bare_violation(
            Code::TooDeep,
            "",
            format!("the result is nested deeper than {most} levels"),
        );
        violation.expected = format!("at most {most} levels");
        violation.received = "more".into();
        violation.hint = "flatten the result".into();
        (violation, Stage::Parse)
    } else {
        let mut counted = Count(0);
        // Counting takes everything, so this does not fail.
        let _ = serde_json::to_writer(&mut counted, value);
        if counted.0 <= policy.max_bytes {
            return None;
        }
        (too_large(counted.0, policy.max_bytes, "result"), Stage::Extraction)
    };
    Some(contract.report(Judgement::unreadable(stage, vec![violation]), contract.provenance()))
}

fn deeper_than(value: &Value, most: usize) -> bool {
    let mut open = vec![(value, 0)];
    while let Some((value, depth)) = open.pop() {
        let inner = depth + 1;
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, inner))),
            Value::Object(members) => open.extend(members.values().map(|member| (member, inner))),
            _ => continue,
        }
        if inner > most {
            return true;
        }
    }
    false
}

/// Counts what is written to it.
struct Count(usize);

impl std::io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Bytes that are not text.
pub(crate) fn not_utf8(contract: &Contract, bytes: &[u8], valid: usize) -> Report {
    let text = std::str::from_utf8(&bytes[..valid]).unwrap_or_default();
    let source = Source::whole(text);
    let place = source.place(valid);
    let mut violation: Violation =
        bare_violation(Code::NotUtf8, "", "the text is not UTF-8".into());
    violation.span = Some(Span {
        start: valid,
        end: (valid + 1).min(bytes.len()),
        line: place.line,
        column: place.column,
    });
    violation.expected = "UTF-8 text".into();
    violation.received =
        format!("the byte 0x{:02x}", bytes.get(valid).copied().unwrap_or_default());
    violation.hint = "have the agent write UTF-8".into();
    contract
        .report(Judgement::unreadable(Stage::Extraction, vec![violation]), contract.provenance())
}

#[cfg(test)]
mod tests {
    use crate::{Contract, Framing, Policy};
    use serde_json::json;

    #[test]
    fn a_value_from_elsewhere_is_held_to_the_limits_of_a_text() {
        let policy = Policy { max_bytes: 20, max_depth: 2, ..Policy::default() };
        let contract =
            Contract::from_schema(&json!({"type": "object"}), Framing::AnyJson, policy).unwrap();
        for (value, code) in [
            (json!({"a": "0123456789"}), None),
            (json!({"a": "012345678901234"}), Some("C0103")),
            (json!({"a": [1]}), None),
            (json!({"a": [[]]}), Some("C0104")),
        ] {
            let text = contract.check(&value.to_string());
            let elsewhere = contract.check_value(&value);
            for report in [text, elsewhere] {
                let found = report.violations.first().map(|violation| violation.code.as_str());
                assert_eq!(found, code, "{value}");
                assert_eq!(report.is_accepted(), code.is_none(), "{value}");
            }
        }
    }
}
