//! Finds the tests in source files, and compares them before and after a step, so that a test that
//! was removed, skipped, emptied or switched off is reported whatever the result says. Works on texts and reads
//! no files; parsing is limited in time. Rust, Python, JavaScript with TypeScript and JSX, and Go
//! are parsed by their grammars, so a test in a comment or a string does not count.
//!
//! Not covered is what only a test run can show: tests that a macro or a loop generates, and what
//! code outside of the tests does when it runs.

mod assertion;
mod body;
mod changes;
mod checks;
mod constant;
mod delta;
mod doctests;
mod go;
mod helpers;
mod javascript;
pub(crate) mod parse;
mod python;
mod report;
mod rust;
mod scope;
mod selection;
mod source;
mod tokens;

pub use changes::{IneffectiveTest, SelectionChange, TestDelta, TestName, TestPair, WeakenedTest};
pub use delta::compare;
pub use report::report;

use body::Body;
use parse::{Deadline, Language, ParseFailure};
use source::{Source, Switch};
use std::ops::Range;
use std::path::Path;

/// Larger files are not parsed.
pub const MAX_BYTES: usize = 2 << 20;

/// A test in a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// The name with its containers: `module::name`, `Class.name`, `describe > it`.
    pub name: String,
    /// Whether the test runs and checks anything.
    pub state: TestState,
    /// The line, counted from 1.
    pub line: u32,
    /// Whether it runs, or is skipped only under a condition that is not constant.
    pub(crate) may_run: bool,
    body: Body,
}

/// Whether a test runs and checks anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TestState {
    /// The test runs.
    Active,
    /// The test or one of its containers is marked as skipped, possibly under a condition, or as
    /// allowed to fail.
    Skipped,
    /// The test always passes: its body is empty, or compares only constants that agree. It may be
    /// skipped as well.
    Empty,
}

/// Whether a file may contain tests in a supported language, or settings of a test runner, by its
/// name.
pub fn is_test_file(path: &Path) -> bool {
    Language::from_path(path).is_some() || selection::is_settings_file(path)
}

/// Whether a file may contain tests, or settings of a test runner, by its name and its text.
pub(crate) fn may_hold_tests(path: &Path, text: &[u8]) -> bool {
    selection::is_settings_file(path)
        || Language::from_path(path)
            .is_some_and(|language| !parse::is_binary(text) && language.may_hold_tests(path, text))
}

/// Whether a file is in a language whose tests can be found, by its name.
pub fn is_source_file(path: &Path) -> bool {
    Language::from_path(path).is_some()
}

/// Whether a file decides about the tests of other files, by its name: settings of a test runner,
/// or `conftest.py`.
pub fn decides_about_others(path: &Path) -> bool {
    selection::is_settings_file(path) || path.file_name().is_some_and(|name| name == "conftest.py")
}

/// The tests of a file, in the order of their lines. Empty if the file cannot be parsed.
pub fn tests(path: &Path, text: &[u8]) -> Vec<Test> {
    read(path, &parse::decoded(text), Deadline::after(Deadline::PER_FILE))
        .map(|inventory| inventory.tests)
        .unwrap_or_default()
}

/// The tests of a file and what is needed to compare them.
#[derive(Default)]
struct Inventory {
    tests: Vec<Test>,
    /// The line of the first syntax error.
    broken: Option<u32>,
    /// The ranges of comments; only for a file with a syntax error.
    comments: Vec<Range<usize>>,
    /// The line of the first test that excludes others from running.
    only: Option<u32>,
    /// What decides about tests from outside of them.
    switches: Vec<Switch>,
    /// The modules of a Rust file that are in other files.
    modules: Vec<scope::Module>,
    /// The functions with assertions that nothing in the file calls, with their lines.
    idle: Vec<(String, u32)>,
}

fn read(path: &Path, text: &[u8], deadline: Deadline) -> Result<Inventory, ParseFailure> {
    let Some(language) = Language::from_path(path) else { return Ok(Inventory::default()) };
    if parse::is_binary(text) || !language.may_hold_tests(path, text) {
        return Ok(Inventory::default());
    }
    let tree = parse::parse(language, text, deadline)?;
    let root = tree.root_node();
    let mut found = scope::TestCollector::default();
    let source = Source::read(language, path, root, text);
    match language {
        Language::Rust => rust::find(root, &source, &mut found),
        Language::Python => python::find(root, &source, &mut found),
        Language::JavaScript | Language::TypeScript | Language::Tsx => {
            javascript::find(root, &source, &mut found);
        }
        Language::Go => go::find(root, &source, &mut found),
    }
    let broken = parse::first_error(root);
    let comments = if broken.is_some() { parse::comments(root) } else { Vec::new() };
    let scope::Found { tests, only, switches, modules } = found.finish();
    let idle = if tests.is_empty() { Vec::new() } else { helpers::idle(root, &source) };
    Ok(Inventory { tests, broken, comments, only, switches, modules, idle })
}
