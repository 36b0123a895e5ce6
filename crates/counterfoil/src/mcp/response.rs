//! Responses to tool calls, as text and as structured data. A client shows its model only one of
//! the two, so each is complete.

use counterfoil_agents::adapters::Server;
use counterfoil_agents::check_service::CheckAnswer;
use counterfoil_contract::render::prompt;
use counterfoil_contract::text::pluralize;
use counterfoil_contract::{Contract, Report, Status, Violation};
use serde_json::{Value, json};
use std::fmt::Write;

/// The most violations, warnings or items in the structured data.
const MAX_LISTED: usize = 50;
/// The most warnings in the text.
const MAX_TEXT_WARNINGS: usize = 10;

/// The response to a tool call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToolResponse {
    /// The text content.
    pub(super) text: String,
    /// The structured content.
    pub(super) data: Value,
    /// Whether the call is reported as an error.
    pub(super) is_error: bool,
}

impl ToolResponse {
    /// The response to invalid arguments.
    pub(super) fn invalid_arguments(why: &str) -> Self {
        let text = format!("Invalid arguments: {why}.");
        Self { data: json!({"status": "error", "message": text}), text, is_error: true }
    }

    /// The response to a call of `run_check`. A check that fails is not an error of the call.
    pub(super) fn check(name: &str, answer: Result<CheckAnswer, String>) -> Self {
        let report = match answer {
            Ok(CheckAnswer::Report(report)) => report,
            Ok(CheckAnswer::Refused(why)) | Err(why) => {
                let text = format!("The check `{name}` was not run: {why}.");
                return Self {
                    data: json!({"status": "error", "message": text}),
                    text,
                    is_error: true,
                };
            }
        };
        let mut text = format!("The check `{name}` {}", report.status.name());
        if !report.reason.is_empty() {
            let _ = write!(text, ": {}", report.reason);
        }
        if let (Some(total), Some(failed)) = (report.total, report.failed) {
            let tests = pluralize(usize::try_from(total).unwrap_or(usize::MAX), "test");
            let _ = write!(text, "; {failed} of {tests} failed");
        }
        text.push('.');
        for note in &report.notes {
            let _ = write!(text, " Note: {note}.");
        }
        if !report.output.is_empty() {
            let _ = write!(text, "\n\n{}", report.output);
        }
        let mut data = serde_json::to_value(&report).unwrap_or_default();
        data["check"] = json!(name);
        Self { text, data, is_error: false }
    }

    /// The response to a submission. `stored` has the error if the submission could not be stored.
    pub(super) fn submitted(
        contract: &Contract,
        report: &Report,
        stored: Result<(), String>,
    ) -> Self {
        let mut response = match (report.status, stored) {
            (Status::Accepted, Ok(())) => Self::from_report(
                report,
                format!(
                    "Accepted: the result satisfies {} and was submitted. You are done. Stop here: no further text is needed.",
                    report.contract
                ),
            ),
            (Status::Accepted, Err(why)) => {
                let mut response = Self::from_report(
                    report,
                    format!(
                        "The result satisfies {}, but it could not be stored and was not submitted: {why}. Call `{}` once more. If \
                         that fails too, return the result in the text of your answer. {}",
                        report.contract,
                        Server::TOOL,
                        prompt::framing_instruction(contract)
                    ),
                );
                (response.is_error, response.data["status"]) = (true, json!("error"));
                return response;
            }
            (Status::Rejected | Status::Absent, stored) => {
                let mut text = prompt::resubmit(report, Server::TOOL);
                if let Err(why) = stored {
                    let _ = write!(text, "(The submission could not be recorded: {why}.)");
                }
                let mut response = Self::from_report(report, text.trim_end().to_owned());
                // The structured data lists the violations separately.
                response.data["message"] = json!(format!(
                    "The result was not accepted. Fix the `violations` and call `{}` again with the complete result. Do not repeat the \
                     work; change only what is wrong.",
                    Server::TOOL
                ));
                response
            }
        };
        response.is_error = !report.is_accepted();
        if report.is_accepted() {
            response.text.push_str(&warnings_text(report));
        }
        response
    }

