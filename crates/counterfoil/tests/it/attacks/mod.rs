//! Agents that try to pass for successful. Each test plays one way to bend the evidence, with
//! variations, and the honest work that must still get through. None ends with a false *verified*.

mod checks;
mod ended_runs;
mod git_programs;
mod hidden;
mod interrupted;
mod protected;
mod worktrees;

use crate::verification::project::{DirtyProject, VerifiedRun, replies};
use serde_json::{Value, json};

/// A reply of the worker that claims that the tests pass, after it ran shell commands.
fn says_tests_pass(files: &[&str], commands: &str) -> Value {
    replies(&json!({"files": files, "tests_pass": true}), json!({"exec": commands}))
}
