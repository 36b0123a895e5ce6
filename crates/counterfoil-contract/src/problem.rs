//! What is wrong with a contract itself.

use crate::code::Code;
use serde::Serialize;
use std::fmt;

/// One thing wrong with a contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The stable code.
    pub code: Code,
    /// Where in the contract, as `rules[1].check`; empty for the whole.
    pub place: String,
    /// The line in the file, if it is known.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
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

/// A contract that does not load: everything wrong with it, at once.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", show(name, problems))]
pub struct LoadError {
    /// The contract's id or the file's name.
    pub name: String,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

fn show(name: &str, problems: &[Problem]) -> String {
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
