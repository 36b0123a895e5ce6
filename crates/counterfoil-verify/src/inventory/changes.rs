//! What a step changed about the tests, as it is reported.

use counterfoil_contract::text::{display_path, escape_control};
use std::path::PathBuf;

/// The location and name of a test.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TestName {
    /// The file, relative to the workspace.
    pub file: PathBuf,
    /// The name with its containers.
    pub name: String,
    /// The line, counted from 1: the current one, or the former one of a removed test.
    pub line: u32,
}

impl std::fmt::Display for TestName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} ({}:{})", escape_control(&self.name), display_path(&self.file), self.line)
    }
}

/// A test that was moved or renamed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestPair {
    /// The former location and name.
    pub from: TestName,
    /// The current location and name.
    pub to: TestName,
}

/// A test that checks less than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeakenedTest {
    /// The current location and name of the test.
    pub test: TestName,
    /// What decreased: `assertion` or `case`.
    pub what: &'static str,
    /// The former number.
    pub before: u32,
    /// The current number.
    pub after: u32,
}

/// A test that stays and no longer checks what it did.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IneffectiveTest {
    /// The current location and name of the test.
    pub test: TestName,
    /// Why it cannot fail any more as it did.
    pub why: &'static str,
}

impl std::fmt::Display for IneffectiveTest {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}: {}", self.test, self.why)
    }
}

/// A change outside of tests by which tests are left out or cannot fail: a hook, a setting of the
/// runner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SelectionChange {
    /// The file, relative to the workspace.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: u32,
    /// What the file does now.
    pub what: String,
}

impl std::fmt::Display for SelectionChange {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:{}: {}", display_path(&self.file), self.line, escape_control(&self.what))
    }
}

/// The changes of tests in the files that a step changed. Tests with the same name count
/// separately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestDelta {
    /// Tests that exist only after the step.
    pub added: Vec<TestName>,
    /// Those of the added tests that check nothing.
    pub added_in_vain: Vec<IneffectiveTest>,
    /// Tests that exist only before the step.
    pub removed: Vec<TestName>,
    /// Tests that ran before and are skipped now.
    pub skipped: Vec<TestName>,
    /// Tests that had an effect before and are empty now.
    pub emptied: Vec<TestName>,
    /// Tests with assertions that can no longer fail.
    pub ineffective: Vec<IneffectiveTest>,
    /// Changes of what decides which tests run, and whether they can fail.
    pub selection: Vec<SelectionChange>,
    /// Tests with fewer assertions or fewer cases. Reported, but not as a mismatch: shorter code is
    /// often equivalent.
    pub weakened: Vec<WeakenedTest>,
    /// Tests with the same name in another file.
    pub moved: Vec<TestPair>,
    /// Tests with another name and (nearly) the same body.
    pub renamed: Vec<TestPair>,
    /// Remarks, such as files that could not be parsed.
    pub notes: Vec<String>,
    /// Whether a file that contained tests can no longer be parsed, so that the state of its tests
    /// is unknown.
    pub is_incomplete: bool,
}
