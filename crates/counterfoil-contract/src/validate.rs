//! Validates a value against its contract: schema, placeholders and rules. All violations are
//! reported at once, each with its position.

mod coerce;
mod describe;
mod failure;
#[cfg(feature = "rules")]
mod filled;
#[cfg(feature = "rules")]
mod rules;
mod salvage;
mod schema_error;
mod select;
mod unwrap;
mod value_spans;
pub(crate) mod walk;

pub(crate) use describe::{SpanResolver, excerpt, parse_violation};
pub(crate) use failure::error_fields;
pub(crate) use salvage::{innermost, salvage};
pub(crate) use select::{select, select_values};
pub(crate) use value_spans::ValueSpans;

use crate::code::Code;
use crate::contract::Contract;
use crate::policy::Policy;
use crate::report::{Coercion, RejectedItem, Stage, Violation};
use crate::source::Source;
use serde_json::Value;
use walk::FilledDefault;

/// A parsed value and the positions of its parts in the text.
pub(crate) struct ParsedValue<'t> {
    pub(crate) value: Value,
    pub(crate) spans: ValueSpans<'t>,
    /// Violations that were found while parsing.
    pub(crate) violations: Vec<Violation>,
    pub(crate) warnings: Vec<Violation>,
    pub(crate) coercions: Vec<Coercion>,
}

/// The outcome of validating a value. `stage` is the stage that rejected it, `None` if accepted.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValidationOutcome {
    pub(crate) value: Value,
    pub(crate) stage: Option<Stage>,
    pub(crate) violations: Vec<Violation>,
    pub(crate) warnings: Vec<Violation>,
    pub(crate) coercions: Vec<Coercion>,
    pub(crate) defaults: Vec<FilledDefault>,
    pub(crate) filled: Vec<String>,
    pub(crate) unwrapped: Vec<String>,
    pub(crate) partial: Option<Value>,
    pub(crate) rejected_items: Vec<RejectedItem>,
}

impl ValidationOutcome {
    pub(crate) fn is_accepted(&self) -> bool {
        self.stage.is_none()
    }

    /// The outcome for a text that could not be parsed.
    pub(crate) fn unreadable(stage: Stage, violations: Vec<Violation>) -> Self {
        Self { stage: Some(stage), violations, ..Self::default() }
    }
}

/// How much detail an outcome must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Only whether the value is accepted; a rejection carries no violations.
    Probe,
    /// All violations and warnings.
    Full,
}

