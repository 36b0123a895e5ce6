//! Findings of the checker: a code, the position, the problem and a hint.

use counterfoil_contract::Span;
use counterfoil_contract::diagnostic::{self, Note, Style};
use counterfoil_contract::text::escape_names;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

counterfoil_contract::codes! {
    /// The stable code of a finding. A code never changes its meaning.
    ///
    /// `F01xx` concern the file and its form, `F02xx` names, `F03xx` expressions and types, `F04xx`
    /// the structure of the state machine, `F05xx` templates.
    Code, UnknownCode;
    Syntax = "F0101", "the workflow file cannot be parsed";
    UnknownKey = "F0102", "unknown key";
    MissingKey = "F0103", "a required key is missing";
    WrongForm = "F0104", "a value has the wrong form";
    BadName = "F0105", "a name is invalid or already in use";
    BadType = "F0106", "a type is invalid";
    MissingFile = "F0107", "a referenced file cannot be read";
    BadGlob = "F0108", "a path pattern is invalid";
    UnknownState = "F0201", "no state has this name";
    UnknownAgent = "F0202", "no agent has this name";
    UnknownContract = "F0203", "no contract has this id";
    UnknownVariable = "F0204", "no variable has this name";
    UnknownLimit = "F0205", "no limit has this name";
    UnknownWorkflow = "F0206", "no sub-workflow has this name";
    UnknownClaim = "F0207", "no claim has this name";
    UnknownCheck = "F0208", "no check of the project has this name";
    BadExpression = "F0301", "an expression is invalid";
    GuardNotBoolean = "F0302", "a guard is not a boolean expression";
    WrongType = "F0303", "a value has the wrong type";
    BadTarget = "F0304", "a computed target does not list its states";
    NotCovered = "F0401", "the transitions do not cover every case";
    NeverFires = "F0402", "a transition can never fire";
    Unreachable = "F0403", "a state is unreachable";
    NoEndReachable = "F0404", "no end state is reachable";
    NoLimit = "F0405", "a cycle has no limit";
    BadLimit = "F0406", "a limit is invalid";
    Recursive = "F0407", "a sub-workflow runs itself";
    Unused = "F0408", "a declaration is never used";
    BadClaimSetting = "F0409", "a claim setting does not apply";
    NestedWorktree = "F0410", "a worktree inside another worktree";
    CommitInWorktree = "F0411", "a commit inside a worktree";
    BadTemplate = "F0501", "a template is invalid";
}

/// A problem in a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Finding {
    /// The stable code.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "String", regex(pattern = "^F[0-9]{4}$"))]
    pub code: Code,
    /// The file that contains the problem.
    pub file: String,
    /// The position in the file; none if the finding concerns the whole file.
    pub span: Option<Span>,
    /// The description of the problem.
    pub message: String,
    /// How to fix the problem.
    pub hint: String,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature is serde's.
fn as_text<S: Serializer>(code: &Code, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(code.as_str())
}

impl Finding {
    pub(crate) fn new(
        code: Code,
        file: &str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { code, file: file.to_owned(), span: None, message: message.into(), hint: hint.into() }
    }

    pub(crate) fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }
}

/// Renders findings as text for people. `files` contains the texts that the findings refer to.
pub fn render(findings: &[Finding], files: &BTreeMap<String, String>, style: Style) -> String {
    let mut out = String::new();
    for finding in findings {
        let text = files.get(&finding.file).map(String::as_str).unwrap_or_default();
        let message = escape_names(&finding.message);
        let note = Note {
            code: finding.code.as_str(),
            message: &message,
            label: None,
            hint: &finding.hint,
            span: finding.span,
        };
        out.push_str(&diagnostic::render_note(&note, &finding.file, text, style));
    }
    out
}
