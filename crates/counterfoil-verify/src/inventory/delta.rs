//! Compares tests before and after a step: added, removed, skipped, emptied, moved and renamed
//! tests.

use super::body::Body;
use super::parse::{Deadline, Language, ParseFailure};
use super::{Inventory, Test, TestState, read};
use counterfoil_contract::text::{display_path, escape_control, join_limited, pluralize};
use memchr::memmem;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The maximum number of tokens that are compared to find tests that were renamed and edited.
const MAX_COMPARED_TOKENS: usize = 20_000_000;

/// The maximum number of tests that are searched by name in a file with a syntax error.
const MAX_NAME_SEARCHES: usize = 200;

/// The maximum number of names in a note.
const MAX_LISTED: usize = 5;

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

/// The changes of tests in the files that a step changed. Tests with the same name count
/// separately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestDelta {
    /// Tests that exist only after the step.
    pub added: Vec<TestName>,
    /// Tests that exist only before the step.
    pub removed: Vec<TestName>,
    /// Tests that ran before and are skipped now.
    pub skipped: Vec<TestName>,
    /// Tests that had an effect before and are empty now.
    pub emptied: Vec<TestName>,
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

/// Compares the tests of files before and after a step. A missing file has no tests.
pub fn compare<'a>(
    files: impl Iterator<Item = (&'a Path, Option<&'a [u8]>, Option<&'a [u8]>)>,
) -> TestDelta {
    let mut comparison = Comparison::default();
    let deadline = Deadline::after(Deadline::PER_STEP);
    for (path, before, after) in files {
        if before != after {
            comparison.file(path, before.unwrap_or_default(), after.unwrap_or_default(), deadline);
        }
    }
    comparison.finish()
}

/// A test and its file.
struct LocatedTest {
    file: PathBuf,
    test: Test,
}

impl LocatedTest {
    fn name(&self) -> TestName {
        TestName { file: self.file.clone(), name: self.test.name.clone(), line: self.test.line }
    }
}

#[derive(Default)]
struct Comparison {
    delta: TestDelta,
    removed: Vec<LocatedTest>,
    added: Vec<LocatedTest>,
}

impl Comparison {
    fn file(&mut self, path: &Path, before: &[u8], after: &[u8], deadline: Deadline) {
        let (old, new) = match (read(path, before, deadline), read(path, after, deadline)) {
            (Ok(old), Ok(new)) => (old, new),
            (old, new) => return self.report_unreadable(path, old, new),
        };
        if old.only.is_none()
            && let Some(line) = new.only
        {
            let left = new.tests.iter().filter(|test| test.state == TestState::Skipped).count();
            let left = pluralize(left, "test");
            self.delta
                .notes
                .push(format!("{}:{line}: `only` excludes {left} of the file", display_path(path)));
        }
        let Inventory { tests, broken, comments, .. } = new;
        let located = |test: Test| LocatedTest { file: path.to_owned(), test };
        let (mut unclear, mut looked) = (Vec::new(), 0);
        for (before, now) in pair(old.tests, tests) {
            match (before, now) {
                (Some(before), Some(now)) => {
                    self.compare_states(&before, &located(now));
                }
                (Some(before), None) if broken.is_some() => {
                    looked += 1;
                    if looked > MAX_NAME_SEARCHES
                        || occurs_in_code(own_name(path, &before.name), after, &comments)
                    {
                        unclear.push(before.name);
                    } else {
                        self.removed.push(located(before));
                    }
                }
                (Some(before), None) => self.removed.push(located(before)),
                (None, Some(now)) => self.added.push(located(now)),
                (None, None) => {}
            }
        }
        if let Some(line) = broken
            && !unclear.is_empty()
        {
            self.delta.is_incomplete = true;
            let names = join_limited(unclear.iter().map(|name| escape_control(name)), MAX_LISTED);
            let file = display_path(path);
            self.delta.notes.push(format!(
                "{file}:{line}: syntax error; the state of these tests is unknown: {names}"
            ));
        }
    }

