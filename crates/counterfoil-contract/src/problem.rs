//! Problems of a contract itself.

use crate::code::Code;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// One problem of a contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// The stable code.
    pub code: Code,
    /// The place in the contract, such as `rules[1].check`; empty for the whole.
    pub place: String,
    /// The line in the file, if known.
    pub line: Option<usize>,
    /// The problem, in a sentence.
    pub message: String,
    /// How to fix it.
    pub hint: String,
}

impl Problem {
    pub(crate) fn new(
        code: Code,
        place: &str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            code,
            place: place.to_owned(),
            line: None,
            message: message.into(),
            hint: hint.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if !self.place.is_empty() {
            write!(f, " at {}", self.place)?;
        }
        if let Some(line) = self.line {
            write!(f, " (line {line})")?;
        }
        write!(f, ": {}", self.message)?;
        if !self.hint.is_empty() {
            write!(f, " (hint: {})", self.hint)?;
        }
        Ok(())
    }
}

/// A contract that does not load, with all its problems.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", to_text(name, problems))]
pub struct LoadError {
    /// The id of the contract or the name of its file.
    pub name: String,
    /// All problems that were found.
    pub problems: Vec<Problem>,
}

fn to_text(name: &str, problems: &[Problem]) -> String {
    let mut text = format!("{name} does not load");
    for problem in problems {
        text.push_str("\n  ");
        text.push_str(&problem.to_string());
    }
    text
}

impl LoadError {
    pub(crate) fn one(name: &str, problem: Problem) -> Self {
        Self { name: name.to_owned(), problems: vec![problem] }
    }
}
