//! Builds reports from validated values, and logs those that are not accepted.

use crate::code::Code;
use crate::contract::Contract;
use crate::policy::Policy;
use crate::report::{LeftOut, Provenance, Report, Stage, Status};
use crate::source::Source;
use crate::validate::{
    Detail, ParsedValue, ValidationOutcome, ValueSpans, bare_violation, validate,
};
use serde_json::Value;

/// Validates a value that was not read from a text. Nothing is logged.
pub(crate) fn validate_value(contract: &Contract, value: &Value, policy: &Policy) -> Report {
    let reading = ParsedValue::new(value.clone(), ValueSpans::none());
    let outcome = validate(contract, policy, reading, &Source::whole(""), Detail::Full);
    build_report(contract, outcome, empty_provenance(contract))
}

/// The provenance of a report without a candidate.
pub(crate) fn empty_provenance(contract: &Contract) -> Provenance {
    Provenance {
        framing: contract.framing(),
        candidates: 0,
        chosen: None,
        span: None,
        repairs: Vec::new(),
        coercions: Vec::new(),
        defaults: Vec::new(),
        filled: Vec::new(),
        unwrapped: Vec::new(),
        passed_over: Vec::new(),
    }
}

/// The report about a validated candidate.
pub(crate) fn build_report(
    contract: &Contract,
    outcome: ValidationOutcome,
    mut provenance: Provenance,
) -> Report {
    let mut left_out = LeftOut { values: outcome.values_left_out, ..LeftOut::default() };
    (provenance.coercions, left_out.coercions) = outcome.coercions.into_parts();
    let (defaults, defaults_left_out) = outcome.defaults.into_parts();
    provenance.defaults = defaults.into_iter().map(|one| one.pointer).collect();
    left_out.defaults = defaults_left_out;
    provenance.filled = outcome.filled;
    provenance.unwrapped = outcome.unwrapped;
    let accepted = outcome.stage.is_none();
    let (value, refused_value) = match outcome.value {
        value if accepted => (Some(value), None),
        Value::Null => (None, None),
        value => (None, Some(value)),
    };
    let violations;
    let mut warnings;
    (violations, left_out.violations) = outcome.violations.into_parts();
    (warnings, left_out.warnings) = outcome.warnings.into_parts();
    left_out.rejected_items = outcome.salvaged.others.len();
    if let Some(why) = &contract.definition.deprecated {
        let mut note = bare_violation(
            Code::Deprecated,
            "",
            format!("{} is deprecated: {why}", contract.reference),
        );
        why.clone_into(&mut note.hint);
        warnings.push(note);
    }
    Report {
        contract: contract.reference.clone(),
        status: if accepted { Status::Accepted } else { Status::Rejected },
        stage: outcome.stage,
        value,
        partial: outcome.salvaged.partial,
        violations,
        warnings,
        rejected_items: outcome.salvaged.rejected_items,
        left_out,
        refused_value,
        provenance,
    }
}

/// Emits one structured event for a report that is not accepted, with the place of its first
/// violation.
pub(crate) fn log_rejection(contract: &Contract, report: &Report) {
    if report.is_accepted() {
        return;
    }
    let first = report.violations.first();
    let codes = report.codes().iter().map(|code| code.as_str()).collect::<Vec<_>>().join(",");
    tracing::warn!(
        target: "counterfoil::rejected",
        contract = %contract.reference,
        agent = contract.definition.agent.as_deref().unwrap_or(""),
        stage = report.stage.map_or("", Stage::name),
        codes = %codes,
        pointer = first.map_or("", |violation| violation.pointer.as_str()),
        expected = first.map_or("", |violation| violation.expected.as_str()),
        received = first.map_or("", |violation| violation.received.as_str()),
        status = if report.status == Status::Absent { "absent" } else { "rejected" },
        "result not accepted"
    );
}
