//! Finds the test after a step that a test before it has become: by name in the same file, then by
//! name, body or similarity among those that were removed and added.

use super::super::Test;
use super::super::body::Body;
use super::super::changes::{TestDelta, TestPair};
use super::super::parse::Language;
use super::collected::{Collected, by_name};
use super::{Comparison, LocatedTest};
use counterfoil_contract::text::display_path;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::path::{Path, PathBuf};

/// The maximum number of tokens that are compared to find tests that were renamed and edited.
const MAX_COMPARED_TOKENS: usize = 20_000_000;

/// Pairs the tests of a file before and after by name: first those with equal bodies, then the rest
/// in order.
pub(super) fn pair(before: Vec<Test>, after: Vec<Test>) -> Vec<(Option<Test>, Option<Test>)> {
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

impl Comparison {
    /// Pairs removed and added tests with equal keys.
    pub(super) fn pair_by_key<K: Hash + Eq>(
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
    pub(super) fn pair_similar(&mut self) {
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
                    if self.note_uncollected(&removed, &now) {
                        self.delta.removed.push(removed.name());
                        continue;
                    }
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

    /// Notes a test that was moved to a file in which no runner looks for tests. Returns whether it
    /// was.
    fn note_uncollected(&mut self, from: &LocatedTest, to: &LocatedTest) -> bool {
        let before = Language::from_path(&from.file)
            .map_or(Collected::Never, |language| by_name(language, &from.file));
        let is_lost = from.file != to.file && before.is_lost_in(self.collected(&to.file));
        if is_lost {
            let (from, to) = (display_path(&from.file), display_path(&to.file));
            let note = format!(
                "{to}: contains tests from {from}, but test runners do not collect files with this name"
            );
            if self.delta.notes.last() != Some(&note) {
                self.delta.notes.push(note);
            }
        }
        is_lost
    }
}
