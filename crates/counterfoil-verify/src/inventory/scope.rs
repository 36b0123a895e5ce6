//! What tests stand in: modules, classes, suites. A skip of one is a skip of everything in it, also
//! if it is said behind it.

use super::body::Body;
use super::{State, Test};

/// The longest prefix of names: what nests deeper is not told apart by name.
const MAX_PREFIX: usize = 256;

/// The longest name of one thing.
const MAX_NAME: usize = 200;

/// Something that tests stand in.
#[derive(Default)]
struct Scope {
    parent: usize,
    /// The names of everything around, with the separator at its end.
    prefix: String,
    skipped: bool,
    /// Only what stands in it runs.
    only: bool,
}

/// A scope, by its place in the list; the file is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScopeId(usize);

impl ScopeId {
    /// The file itself.
    pub(super) const FILE: Self = Self(0);
}

/// A test as a language finds it.
pub(super) struct Found {
    pub(super) name: String,
    pub(super) line: u32,
    pub(super) skipped: bool,
    pub(super) empty: bool,
    /// Only it runs.
    pub(super) only: bool,
    pub(super) body: Body,
}

/// The tests of a file and what they stand in.
pub(super) struct Findings {
    scopes: Vec<Scope>,
    tests: Vec<(ScopeId, Found)>,
}

impl Default for Findings {
    fn default() -> Self {
        Self { scopes: vec![Scope::default()], tests: Vec::new() }
    }
}

impl Findings {
    /// A scope inside another.
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

    /// Everything in a scope is skipped.
    pub(super) fn skip(&mut self, scope: ScopeId) {
        if let Some(scope) = self.scopes.get_mut(scope.0) {
            scope.skipped = true;
        }
    }

    /// Only what stands in a scope runs.
    pub(super) fn only(&mut self, scope: ScopeId) {
        if let Some(scope) = self.scopes.get_mut(scope.0) {
            scope.only = true;
        }
    }

    /// A test in a scope.
    pub(super) fn add(&mut self, scope: ScopeId, test: Found) {
        self.tests.push((scope, test));
    }

    /// How many tests there are so far.
    pub(super) fn count(&self) -> usize {
        self.tests.len()
    }

    /// The tests as they stand, and the line of the first that keeps others from running.
    pub(super) fn settle(mut self) -> (Vec<Test>, Option<u32>) {
        // Whoever is around comes before, so one pass hands everything down.
        for index in 1..self.scopes.len() {
            let outer =
                self.scopes.get(self.scopes[index].parent).map(|scope| (scope.skipped, scope.only));
            let (skipped, only) = outer.unwrap_or_default();
            self.scopes[index].skipped |= skipped;
            self.scopes[index].only |= only;
        }
        let chosen = |scope: ScopeId, test: &Found| test.only || self.scopes[scope.0].only;
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
                let state = match () {
                    () if test.empty => State::Empty,
                    () if test.skipped || around.skipped || left_out => State::Skipped,
                    () => State::Active,
                };
                let name = format!("{}{}", around.prefix, cut(&test.name, MAX_NAME));
                Test { name, state, line: test.line, body: test.body.clone() }
            })
            .collect();
        tests.sort_by_key(|test| test.line);
        (tests, only)
    }
}

fn cut(name: &str, most: usize) -> &str {
    name.get(..name.floor_char_boundary(most)).unwrap_or(name)
}
