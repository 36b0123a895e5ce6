//! The report about a text: its status, the violations, and the provenance of the value.

use crate::capped::{Capped, Entry};
use crate::code::Code;
use crate::edit::{Edit, RepairKind};
use crate::policy::Framing;
use crate::source::{Source, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use strum::IntoStaticStr;

/// Whether a text holds a result that satisfies the contract. A text without a result is not the
/// same as an empty result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// A result was found and satisfies the contract.
    Accepted,
    /// A result was found and does not satisfy the contract.
    Rejected,
    /// No result was found.
    Absent,
}

/// The stage at which a text failed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "kebab-case")]
pub enum Stage {
    /// The result could not be found in the text.
    Extraction,
    /// The result could not be parsed.
    Parse,
    /// The result does not satisfy the schema.
    Validation,
    /// The result breaks a rule.
    Rules,
}

impl Stage {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// One violation of a contract or, with a `W` code, one warning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Violation {
    /// The stable code.
    pub code: Code,
    /// The JSON pointer of the value; for a missing field, the pointer it would have.
    pub pointer: String,
    /// The place in the raw text; for a missing field, the place of the object that lacks it.
    pub span: Option<Span>,
    /// The violation, in a sentence.
    pub message: String,
    /// What the contract expects.
    pub expected: String,
    /// What the text has.
    pub received: String,
    /// How to fix it.
    pub hint: String,
    /// The id of the rule that is broken, if a rule is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// An item of a list that was left out of `partial`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RejectedItem {
    /// The JSON pointer of the item.
    pub pointer: String,
    /// The violations of the item.
    pub violations: Vec<Violation>,
    /// The item as it was given.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub value: Value,
}

/// What can be read of results that are not accepted: the items of the lists that a contract
/// salvages, and the results as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SalvagedItems {
    /// Those that satisfy the contract.
    pub valid: Vec<Value>,
    /// Those that do not.
    pub rejected: Vec<RejectedItem>,
    /// The results themselves, as they were read.
    pub results: Vec<RefusedResult>,
}

/// A result that is not accepted, as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusedResult {
    /// The result.
    pub value: Value,
    /// What is wrong with it.
    pub violations: Vec<Violation>,
}

impl SalvagedItems {
    /// Adds the items of another result.
    pub fn extend(&mut self, other: SalvagedItems) {
        self.valid.extend(other.valid);
        self.rejected.extend(other.rejected);
        self.results.extend(other.results);
    }
}

/// A repair of the syntax, as an edit of the raw text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Repair {
    /// The kind of repair.
    pub kind: RepairKind,
    /// The part of the raw text that was replaced.
    pub span: Span,
    /// The text that replaces it.
    pub replacement: Cow<'static, str>,
}

/// A value that was converted to the type that the schema requires.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Coercion {
    /// The JSON pointer of the value.
    pub pointer: String,
    /// The JSON before the conversion.
    pub from: String,
    /// The JSON after the conversion.
    pub to: String,
}

/// How the value was extracted from the text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// The framing of the contract.
    pub framing: Framing,
    /// The number of candidates.
    pub candidates: usize,
    /// The index, from 0, of the candidate that the report is about; none if there was no candidate.
    pub chosen: Option<usize>,
    /// The place of that candidate.
    pub span: Option<Span>,
    /// The repairs of that candidate, in the order of the text.
    pub repairs: Vec<Repair>,
    /// The conversions of its values.
    pub coercions: Vec<Coercion>,
    /// The pointers of missing fields that received their default.
    pub defaults: Vec<String>,
    /// The pointers of fields that were filled in from what is known of the attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filled: Vec<String>,
    /// The envelopes that were removed, outermost first.
    pub unwrapped: Vec<String>,
    /// The other candidates; only the last ones, if there are many.
    pub passed_over: Vec<Span>,
}

