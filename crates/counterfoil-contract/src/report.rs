//! What came of a text: accepted, rejected or absent, with everything that led there.

use crate::code::Code;
use crate::edit::{Edit, RepairKind};
use crate::policy::Framing;
use crate::source::{Source, Span};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

/// Three results, never two: a text without a result is not an empty result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// A result was found and satisfies the contract.
    Accepted,
    /// A result was found and does not.
    Rejected,
    /// None was found.
    Absent,
}

/// Where a text failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Finding the result.
    Extraction,
    /// Reading it.
    Parse,
    /// Holding it to the schema.
    Validation,
    /// Holding it to the rules.
    Rules,
}

impl Stage {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Extraction => "extraction",
            Self::Parse => "parse",
            Self::Validation => "validation",
            Self::Rules => "rules",
        }
    }
}

/// One thing wrong (or, with a `W` code, one thing to know).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Violation {
    /// The stable code.
    pub code: Code,
    /// JSON pointer of the value concerned; of the missing field, if one is missing.
    pub pointer: String,
    /// Where it stands in the raw text; for a missing field, the object that lacks it.
    pub span: Option<Span>,
    /// What is wrong, in a sentence.
    pub message: String,
    /// What should have been there.
    pub expected: String,
    /// What was there.
    pub received: String,
    /// What to do about it.
    pub hint: String,
    /// The rule of the contract that does not hold, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// An item of a list that was left out of `partial`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RejectedItem {
    /// Its place in the result.
    pub pointer: String,
    /// What is wrong with it.
    pub violations: Vec<Violation>,
}

/// A repair that was made, as the edit it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repair {
    /// What kind.
    pub kind: RepairKind,
    /// Which bytes of the raw text it replaced.
    pub span: Span,
    /// What it put there.
    pub replacement: Cow<'static, str>,
}

/// A value that was changed to the type the contract asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coercion {
    /// Where.
    pub pointer: String,
    /// The JSON before.
    pub from: String,
    /// The JSON after.
    pub to: String,
}

/// How the value came to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// Where the result had to stand.
    pub framing: Framing,
    /// How many candidates there were.
    pub candidates: usize,
    /// Which of them, counted from 0, this report is about; none if there was none.
    pub chosen: Option<usize>,
    /// Where that one stands.
    pub span: Option<Span>,
    /// The repairs made, in the order of the text.
    pub repairs: Vec<Repair>,
    /// The coercions made.
    pub coercions: Vec<Coercion>,
    /// Fields that were missing and given their default.
    pub defaults: Vec<String>,
    /// The envelopes taken off, outermost first.
    pub unwrapped: Vec<String>,
    /// The other candidates, the last ones if there were many.
    pub passed_over: Vec<Span>,
}

/// What came of holding one text to one contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The contract, as `id@version`.
    pub contract: String,
    /// Accepted, rejected or absent.
    pub status: Status,
    /// Where it failed; none if accepted.
    pub stage: Option<Stage>,
    /// The result, if accepted.
    pub value: Option<Value>,
    /// What could be salvaged of a rejected result, where the contract allows it.
    pub partial: Option<Value>,
    /// Everything that is wrong.
    pub violations: Vec<Violation>,
    /// Everything worth knowing.
    pub warnings: Vec<Violation>,
    /// The items left out of `partial`.
    pub rejected_items: Vec<RejectedItem>,
    /// How the value came to be.
    pub provenance: Provenance,
}

impl Report {
    /// Whether the result satisfies its contract.
    pub fn is_accepted(&self) -> bool {
        self.status == Status::Accepted
    }

    /// Refuses a result that satisfies its contract, for what else it breaks; without violations it
    /// stays as it is.
    pub fn refuse(&mut self, violations: Vec<Violation>) {
        if !violations.is_empty() {
            (self.status, self.stage, self.value) = (Status::Rejected, Some(Stage::Rules), None);
            self.violations = violations;
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

/// The repairs among edits, with their places.
pub(crate) fn repairs(edits: &[Edit], source: &Source<'_>) -> Vec<Repair> {
    let mut cursor = source.cursor();
    edits
        .iter()
        .filter(|edit| edit.kind != RepairKind::QuotePrefix)
        .map(|edit| Repair {
            kind: edit.kind,
            span: cursor.span(edit.start, edit.end),
            replacement: edit.replacement.clone(),
        })
        .collect()
}
