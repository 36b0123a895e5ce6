//! What became of the tests of a step: which are new, gone, skipped, empty, elsewhere or under
//! another name.

use super::body::Body;
use super::parse::{Language, Patience, Unread};
use super::{Inventory, State, Test, read};
use crate::wording::{counted, listed, plain, shown};
use memchr::memmem;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// How many words may be compared to find tests that were renamed and edited at once.
const COMPARED: usize = 20_000_000;

/// How many tests are looked for by name in a file that does not parse; nothing is said about more.
const LOOKED_FOR: usize = 200;

/// How many names a note lists.
const LISTED: usize = 5;

/// Where a test stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TestName {
    /// The file, relative to the workspace.
    pub file: PathBuf,
    /// With what it stands in.
    pub name: String,
    /// The line, from 1: now, or before for one that is gone.
    pub line: u32,
}

impl std::fmt::Display for TestName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} ({}:{})", plain(&self.name), shown(&self.file), self.line)
    }
}

/// A test that is somewhere else or called otherwise now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Before.
    pub from: TestName,
    /// Now.
    pub to: TestName,
}

/// A test that checks less than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weakened {
    /// Which.
    pub test: TestName,
    /// What there is less of: `assertion` or `case`.
    pub what: &'static str,
    /// How many there were.
    pub before: u32,
    /// How many there are.
    pub after: u32,
}

/// What became of the tests of the files that a step changed. A name that stands more than once
/// counts as often.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// There now and not before.
    pub added: Vec<TestName>,
    /// There before and not now.
    pub removed: Vec<TestName>,
    /// Run before, skipped now.
    pub skipped: Vec<TestName>,
    /// Did something before, empty now.
    pub emptied: Vec<TestName>,
    /// Fewer assertions, or fewer cases. Shown, but no mismatch: code is often said shorter.
    pub weakened: Vec<Weakened>,
    /// The same name in another file.
    pub moved: Vec<Pair>,
    /// Another name and (nearly) the same words.
    pub renamed: Vec<Pair>,
    /// What could not be read, and what else a reader should know.
    pub notes: Vec<String>,
    /// Whether a file that held tests cannot be read any more, so that nothing can be said about
    /// them.
    pub unread: bool,
}

/// Holds the tests of files before a step against those after it. A file that is missing has none.
pub fn delta<'a>(
    files: impl Iterator<Item = (&'a Path, Option<&'a [u8]>, Option<&'a [u8]>)>,
) -> Delta {
    let mut comparison = Comparison::default();
    let patience = Patience::of(Patience::ALL);
    for (path, before, after) in files {
        if before != after {
            comparison.file(path, before.unwrap_or_default(), after.unwrap_or_default(), patience);
        }
    }
    comparison.settle()
}

/// A test with its file.
struct Placed {
    file: PathBuf,
    test: Test,
}

impl Placed {
    fn name(&self) -> TestName {
        TestName { file: self.file.clone(), name: self.test.name.clone(), line: self.test.line }
    }
}

#[derive(Default)]
struct Comparison {
    delta: Delta,
    lost: Vec<Placed>,
    gained: Vec<Placed>,
}

impl Comparison {
    fn file(&mut self, path: &Path, before: &[u8], after: &[u8], patience: Patience) {
        let (old, new) = match (read(path, before, patience), read(path, after, patience)) {
            (Ok(old), Ok(new)) => (old, new),
            (old, new) => return self.unread(path, old, new),
        };
        if old.only.is_none()
            && let Some(line) = new.only
        {
            let left = new.tests.iter().filter(|test| test.state == State::Skipped).count();
            let left = counted(left, "test");
            self.delta
                .notes
                .push(format!("{}:{line}: `only` leaves out {left} of the file", shown(path)));
        }
        let Inventory { tests, broken, comments, .. } = new;
        let placed = |test: Test| Placed { file: path.to_owned(), test };
        let (mut unclear, mut looked) = (Vec::new(), 0);
        for (before, now) in pair(old.tests, tests) {
            match (before, now) {
                (Some(before), Some(now)) => {
                    self.judge(&before, &placed(now));
                }
                (Some(before), None) if broken.is_some() => {
                    looked += 1;
                    if looked > LOOKED_FOR || stands(own_name(path, &before.name), after, &comments)
                    {
                        unclear.push(before.name);
                    } else {
                        self.lost.push(placed(before));
                    }
                }
                (Some(before), None) => self.lost.push(placed(before)),
                (None, Some(now)) => self.gained.push(placed(now)),
                (None, None) => {}
            }
        }
        if let Some(line) = broken
            && !unclear.is_empty()
        {
            self.delta.unread = true;
            let names = listed(&unclear, LISTED, |name| plain(name));
            let file = shown(path);
            self.delta.notes.push(format!(
                "{file}:{line}: does not parse from here; nothing can be said about {names}"
            ));
        }
    }

    fn unread(
        &mut self,
        path: &Path,
        old: Result<Inventory, Unread>,
        new: Result<Inventory, Unread>,
    ) {
        let had = old.as_ref().is_ok_and(|old| !old.tests.is_empty());
        self.delta.unread |= had;
        if let Some(why) = new.err().or(old.err()) {
            self.delta.notes.push(format!(
                "{}: its tests were not read: {}",
                shown(path),
                why.words()
            ));
        }
    }

    /// Whether a test that is still there does as much as before. True if it is to be told of.
    fn judge(&mut self, before: &Test, now: &Placed) -> bool {
        match (before.state, now.test.state) {
            (State::Active | State::Skipped, State::Empty) => self.delta.emptied.push(now.name()),
            (State::Active, State::Skipped) => self.delta.skipped.push(now.name()),
            _ => {
                self.compare(before, now);
                return false;
            }
        }
        true
    }

