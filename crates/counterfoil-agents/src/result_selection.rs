//! Selects the result of a reply. A result can be submitted through the tool, returned as the
//! program's own structured output, or written in the text. All of them are validated against the
//! contract. No I/O.

use crate::submissions::Submission;
use counterfoil_contract::text::pluralize;
use counterfoil_contract::{Context, Contract, Report, Status};
use counterfoil_flow::{BoundRule, Channel, apply_rules};
use serde_json::Value;
use std::sync::Arc;

/// The candidates for the result of one reply.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResultCandidates<'o> {
    /// The text of the reply.
    pub text: &'o [u8],
    /// The result from the program's own structured output.
    pub structured: Option<&'o Value>,
    /// The results that were submitted, in order.
    pub submissions: &'o [Submission],
    /// What is known of the attempt.
    pub context: Option<&'o Arc<Context>>,
}

/// The result that was selected.
#[derive(Clone, Debug)]
pub struct SelectedResult {
    /// The report on the selected result. If none satisfies the contract, the report on the most
    /// informative candidate.
    pub report: Report,
    /// The channel of the selected result.
    pub channel: Channel,
    /// Contradictions between the channels, and rejected submissions.
    pub notes: Vec<String>,
}

/// Selects the first valid result in this order: the last valid submission, the structured output,
/// the text.
pub fn select_result(
    contract: &Contract,
    rules: &[BoundRule],
    candidates: ResultCandidates<'_>,
) -> SelectedResult {
    let policy = match candidates.context {
        Some(context) => contract.policy().with_context(context),
        None => contract.policy().clone(),
    };
    let validate = |value: &Value| {
        let mut report = contract.check_value_with(value, &policy);
        apply_rules(rules, contract, &mut report);
        report
    };
    let mut text = contract.check_bytes_with(candidates.text, &policy);
    apply_rules(rules, contract, &mut text);
    let submitted: Vec<Report> =
        candidates.submissions.iter().map(|one| validate(&one.value)).collect();
    let count = submitted.len();
    let last_valid = submitted.iter().rposition(|report| report.value.is_some());
    let structured = candidates.structured.map(validate);
    if let Some(last_valid) = last_valid {
        let mut notes = Vec::new();
        if last_valid + 1 < count {
            notes.push(format!(
                "{} rejected; the last valid one counts",
                pluralize(count - last_valid - 1, "later submission")
            ));
        }
        let report = submitted.into_iter().nth(last_valid).unwrap_or_else(|| text.clone());
        notes.extend(contradiction(&report, "structured output", structured.as_ref()));
        notes.extend(contradiction(&report, "final text", Some(&text)));
        return SelectedResult { report, channel: Channel::Submitted, notes };
    }
    let rejected = (count > 0).then(|| format!("{} rejected", pluralize(count, "submission")));
    match structured {
        Some(report) if report.value.is_some() => {
            let mut notes: Vec<String> = rejected.into_iter().collect();
            notes.extend(contradiction(&report, "final text", Some(&text)));
            SelectedResult { report, channel: Channel::Native, notes }
        }
        structured => {
            let notes = rejected.into_iter().collect();
            // Nothing is valid. The repair prompt should describe the candidate that is closest to
            // a result.
            let closest =
                submitted.into_iter().next_back().map(|report| (report, Channel::Submitted));
            let closest = closest.or(structured.map(|report| (report, Channel::Native)));
            match closest {
                Some((report, channel)) if text.status == Status::Absent => {
                    SelectedResult { report, channel, notes }
                }
                _ => SelectedResult { report: text, channel: Channel::Text, notes },
            }
        }
    }
}

/// A note if the result of another channel differs from the selected one.
fn contradiction(selected: &Report, channel: &str, other: Option<&Report>) -> Option<String> {
    let (selected, other) = (selected.value.as_ref()?, other?.value.as_ref()?);
    let place = first_difference(selected, other, String::new())?;
    let (ours, theirs) = (excerpt(selected.pointer(&place)), excerpt(other.pointer(&place)));
    let place = if place.is_empty() { "the result".to_owned() } else { place };
    Some(format!(
        "the {channel} contradicts the selected result: {place} is {theirs} there, not {ours}"
    ))
}

/// The JSON pointer of the first difference between two values.
fn first_difference(one: &Value, other: &Value, at: String) -> Option<String> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys = one.keys().chain(other.keys().filter(|key| !one.contains_key(*key)));
            keys.into_iter().find_map(|key| {
                let place = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                match (one.get(key), other.get(key)) {
                    (Some(one), Some(other)) => first_difference(one, other, place),
                    _ => Some(place),
                }
            })
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => one
            .iter()
            .zip(other)
            .enumerate()
            .find_map(|(n, (one, other))| first_difference(one, other, format!("{at}/{n}"))),
        (one, other) => (one != other).then_some(at),
    }
}

fn excerpt(value: Option<&Value>) -> String {
    value.map_or_else(|| "missing".to_owned(), counterfoil_flow::value::excerpt)
}

#[cfg(test)]
mod tests;