    fn report_unreadable(
        &mut self,
        path: &Path,
        old: Result<Inventory, ParseFailure>,
        new: Result<Inventory, ParseFailure>,
    ) {
        let had = old.as_ref().is_ok_and(|old| !old.tests.is_empty());
        self.delta.is_incomplete |= had;
        if let Some(why) = new.err().or(old.err()) {
            self.delta.notes.push(format!(
                "{}: its tests were not read: {}",
                display_path(path),
                why.message()
            ));
        }
    }

    /// Reports a test that is skipped or empty now. Returns whether it did.
    fn compare_states(&mut self, before: &Test, now: &LocatedTest) -> bool {
        match (before.state, now.test.state) {
            (TestState::Active | TestState::Skipped, TestState::Empty) => {
                self.delta.emptied.push(now.name());
            }
            (TestState::Active, TestState::Skipped) => self.delta.skipped.push(now.name()),
            _ => {
                self.compare_bodies(before, now);
                return false;
            }
        }
        true
    }

    fn compare_bodies(&mut self, before: &Test, now: &LocatedTest) {
        let assertions = (before.body.assertions, now.test.body.assertions);
        let cases = before.body.cases.zip(now.test.body.cases).unwrap_or_default();
        for (what, (before, after)) in [("assertion", assertions), ("case", cases)] {
            if after < before {
                self.delta.weakened.push(WeakenedTest { test: now.name(), what, before, after });
            }
        }
    }

    fn finish(mut self) -> TestDelta {
        self.pair_by_key(
            |test| Some((test.name.clone(), test.body.digest)),
            |delta| &mut delta.moved,
        );
        self.pair_by_key(|test| Some(test.name.clone()), |delta| &mut delta.moved);
        // All empty bodies are equal, so they identify nothing.
        let digest = |test: &Test| (test.state != TestState::Empty).then_some(test.body.digest);
        self.pair_by_key(digest, |delta| &mut delta.renamed);
        self.pair_similar();
        self.delta.removed = self.removed.iter().map(LocatedTest::name).collect();
        self.delta.added = self.added.iter().map(LocatedTest::name).collect();
        let TestDelta { added, removed, skipped, emptied, .. } = &mut self.delta;
        for list in [added, removed, skipped, emptied] {
            list.sort();
        }
        self.delta
    }

    /// Pairs removed and added tests with equal keys.
    fn pair_by_key<K: Hash + Eq>(
        &mut self,
        key: impl Fn(&Test) -> Option<K>,
        list: fn(&mut TestDelta) -> &mut Vec<TestPair>,
    ) {
        let mut waiting: HashMap<K, VecDeque<usize>> = HashMap::new();
        for (index, added) in self.added.iter().enumerate() {
            if let Some(key) = key(&added.test) {
                waiting.entry(key).or_default().push_back(index);
            }
        }
        let next = |removed: &LocatedTest| waiting.get_mut(&key(&removed.test)?)?.pop_front();
        self.apply_pairs(next, list);
    }

    /// Pairs removed and added tests with similar bodies. Tests of the same file are compared
    /// first.
    fn pair_similar(&mut self) {
        let (mut left, mut is_exhausted) = (MAX_COMPARED_TOKENS, false);
        let mut taken = vec![false; self.added.len()];
        let added: Vec<(PathBuf, Body)> =
            self.added.iter().map(|added| (added.file.clone(), added.test.body.clone())).collect();
        let mut of_file: HashMap<&Path, Vec<usize>> = HashMap::new();
        for (index, (file, _)) in added.iter().enumerate() {
            of_file.entry(file).or_default().push(index);
        }
        let mut next = |removed: &LocatedTest| {
            let near = of_file.get(removed.file.as_path()).map(Vec::as_slice).unwrap_or_default();
            let everywhere = near.iter().copied().chain(0..added.len());
            for index in everywhere {
                let (_, body) = &added[index];
                let Some(rest) = left.checked_sub(
                    1 + removed.test.body.comparison_cost().max(body.comparison_cost()),
                ) else {
                    is_exhausted = true;
                    return None;
                };
                left = rest;
                if !taken[index] && removed.test.body.is_similar(body) {
                    taken[index] = true;
                    return Some(index);
                }
            }
            None
        };
        self.apply_pairs(&mut next, |delta| &mut delta.renamed);
        if is_exhausted {
            let note = "too many tests changed to compare them all: renamed tests may be reported as removed";
            self.delta.notes.push(note.to_owned());
        }
    }

