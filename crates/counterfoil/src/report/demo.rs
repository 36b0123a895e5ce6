//! The report of a demo.

use std::path::Path;

/// A command to try after a demo.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SuggestedCommand {
    /// The command line, with `{repo}`, `{state}` and `{run}` as placeholders.
    pub(crate) command: String,
    /// What the command shows.
    pub(crate) description: String,
}

/// How a demo ended.
pub(crate) struct DemoReport<'a> {
    /// The name or path with which this program was called, quoted for a shell.
    pub(crate) program: &'a str,
    /// The pack or folder as given on the command line.
    pub(crate) pack: &'a str,
    pub(crate) repo: &'a Path,
    /// The folder with the run.
    pub(crate) state: &'a Path,
    pub(crate) script: &'a Path,
    pub(crate) run: &'a str,
    pub(crate) outcome: &'a str,
    /// The outcome that the demo is meant to have.
    pub(crate) expected_outcome: &'a str,
    pub(crate) suggestions: &'a [SuggestedCommand],
}
