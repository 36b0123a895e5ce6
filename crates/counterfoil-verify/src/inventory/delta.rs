//! Compares tests before and after a step: added, removed, skipped, emptied, moved and renamed
//! tests.

use super::body::Body;
use super::changes::{
    IneffectiveTest, SelectionChange, TestDelta, TestName, TestPair, WeakenedTest,
};
use super::parse::{Deadline, Language, ParseFailure};
use super::source::Switch;
use super::{Inventory, Test, TestState, read, selection};
use counterfoil_contract::text::{display_path, escape_control, join_limited, pluralize};
use memchr::memmem;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The maximum number of tokens that are compared to find tests that were renamed and edited.
const MAX_COMPARED_TOKENS: usize = 20_000_000;

/// The maximum number of tests that are searched by name in a file with a syntax error.
const MAX_NAME_SEARCHES: usize = 200;

/// The maximum number of names in a note.
const MAX_LISTED: usize = 5;

/// Compares the tests of files before and after a step. A missing file has no tests.
pub fn compare<'a, B: AsRef<[u8]>>(
    files: impl Iterator<Item = (&'a Path, Option<B>, Option<B>)>,
) -> TestDelta {
    let mut comparison = Comparison::default();
    let deadline = Deadline::after(Deadline::PER_STEP);
    for (path, before, after) in files {
        let (before, after) =
            (before.as_ref().map(AsRef::as_ref), after.as_ref().map(AsRef::as_ref));
        if before == after {
            continue;
        }
        if after.is_none() {
            comparison.deleted.insert(path.to_owned());
        }
        if before.is_none() {
            comparison.created.insert(path.to_owned());
        }
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        if selection::is_settings_file(path) {
            comparison.settings(path, before, after, deadline);
        }
        comparison.file(path, before, after, deadline);
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

/// The switches before and after the step, with their files.
#[derive(Default)]
struct Switches {
    before: Vec<Switch>,
    after: Vec<(PathBuf, Switch)>,
}

#[derive(Default)]
struct Comparison {
    delta: TestDelta,
    removed: Vec<LocatedTest>,
    added: Vec<LocatedTest>,
    deleted: HashSet<PathBuf>,
    created: HashSet<PathBuf>,
    /// The switches of each folder.
    switches: BTreeMap<PathBuf, Switches>,
    /// The modules that a Rust file no longer has.
    lost_modules: Vec<(PathBuf, String, u32)>,
}

impl Comparison {
    /// Compares the settings of a test runner.
    fn settings(&mut self, path: &Path, before: &[u8], after: &[u8], deadline: Deadline) {
        let old = selection::read(path, before, deadline);
        let new = selection::read(path, after, deadline);
        match (old, new) {
            (Ok(old), Ok(mut new)) => {
                selection::keep_known(path, before, &mut new);
                self.compare_switches(path, old, new);
            }
            // Without what was before, it cannot be told what the step changed.
            (_, Err(problem)) | (Err(problem), _) => {
                self.delta.is_incomplete = true;
                self.delta.notes.push(format!(
                    "{}: it cannot be told which tests it selects: {problem}",
                    display_path(path)
                ));
            }
        }
    }

    fn compare_switches(&mut self, path: &Path, old: Vec<Switch>, new: Vec<Switch>) {
        if old.is_empty() && new.is_empty() {
            return;
        }
        let folder = path.parent().unwrap_or(path).to_owned();
        let switches = self.switches.entry(folder).or_default();
        switches.before.extend(old);
        switches.after.extend(new.into_iter().map(|switch| (path.to_owned(), switch)));
    }

    /// Reports switches that are new in their folder.
    fn report_switches(&mut self) {
        for Switches { before, after } in std::mem::take(&mut self.switches).into_values() {
            let mut known: HashMap<String, usize> = HashMap::new();
            let mut selected: HashMap<String, BTreeSet<String>> = HashMap::new();
            for switch in before {
                selected.extend(switch.selects);
                *known.entry(switch.key).or_default() += 1;
            }
            for (file, switch) in after {
                let selects_more = switch.selects.as_ref().is_some_and(|(name, now)| {
                    selected.get(name).map_or(switch.is_usual, |before| before.is_subset(now))
                });
                let folder = file.parent().unwrap_or(Path::new(""));
                let is_created = |name: &PathBuf| self.created.contains(&folder.join(name));
                // Where the settings were there before, tests may have run without the manifest.
                let is_new = switch.about.iter().any(is_created)
                    || self.created.contains(&file)
                        && switch.manifest.as_ref().is_some_and(is_created);
                if selects_more || is_new {
                    continue;
                }
                match known.get_mut(&switch.key) {
                    Some(times @ 1..) => *times -= 1,
                    _ => self.delta.selection.push(SelectionChange {
                        file,
                        line: switch.line,
                        what: switch.what,
                    }),
                }
            }
        }
        for (file, name, line) in std::mem::take(&mut self.lost_modules) {
            let folder = file.parent().unwrap_or(Path::new(""));
            let stem = file.file_stem().unwrap_or_default();
            let is_root = ["lib", "main", "mod"].iter().any(|root| stem == *root);
            let folder = if is_root { folder.to_owned() } else { folder.join(stem) };
            let places = [folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs")];
            if !places.iter().any(|place| self.deleted.contains(place)) {
                let what =
                    format!("no longer declares the module `{name}`, so its tests do not run");
                self.delta.selection.push(SelectionChange { file, line, what });
            }
        }
    }

    fn file(&mut self, path: &Path, before: &[u8], after: &[u8], deadline: Deadline) {
        let (old, new) = match (read(path, before, deadline), read(path, after, deadline)) {
            (Ok(old), Ok(new)) => (old, new),
            (old, new) => return self.report_unreadable(path, old, new),
        };
        if old.only.is_none()
            && let Some(line) = new.only
            && new.tests.iter().any(|test| test.state == TestState::Skipped)
        {
            let left = new.tests.iter().filter(|test| test.state == TestState::Skipped).count();
            let left = pluralize(left, "test");
            self.delta
                .notes
                .push(format!("{}:{line}: `only` excludes {left} of the file", display_path(path)));
        }
        if old.only.is_none()
            && let Some(line) = new.only
            && new.tests.iter().all(|test| test.state != TestState::Skipped)
        {
            // Some runners leave out the tests of other files as well.
            let what = "`only` may exclude the tests of other files".to_owned();
            self.delta.selection.push(SelectionChange { file: path.to_owned(), line, what });
        }
        let Inventory { tests, broken, comments, switches, modules, .. } = new;
        self.compare_switches(path, old.switches, switches);
        for (name, line) in old.modules {
            if !modules.iter().any(|(other, _)| *other == name)
                && (is_test_module(&name) || path.iter().any(|part| part == "tests"))
            {
                self.lost_modules.push((path.to_owned(), name, line));
            }
        }
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
        let is_test_file =
            || Language::from_path(path).is_some_and(|language| language.is_collected(path));
        let had = match &old {
            Ok(old) => !old.tests.is_empty() || !old.switches.is_empty(),
            Err(_) => is_test_file(),
        };
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
            (TestState::Active | TestState::Skipped, _)
                if has_only_constants_left(&before.body, &now.test.body) =>
            {
                self.delta.emptied.push(now.name());
            }
            (TestState::Active, TestState::Skipped) => self.delta.skipped.push(now.name()),
            (TestState::Active, TestState::Active) if skips_more(&before.body, &now.test.body) => {
                self.delta.skipped.push(now.name());
            }
            _ => {
                if before.state != TestState::Empty
                    && let Some(why) = lost_effect(&before.body, &now.test.body)
                {
                    self.delta.ineffective.push(IneffectiveTest { test: now.name(), why });
                }
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
        self.report_switches();
        self.delta.removed.extend(self.removed.iter().map(LocatedTest::name));
        self.delta.added = self.added.iter().map(LocatedTest::name).collect();
        let TestDelta { added, removed, skipped, emptied, .. } = &mut self.delta;
        for list in [added, removed, skipped, emptied] {
            list.sort();
        }
        self.delta.ineffective.sort();
        self.delta.selection.sort();
        self.delta.selection.dedup();
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
        let collected = |file: &Path| {
            Language::from_path(file).is_some_and(|language| language.is_collected(file))
        };
        let is_lost = from.file != to.file && collected(&from.file) && !collected(&to.file);
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

/// Whether a test is skipped under more conditions than before.
fn skips_more(before: &Body, now: &Body) -> bool {
    now.checks.conditional_skips > before.checks.conditional_skips
}

/// Whether a test uses only constants now, and is not known to fail.
fn has_only_constants_left(before: &Body, now: &Body) -> bool {
    now.is_inert && !before.is_inert && now.checks.failing == 0
}

/// Why a test cannot fail any more as it did, if so.
fn lost_effect(before: &Body, now: &Body) -> Option<&'static str> {
    let (old, new) = (before.checks, now.checks);
    let fewer = new.effective < old.effective;
    match () {
        () if new.escapes && !old.escapes => Some("its failures are discarded"),
        // One more that cannot fail takes nothing away from the others.
        () if fewer && (new.disarmed > old.disarmed || new.constant > old.constant) => {
            Some("an assertion cannot fail")
        }
        () if now.expects_failure && !before.expects_failure => Some("it is expected to fail"),
        // A new name may be that of a function with the assertions.
        () if fewer && new.effective == 0 && now.calls_only_names_of(before) => {
            Some("no assertion is left")
        }
        () => None,
    }
}

/// Whether a module has tests by its name.
fn is_test_module(name: &str) -> bool {
    name.split('_').any(|part| matches!(part, "test" | "tests"))
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