    /// Removes the pairs that `next` finds from both lists and records them in `list`.
    fn apply_pairs(
        &mut self,
        mut next: impl FnMut(&LocatedTest) -> Option<usize>,
        list: fn(&mut TestDelta) -> &mut Vec<TestPair>,
    ) {
        let mut added: Vec<Option<LocatedTest>> =
            std::mem::take(&mut self.added).into_iter().map(Some).collect();
        for removed in std::mem::take(&mut self.removed) {
            match next(&removed).and_then(|index| added.get_mut(index)?.take()) {
                Some(now) => {
                    self.note_uncollected(&removed, &now);
                    if !self.compare_states(&removed.test, &now) {
                        list(&mut self.delta)
                            .push(TestPair { from: removed.name(), to: now.name() });
                    }
                }
                None => self.removed.push(removed),
            }
        }
        self.added = added.into_iter().flatten().collect();
    }

    /// Notes a test that was moved to a file in which no runner looks for tests.
    fn note_uncollected(&mut self, from: &LocatedTest, to: &LocatedTest) {
        let collected = |file: &Path| {
            Language::from_path(file).is_some_and(|language| language.is_collected(file))
        };
        if from.file != to.file && collected(&from.file) && !collected(&to.file) {
            let (from, to) = (display_path(&from.file), display_path(&to.file));
            let note = format!(
                "{to}: contains tests from {from}, but test runners do not collect files with this name"
            );
            if self.delta.notes.last() != Some(&note) {
                self.delta.notes.push(note);
            }
        }
    }
}

/// Pairs the tests of a file before and after by name: first those with equal bodies, then the rest
/// in order.
fn pair(before: Vec<Test>, after: Vec<Test>) -> Vec<(Option<Test>, Option<Test>)> {
    let mut after: Vec<Option<Test>> = after.into_iter().map(Some).collect();
    let mut same: HashMap<(String, u64), VecDeque<usize>> = HashMap::new();
    let mut named: HashMap<String, VecDeque<usize>> = HashMap::new();
    for (index, test) in
        after.iter().enumerate().filter_map(|(index, test)| Some((index, test.as_ref()?)))
    {
        same.entry((test.name.clone(), test.body.digest)).or_default().push_back(index);
        named.entry(test.name.clone()).or_default().push_back(index);
    }
    let mut pairs: Vec<(Option<Test>, Option<Test>)> = Vec::new();
    let mut rest = Vec::new();
    for test in before {
        let index =
            same.get_mut(&(test.name.clone(), test.body.digest)).and_then(VecDeque::pop_front);
        match index.and_then(|index| after.get_mut(index)?.take()) {
            Some(now) => pairs.push((Some(test), Some(now))),
            None => rest.push(test),
        }
    }
    for test in rest {
        let mut now = None;
        if let Some(indices) = named.get_mut(&test.name) {
            while let (None, Some(index)) = (&now, indices.pop_front()) {
                now = after.get_mut(index).and_then(Option::take);
            }
        }
        pairs.push((Some(test), now));
    }
    pairs.extend(after.into_iter().flatten().map(|test| (None, Some(test))));
    pairs
}

/// The name of a test without its containers.
fn own_name<'n>(file: &Path, name: &'n str) -> &'n str {
    let separator = match Language::from_path(file) {
        Some(Language::Rust) => "::",
        Some(Language::JavaScript | Language::TypeScript | Language::Tsx) => " > ",
        Some(Language::Python | Language::Go) | None => ".",
    };
    name.rsplit(separator).next().unwrap_or(name)
}

/// Whether a name occurs in a text outside of comments.
fn occurs_in_code(name: &str, text: &[u8], comments: &[Range<usize>]) -> bool {
    let in_comment = |at: usize| {
        let next = comments.partition_point(|range| range.end <= at);
        comments.get(next).is_some_and(|range| range.contains(&at))
    };
    let is_word =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    !name.is_empty()
        && memmem::find_iter(text, name.as_bytes()).any(|at| {
            let before = at.checked_sub(1).and_then(|at| text.get(at));
            !is_word(before) && !is_word(text.get(at + name.len())) && !in_comment(at)
        })
}
