//! The containers of tests: modules, classes, suites. Skipping a container skips everything in it,
//! even if the skip is found later.

use super::body::Body;
use super::source::Switch;
use super::{Test, TestState};

/// The maximum length of a prefix of container names. Deeper containers are not distinguished by
/// name.
const MAX_PREFIX: usize = 256;

/// The maximum length of one name.
const MAX_NAME: usize = 200;

/// Whether a test or a container is skipped. Of several skips, the last of these counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Skip {
    #[default]
    No,
    /// Under a condition that is not constant, such as the platform.
    Conditional,
    Always,
}

impl Skip {
    /// A skip whose condition is not constant, or one that always holds.
    pub(super) fn under(is_condition: bool) -> Self {
        if is_condition { Self::Conditional } else { Self::Always }
    }

    /// Whether there is a skip.
    pub(super) fn is_some(self) -> bool {
        self != Self::No
    }
}

impl From<bool> for Skip {
    fn from(skips: bool) -> Self {
        if skips { Self::Always } else { Self::No }
    }
}

/// A container of tests.
#[derive(Default)]
struct Scope {
    parent: usize,
    /// The names of all containers around it, with a separator at the end.
    prefix: String,
    skipped: Skip,
    /// The number of skips under a condition.
    conditions: u32,
    /// Whether it is marked with `only`.
    only: bool,
}

/// The index of a scope. The file is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ScopeId(usize);

impl ScopeId {
    /// The scope of the file.
    pub(super) const FILE: Self = Self(0);

    /// The number of the scope.
    pub(super) fn index(self) -> usize {
        self.0
    }
}

/// A test as found by the reader of a language.
pub(super) struct FoundTest {
    pub(super) name: String,
    pub(super) line: u32,
    pub(super) skipped: Skip,
    /// Whether its body has no effect, but for assertions on constants.
    pub(super) inert: bool,
    /// Whether the test is marked with `only`.
    pub(super) only: bool,
    pub(super) body: Body,
}

/// Collects the tests and containers of a file.
pub(super) struct TestCollector {
    scopes: Vec<Scope>,
    tests: Vec<(ScopeId, FoundTest)>,
    switches: Vec<Switch>,
    modules: Vec<(ScopeId, Module)>,
}

/// A module of Rust, or the text of one, that is in another file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Module {
    /// Its name; empty for a text that is included.
    pub(super) name: String,
    pub(super) line: u32,
    /// The path that is given for it.
    pub(super) path: Option<String>,
    /// The modules around it in its file, as a folder.
    pub(super) within: String,
}

/// What was found in a file.
pub(super) struct Found {
    /// The tests, in the order of their lines.
    pub(super) tests: Vec<Test>,
    /// The line of the first `only`.
    pub(super) only: Option<u32>,
    /// What decides about tests from outside of them.
    pub(super) switches: Vec<Switch>,
    /// The modules in other files.
    pub(super) modules: Vec<Module>,
}

impl Default for TestCollector {
    fn default() -> Self {
        Self {
            scopes: vec![Scope::default()],
            tests: Vec::new(),
            switches: Vec::new(),
            modules: Vec::new(),
        }
    }
}

impl TestCollector {
    /// Adds a scope inside another.
    pub(super) fn enter(&mut self, outer: ScopeId, name: &str, separator: &str) -> ScopeId {
        let around =
            self.scopes.get(outer.0).map(|scope| scope.prefix.as_str()).unwrap_or_default();
        let mut prefix = around.to_owned();
        if prefix.len() < MAX_PREFIX {
            prefix.push_str(cut(name, MAX_NAME));
            prefix.push_str(separator);
        }
        self.scopes.push(Scope { parent: outer.0, prefix, ..Scope::default() });
        ScopeId(self.scopes.len() - 1)
    }

    /// Marks a scope as skipped.
    pub(super) fn skip(&mut self, scope: ScopeId, skip: Skip) {
        if let Some(scope) = self.scopes.get_mut(scope.0) {
            scope.skipped = scope.skipped.max(skip);
        }
    }

