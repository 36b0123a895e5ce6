//! Claims: fields of a result that can be held against the world. Declared here, verified by the
//! engine.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a field claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// A command succeeds.
    Command,
    /// The commands that the field itself holds, as `cmd: …`, succeed.
    Commands,
    /// A number of things.
    Count,
    /// A file exists and is what it should be.
    Artifact,
    /// A commit exists.
    Commit,
    /// A file, and a line in it, exist.
    Location,
    /// The file a fix names was touched.
    Fixed,
    /// Nothing was written that may not be. The engine makes this claim for every step.
    Protected,
    /// No test was removed, skipped or emptied. The engine makes this claim for every step.
    TestsKept,
}

/// How exactly a list of files must agree with what was observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimMatch {
    /// Exactly these.
    #[default]
    Exact,
    /// At least these.
    Subset,
    /// As far as the agent knows.
    BestEffort,
}

/// What follows from a refuted claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimPolicy {
    /// It is recorded.
    #[default]
    Record,
    /// The agent is asked to correct it; then the step fails.
    Require,
    /// Nothing.
    Ignore,
}

/// A figure that a count can be held against, where it is no list of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Tests that a report lists.
    Total,
    /// Tests that passed, by a report.
    Passed,
    /// Tests that failed, by a report.
    Failed,
    /// Tests that did not run, by a report.
    Skipped,
    /// Tests that are in the tree now and were not before.
    TestsAdded,
    /// Tests that were in the tree before and are not now.
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
    /// What the field claims.
    pub kind: ClaimKind,
    /// The command to run, as a line for `sh -c`: for a command claim, or a count that its output
    /// has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// A named check of the project's configuration, for the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// The list that a count counts, as a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The figure that a count is held against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<Figure>,
    /// The report file that has the figure: `JUnit` XML, or what a test runner printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// What an artifact must satisfy, by the id of a contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// The files that a commit must contain, as a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
    /// When the result claims that the command succeeds: an expression over `result`. Without it
    /// the field says so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// How exactly files must agree.
    #[serde(default, rename = "match", skip_serializing_if = "is_exact")]
    pub matching: ClaimMatch,
    /// What follows from a refuted claim.
    #[serde(default, skip_serializing_if = "is_record")]
    pub policy: ClaimPolicy,
}

impl Claim {
    /// A claim of a kind, recorded.
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

    /// A claim that states a figure of a test run, read from what a named check of the project
    /// prints.
    pub fn figure_of_check(figure: Figure, name: &str) -> Self {
        Self { check: Some(name.to_owned()), ..Self::figure(figure) }
    }

    /// The name of a claim on a field, as guards write it: `findings/*/file` is `findings_file`.
    pub fn name(field: &str) -> String {
        let parts = field.split(['/', '.']).filter(|part| !part.is_empty() && *part != "*");
        parts.collect::<Vec<_>>().join("_").replace('-', "_")
    }

    /// Success is claimed when this holds.
    #[must_use]
    pub fn when(mut self, expression: &str) -> Self {
        self.when = Some(expression.to_owned());
        self
    }

    /// The commit contains the files at a pointer.
    #[must_use]
    pub fn with_files(mut self, pointer: &str) -> Self {
        self.files = Some(pointer.to_owned());
        self
    }

    /// The artifact satisfies a contract.
    #[must_use]
    pub fn satisfying(mut self, contract: &str) -> Self {
        self.contract = Some(contract.to_owned());
        self
    }

    /// The figure stands in a report file.
    #[must_use]
    pub fn reported_in(mut self, path: &str) -> Self {
        self.report = Some(path.to_owned());
        self
    }

    /// Files need to agree only so far.
    #[must_use]
    pub fn matching(mut self, matching: ClaimMatch) -> Self {
        self.matching = matching;
        self
    }

    /// A refuted claim is sent back to the agent.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.policy = ClaimPolicy::Require;
        self
    }
}

/// A claim as one step holds it: declared by the contract, with what the step says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldClaim {
    /// Its name, as guards write it.
    pub name: String,
    /// The field that makes it, as the contract writes it.
    pub field: String,
    /// What it claims and what follows.
    pub claim: Claim,
    /// What the step was asked to fix, for a claim that something is fixed: objects with `id` and
    /// `file`.
    pub findings: Option<Value>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature serde wants.
fn is_exact(value: &ClaimMatch) -> bool {
    *value == ClaimMatch::Exact
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature serde wants.
fn is_record(value: &ClaimPolicy) -> bool {
    *value == ClaimPolicy::Record
}
