//! The work of built-in steps as plain data: templates are rendered and expressions evaluated.

use super::enter::Entry;
use super::{AttemptWork, Command, eval_scope, path_of};
use crate::event::BuiltinStep;
use crate::run_state::join;
use crate::workflow::{ChangesStep, CommitStep, ReadStep, State, Term};
use counterfoil_contract::Contract;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// A file to read.
#[derive(Clone, Debug)]
pub struct ReadWork {
    /// The path, relative to the workspace.
    pub path: String,
    /// The contract of the file.
    pub contract: Option<Arc<Contract>>,
    /// The workspace; the repository, if there is none.
    pub workspace: Option<String>,
}

/// Changes to collect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangesWork {
    /// The revision to compare with; the empty tree, if it is empty.
    pub since: String,
    /// The maximum number of tokens per chunk of the patch; without it, there is one chunk.
    pub split: Option<i64>,
    /// The workspace; the repository, if there is none.
    pub workspace: Option<String>,
}

/// A commit to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitWork {
    /// The commit message.
    pub message: String,
    /// The paths to commit, relative to the workspace.
    pub paths: Vec<String>,
    /// A name on one line that is unique to this visit of the state and the same for all its
    /// attempts.
    pub step: String,
    /// Whether an attempt of this visit was lost or stopped, so that the commit may already exist.
    pub repeated: bool,
    /// The workspace; the repository, if there is none.
    pub workspace: Option<String>,
    /// The timeout, in milliseconds.
    pub timeout_ms: u64,
}

impl AttemptWork {
    /// The built-in step as events record it; none for an agent or a command.
    pub(super) fn builtin(&self) -> Option<BuiltinStep> {
        match self {
            Self::Agent(_) | Self::Command(_) => None,
            Self::Checks(work) if work.base => Some(BuiltinStep::BaseChecks(work.names.clone())),
            Self::Checks(work) => Some(BuiltinStep::Checks(work.names.clone())),
            Self::Read(work) => Some(BuiltinStep::Read(work.path.clone())),
            Self::Changes(work) => Some(BuiltinStep::Changes(work.since.clone())),
            Self::Commit(work) => {
                let subject = work.message.trim().lines().next().unwrap_or_default();
                Some(BuiltinStep::Commit(subject.to_owned()))
            }
        }
    }
}

impl Entry<'_> {
    pub(super) fn read(&self, step: &ReadStep, state: &State) -> Result<Command, String> {
        let scope = eval_scope(self.workflow, self.run, self.frame, state)?;
        let work = ReadWork {
            path: scope.render(&step.path, &BTreeMap::new())?,
            contract: step.contract.clone(),
            workspace: self.workspace(),
        };
        Ok(self.start(AttemptWork::Read(Box::new(work))))
    }

    pub(super) fn changes(&self, step: &ChangesStep, state: &State) -> Result<Command, String> {
        let scope = eval_scope(self.workflow, self.run, self.frame, state)?;
        let split = step.split.as_ref().map(|split| scope.term(split)).transpose()?;
        let work = ChangesWork {
            since: crate::value::to_text(&scope.term(&step.since)?),
            split: split.and_then(|split| split.as_i64()),
            workspace: self.workspace(),
        };
        Ok(self.start(AttemptWork::Changes(Box::new(work))))
    }

    pub(super) fn commit(&self, step: &CommitStep, state: &State) -> Result<Command, String> {
        let scope = eval_scope(self.workflow, self.run, self.frame, state)?;
        if self.frame.cut
            && matches!(&step.paths, Term::Computed(paths) if paths.reads().iter().any(|read| read == "run.changed"))
        {
            return Err("`run.changed` does not list all changed files; list the paths to commit"
                .to_owned());
        }
        let paths = match scope.term(&step.paths)? {
            Value::Array(paths) => paths.iter().map(crate::value::to_text).collect(),
            _ => Vec::new(),
        };
        let work = CommitWork {
            message: scope.render(&step.message, &BTreeMap::new())?,
            paths,
            step: self.visit_name(),
            repeated: self.frame.interrupted > 0,
            workspace: self.workspace(),
            timeout_ms: step.timeout_ms,
        };
        Ok(self.start(AttemptWork::Commit(Box::new(work))))
    }

    /// The name of this visit of the state: that of its first attempt, also for the attempts that
    /// replace an interrupted one.
    fn visit_name(&self) -> String {
        let path = join(&path_of(self.workflow, self.run, self.id, self.frame));
        let next = self.run.visits.get(&path).copied().unwrap_or(0) + 1;
        let visit = next.saturating_sub(self.frame.interrupted);
        escape_line(&format!("{}/{path}/{visit}", self.run.run))
    }
}

/// Escapes a name so that it fits on one line: item keys can be any text.
fn escape_line(name: &str) -> String {
    let mut line = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_control() || c == '%' || c == '\u{2028}' || c == '\u{2029}' {
            let _ = write!(line, "%{:02X}", u32::from(c));
        } else {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::escape_line;

    #[test]
    fn an_escaped_name_has_one_line_and_stays_unique() {
        assert_eq!(escape_line("run/build/a b/commit/1"), "run/build/a b/commit/1");
        assert_eq!(escape_line("a\nb"), "a%0Ab");
        assert_ne!(escape_line("a%0Ab"), escape_line("a\nb"));
    }
}
