//! What the engine is to do itself: plain data, every template rendered and every expression
//! evaluated.

use super::enter::At;
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
    /// Where it stands, in the workspace.
    pub path: String,
    /// What it must satisfy.
    pub contract: Option<Arc<Contract>>,
    /// The workspace it stands in; the repository, if there is none.
    pub workspace: Option<String>,
}

/// Changes to look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangesWork {
    /// The revision that the workspace is held against; the empty tree, if it is empty.
    pub since: String,
    /// How many tokens a chunk of the patch may have; without it, there is one chunk.
    pub split: Option<i64>,
    /// The workspace that is looked at; the repository, if there is none.
    pub workspace: Option<String>,
}

/// Something to commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitWork {
    /// What the commit says.
    pub message: String,
    /// What is committed: paths in the workspace.
    pub paths: Vec<String>,
    /// Names this visit of the state, on one line: the same for every attempt of it, and no other
    /// visit has it.
    pub step: String,
    /// Whether an attempt of this visit was lost or stopped, so that the commit may be there
    /// already.
    pub repeated: bool,
    /// The workspace it would be made in; the repository, if there is none.
    pub workspace: Option<String>,
    /// How long it may take.
    pub timeout_ms: u64,
}

impl AttemptWork {
    /// What the engine does itself, as it is told.
    pub(super) fn builtin(&self) -> Option<BuiltinStep> {
        match self {
            Self::Agent(_) | Self::Command(_) => None,
            Self::Read(work) => Some(BuiltinStep::Read(work.path.clone())),
            Self::Changes(work) => Some(BuiltinStep::Changes(work.since.clone())),
            Self::Commit(work) => {
                let subject = work.message.trim().lines().next().unwrap_or_default();
                Some(BuiltinStep::Commit(subject.to_owned()))
            }
        }
    }
}

impl At<'_> {
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
            return Err(
                "more files were changed than `run.changed` lists; name what is to be committed"
                    .to_owned(),
            );
        }
        let paths = match scope.term(&step.paths)? {
            Value::Array(paths) => paths.iter().map(crate::value::to_text).collect(),
            _ => Vec::new(),
        };
        let work = CommitWork {
            message: scope.render(&step.message, &BTreeMap::new())?,
            paths,
            step: self.visit(),
            repeated: self.frame.interrupted > 0,
            workspace: self.workspace(),
            timeout_ms: step.timeout_ms,
        };
        Ok(self.start(AttemptWork::Commit(Box::new(work))))
    }

    /// The name of this visit of the state: that of its first attempt, also for those that are
    /// started because one was lost.
    fn visit(&self) -> String {
        let path = join(&path_of(self.workflow, self.run, self.id, self.frame));
        let next = self.run.visits.get(&path).copied().unwrap_or(0) + 1;
        let visit = next.saturating_sub(self.frame.interrupted);
        on_one_line(&format!("{}/{path}/{visit}", self.run.run))
    }
}

/// A name that stands on one line: keys of items can be any text.
fn on_one_line(name: &str) -> String {
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
    use super::on_one_line;

    #[test]
    fn a_name_stands_on_one_line_and_two_are_never_one() {
        assert_eq!(on_one_line("run/build/a b/commit/1"), "run/build/a b/commit/1");
        assert_eq!(on_one_line("a\nb"), "a%0Ab");
        assert_ne!(on_one_line("a%0Ab"), on_one_line("a\nb"));
    }
}
