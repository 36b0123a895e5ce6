//! Holding a value to its contract: schema, placeholders, rules; all that is wrong at once, each
//! with its place.

mod coerce;
mod describe;
mod leaf;
mod places;
#[cfg(feature = "rules")]
mod rules;
mod salvage;
mod select;
mod unwrap;
mod walk;

pub(crate) use describe::{Located, excerpt, parse_violation};
pub(crate) use places::Places;

use crate::code::Code;
use crate::contract::Contract;
use crate::policy::Policy;
use crate::report::{Coercion, RejectedItem, Stage, Violation};
use crate::source::Source;
use serde_json::Value;

/// A value that was read, and where its parts stand.
pub(crate) struct Reading<'t> {
    pub(crate) value: Value,
    pub(crate) places: Places<'t>,
    /// Violations and warnings of the reading itself.
    pub(crate) violations: Vec<Violation>,
    pub(crate) warnings: Vec<Violation>,
    pub(crate) coercions: Vec<Coercion>,
}

/// What came of a value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Judgement {
    pub(crate) value: Value,
    pub(crate) stage: Option<Stage>,
    pub(crate) violations: Vec<Violation>,
    pub(crate) warnings: Vec<Violation>,
    pub(crate) coercions: Vec<Coercion>,
    pub(crate) defaults: Vec<String>,
    pub(crate) unwrapped: Vec<String>,
    pub(crate) partial: Option<Value>,
    pub(crate) rejected_items: Vec<RejectedItem>,
}

impl Judgement {
    pub(crate) fn is_accepted(&self) -> bool {
        self.stage.is_none()
    }

    /// A text that could not be read.
    pub(crate) fn unreadable(stage: Stage, violations: Vec<Violation>) -> Self {
        Self { stage: Some(stage), violations, ..Self::default() }
    }
}

/// How much is wanted of a judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Only whether it is accepted; a rejection says nothing.
    Probe,
    /// Everything.
    Full,
}

/// Holds a reading to a contract.
pub(crate) fn judge(
    contract: &Contract,
    policy: &Policy,
    reading: Reading<'_>,
    source: &Source<'_>,
    detail: Detail,
) -> Judgement {
    let Reading { mut value, mut places, violations: mut found, mut warnings, mut coercions } =
        reading;
    let unwrapped = unwrap::unwrap(contract, policy, &mut value, &mut places);
    coerce::rename(&policy.rename, &mut value, &mut coercions);
    let mut defaults = Vec::new();
    if !policy.strict {
        walk::fill_defaults(&mut value, contract.ty(), &mut defaults);
    }
    let validator = contract.validator();
    let mut valid = validator.is_valid(&value);
    if !valid && found.is_empty() {
        coerce::coerce(contract, policy, &mut value, &mut coercions);
        if !policy.strict && !coercions.is_empty() {
            walk::fill_defaults(&mut value, contract.ty(), &mut defaults);
        }
        valid = validator.is_valid(&value);
    }
    let rejected = |violations: Vec<Violation>| Judgement {
        stage: Some(Stage::Validation),
        violations,
        ..Judgement::default()
    };
    if detail == Detail::Probe && (!valid || !found.is_empty()) {
        return rejected(Vec::new());
    }
    let located = Located { source, places: &places };
    if !valid {
        let leaves = leaf::leaves(validator.iter_errors(&value));
        found.extend(leaves.iter().map(|leaf| describe::describe(leaf, &value, policy, &located)));
    }
    let notes = walk::notes(&value, contract.ty(), policy.placeholders);
    for pointer in &notes.placeholders {
        let inside = |violation: &Violation| {
            violation.code == Code::Placeholder
                && pointer
                    .strip_prefix(&violation.pointer)
                    .is_some_and(|rest| rest.starts_with('/'))
        };
        if found.iter().any(inside) {
            continue;
        }
        // A placeholder explains what else the schema says of the same value.
        found.retain(|violation| violation.pointer != *pointer);
        found.push(describe::placeholder(pointer, &value, &located));
    }
    for pointer in &notes.unknown {
        if found.iter().any(|violation| violation.pointer == *pointer) {
            continue;
        }
        let note = describe::unknown_field(pointer, contract.ty(), policy.closed, &located);
        if policy.closed {
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
        let by_rules = rules::apply(contract, &value, &found, &located);
        if detail == Detail::Probe && !by_rules.violations.is_empty() {
            return rejected(Vec::new());
        }
        found.extend(by_rules.violations);
        warnings.extend(by_rules.warnings);
    }
    warnings.extend(
        defaults
            .iter()
            .filter_map(|pointer| describe::default_used(pointer, contract.ty(), &located)),
    );
    if found.is_empty() {
        return Judgement {
            value,
            warnings,
            coercions,
            defaults,
            unwrapped,
            ..Judgement::default()
        };
    }
    found.sort_by_key(|violation| {
        violation.span.map_or((usize::MAX, 0), |span| (span.start, span.end))
    });
    let (partial, rejected_items) = salvage::salvage(&value, &found, &policy.salvage);
    Judgement {
        value,
        stage: Some(stage),
        violations: found,
        warnings,
        coercions,
        defaults,
        unwrapped,
        partial,
        rejected_items,
    }
}

/// A violation with nothing filled in but its code and place.
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
