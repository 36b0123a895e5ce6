//! Reports about texts and values without a candidate: nothing found, too large, too deep, not UTF-8.

use super::Extractor;
use super::outside::{Form, OutsideAttempt};
use crate::code::Code;
use crate::contract::Contract;
use crate::policy::Framing;
use crate::read;
use crate::report::{Report, Stage, Status, Violation};
use crate::reporting::{build_report, empty_provenance};
use crate::source::{Source, Span};
use crate::text::pluralize;
use crate::validate::{ValidationOutcome, bare_violation};
use crate::work::MAX_CHECK_TIME;
use serde_json::Value;

/// The violation of a text whose last attempt is in a thinking section that never ends.
pub(super) fn unclosed_thinking(span: Span) -> Violation {
    let mut violation = bare_violation(
        Code::OnlyThinking,
        "",
        "the last result is in a thinking section that never ends".into(),
    );
    violation.span = Some(span);
    violation.expected = "the result after the thinking section".into();
    violation.received = "a result inside of it".into();
    violation.hint = "close the thinking section, then send the result".into();
    violation
}

/// The violation of an output block without an end.
pub(super) fn block_not_closed(span: Span) -> Violation {
    let mut violation =
        bare_violation(Code::BlockNotClosed, "", "the output block has no ---END---".into());
    violation.span = Some(span);
    violation.expected = "---END--- after the last line of the block".into();
    violation.received = "---OUTPUT--- without ---END---".into();
    violation.hint = "close the block with ---END--- on a line of its own".into();
    violation
}

/// The violation of a text that ends in the first key of a result.
pub(super) fn cut_key(span: Span) -> Violation {
    let mut violation =
        bare_violation(Code::Truncated, "", "the text ends where a result begins".into());
    violation.span = Some(span);
    violation.expected = "the whole result".into();
    violation.received = "its first characters".into();
    violation.hint = "send the whole result again".into();
    violation
}

/// The violation of a text with two valid results that differ, where the contract says to ask.
pub(super) fn differing(earlier: Span) -> Violation {
    let mut violation = differing_note(earlier);
    violation.code = Code::DifferingResults;
    violation.message = "the text has two valid results that differ".into();
    violation.hint = "send one result, and no other version of it".into();
    violation
}

/// The warning that an earlier valid result differs from the last one, which counts.
pub(super) fn differing_note(earlier: Span) -> Violation {
    let mut note = bare_violation(
        Code::DifferingResultsNote,
        "",
        "an earlier result in the text is valid too and differs; the last one counts".into(),
    );
    note.span = Some(earlier);
    note.expected = "one result".into();
    note.received = "two that differ".into();
    note.hint = "if the last one is not meant, ask for the result again".into();
    note
}

