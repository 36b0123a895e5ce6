//! Compares tests before and after a step: added, removed, skipped, emptied, moved and renamed
//! tests.

mod collected;
mod pairing;
mod switches;

use super::body::Body;
use super::changes::{IneffectiveTest, SelectionChange, TestDelta, TestName, WeakenedTest};
use super::parse::{Deadline, Language, ParseFailure, decoded};
use super::scope::Module;
use super::{Inventory, Test, TestState, doctests, read, selection};
use counterfoil_contract::text::{display_path, escape_control, join_limited, pluralize};
use memchr::memmem;
use pairing::pair;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use switches::Switches;

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
        let before = decoded(before.unwrap_or_default());
        let after = after.unwrap_or_default();
        // What was in another encoding may stay so: Python reads it if the file declares it.
        let after = if matches!(before, Cow::Owned(_)) { decoded(after) } else { after.into() };
        let (before, after) = (&*before, &*after);
        comparison.targets(path, after);
        comparison.examples(path, before, after);
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

#[derive(Default)]
struct Comparison {
    delta: TestDelta,
    removed: Vec<LocatedTest>,
    added: Vec<LocatedTest>,
    deleted: HashSet<PathBuf>,
    created: HashSet<PathBuf>,
    /// The modules of Rust that changed files declare, with these files.
    modules: Vec<(PathBuf, Module)>,
    /// The files of these modules, with the files that declare them.
    declared: HashMap<PathBuf, Vec<PathBuf>>,
    /// The files of Rust that changed manifests name.
    targets: HashSet<PathBuf>,
    /// The switches of each folder.
    switches: BTreeMap<PathBuf, Switches>,
    /// The modules that a Rust file no longer has.
    lost_modules: Vec<(PathBuf, Module)>,
}

impl Comparison {
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
        let Inventory { tests, broken, comments, switches, modules, idle, .. } = new;
        self.compare_switches(path, old.switches, switches);
        for module in old.modules.into_iter().filter(|module| !module.name.is_empty()) {
            if !modules.iter().any(|other| other.name == module.name)
                && (is_test_module(&module.name) || path.iter().any(|part| part == "tests"))
            {
                self.lost_modules.push((path.to_owned(), module));
            }
        }
        self.modules.extend(modules.into_iter().map(|module| (path.to_owned(), module)));
        let located = |test: Test| LocatedTest { file: path.to_owned(), test };
        let (mut unclear, mut looked) = (Vec::new(), 0);
        let mut is_less = false;
        for (before, now) in pair(old.tests, tests) {
            match (before, now) {
                (Some(before), Some(now)) => {
                    is_less |= now.body.checks.effective < before.body.checks.effective;
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
        // Where a test has lost assertions, they may be there.
        let was_idle = |name: &str| old.idle.iter().any(|(other, _)| other == name);
        for (name, line) in idle.into_iter().filter(|(name, _)| is_less && !was_idle(name)) {
            let what = format!("nothing calls `{name}`, which has assertions");
            self.delta.selection.push(SelectionChange { file: path.to_owned(), line, what });
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

    /// Reports examples of the documentation that are no longer executed.
    fn examples(&mut self, path: &Path, before: &[u8], after: &[u8]) {
        for line in doctests::switched_off(path, before, after) {
            let what = "an example of the documentation is no longer executed".to_owned();
            self.delta.selection.push(SelectionChange { file: path.to_owned(), line, what });
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
        self.declare();
        self.sort_added();
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
        let in_vain = self.added.iter().filter_map(|added| {
            let why = match added.test.state {
                TestState::Active => return None,
                TestState::Skipped => "it is skipped",
                TestState::Empty => "it checks nothing",
            };
            Some(IneffectiveTest { test: added.name(), why })
        });
        self.delta.added_in_vain = in_vain.collect();
        self.delta.added_in_vain.sort();
        let TestDelta { added, removed, skipped, emptied, .. } = &mut self.delta;
        for list in [added, removed, skipped, emptied] {
            list.sort();
        }
        self.delta.ineffective.sort();
        self.delta.selection.sort();
        self.delta.selection.dedup();
        self.delta
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
        // What expects the error of a helper takes the place of the helper.
        () if new.helpers < old.helpers
            && new.inverted > old.inverted
            && new.effective.saturating_add(old.inverted)
                < old.effective.saturating_add(new.inverted) =>
        {
            Some("an assertion is expected to fail")
        }
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