/// How many entries the lists of a report leave out. A list has at most 1,000 entries and 1 MiB
/// of text; the numbers are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LeftOut {
    /// Of the violations.
    #[serde(skip_serializing_if = "is_zero")]
    pub violations: usize,
    /// Of the warnings.
    #[serde(skip_serializing_if = "is_zero")]
    pub warnings: usize,
    /// Of the rejected items.
    #[serde(skip_serializing_if = "is_zero")]
    pub rejected_items: usize,
    /// Of the repairs.
    #[serde(skip_serializing_if = "is_zero")]
    pub repairs: usize,
    /// Of the coercions.
    #[serde(skip_serializing_if = "is_zero")]
    pub coercions: usize,
    /// Of the defaults.
    #[serde(skip_serializing_if = "is_zero")]
    pub defaults: usize,
    /// The number of values of a result that is so large that only its first error against the
    /// schema is listed, and the others are not counted.
    #[serde(skip_serializing_if = "is_zero")]
    pub values: usize,
}

impl LeftOut {
    /// Whether the lists have everything.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // Required by serde.
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The outcome of checking one text against one contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// The contract, as `id@version`.
    pub contract: String,
    /// Whether the result is accepted, rejected or absent.
    pub status: Status,
    /// The stage at which the text failed; none if it is accepted.
    pub stage: Option<Stage>,
    /// The result, if accepted.
    pub value: Option<Value>,
    /// The valid part of a rejected result, where the policy allows it.
    pub partial: Option<Value>,
    /// The violations, in the order of the text: all of them, unless `left_out` says otherwise.
    pub violations: Vec<Violation>,
    /// The warnings: all of them, unless `left_out` says otherwise.
    pub warnings: Vec<Violation>,
    /// The items that `partial` leaves out.
    pub rejected_items: Vec<RejectedItem>,
    /// How many entries the lists of this report leave out.
    #[serde(default, skip_serializing_if = "LeftOut::is_empty")]
    pub left_out: LeftOut,
    /// The result as it was read, if it is rejected and could be read. It is not part of the report
    /// as JSON.
    #[serde(skip)]
    pub refused_value: Option<Value>,
    /// How the value was extracted from the text.
    pub provenance: Provenance,
}

impl Report {
    /// Whether the result satisfies its contract.
    pub fn is_accepted(&self) -> bool {
        self.status == Status::Accepted
    }

    /// Rejects a result that satisfies its contract but breaks another rule; all of it is salvaged.
    /// Without violations, the report does not change.
    pub fn refuse(&mut self, violations: Vec<Violation>) {
        if !violations.is_empty() {
            (self.status, self.stage) = (Status::Rejected, Some(Stage::Rules));
            self.refused_value.clone_from(&self.value);
            self.partial = self.value.take();
            self.violations = violations;
            self.left_out.violations = 0;
        }
    }

    /// The codes of the violations, each once, in order.
    pub fn codes(&self) -> Vec<Code> {
        let mut codes: Vec<Code> = Vec::new();
        for violation in &self.violations {
            if !codes.contains(&violation.code) {
                codes.push(violation.code);
            }
        }
        codes
    }
}

impl Entry for Violation {
    fn bytes(&self) -> usize {
        let texts = [&self.pointer, &self.message, &self.expected, &self.received, &self.hint];
        texts.iter().map(|text| text.len()).sum()
    }
}

impl Entry for Coercion {
    fn bytes(&self) -> usize {
        self.pointer.len() + self.from.len() + self.to.len()
    }
}

impl Entry for Repair {
    fn bytes(&self) -> usize {
        self.replacement.len()
    }
}

/// The repairs among the edits, with their spans.
pub(crate) fn repairs(edits: &[Edit], source: &Source<'_>) -> Capped<Repair> {
    let mut repairs = Capped::default();
    let Some(first) = edits.first() else { return repairs };
    let mut cursor = source.cursor(first.start);
    for edit in edits.iter().filter(|edit| edit.kind != RepairKind::QuotePrefix) {
        repairs.push(|| Repair {
            kind: edit.kind,
            span: cursor.span(edit.start, edit.end),
            replacement: edit.replacement.clone(),
        });
    }
    repairs
}