impl Extractor<'_> {
    /// The violation of an attempt in another form than the contract asks for.
    pub(super) fn wrong_form(&self, attempt: &OutsideAttempt) -> Violation {
        let mut violation = match (self.framing, attempt.form) {
            (Framing::FencedJson, Form::Json) => {
                let (place, received) = match self.fence.label_at(attempt.start) {
                    Some(label) => (
                        format!("in a fenced code block labelled `{label}`"),
                        format!("JSON in a block labelled `{label}`"),
                    ),
                    None => (
                        "outside of any fenced code block".to_owned(),
                        "JSON outside any fence".to_owned(),
                    ),
                };
                let message = format!("the last result is JSON {place}");
                let mut violation = bare_violation(Code::NotFenced, "", message);
                violation.received = received;
                violation.hint = "put the JSON between ```json and ```".into();
                violation
            }
            (Framing::OutputBlock, _) => {
                let message = "the last result is JSON, not an output block";
                let mut violation = bare_violation(Code::WrongForm, "", message.into());
                violation.received = "JSON".into();
                violation.hint = "write key: value lines between ---OUTPUT--- and ---END---".into();
                violation
            }
            (_, Form::Json | Form::Block) => {
                let message = "the last result is an output block, not JSON";
                let mut violation = bare_violation(Code::WrongForm, "", message.into());
                violation.received = "a block between ---OUTPUT--- and ---END---".into();
                violation.hint = "send the result as JSON".into();
                violation
            }
        };
        violation.expected = self.expected_form().into();
        violation.span = attempt.span;
        violation
    }

    fn expected_form(&self) -> &'static str {
        match self.framing {
            Framing::JsonOnly => "one JSON value and nothing else",
            Framing::FencedJson => "JSON in a fenced code block labelled json",
            Framing::AnyJson => "a JSON value",
            Framing::OutputBlock => "a block between ---OUTPUT--- and ---END---",
        }
    }

    /// The report about a text without a result.
    pub(super) fn absent(&self, source: &Source<'_>) -> Report {
        let loose = self.loose.as_ref().and_then(|loose| loose.extent(source));
        let mut violation = bare_violation(Code::NoResult, "", String::new());
        violation.received = "text without a result".into();
        let mut status = Status::Absent;
        violation.expected = self.expected_form().into();
        violation.message = format!("no result was found: expected {}", violation.expected);
        violation.hint = "end the answer with the result the contract asks for".into();
        if self.first_non_blank.is_none() {
            violation.code = Code::EmptyText;
            violation.message = "the text is empty".into();
            violation.received = "nothing".into();
        } else if self.outside.inside_thinking > 0
            || self.tracks.iter().any(|track| track.inside_thinking > 0)
        {
            violation.code = Code::OnlyThinking;
            violation.message =
                "the only result is in a thinking section, which is not part of the answer".into();
            violation.hint = "repeat the result after the thinking section".into();
        } else if self.quotations > 0 && self.unclosed.is_none() {
            violation = Violation { expected: violation.expected, ..quotation() };
        } else if let Some(span) = self.unclosed {
            violation = block_not_closed(span);
            status = Status::Rejected;
        } else if let Some((start, end)) = loose {
            violation.span = Some(source.span(start, end));
            violation.received = "the lines of a block without ---OUTPUT---".into();
            violation.hint = "put the lines between ---OUTPUT--- and ---END---".into();
        } else if let (Some(span), Framing::OutputBlock) = (self.outside.last_json, self.framing) {
            violation.span = Some(span);
            violation.received = "JSON, but no block".into();
            violation.hint = "write key: value lines between ---OUTPUT--- and ---END---".into();
        } else if let Some(span) = self.outside.last_json {
            violation.code = Code::NotFenced;
            violation.span = Some(span);
            match self.fence.label_at(span.start) {
                Some(label) => {
                    violation.message = format!(
                        "there is JSON in the text, but in a fenced code block labelled `{label}`"
                    );
                    violation.received = format!("JSON in a block labelled `{label}`");
                }
                None => {
                    violation.message =
                        "there is JSON in the text, but not in a fenced code block".into();
                    violation.received = "JSON outside any fence".into();
                }
            }
            violation.hint = "put the JSON between ```json and ```".into();
        }
        let mut outcome = ValidationOutcome::unreadable(Stage::Extraction, vec![violation]);
        if let Some((start, end)) = loose {
            outcome.salvaged =
                read::block_cut_off(&self.contract, source, start, end, &self.policy);
        }
        let mut report = build_report(&self.contract, outcome, empty_provenance(&self.contract));
        report.status = status;
        report
    }

    pub(crate) fn too_large(&self, length: usize) -> Report {
        let mut violation = too_large(length, self.policy.max_bytes, "text");
        violation.span = Some(Span { start: 0, end: length, line: 1, column: 1 });
        build_report(
            &self.contract,
            ValidationOutcome::unreadable(Stage::Extraction, vec![violation]),
            empty_provenance(&self.contract),
        )
    }
}

/// The report about a text that took too long to check. What was not checked is not accepted.
pub(crate) fn took_too_long(contract: &Contract, length: usize) -> Report {
    let seconds = MAX_CHECK_TIME.as_secs();
    let message = format!("checking the text takes more than {seconds} seconds");
    let mut violation = bare_violation(Code::WorkLimit, "", message);
    violation.span = Some(Span { start: 0, end: length, line: 1, column: 1 });
    violation.expected = format!("a text that can be checked in {seconds} seconds");
    violation.received = "one that takes longer".into();
    violation.hint = "ask the agent for a shorter answer".into();
    build_report(
        contract,
        ValidationOutcome::unreadable(Stage::Extraction, vec![violation]),
        empty_provenance(contract),
    )
}

/// The violation of an answer that only repeats what the agent was shown.
fn quotation() -> Violation {
    let message =
        "the answer repeats an example or a template that was shown, and has no result of its own";
    let mut violation = bare_violation(Code::OnlyQuoted, "", message.into());
    violation.received = "a copy of what was shown".into();
    violation.hint = "send the result of your own work".into();
    violation
}

