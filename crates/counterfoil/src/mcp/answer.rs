//! What a call is answered with: words for whoever reads them, and the same as data. Clients show
//! their model one or the other, so each says everything.

use counterfoil_agents::agent::adapter::Server;
use counterfoil_contract::render::prompt;
use counterfoil_contract::{Contract, Report, Status, Violation};
use serde_json::{Value, json};
use std::fmt::Write;

/// So many violations, warnings or items are told as data; more would not be read.
const MOST: usize = 50;
/// So many warnings are told in words.
const MOST_NAMED: usize = 10;

/// An answer to a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    /// In words.
    pub(super) text: String,
    /// As data.
    pub(super) data: Value,
    /// Whether the call came to nothing.
    pub(super) failed: bool,
}

impl Answer {
    /// A call that cannot be served as it is.
    pub(super) fn unusable(why: &str) -> Self {
        let text = format!("The arguments cannot be used: {why}.");
        Self { data: json!({"status": "error", "message": text}), text, failed: true }
    }

    /// What became of a result that was handed in and is kept; `kept` is why not, if it is not.
    pub(super) fn submitted(
        contract: &Contract,
        report: &Report,
        kept: Result<(), String>,
    ) -> Self {
        let mut answer = match (report.status, kept) {
            (Status::Accepted, Ok(())) => Self::told(
                report,
                format!(
                    "Accepted: the result satisfies {} and is handed in. You are done. Stop here: no further text is needed.",
                    report.contract
                ),
            ),
            (Status::Accepted, Err(why)) => {
                let mut answer = Self::told(
                    report,
                    format!(
                        "The result satisfies {}, but it could not be kept, so it is not handed in: {why}. Call `{}` once more; if that \
                         fails too, hand the result back in the text of your answer. {}",
                        report.contract,
                        Server::TOOL,
                        prompt::asks_for(contract)
                    ),
                );
                (answer.failed, answer.data["status"]) = (true, json!("error"));
                return answer;
            }
            (Status::Rejected | Status::Absent, kept) => {
                let mut text = prompt::resubmit(report, Server::TOOL);
                if let Err(why) = kept {
                    let _ = write!(text, "(That it was handed in could not be recorded: {why}.)");
                }
                let mut answer = Self::told(report, text.trim_end().to_owned());
                // The places stand beside it.
                answer.data["message"] = json!(format!(
                    "The result was not accepted. Correct what `violations` names and call `{}` again with the whole result. Do not repeat \
                     the work; change only what is wrong.",
                    Server::TOOL
                ));
                answer
            }
        };
        answer.failed = !report.is_accepted();
        if report.is_accepted() {
            answer.text.push_str(&warned(report));
        }
        answer
    }

    /// What a check says: nothing is kept.
    pub(super) fn checked(report: &Report) -> Self {
        let text = match report.status {
            Status::Accepted => format!(
                "It satisfies {}. This was only a check: call `{}` to hand it in.{}",
                report.contract,
                Server::TOOL,
                warned(report)
            ),
            Status::Rejected | Status::Absent => {
                prompt::resubmit(report, Server::TOOL).trim_end().to_owned()
            }
        };
        Self { text, data: bounded(report), failed: false }
    }

    /// A contract: what it asks for, its schema, and an example as the arguments of a call.
    pub(super) fn contract(contract: &Contract, schema: &Value, example: Option<&Value>) -> Self {
        let definition = contract.definition();
        let suffix = prompt::suffix(contract);
        let summary = match definition.summary.as_str() {
            "" => String::new(),
            words => format!(": {words}"),
        };
        let mut text = format!(
            "# {}{summary}\n\nHand the result in with `{}`. Only where you cannot call it, answer as follows.\n\n{suffix}\nSchema:\n{schema}\n",
            contract.reference(),
            Server::TOOL,
        );
        if let Some(example) = example {
            let _ = write!(text, "\nArguments of `{}`, for example:\n{example}\n", Server::TOOL);
        }
        let data = json!({
            "contract": contract.reference(), "summary": definition.summary, "prompt": suffix, "schema": schema,
            "example": example,
        });
        Self { text, data, failed: false }
    }

    /// The contracts there are.
    pub(super) fn contracts<'c>(contracts: impl Iterator<Item = &'c Contract>) -> Self {
        let mut text = String::from(
            "There are several contracts; call `get_contract` with the one that you need.\n",
        );
        let mut rows = Vec::new();
        for contract in contracts {
            let (reference, summary) = (contract.reference(), &contract.definition().summary);
            let _ = writeln!(text, "- {reference}: {summary}");
            rows.push(
                json!({"contract": reference, "agent": contract.definition().agent, "summary": summary}),
            );
        }
        Self { text, data: json!({"contracts": rows}), failed: false }
    }

    fn told(report: &Report, text: String) -> Self {
        let mut data =
            json!({"status": report.status, "contract": report.contract, "message": text});
        let few = |list: &[Violation]| -> Vec<Value> {
            let shown = list.iter().take(MOST).map(|one| {
                json!({
                    "code": one.code, "pointer": one.pointer, "message": one.message, "expected": one.expected,
                    "received": one.received, "hint": one.hint,
                })
            });
            shown.collect()
        };
        for (name, list) in [("violations", &report.violations), ("warnings", &report.warnings)] {
            if !list.is_empty() {
                data[name] = few(list).into();
            }
        }
        if report.violations.len() > MOST {
            data["violations_left_off"] = (report.violations.len() - MOST).into();
        }
        Self { text, data, failed: false }
    }
}

/// Warnings in words, behind what is said of an accepted result.
fn warned(report: &Report) -> String {
    if report.warnings.is_empty() {
        return String::new();
    }
    let mut text = String::from("\nWorth knowing:\n");
    for warning in report.warnings.iter().take(MOST_NAMED) {
        let _ = writeln!(text, "- {} {}: {}", warning.code, warning.pointer, warning.message);
    }
    if report.warnings.len() > MOST_NAMED {
        let _ = writeln!(text, "- and {} more", report.warnings.len() - MOST_NAMED);
    }
    text.truncate(text.trim_end().len());
    text
}

/// A report as `check --format json` prints it, with lists that end, and their ends said.
fn bounded(report: &Report) -> Value {
    let mut report = report.clone();
    let left_off = json!({
        "violations": report.violations.len().saturating_sub(MOST),
        "warnings": report.warnings.len().saturating_sub(MOST),
        "rejected_items": report.rejected_items.len().saturating_sub(MOST),
    });
    report.violations.truncate(MOST);
    report.warnings.truncate(MOST);
    report.rejected_items.truncate(MOST);
    let cut = left_off.as_object().is_some_and(|counts| counts.values().any(|count| count != 0));
    let mut data = serde_json::to_value(&report).unwrap_or_default();
    if cut && let Value::Object(map) = &mut data {
        map.insert("left_off".to_owned(), left_off);
    }
    data
}