    /// Marks a scope as skipped under a condition.
    pub(super) fn condition(&mut self, scope: ScopeId) {
        if let Some(scope) = self.scopes.get_mut(scope.0) {
            scope.conditions = scope.conditions.saturating_add(1);
        }
    }

    /// Marks a test as skipped.
    pub(super) fn skip_test(&mut self, index: usize) {
        if let Some((_, test)) = self.tests.get_mut(index) {
            test.skipped = Skip::Always;
        }
    }

    /// Marks a test as skipped under a condition.
    pub(super) fn condition_test(&mut self, index: usize) {
        if let Some((_, test)) = self.tests.get_mut(index) {
            test.body.add_conditions(1);
        }
    }

    /// Adds what decides about tests from outside of them.
    pub(super) fn switches(&mut self, switches: impl IntoIterator<Item = Switch>) {
        self.switches.extend(switches);
    }

    /// Adds a module that is in another file.
    pub(super) fn module(&mut self, scope: ScopeId, name: &str, line: u32, path: Option<String>) {
        let around = self.scopes.get(scope.0).map(|scope| scope.prefix.as_str());
        let within = around.unwrap_or_default().replace("::", "/");
        self.modules.push((scope, Module { name: name.to_owned(), line, path, within }));
    }

    /// Whether a scope is marked as skipped.
    pub(super) fn is_skipped(&self, scope: ScopeId) -> bool {
        self.scopes.get(scope.0).is_some_and(|scope| scope.skipped.is_some())
    }

    /// Marks a scope with `only`.
    pub(super) fn only(&mut self, scope: ScopeId) {
        if let Some(scope) = self.scopes.get_mut(scope.0) {
            scope.only = true;
        }
    }

    /// Adds a test to a scope.
    pub(super) fn add(&mut self, scope: ScopeId, test: FoundTest) {
        self.tests.push((scope, test));
    }

    /// The number of tests so far.
    pub(super) fn count(&self) -> usize {
        self.tests.len()
    }

    /// What was found, with the final states of the tests.
    pub(super) fn finish(mut self) -> Found {
        // Containers come before their contents, so one pass is enough.
        for index in 1..self.scopes.len() {
            let outer = self.scopes.get(self.scopes[index].parent);
            let (skipped, conditions, only) = outer
                .map(|scope| (scope.skipped, scope.conditions, scope.only))
                .unwrap_or_default();
            let scope = &mut self.scopes[index];
            scope.skipped = scope.skipped.max(skipped);
            scope.conditions = scope.conditions.saturating_add(conditions);
            scope.only |= only;
        }
        let chosen = |scope: ScopeId, test: &FoundTest| test.only || self.scopes[scope.0].only;
        let lines = self
            .tests
            .iter()
            .filter(|(scope, test)| chosen(*scope, test))
            .map(|(_, test)| test.line);
        let only = lines.min();
        let mut tests: Vec<Test> = self
            .tests
            .iter()
            .map(|(scope, test)| {
                let left_out = only.is_some() && !chosen(*scope, test);
                let around = &self.scopes[scope.0];
                let skipped = test.skipped.max(around.skipped).max(Skip::from(left_out));
                let state = match () {
                    () if test.inert && !test.body.checks.may_fail() => TestState::Empty,
                    () if skipped.is_some() => TestState::Skipped,
                    () => TestState::Active,
                };
                let name = format!("{}{}", around.prefix, cut(&test.name, MAX_NAME));
                let mut body = test.body.clone();
                body.is_inert = test.inert;
                body.add_conditions(around.conditions);
                let may_run = skipped != Skip::Always;
                Test { name, state, line: test.line, may_run, body }
            })
            .collect();
        tests.sort_by_key(|test| test.line);
        let is_built = |scope: ScopeId| self.scopes[scope.0].skipped != Skip::Always;
        let modules = self.modules.into_iter().filter(|(scope, _)| is_built(*scope));
        let modules = modules.map(|(_, module)| module).collect();
        Found { tests, only, switches: self.switches, modules }
    }
}

fn cut(name: &str, most: usize) -> &str {
    name.get(..name.floor_char_boundary(most)).unwrap_or(name)
}
