//! Validates a value against its contract: schema, placeholders and rules. All violations are
//! reported at once, each with its position.

mod coerce;
mod describe;
mod failure;
#[cfg(feature = "rules")]
mod filled;
mod findings;
mod listing;
mod pointer_set;
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
pub(crate) use findings::Findings;
pub(crate) use salvage::{Salvaged, innermost, salvage};
pub(crate) use select::{select, select_values};
pub(crate) use value_spans::ValueSpans;

use crate::capped::Capped;
use crate::code::Code;
use crate::contract::Contract;
use crate::placeholder;
use crate::policy::Policy;
use crate::report::{Coercion, Stage, Violation};
use crate::source::Source;
use serde_json::Value;
use std::collections::HashSet;
use walk::{Defaults, FilledDefault};

/// A parsed value and the positions of its parts in the text.
pub(crate) struct ParsedValue<'t> {
    pub(crate) value: Value,
    pub(crate) spans: ValueSpans<'t>,
    /// Violations that were found while parsing.
    pub(crate) violations: Capped<Violation>,
    pub(crate) warnings: Capped<Violation>,
    pub(crate) coercions: Capped<Coercion>,
}

impl<'t> ParsedValue<'t> {
    /// A value in which nothing was noticed while parsing.
    pub(crate) fn new(value: Value, spans: ValueSpans<'t>) -> Self {
        Self {
            value,
            spans,
            violations: Capped::default(),
            warnings: Capped::default(),
            coercions: Capped::default(),
        }
    }
}

/// The outcome of validating a value. `stage` is the stage that rejected it, `None` if accepted.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValidationOutcome {
    pub(crate) value: Value,
    pub(crate) stage: Option<Stage>,
    pub(crate) violations: Capped<Violation>,
    pub(crate) warnings: Capped<Violation>,
    pub(crate) coercions: Capped<Coercion>,
    pub(crate) defaults: Capped<FilledDefault>,
    pub(crate) filled: Vec<String>,
    pub(crate) unwrapped: Vec<String>,
    pub(crate) salvaged: Salvaged,
    /// The number of values, if only the first schema error is listed.
    pub(crate) values_left_out: usize,
    /// Whether it is known that the text has no placeholders.
    pub(crate) has_no_placeholders: bool,
}

impl ValidationOutcome {
    pub(crate) fn is_accepted(&self) -> bool {
        self.stage.is_none()
    }

