//! Claims: fields of a result that can be held against the world. Declared here, verified by the engine.

use serde::{Deserialize, Serialize};

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

/// A claim on a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// What the field claims.
    pub kind: ClaimKind,
    /// The command to run, for a command claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// A named check of the project's configuration, for a command claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// The list that a count counts, as a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
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

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature serde wants.
fn is_exact(value: &ClaimMatch) -> bool {
    *value == ClaimMatch::Exact
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature serde wants.
fn is_record(value: &ClaimPolicy) -> bool {
    *value == ClaimPolicy::Record
}