/// The report about a value that only repeats what the agent was shown.
pub(crate) fn only_quoted(contract: &Contract) -> Report {
    let violation = Violation { expected: "a result of its own".into(), ..quotation() };
    let outcome = ValidationOutcome::unreadable(Stage::Extraction, vec![violation]);
    let mut report = build_report(contract, outcome, empty_provenance(contract));
    report.status = Status::Absent;
    report
}

fn too_large(length: usize, limit: usize, what: &str) -> Violation {
    // Who reads a text stops at most one character behind the limit, so its length is not known.
    let (message, received) = if length <= limit.saturating_add(4) {
        (format!("the {what} has more than {limit} bytes"), format!("more than {limit} bytes"))
    } else {
        let message = format!("the {what} has {length} bytes; the limit is {limit}");
        (message, format!("{length} bytes"))
    };
    let mut violation = bare_violation(Code::TextTooLarge, "", message);
    violation.expected = format!("at most {limit} bytes");
    violation.received = received;
    violation.hint =
        "raise the limit (`--max-bytes`), or ask the agent for a shorter answer".into();
    violation
}

/// The report about a value that is larger or deeper than the policy allows; none if it is not.
pub(crate) fn report_beyond_limits(contract: &Contract, value: &Value) -> Option<Report> {
    let policy = contract.policy();
    let (violation, stage) = if has_more_values(value, policy.max_values) {
        let limit = policy.max_values;
        let message = format!("the result has more than {}", pluralize(limit, "value"));
        let mut violation = bare_violation(Code::TooManyValues, "", message);
        violation.expected = format!("at most {}", pluralize(limit, "value"));
        violation.received = "more".into();
        violation.hint = "send fewer items, or write long lists to a file and name it".into();
        (violation, Stage::Parse)
    } else if deeper_than(value, policy.max_depth) {
        let limit = policy.max_depth;
        let mut violation = bare_violation(
            Code::TooDeep,
            "",
            format!("the result is nested deeper than {}", pluralize(limit, "level")),
        );
        violation.expected = format!("at most {}", pluralize(limit, "level"));
        violation.received = "more".into();
        violation.hint = "flatten the result".into();
        (violation, Stage::Parse)
    } else {
        let mut counted = ByteCounter(0);
        // The counter accepts every write, so this does not fail.
        let _ = serde_json::to_writer(&mut counted, value);
        if counted.0 <= policy.max_bytes {
            return None;
        }
        (too_large(counted.0, policy.max_bytes, "result"), Stage::Extraction)
    };
    Some(build_report(
        contract,
        ValidationOutcome::unreadable(stage, vec![violation]),
        empty_provenance(contract),
    ))
}

fn has_more_values(value: &Value, limit: usize) -> bool {
    let mut open = vec![value];
    let mut count = 0;
    while let Some(value) = open.pop() {
        count += 1;
        if count + open.len() > limit {
            return true;
        }
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            _ => {}
        }
    }
    false
}

fn deeper_than(value: &Value, limit: usize) -> bool {
    let mut open = vec![(value, 0)];
    while let Some((value, depth)) = open.pop() {
        let inner = depth + 1;
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, inner))),
            Value::Object(members) => open.extend(members.values().map(|member| (member, inner))),
            _ => continue,
        }
        if inner > limit {
            return true;
        }
    }
    false
}

/// Counts the bytes written to it.
struct ByteCounter(usize);

impl std::io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The report about bytes that are not UTF-8.
pub(crate) fn not_utf8(contract: &Contract, bytes: &[u8], valid: usize) -> Report {
    let text = std::str::from_utf8(&bytes[..valid]).unwrap_or_default();
    let source = Source::whole(text);
    let place = source.position(valid);
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
    build_report(
        contract,
        ValidationOutcome::unreadable(Stage::Extraction, vec![violation]),
        empty_provenance(contract),
    )
}

#[cfg(test)]
mod tests {
    use crate::{Contract, Framing, Policy};
    use serde_json::json;

    #[test]
    fn a_parsed_value_has_the_limits_of_a_text() {
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
            let from_value = contract.check_value(&value);
            for report in [text, from_value] {
                let found = report.violations.first().map(|violation| violation.code.as_str());
                assert_eq!(found, code, "{value}");
                assert_eq!(report.is_accepted(), code.is_none(), "{value}");
            }
        }
    }
}