    /// The response to a check. Nothing is stored.
    pub(super) fn checked(report: &Report) -> Self {
        let text = match report.status {
            Status::Accepted => format!(
                "The result satisfies {}. This was only a check: call `{}` to submit it.{}",
                report.contract,
                Server::TOOL,
                warnings_text(report)
            ),
            Status::Rejected | Status::Absent => {
                prompt::resubmit(report, Server::TOOL).trim_end().to_owned()
            }
        };
        Self { text, data: limited_report(report), is_error: false }
    }

    /// A contract: its prompt, its schema, and examples as the arguments of a call.
    pub(super) fn contract(contract: &Contract, schema: &Value, examples: &[Value]) -> Self {
        let definition = contract.definition();
        let suffix = contract.prompt();
        let summary = match definition.summary.as_str() {
            "" => String::new(),
            summary => format!(": {summary}"),
        };
        let mut text = format!(
            "# {}{summary}\n\nSubmit the result with `{}`. Only if you cannot call it, answer as follows.\n\n{suffix}\nSchema:\n{schema}\n",
            contract.reference(),
            Server::TOOL,
        );
        if !examples.is_empty() {
            let _ = writeln!(text, "\nExample arguments of `{}`:", Server::TOOL);
        }
        for example in examples {
            let _ = writeln!(text, "{example}");
        }
        let mut data = json!({
            "contract": contract.reference(), "summary": definition.summary, "prompt": suffix, "schema": schema,
            "example": examples.first(),
        });
        if examples.len() > 1 {
            data["examples"] = json!(examples);
        }
        Self { text, data, is_error: false }
    }

    /// The list of all contracts.
    pub(super) fn contracts<'c>(contracts: impl Iterator<Item = &'c Contract>) -> Self {
        let mut text = String::from(
            "There are several contracts. Call `get_contract` with the one that you need.\n",
        );
        let mut rows = Vec::new();
        for contract in contracts {
            let (reference, summary) = (contract.reference(), &contract.definition().summary);
            let _ = writeln!(text, "- {reference}: {summary}");
            rows.push(
                json!({"contract": reference, "agent": contract.definition().agent, "summary": summary}),
            );
        }
        Self { text, data: json!({"contracts": rows}), is_error: false }
    }

    fn from_report(report: &Report, text: String) -> Self {
        let mut data =
            json!({"status": report.status, "contract": report.contract, "message": text});
        let limited = |list: &[Violation]| -> Vec<Value> {
            let listed = list.iter().take(MAX_LISTED).map(|one| {
                json!({
                    "code": one.code, "pointer": one.pointer, "message": one.message, "expected": one.expected,
                    "received": one.received, "hint": one.hint,
                })
            });
            listed.collect()
        };
        for (name, list) in [("violations", &report.violations), ("warnings", &report.warnings)] {
            if !list.is_empty() {
                data[name] = limited(list).into();
            }
        }
        if report.violations.len() > MAX_LISTED {
            data["violations_left_off"] = (report.violations.len() - MAX_LISTED).into();
        }
        Self { text, data, is_error: false }
    }
}

/// The warnings of an accepted result as text.
fn warnings_text(report: &Report) -> String {
    if report.warnings.is_empty() {
        return String::new();
    }
    let mut text = String::from("\nWarnings:\n");
    for warning in report.warnings.iter().take(MAX_TEXT_WARNINGS) {
        let _ = writeln!(text, "- {} {}: {}", warning.code, warning.pointer, warning.message);
    }
    if report.warnings.len() > MAX_TEXT_WARNINGS {
        let _ = writeln!(text, "- and {} more", report.warnings.len() - MAX_TEXT_WARNINGS);
    }
    text.truncate(text.trim_end().len());
    text
}

/// A report as `check --format json` prints it, with limited lists and the number of entries left
/// off.
fn limited_report(report: &Report) -> Value {
    let mut report = report.clone();
    let left_off = json!({
        "violations": report.violations.len().saturating_sub(MAX_LISTED),
        "warnings": report.warnings.len().saturating_sub(MAX_LISTED),
        "rejected_items": report.rejected_items.len().saturating_sub(MAX_LISTED),
    });
    report.violations.truncate(MAX_LISTED);
    report.warnings.truncate(MAX_LISTED);
    report.rejected_items.truncate(MAX_LISTED);
    let is_limited =
        left_off.as_object().is_some_and(|counts| counts.values().any(|count| count != 0));
    let mut data = serde_json::to_value(&report).unwrap_or_default();
    if is_limited && let Value::Object(map) = &mut data {
        map.insert("left_off".to_owned(), left_off);
    }
    data
}