    fn compare(&mut self, before: &Test, now: &Placed) {
        let assertions = (before.body.assertions, now.test.body.assertions);
        let cases = before.body.cases.zip(now.test.body.cases).unwrap_or_default();
        for (what, (before, after)) in [("assertion", assertions), ("case", cases)] {
            if after < before {
                self.delta.weakened.push(Weakened { test: now.name(), what, before, after });
            }
        }
    }

    fn settle(mut self) -> Delta {
        self.take_up(|test| Some((test.name.clone(), test.body.digest)), |delta| &mut delta.moved);
        self.take_up(|test| Some(test.name.clone()), |delta| &mut delta.moved);
        // Empty bodies are all the same and say nothing.
        let said = |test: &Test| (test.state != State::Empty).then_some(test.body.digest);
        self.take_up(said, |delta| &mut delta.renamed);
        self.take_up_alike();
        self.delta.removed = self.lost.iter().map(Placed::name).collect();
        self.delta.added = self.gained.iter().map(Placed::name).collect();
        let Delta { added, removed, skipped, emptied, .. } = &mut self.delta;
        for list in [added, removed, skipped, emptied] {
            list.sort();
        }
        self.delta
    }

    /// Takes what is gone together with what is new where a key agrees.
    fn take_up<K: Hash + Eq>(
        &mut self,
        key: impl Fn(&Test) -> Option<K>,
        told: fn(&mut Delta) -> &mut Vec<Pair>,
    ) {
        let mut waiting: HashMap<K, VecDeque<usize>> = HashMap::new();
        for (index, gained) in self.gained.iter().enumerate() {
            if let Some(key) = key(&gained.test) {
                waiting.entry(key).or_default().push_back(index);
            }
        }
        let next = |lost: &Placed| waiting.get_mut(&key(&lost.test)?)?.pop_front();
        self.settle_pairs(next, told);
    }

    /// The same where bodies share most of their words. Those of one file are tried first.
    fn take_up_alike(&mut self) {
        let (mut left, mut tired) = (COMPARED, false);
        let mut taken = vec![false; self.gained.len()];
        let gained: Vec<(PathBuf, Body)> = self
            .gained
            .iter()
            .map(|gained| (gained.file.clone(), gained.test.body.clone()))
            .collect();
        let mut of_file: HashMap<&Path, Vec<usize>> = HashMap::new();
        for (index, (file, _)) in gained.iter().enumerate() {
            of_file.entry(file).or_default().push(index);
        }
        let mut next = |lost: &Placed| {
            let near = of_file.get(lost.file.as_path()).map(Vec::as_slice).unwrap_or_default();
            let everywhere = near.iter().copied().chain(0..gained.len());
            for index in everywhere {
                let (_, body) = &gained[index];
                let Some(rest) = left.checked_sub(1 + lost.test.body.weight().max(body.weight()))
                else {
                    tired = true;
                    return None;
                };
                left = rest;
                if !taken[index] && lost.test.body.is_like(body) {
                    taken[index] = true;
                    return Some(index);
                }
            }
            None
        };
        self.settle_pairs(&mut next, |delta| &mut delta.renamed);
        if tired {
            let note = "so many tests changed that not all were compared: some that are renamed may be told as removed";
            self.delta.notes.push(note.to_owned());
        }
    }

    /// Takes those that `next` finds a match for off both lists, and tells of them.
    fn settle_pairs(
        &mut self,
        mut next: impl FnMut(&Placed) -> Option<usize>,
        told: fn(&mut Delta) -> &mut Vec<Pair>,
    ) {
        let mut gained: Vec<Option<Placed>> =
            std::mem::take(&mut self.gained).into_iter().map(Some).collect();
        for lost in std::mem::take(&mut self.lost) {
            match next(&lost).and_then(|index| gained.get_mut(index)?.take()) {
                Some(now) => {
                    self.note_uncollected(&lost, &now);
                    if !self.judge(&lost.test, &now) {
                        told(&mut self.delta).push(Pair { from: lost.name(), to: now.name() });
                    }
                }
                None => self.lost.push(lost),
            }
        }
        self.gained = gained.into_iter().flatten().collect();
    }

    /// A test can stand in a file that no runner looks into.
    fn note_uncollected(&mut self, from: &Placed, to: &Placed) {
        let collected =
            |file: &Path| Language::of(file).is_some_and(|language| language.is_collected(file));
        if from.file != to.file && collected(&from.file) && !collected(&to.file) {
            let (from, to) = (shown(&from.file), shown(&to.file));
            let note = format!(
                "{to}: holds tests from {from}, but its name is not one that runners look for"
            );
            if self.delta.notes.last() != Some(&note) {
                self.delta.notes.push(note);
            }
        }
    }
}

/// The tests of a file before and after, together by name: first those with the same words, then in
/// their order.
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

/// The name of a test without what it stands in.
fn own_name<'n>(file: &Path, name: &'n str) -> &'n str {
    let separator = match Language::of(file) {
        Some(Language::Rust) => "::",
        Some(Language::JavaScript | Language::TypeScript | Language::Tsx) => " > ",
        Some(Language::Python | Language::Go) | None => ".",
    };
    name.rsplit(separator).next().unwrap_or(name)
}

/// Whether a name stands in a text outside of its comments.
fn stands(name: &str, text: &[u8], comments: &[Range<usize>]) -> bool {
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
