//! Which tests stand in a file, and what became of them in a step: a test that is gone, skipped or
//! empty is seen, whatever the result says. It reads texts that it is given and no files; a clock
//! only ends what would take too long. Rust, Python, JavaScript with TypeScript and JSX, and Go are
//! read by their grammars, so a test that is commented out or stands in a string is none.
//!
//! It is not for what only running shows: tests that a macro or a loop makes, tests that the
//! runner's settings leave out.

mod body;
mod delta;
mod go;
mod javascript;
mod parse;
mod python;
mod report;
mod rust;
mod scope;

pub use delta::{Delta, Pair, TestName, Weakened, delta};
pub use report::report;

use body::Body;
use parse::{Language, Patience, Unread};
use std::ops::Range;
use std::path::Path;

/// The longest file that is read.
pub const MAX_BYTES: usize = 2 << 20;

/// A test, as it stands in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// With what it stands in: `module::name`, `Class.name`, `describe > it`.
    pub name: String,
    /// Whether it would do something.
    pub state: State,
    /// Its line, from 1.
    pub line: u32,
    body: Body,
}

/// Whether a test would do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It runs.
    Active,
    /// It, or what it stands in, is marked to be left out, be it under a condition; or it may fail.
    Skipped,
    /// It would pass whatever the code does: nothing, or only constants, stand in it. It may be
    /// skipped as well.
    Empty,
}

/// Whether a file may hold tests that can be read, by its name.
pub fn is_test_file(path: &Path) -> bool {
    Language::of(path).is_some()
}

/// The tests of a file, in the order of their lines. None where it cannot be read.
pub fn tests(path: &Path, text: &[u8]) -> Vec<Test> {
    read(path, text, Patience::of(Patience::ONE))
        .map(|inventory| inventory.tests)
        .unwrap_or_default()
}

/// What stands in a file.
#[derive(Default)]
struct Inventory {
    tests: Vec<Test>,
    /// The line of the first thing that the grammar cannot read.
    broken: Option<u32>,
    /// Where comments stand; only for a file that is broken.
    comments: Vec<Range<usize>>,
    /// The line of the first test that keeps others from running.
    only: Option<u32>,
}

fn read(path: &Path, text: &[u8], patience: Patience) -> Result<Inventory, Unread> {
    let Some(language) = Language::of(path) else { return Ok(Inventory::default()) };
    if parse::is_binary(text) || !language.may_hold_tests(text) {
        return Ok(Inventory::default());
    }
    let tree = parse::parse(language, text, patience)?;
    let root = tree.root_node();
    let mut found = scope::Findings::default();
    match language {
        Language::Rust => rust::find(root, text, &mut found),
        Language::Python => python::find(root, text, &mut found),
        Language::JavaScript | Language::TypeScript | Language::Tsx => {
            javascript::find(root, text, &mut found);
        }
        Language::Go => go::find(root, text, &mut found),
    }
    let broken = parse::first_error(root);
    let comments = if broken.is_some() { parse::comments(root) } else { Vec::new() };
    let (tests, only) = found.settle();
    Ok(Inventory { tests, broken, comments, only })
}
