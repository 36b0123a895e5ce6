//! Runs a check by itself, without a claim.

use super::check::{self, CheckStatus, idle_text};
use super::command::changed_tree_note;
use super::state::VerificationState;
use super::{Figures, VerifyContext};
use crate::config::Check;
use counterfoil_contract::text::duration;

/// What came of a check that was run by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckRun {
    /// The command, as text.
    pub command: String,
    /// The exit code; none if it did not exit by itself, or exited with 0 without a success.
    pub exit_code: Option<i32>,
    /// Why it did not pass; empty if it did.
    pub reason: String,
    /// The counts of the test run.
    pub figures: Option<Figures>,
    /// What failed in the output, and then its end.
    pub output: String,
    /// Whether it was run before on the same tree.
    pub reused: bool,
    /// How long it ran, in milliseconds.
    pub wall_ms: u64,
    /// The identifier of the tree that it ran on.
    pub tree: Option<String>,
    /// Remarks, such as files that the check changed.
    pub notes: Vec<String>,
}

impl CheckRun {
    /// Whether the check passed.
    pub fn passed(&self) -> bool {
        self.exit_code == Some(0)
    }
}

/// Runs a check, or returns what came of it on the same tree. Returns nothing if it was stopped on
/// request.
pub async fn run_check(check: &Check, context: &mut VerifyContext<'_>) -> Option<CheckRun> {
    let mut state = VerificationState::observe(context);
    let outcome = check::run(check, &mut state, context).await;
    let (exit_code, reason) = match &outcome.status {
        CheckStatus::Stopped => return None,
        CheckStatus::Exited(0) => match &outcome.without_pass {
            None => (Some(0), String::new()),
            // A test that does not run finds nothing.
            Some(why) => (None, idle_text(&outcome.line, why)),
        },
        CheckStatus::Exited(code) => {
            (Some(*code), format!("`{}` {}", outcome.line, outcome.failed(*code)))
        }
        CheckStatus::TimedOut(after) => {
            let after = duration(*after);
            (None, format!("`{}` took longer than {after} and was stopped", outcome.line))
        }
        CheckStatus::CouldNotRun(why) => {
            (None, format!("`{}` could not be run: {why}", outcome.line))
        }
        CheckStatus::Idle(why) => (None, idle_text(&outcome.line, why)),
        CheckStatus::Unfinished(how) => (None, how.text(&outcome.line)),
    };
    let mut notes = outcome.notes;
    notes.extend(outcome.changed.as_ref().map(|changed| changed_tree_note(changed)));
    Some(CheckRun {
        command: outcome.line,
        exit_code,
        reason,
        figures: outcome.figures,
        output: outcome.excerpt,
        reused: outcome.from_cache,
        wall_ms: outcome.wall_ms,
        tree: state.tree_id,
        notes,
    })
}
