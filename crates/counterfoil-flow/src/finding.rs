//! What is wrong with a workflow: a code, the place, what was found and what to do about it.

use counterfoil_contract::Span;
use counterfoil_contract::diagnostic::{self, Note, Style};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

counterfoil_contract::codes! {
    /// What is wrong with a workflow, as a code that never changes its meaning.
    ///
    /// `F01xx` concern the file and its form, `F02xx` names, `F03xx` expressions and types, `F04xx` the shape of the
    /// machine, `F05xx` templates.
    Code, UnknownCode;
    Syntax = "F0101", "the workflow file cannot be read";
    UnknownKey = "F0102", "a key has no meaning here";
    MissingKey = "F0103", "a key is missing";
    WrongForm = "F0104", "a value has the wrong form";
    BadName = "F0105", "a name is malformed or taken";
    BadType = "F0106", "a type is malformed";
    MissingFile = "F0107", "a file that the workflow names cannot be read";
    BadGlob = "F0108", "a pattern for paths cannot be used";
    UnknownState = "F0201", "no state has this name";
    UnknownAgent = "F0202", "no agent has this name";
    UnknownContract = "F0203", "no contract has this id";
    UnknownVariable = "F0204", "no variable has this name";
    UnknownLimit = "F0205", "no limit has this name";
    UnknownWorkflow = "F0206", "no sub-workflow has this name";
    UnknownClaim = "F0207", "no claim has this name";
    BadExpression = "F0301", "an expression does not hold together";
    NotACondition = "F0302", "a guard is not a condition";
    WrongType = "F0303", "an assignment has the wrong type";
    BadTarget = "F0304", "a computed target is not a set of states";
    NotCovered = "F0401", "the branches do not cover every value";
    NeverFires = "F0402", "a transition can never fire";
    Unreachable = "F0403", "a state cannot be reached";
    NoWayOut = "F0404", "no end can be reached from a state";
    NoLimit = "F0405", "a cycle has no limit";
    BadLimit = "F0406", "a limit cannot do its work";
    Recursive = "F0407", "a sub-workflow contains itself";
    Unused = "F0408", "something is declared and never used";
    BadHolding = "F0409", "a claim cannot be held to this";
    NestedWorktree = "F0410", "a worktree inside of a worktree";
    LostCommit = "F0411", "a commit inside of a worktree";
    BadTemplate = "F0501", "a template does not hold together";
}

/// One thing wrong with a workflow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The stable code.
    #[serde(serialize_with = "as_text")]
    pub code: Code,
    /// The file it stands in.
    pub file: String,
    /// Where in the file; none if it concerns the whole file.
    pub span: Option<Span>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
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

/// The findings as people read them; `files` holds the texts they point into.
pub fn render(findings: &[Finding], files: &BTreeMap<String, String>, style: Style) -> String {
    let mut out = String::new();
    for finding in findings {
        let text = files.get(&finding.file).map(String::as_str).unwrap_or_default();
        let note = Note {
            code: finding.code.as_str(),
            message: &finding.message,
            label: None,
            hint: &finding.hint,
            span: finding.span,
        };
        out.push_str(&diagnostic::note(&note, &finding.file, text, style));
    }
    out
}
