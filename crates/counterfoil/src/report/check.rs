//! What `check` and `verify` print as JSON, and what `check --batch` reads.

use crate::gate::{GatedClaim, NotMade, UnexaminedFile};
use counterfoil_contract::policy::{RepairPolicy, Truncated};
use counterfoil_contract::{Framing, Report};
use counterfoil_engine::ledger::Totals;
use counterfoil_verify::unfinished::Unfinished;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::path::Path;

/// The report on a text.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CheckReport<'a> {
    /// The name of the text; only if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<&'a str>,
    #[serde(flatten)]
    pub(crate) report: &'a Report,
}

/// A line of a batch.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchInput {
    /// Any value; the answer to the line has it, too.
    #[serde(default)]
    pub(crate) id: Value,
    /// The contract, as `ID` or `ID@VERSION`, instead of the one of `--contract`.
    pub(crate) contract: Option<String>,
    /// A JSON Schema instead of a contract.
    pub(crate) schema: Option<Value>,
    /// The text to check.
    pub(crate) text: String,
    /// Where in the text the result is; only with `schema`.
    pub(crate) framing: Option<Framing>,
    /// Which repairs are allowed; only with `schema`.
    pub(crate) repair: Option<RepairPolicy>,
    /// What happens to a result that is cut off; only with `schema`.
    pub(crate) truncated: Option<Truncated>,
    /// Whether type coercions are allowed; only with `schema`.
    pub(crate) coerce: Option<bool>,
    /// Whether defaults, repairs, coercions and duplicate keys are refused, as with `--strict`.
    pub(crate) strict: Option<bool>,
}

/// The answer to a line of a batch.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum BatchOutput<'a> {
    /// The line was checked.
    Checked {
        /// The id of the line, or null.
        id: &'a Value,
        #[serde(flatten)]
        report: &'a Report,
    },
    /// The line was not understood.
    NotUnderstood {
        /// The id of the line, or null.
        id: &'a Value,
        /// Distinguishes the answer from a report.
        status: BatchError,
        /// The file; only if the batch has several.
        #[serde(skip_serializing_if = "Option::is_none")]
        file: Option<&'a str>,
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong with the line.
        message: &'a str,
    },
}

/// The status of a line that was not understood.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum BatchError {
    Error,
}

/// The report on a text with the verdicts on its claims.
#[derive(Serialize, JsonSchema)]
pub(crate) struct VerifyReport<'a> {
    #[serde(flatten)]
    pub(crate) report: &'a Report,
    /// The revision from which the agent started, as given with `--base`.
    pub(crate) base: &'a str,
    /// Each claim that the result makes, and whether it makes the job fail.
    pub(crate) claims: &'a [GatedClaim],
    /// The claims that are required and that the result does not make.
    pub(crate) not_made: &'a [NotMade],
    /// The number of claims by verdict.
    pub(crate) summary: VerifySummary,
    /// Remarks about the verification.
    pub(crate) notes: &'a [String],
    /// What the changes leave unfinished; only with `--strict`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unfinished: Option<&'a [Unfinished]>,
    /// The changed files that were not examined for it; only with `--strict`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) not_examined: Option<Vec<NotExamined<'a>>>,
}

/// The number of claims by verdict, and of those that are required and not made.
#[derive(Serialize, JsonSchema)]
pub(crate) struct VerifySummary {
    #[serde(flatten)]
    pub(crate) totals: Totals,
    /// Claims that are required and that the result does not make. They are not among those made.
    pub(crate) not_made: usize,
}

/// A changed file that was not examined for unfinished work.
#[derive(Serialize, JsonSchema)]
pub(crate) struct NotExamined<'a> {
    /// The file, relative to the folder; left out if the reason is not about one file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<Cow<'a, str>>,
    /// Why it was not examined.
    pub(crate) reason: &'a str,
    /// Whether it makes the job fail.
    pub(crate) counts: bool,
}

impl<'a> NotExamined<'a> {
    pub(crate) fn new(unexamined: &'a UnexaminedFile) -> Self {
        Self {
            file: unexamined.file.as_deref().map(Path::to_string_lossy),
            reason: &unexamined.reason,
            counts: unexamined.counts,
        }
    }
}
