//! The report of `counterfoil receipt verify`.

use schemars::JsonSchema;
use serde::Serialize;
use strum::IntoStaticStr;

/// What was found out about a receipt.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ReceiptVerification {
    /// The run's id.
    pub(crate) run: String,
    /// Whether nothing speaks against the receipt.
    pub(crate) ok: bool,
    /// Whether the receipt is the one that was made with the key of the journal.
    pub(crate) genuine: bool,
    /// The comparisons, in order.
    pub(crate) findings: Vec<ReceiptFinding>,
    /// The checks that were run again.
    pub(crate) checks: Vec<RerunCheck>,
}

/// One comparison.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ReceiptFinding {
    /// What was compared: `content`, `chain`, `journal` or `seal`.
    pub(crate) what: &'static str,
    /// How the comparison ended.
    pub(crate) result: Comparison,
    /// What was found, as text.
    pub(crate) detail: String,
}

/// How a comparison ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, IntoStaticStr, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Comparison {
    /// They agree.
    Agrees,
    /// They differ.
    Differs,
    /// It could not be compared.
    Unknown,
}

/// A check that was run again.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct RerunCheck {
    /// The check's name.
    pub(crate) name: String,
    /// The command, as text.
    pub(crate) command: String,
    /// Whether the outcome agrees with the recorded one.
    pub(crate) result: Comparison,
    /// Whether the work tree has the content that it had when the check was run; none if it is not
    /// known.
    pub(crate) same_tree: Option<bool>,
    /// What was found, as text.
    pub(crate) detail: String,
}

impl ReceiptVerification {
    pub(crate) fn new(run: &str) -> Self {
        Self {
            run: run.to_owned(),
            ok: true,
            genuine: false,
            findings: Vec::new(),
            checks: Vec::new(),
        }
    }

    /// Adds a comparison.
    pub(crate) fn add(&mut self, what: &'static str, result: Comparison, detail: String) {
        self.ok &= result != Comparison::Differs;
        self.findings.push(ReceiptFinding { what, result, detail });
    }

    /// Adds a check that was run again.
    pub(crate) fn add_check(&mut self, check: RerunCheck) {
        self.ok &= check.result != Comparison::Differs;
        self.checks.push(check);
    }

    /// Whether a check has another outcome than recorded.
    pub(crate) fn has_other_outcome(&self) -> bool {
        self.checks.iter().any(|check| check.result == Comparison::Differs)
    }

    /// Whether the receipt itself is not as it was made.
    pub(crate) fn is_altered(&self) -> bool {
        self.findings.iter().any(|finding| finding.result == Comparison::Differs)
    }
}
