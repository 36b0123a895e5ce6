//! Claims: statements of a result about the repository or about commands, which can be verified. A
//! contract declares them; the verification is not part of this crate.

mod verdict;

#[cfg(feature = "rules")]
pub use crate::wording::names_success;
pub use verdict::{ClaimReport, Evidence, Verdict};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The kind of a claim: what the field says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// These files were modified.
    FilesModified,
    /// These files were added.
    FilesAdded,
    /// These files were deleted.
    FilesDeleted,
    /// These files were renamed.
    FilesRenamed,
    /// These files were changed in some way.
    FilesChanged,
    /// The command that the claim names succeeds.
    Command,
    /// The commands listed in the field, as `cmd: …`, succeed.
    Commands,
    /// The field counts the items of a list, or states a figure.
    Count,
    /// A file exists and satisfies its contract.
    Artifact,
    /// A commit exists.
    Commit,
    /// A file exists and has the named line.
    Location,
    /// The file that a fix names was changed.
    Fixed,
    /// The work is complete: the changes add nothing unfinished, such as `todo!()` or an empty body.
    Complete,
    /// No protected file was written. This claim is implied for every step.
    Protected,
    /// No test was removed, skipped or emptied. This claim is implied for every step.
    TestsKept,
}

/// How exactly a list of files must match the observed changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimMatch {
    /// The list must name exactly the observed files.
    #[default]
    Exact,
    /// Every listed file must be observed; more may be.
    Subset,
    /// Differences are reported but refute nothing.
    BestEffort,
}

/// What happens when a claim is refuted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimPolicy {
    /// The refutation is recorded.
    #[default]
    Record,
    /// The agent is asked to correct it; then the step fails.
    Require,
    /// The claim is not verified.
    Ignore,
}

/// A figure that a count states, where it does not count a list of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// The tests in a test report.
    Total,
    /// The tests that passed, by a test report.
    Passed,
    /// The tests that failed, by a test report.
    Failed,
    /// The tests that were skipped, by a test report.
    Skipped,
    /// The tests in the work tree that were not there before.
    TestsAdded,
    /// The tests that are gone from the work tree.
    TestsRemoved,
    /// Files that were added.
    FilesAdded,
    /// Files that were modified.
    FilesModified,
    /// Files that were deleted.
    FilesDeleted,
    /// Files that were changed in some way.
    FilesChanged,
}

/// A claim on a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// What the field says.
    pub kind: ClaimKind,
    /// The command to run, as a line for `sh -c`: for a command claim, or for a figure that its
    /// output states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The named check of the project's configuration to run instead of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// The list whose items are counted, as a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The figure that the field states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<Figure>,
    /// The test report with the figure: `JUnit` XML, or the output of a test runner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// The id of the contract that an artifact must satisfy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// The files that a commit must contain, as a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
    /// When the result claims that the command succeeds: an expression over `result`. Without it,
    /// the field itself says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// For commands that stand in the result: patterns of those that may be run. In a pattern, `*`
    /// stands for any text without shell operators, and `**` for any text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// How exactly the files must match.
    #[serde(default, rename = "match", skip_serializing_if = "is_exact")]
    pub matching: ClaimMatch,
    /// What happens when the claim is refuted.
    #[serde(default, skip_serializing_if = "is_record")]
    pub policy: ClaimPolicy,
}

impl Claim {
    /// A claim of a kind whose refutation is recorded.
    pub fn new(kind: ClaimKind) -> Self {
        Self {
            kind,
            run: None,
            check: None,
            of: None,
            figure: None,
            report: None,
            contract: None,
            files: None,
            when: None,
            allow: Vec::new(),
            matching: ClaimMatch::Exact,
            policy: ClaimPolicy::Record,
        }
    }

    /// A claim that a named check of the project succeeds.
    pub fn check(name: &str) -> Self {
        Self { check: Some(name.to_owned()), ..Self::new(ClaimKind::Command) }
    }

    /// A claim that counts the items of a list.
    pub fn count_of(pointer: &str) -> Self {
        Self { of: Some(pointer.to_owned()), ..Self::new(ClaimKind::Count) }
    }

    /// A claim that states a figure.
    pub fn figure(figure: Figure) -> Self {
        Self { figure: Some(figure), ..Self::new(ClaimKind::Count) }
    }

    /// A claim that states a figure of a test run, read from the output of a named check.
    pub fn figure_of_check(figure: Figure, name: &str) -> Self {
        Self { check: Some(name.to_owned()), ..Self::figure(figure) }
    }

    /// The name of the claim on a field, as guards write it: `findings/*/file` is `findings_file`.
    pub fn name(field: &str) -> String {
        let parts = field.split(['/', '.']).filter(|part| !part.is_empty() && *part != "*");
        parts.collect::<Vec<_>>().join("_").replace('-', "_")
    }

    /// Claims success only when an expression is true.
    #[must_use]
    pub fn when(mut self, expression: &str) -> Self {
        self.when = Some(expression.to_owned());
        self
    }

    /// Claims that the commit contains the files at a pointer.
    #[must_use]
    pub fn with_files(mut self, pointer: &str) -> Self {
        self.files = Some(pointer.to_owned());
        self
    }

    /// Allows the commands of the result that match a pattern.
    #[must_use]
    pub fn allowing(mut self, pattern: &str) -> Self {
        self.allow.push(pattern.to_owned());
        self
    }

    /// Claims that the artifact satisfies a contract.
    #[must_use]
    pub fn satisfying(mut self, contract: &str) -> Self {
        self.contract = Some(contract.to_owned());
        self
    }

    /// Names the test report that has the figure.
    #[must_use]
    pub fn reported_in(mut self, path: &str) -> Self {
        self.report = Some(path.to_owned());
        self
    }

    /// Sets how exactly the files must match.
    #[must_use]
    pub fn matching(mut self, matching: ClaimMatch) -> Self {
        self.matching = matching;
        self
    }

    /// Sends a refuted claim back to the agent.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.policy = ClaimPolicy::Require;
        self
    }
}

/// A claim as it applies to one step: declared by the contract, adjusted by the step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EffectiveClaim {
    /// The name of the claim, as guards write it.
    pub name: String,
    /// The field that makes the claim, as the contract writes it.
    pub field: String,
    /// The claim itself.
    pub claim: Claim,
    /// For a claim that something is fixed: the findings that the step was asked to fix, as objects
    /// with `id` and `file`.
    pub findings: Option<Value>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde requires this signature.
fn is_exact(value: &ClaimMatch) -> bool {
    *value == ClaimMatch::Exact
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde requires this signature.
fn is_record(value: &ClaimPolicy) -> bool {
    *value == ClaimPolicy::Record
}
