//! Problems of a contract itself.

use crate::code::Code;
use crate::text::escape_control;
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
            write!(f, " at {}", escape_control(&self.place))?;
        }
        if let Some(line) = self.line {
            write!(f, " (line {line})")?;
        }
        write!(f, ": {}", shown(&self.message))?;
        if !self.hint.is_empty() {
            write!(f, " (hint: {})", escape_control(self.hint.trim_end()))?;
        }
        Ok(())
    }
}

/// A message on one line, but for the line of an expression at its end with carets under it.
fn shown(message: &str) -> String {
    let mut parts = message.rsplitn(3, '\n');
    if let (Some(carets), Some(line), Some(words)) = (parts.next(), parts.next(), parts.next())
        && carets.ends_with('^')
        && carets.trim_start_matches(' ').bytes().all(|byte| byte == b'^')
    {
        return [words, line, carets].map(escape_control).join("\n");
    }
    escape_control(message.trim_end())
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
    let mut text = format!("{} does not load", escape_control(name));
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