/// Validates a parsed value against a contract.
pub(crate) fn validate(
    contract: &Contract,
    policy: &Policy,
    parsed: ParsedValue<'_>,
    source: &Source<'_>,
    detail: Detail,
) -> ValidationOutcome {
    let ParsedValue { mut value, mut spans, violations: mut found, mut warnings, mut coercions } =
        parsed;
    let unwrapped = unwrap::unwrap(contract, policy, &mut value, &mut spans);
    coerce::rename(&policy.rename, &mut value, &mut coercions);
    #[cfg(feature = "rules")]
    let engine = filled::fill(contract, policy, &mut value);
    let mut defaults = Vec::new();
    if !policy.strict {
        walk::fill_defaults(&mut value, contract.ty(), &mut defaults);
    }
    #[cfg(feature = "rules")]
    let validator = match &contract.filled {
        Some(fields) if !engine.unknown.is_empty() => &fields.relaxed,
        _ => contract.validator(),
    };
    #[cfg(not(feature = "rules"))]
    let validator = contract.validator();
    let mut valid = validator.is_valid(&value);
    if !valid && found.is_empty() {
        coerce::coerce(contract, policy, &mut value, &mut coercions);
        if !policy.strict && !coercions.is_empty() {
            walk::fill_defaults(&mut value, contract.ty(), &mut defaults);
        }
        valid = validator.is_valid(&value);
    }
    let rejected = |violations: Vec<Violation>| ValidationOutcome {
        stage: Some(Stage::Validation),
        violations,
        ..ValidationOutcome::default()
    };
    if detail == Detail::Probe && (!valid || !found.is_empty()) {
        return rejected(Vec::new());
    }
    let spans = SpanResolver { source, spans: &spans };
    #[cfg(feature = "rules")]
    {
        if detail == Detail::Probe && engine.is_refused() {
            return rejected(Vec::new());
        }
        found.extend(engine.violations(&value, &spans));
        warnings.extend(engine.warnings());
    }
    if !valid {
        let errors = schema_error::flatten_errors(validator.iter_errors(&value));
        // What could not be read is reported once.
        let unread: Vec<String> = found.iter().map(|violation| violation.pointer.clone()).collect();
        let is_unread = |pointer: &str| {
            unread.iter().any(|unread| {
                let rest = pointer.strip_prefix(unread.as_str()).filter(|_| !unread.is_empty());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        let errors = errors.iter().map(|error| describe::describe(error, &value, policy, &spans));
        found.extend(errors.filter(|violation| !is_unread(&violation.pointer)));
    }
    let scan = walk::scan_fields(&value, contract.ty(), policy.placeholders);
    for pointer in &scan.placeholders {
        let is_inside = |violation: &Violation| {
            violation.code == Code::Placeholder
                && pointer
                    .strip_prefix(&violation.pointer)
                    .is_some_and(|rest| rest.starts_with('/'))
        };
        if found.iter().any(is_inside) {
            continue;
        }
        // A placeholder is the cause of other schema violations of the same value.
        found.retain(|violation| violation.pointer != *pointer);
        found.push(describe::placeholder(pointer, &value, &spans));
    }
    for pointer in &scan.unknown {
        if found.iter().any(|violation| violation.pointer == *pointer) {
            continue;
        }
        let refused = value.pointer(pointer).is_some_and(|value| policy.refuses_unknown(value));
        let note = describe::unknown_field(pointer, contract.ty(), refused, &spans);
        if refused {
            found.push(note);
        } else {
            warnings.push(note);
        }
    }
    if detail == Detail::Probe && !found.is_empty() {
        return rejected(Vec::new());
    }
    let stage = if found.is_empty() { Stage::Rules } else { Stage::Validation };
    #[cfg(feature = "rules")]
    {
        let findings = rules::apply(contract, &value, &found, &engine.unknown, &spans);
        if detail == Detail::Probe && !findings.violations.is_empty() {
            return rejected(Vec::new());
        }
        found.extend(findings.violations);
        warnings.extend(findings.warnings);
    }
    if found.is_empty()
        && let Some(violation) = failure::unexplained(contract, &value, &spans)
    {
        if detail == Detail::Probe {
            return rejected(Vec::new());
        }
        found.push(violation);
    }
    warnings.extend(
        defaults.iter().filter_map(|filled| describe::default_used(filled, contract.ty(), &spans)),
    );
    if found.is_empty() {
        return ValidationOutcome {
            value,
            warnings,
            coercions,
            defaults,
            #[cfg(feature = "rules")]
            filled: engine.filled,
            unwrapped,
            ..ValidationOutcome::default()
        };
    }
    found.sort_by_key(|violation| {
        violation.span.map_or((usize::MAX, 0), |span| (span.start, span.end))
    });
    let (partial, rejected_items) = salvage(&value, &found, &policy.salvage);
    ValidationOutcome {
        value,
        stage: Some(stage),
        violations: found,
        warnings,
        coercions,
        defaults,
        #[cfg(feature = "rules")]
        filled: engine.filled,
        #[cfg(not(feature = "rules"))]
        filled: Vec::new(),
        unwrapped,
        partial,
        rejected_items,
    }
}

/// A violation with only code, pointer and message filled in.
pub(crate) fn bare_violation(code: Code, pointer: &str, message: String) -> Violation {
    Violation {
        code,
        pointer: pointer.to_owned(),
        span: None,
        message,
        expected: String::new(),
        received: String::new(),
        hint: String::new(),
        rule: None,
    }
}
