//! Findings about contract and workflow files: as JSON, and in one form for all other formats.

use counterfoil_contract::{Problem, Span};
use counterfoil_flow::Finding;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What is wrong with contract files.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ContractLint {
    /// Whether every file is a valid contract.
    pub(crate) ok: bool,
    /// The files, in the order given.
    pub(crate) contracts: Vec<LintedContract>,
    /// Files of YAML or JSON in folders that are no contracts. Left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) left_out: Vec<String>,
}

/// A contract file that was examined.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LintedContract {
    /// The path of the file.
    pub(crate) file: String,
    /// Whether the file is a valid contract.
    pub(crate) ok: bool,
    /// The contract, as `id@version`; null if the file is not valid.
    pub(crate) contract: Option<String>,
    /// The problems of the file.
    pub(crate) problems: Vec<Problem>,
    /// What is probably a mistake, but does not make the file invalid.
    pub(crate) warnings: Vec<Problem>,
}

/// What is wrong with workflow files.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WorkflowLint {
    /// Whether every file is a valid workflow.
    pub(crate) ok: bool,
    /// The files, in the order given.
    pub(crate) workflows: Vec<LintedWorkflow>,
    /// Files of YAML or JSON in folders that are no workflows. Left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) left_out: Vec<String>,
}

/// A workflow file that was examined.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LintedWorkflow {
    /// The path of the file, or the name of a workflow of a pack.
    pub(crate) file: String,
    /// Whether the file is a valid workflow.
    pub(crate) ok: bool,
    /// The problems of the file and of those that it refers to.
    pub(crate) findings: Vec<Finding>,
    /// What does not make it invalid, such as checks that the project does not have.
    pub(crate) warnings: Vec<String>,
}

/// A finding about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LintFinding {
    /// The stable code, its meaning and the page that explains it.
    pub(crate) code: &'static str,
    pub(crate) title: &'static str,
    pub(crate) page: &'static str,
    /// Whether the file is valid all the same.
    pub(crate) is_warning: bool,
    /// The file, from the top of the repository if it is in it; otherwise from the current folder.
    pub(crate) file: PathBuf,
    pub(crate) position: Option<Position>,
    /// The place in the definition, such as `rules[1].check`; empty for the whole.
    pub(crate) place: String,
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// Where a finding is in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: Option<usize>,
    /// The first byte and the number of bytes.
    pub(crate) bytes: Option<(usize, usize)>,
}

impl From<Span> for Position {
    fn from(span: Span) -> Self {
        Self {
            line: span.line,
            column: Some(span.column),
            bytes: Some((span.start, span.end.saturating_sub(span.start))),
        }
    }
}

impl LintFinding {
    /// A problem of a contract file. `found` is where its place is in the file, if that is known.
    pub(crate) fn from_problem(file: &Path, problem: &Problem, found: Option<Span>) -> Self {
        let line = problem.line.map(|line| Position { line, column: None, bytes: None });
        Self {
            code: problem.code.as_str(),
            title: problem.code.title(),
            page: problem.code.page(),
            is_warning: problem.code.is_warning(),
            file: file.to_owned(),
            position: line.or(found.map(Position::from)),
            place: problem.place.clone(),
            message: problem.message.clone(),
            hint: problem.hint.clone(),
        }
    }

    /// A finding about a file of a workflow.
    pub(crate) fn from_finding(file: &Path, finding: &Finding) -> Self {
        Self {
            code: finding.code.as_str(),
            title: finding.code.title(),
            page: finding.code.page(),
            is_warning: false,
            file: file.to_owned(),
            position: finding.span.map(Position::from),
            place: String::new(),
            message: finding.message.clone(),
            hint: finding.hint.clone(),
        }
    }

    /// The level, as SARIF and GitHub call it.
    pub(crate) fn level(&self) -> &'static str {
        if self.is_warning { "warning" } else { "error" }
    }

    /// The message, with the place if it has one.
    pub(crate) fn text(&self) -> String {
        if self.place.is_empty() {
            self.message.clone()
        } else {
            format!("{}: {}", self.place, self.message)
        }
    }
}
