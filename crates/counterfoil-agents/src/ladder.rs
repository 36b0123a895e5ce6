//! The ladder of ways by which a result comes back: handed in through the tool, by the program's
//! own structured output, in the text. Whichever it is, it is held to the contract here. No I/O.

use crate::submit::Submission;
use counterfoil_contract::{Contract, Report, Status};
use counterfoil_flow::{BoundRule, Channel, apply_rules};
use serde_json::Value;

/// What a reply offers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offered<'o> {
    /// What was said.
    pub text: &'o [u8],
    /// The result by the program's own structured output.
    pub structured: Option<&'o Value>,
    /// The results that were handed in, in order.
    pub submissions: &'o [Submission],
}

/// What a reply comes to.
#[derive(Clone, Debug)]
pub struct Weighed {
    /// The report on the result that counts; if none satisfies the contract, on the one that says
    /// most.
    pub report: Report,
    /// The way it came.
    pub channel: Channel,
    /// What the other ways say to it, where they say otherwise.
    pub notes: Vec<String>,
}

/// Takes the highest way that gives a result which satisfies the contract: the last good one that
/// was handed in, the structured output, the text.
pub fn weigh(contract: &Contract, rules: &[BoundRule], offered: Offered<'_>) -> Weighed {
    let checked = |value: &Value| {
        let mut report = contract.check_value(value);
        apply_rules(rules, contract, &mut report);
        report
    };
    let mut text = contract.check_bytes(offered.text);
    apply_rules(rules, contract, &mut text);
    let submitted: Vec<Report> =
        offered.submissions.iter().map(|one| checked(&one.value)).collect();
    let tries = submitted.len();
    let good = submitted.iter().rposition(|report| report.value.is_some());
    let structured = offered.structured.map(checked);
    if let Some(at) = good {
        let mut notes = Vec::new();
        if at + 1 < tries {
            notes.push(format!(
                "{} later submissions were refused; the last good one counts",
                tries - at - 1
            ));
        }
        let report = submitted.into_iter().nth(at).unwrap_or_else(|| text.clone());
        notes.extend(contradiction(&report, "structured output", structured.as_ref()));
        notes.extend(contradiction(&report, "final text", Some(&text)));
        return Weighed { report, channel: Channel::Submitted, notes };
    }
    let refused = (tries > 0).then(|| format!("{tries} submissions were refused"));
    match structured {
        Some(report) if report.value.is_some() => {
            let mut notes: Vec<String> = refused.into_iter().collect();
            notes.extend(contradiction(&report, "final text", Some(&text)));
            Weighed { report, channel: Channel::Native, notes }
        }
        structured => {
            let notes = refused.into_iter().collect();
            // Nothing is good: whoever is asked again should hear of the one that came nearest to a
            // result.
            let nearer =
                submitted.into_iter().next_back().map(|report| (report, Channel::Submitted));
            let nearer = nearer.or(structured.map(|report| (report, Channel::Native)));
            match nearer {
                Some((report, channel)) if text.status == Status::Absent => {
                    Weighed { report, channel, notes }
                }
                _ => Weighed { report: text, channel: Channel::Text, notes },
            }
        }
    }
}

/// What another way says otherwise, if it gives a result at all.
fn contradiction(taken: &Report, way: &str, other: Option<&Report>) -> Option<String> {
    let (taken, other) = (taken.value.as_ref()?, other?.value.as_ref()?);
    let place = differs(taken, other, String::new())?;
    let (ours, theirs) = (shown(taken.pointer(&place)), shown(other.pointer(&place)));
    let place = if place.is_empty() { "the result".to_owned() } else { place };
    Some(format!(
        "the {way} contradicts the result that was taken: {place} is {theirs} there, not {ours}"
    ))
}

/// The first place at which two values differ.
fn differs(one: &Value, other: &Value, at: String) -> Option<String> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys = one.keys().chain(other.keys().filter(|key| !one.contains_key(*key)));
            keys.into_iter().find_map(|key| {
                let place = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                match (one.get(key), other.get(key)) {
                    (Some(one), Some(other)) => differs(one, other, place),
                    _ => Some(place),
                }
            })
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => one
            .iter()
            .zip(other)
            .enumerate()
            .find_map(|(n, (one, other))| differs(one, other, format!("{at}/{n}"))),
        (one, other) => (one != other).then_some(at),
    }
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "not there".to_owned(), counterfoil_flow::value::excerpt)
}

#[cfg(test)]
mod tests;