    /// The outcome for a text that could not be parsed.
    pub(crate) fn unreadable(stage: Stage, violations: Vec<Violation>) -> Self {
        Self { stage: Some(stage), violations: violations.into(), ..Self::default() }
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

/// A value that may have more errors than this gets only its first one listed, which takes a fraction
/// of the time and memory.
const MAX_SCHEMA_ERRORS: usize = 100_000;

/// A value that may have more errors than this is not coerced.
const MAX_COERCED_ERRORS: usize = 1_500_000;

/// Validates a parsed value against a contract.
pub(crate) fn validate(
    contract: &Contract,
    policy: &Policy,
    parsed: ParsedValue<'_>,
    source: &Source<'_>,
    detail: Detail,
) -> ValidationOutcome {
    let ParsedValue { mut value, mut spans, violations, mut warnings, mut coercions } = parsed;
    let unwrapped = unwrap::unwrap(contract, policy, &mut value, &mut spans, source, &mut warnings);
    coerce::rename(&policy.rename, &mut value, &mut coercions);
    #[cfg(feature = "rules")]
    let engine = filled::fill(contract, policy, &mut value);
    let mut defaults = Defaults::default();
    let fill_defaults = |value: &mut Value, defaults: &mut Defaults| {
        if !policy.strict {
            walk::fill_defaults(value, contract.ty(), policy.max_values, defaults);
        }
    };
    fill_defaults(&mut value, &mut defaults);
    #[cfg(feature = "rules")]
    let validator = match &contract.filled {
        Some(fields) if !engine.unknown.is_empty() => &fields.relaxed,
        _ => contract.validator(),
    };
    #[cfg(not(feature = "rules"))]
    let validator = contract.validator();
    let mut valid = validator.is_valid(&value);
    let mut known_errors = None;
    let max_errors = if valid { 0 } else { walk::max_errors(&value, contract.ty()) };
    if !valid && violations.is_empty() && max_errors <= MAX_COERCED_ERRORS {
        if detail == Detail::Probe && !coerce::may_help(contract, policy, &value) {
            return ValidationOutcome { stage: Some(Stage::Validation), ..Default::default() };
        }
        let is_worth_listing = max_errors <= MAX_SCHEMA_ERRORS
            || coerce::changes_first(contract, policy, &mut value, &mut coercions);
        let errors = is_worth_listing
            .then(|| coerce::coerce(contract, policy, &mut value, &mut coercions))
            .flatten();
        if coercions.is_empty() {
            known_errors = errors.filter(|_| std::ptr::eq(validator, contract.validator()));
        } else {
            fill_defaults(&mut value, &mut defaults);
            valid = validator.is_valid(&value);
        }
    }
    let rejected =
        || ValidationOutcome { stage: Some(Stage::Validation), ..ValidationOutcome::default() };
    if detail == Detail::Probe && (!valid || !violations.is_empty()) {
        return rejected();
    }
    let spans = SpanResolver { source, spans: &spans };
    if defaults.values > policy.max_values {
        let violation = describe::too_many_defaults(policy.max_values, &spans);
        return ValidationOutcome::unreadable(Stage::Validation, vec![violation]);
    }
    let mut found = Findings::new(violations, !policy.salvage.is_empty());
    #[cfg(feature = "rules")]
    {
        if detail == Detail::Probe && engine.is_refused() {
            return rejected();
        }
        for violation in engine.violations(&value, &spans) {
            found.push(&violation.pointer.clone(), || violation);
        }
        for warning in engine.warnings() {
            warnings.push(|| warning);
        }
    }
    let mut scan = walk::scan_fields(&value, contract.ty(), policy.placeholders);
    if policy.placeholders {
        // The reader of a block has reported its own.
        let known = found.pointers();
        let left_in = placeholder::left_in(contract, &value).into_iter();
        scan.placeholders.extend(left_in.filter(|pointer| !known.contains(pointer)));
    }
    if !valid {
        let errors = if max_errors > MAX_SCHEMA_ERRORS {
            found.leave_out_values(walk::count_values(&value));
            listing::first_error(validator, &value)
        } else {
            known_errors.unwrap_or_else(|| listing::errors(validator, &value))
        };
        // What could not be read is reported once.
        let unread = found.pointers();
        let placeholders: HashSet<&str> = scan.placeholders.iter().map(String::as_str).collect();
        for error in &errors {
            let pointer = describe::pointer_of(error);
            let is_unread = (!pointer.is_empty() && unread.contains(&pointer))
                || unread.contains_around(&pointer);
            if !is_unread && !placeholders.contains(&*pointer) {
                found.push(&pointer, || describe::describe(error, &value, policy, &spans));
            }
        }
    }
    found.add_placeholders(&scan.placeholders, |pointer| {
        describe::placeholder(pointer, &value, &spans)
    });
    let known = found.pointers();
    for (pointer, member) in scan.unknown.iter().filter(|(pointer, _)| !known.contains(pointer)) {
        let refused = policy.refuses_unknown(member);
        let note = || describe::unknown_field(pointer, contract.ty(), refused, &spans);
        if refused {
            found.push(pointer, note);
        } else {
            warnings.push(note);
        }
    }
    if detail == Detail::Probe && !found.is_empty() {
        return rejected();
    }
    let stage = if found.is_empty() { Stage::Rules } else { Stage::Validation };
    #[cfg(feature = "rules")]
    {
        let findings = rules::apply(contract, &value, &found, &engine.unknown, &spans);
        if detail == Detail::Probe && !findings.violations.is_empty() {
            return rejected();
        }
        found.append(findings.violations);
        warnings.append(findings.warnings);
    }
    if found.is_empty()
        && let Some(violation) = failure::unexplained(contract, &value, &spans)
    {
        if detail == Detail::Probe {
            return rejected();
        }
        found.push(&violation.pointer.clone(), || violation);
    }
    for filled in defaults.filled.list() {
        if let Some(note) = describe::default_used(filled, contract.ty(), &spans) {
            warnings.push(|| note);
        }
    }
    warnings.leave_out(defaults.required_left_out);
    #[cfg(feature = "rules")]
    let filled = engine.filled;
    #[cfg(not(feature = "rules"))]
    let filled = Vec::new();
    // One that is around the value, or was replaced in it, is not among those that were found.
    let is_as_written = unwrapped.is_empty() && filled.is_empty() && coercions.is_empty();
    let has_no_placeholders = is_as_written && scan.placeholders.is_empty();
    let accepted = found.is_empty();
    let salvaged =
        if accepted { Salvaged::default() } else { salvage(&value, &found, &policy.salvage) };
    ValidationOutcome {
        value,
        stage: (!accepted).then_some(stage),
        values_left_out: found.values_left_out(),
        violations: found.in_order(),
        warnings,
        coercions,
        defaults: defaults.filled,
        filled,
        unwrapped,
        salvaged,
        has_no_placeholders,
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
