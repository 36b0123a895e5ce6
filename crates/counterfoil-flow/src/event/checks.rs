//! The project's checks as events record them: how they were configured, and what came of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use strum::IntoStaticStr;

/// The checks of a project as they were configured before a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedChecks {
    /// The checks that are configured, by name. One that is not here is not configured.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checks: BTreeMap<String, CheckDefinition>,
    /// Globs of the project for files that a check may write without changing the tree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noise: Vec<String>,
    /// Why the configuration cannot be used. Then no check passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl PlannedChecks {
    /// Whether one of these checks has to be run or reported as failed.
    pub(crate) fn has_any(&self, names: &[String]) -> bool {
        self.problem.is_some() || names.iter().any(|name| self.checks.contains_key(name))
    }
}

/// How a check is run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckDefinition {
    /// The command.
    pub run: CheckProgram,
    /// The timeout, in milliseconds.
    pub timeout_ms: u64,
    /// The report file that the command writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
}

/// The command of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckProgram {
    /// A command line for `sh -c`.
    Line(String),
    /// A program and its arguments.
    Argv(Vec<String>),
}

/// What came of a check.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum CheckStatus {
    /// It exited with 0.
    Passed,
    /// It exited with another code, took too long, or could not be run.
    Failed,
    /// The project has no check of this name.
    #[default]
    NotConfigured,
}

impl CheckStatus {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::Passed, Self::Failed, Self::NotConfigured];

    /// The name in JSON and in workflows.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The outcome of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckReport {
    /// The status.
    pub status: CheckStatus,
    /// The command, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// The exit code; none if it did not exit by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Why it did not pass, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// How many tests there are, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// How many of them passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<u64>,
    /// How many of them failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u64>,
    /// How many of them were skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<u64>,
    /// A part of the output: all of it if it is short, otherwise what failed and then the end.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// Whether it was run before on the same tree, and that outcome is reused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reused: bool,
    /// How long it ran, in milliseconds. Of a check that was run for a claim, as receipts list it, only
    /// `reason` says how long: it is 0.
    #[serde(default)]
    pub wall_ms: u64,
    /// The hash of the work tree that it ran on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// Remarks, such as files that the check itself changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}
