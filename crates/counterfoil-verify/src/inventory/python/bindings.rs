//! The names of a module and its classes: what a later statement replaces or removes, and what
//! fixtures skip.

use super::super::scope::{ScopeId, Skip, TestCollector};
use super::super::source::Switch;
use std::collections::{HashMap, HashSet};

/// What a name is bound to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// The test with this index.
    Test(usize),
    /// A class, and whether it has base classes.
    Class(ScopeId, bool),
    /// Something that is no test, or nothing.
    Other,
}

/// A name that is bound in a scope.
pub(super) struct Binding {
    pub(super) scope: ScopeId,
    pub(super) name: String,
    /// The position in the file.
    pub(super) at: usize,
    pub(super) bound: Bound,
    /// The number of conditions around it.
    pub(super) conditions: u32,
}

/// A change of something that is reached by the names of its owners: `TestA.test_b = None`.
struct Change {
    scope: ScopeId,
    owners: Vec<String>,
    /// The name that is replaced; none if the owner itself is switched off.
    name: Option<String>,
    at: usize,
    conditions: u32,
    /// What is reported if the owner is not found.
    switch: Option<Switch>,
}

/// All names of a file.
#[derive(Default)]
pub(super) struct Bindings {
    bound: Vec<Binding>,
    changes: Vec<Change>,
    /// The names of fixtures that skip.
    skipping: HashSet<String>,
    /// The fixtures that each test uses.
    used: Vec<(usize, Vec<String>)>,
    constructors: Vec<ScopeId>,
    imported: HashSet<String>,
}

impl Bindings {
    pub(super) fn add(&mut self, binding: Binding) {
        self.bound.push(binding);
    }

    /// Records that a name is replaced by something that is no test.
    pub(super) fn replace(
        &mut self,
        scope: ScopeId,
        owners: &[&str],
        name: &str,
        at: usize,
        conditions: u32,
    ) {
        let owners = owners.iter().map(|owner| (*owner).to_owned()).collect();
        self.changes.push(Change {
            scope,
            owners,
            name: Some(name.to_owned()),
            at,
            conditions,
            switch: None,
        });
    }

    /// Records that a test or class is switched off by an attribute. If it is neither, `switch` is
    /// reported.
    pub(super) fn off(
        &mut self,
        scope: ScopeId,
        owners: &[&str],
        conditions: u32,
        switch: Option<Switch>,
    ) {
        let owners = owners.iter().map(|owner| (*owner).to_owned()).collect();
        let (name, at) = (None, usize::MAX);
        self.changes.push(Change { scope, owners, name, at, conditions, switch });
    }

    /// Records that a name is imported.
    pub(super) fn import(&mut self, name: &str) {
        self.imported.insert(name.to_owned());
    }

    pub(super) fn is_imported(&self, name: &str) -> bool {
        self.imported.contains(name)
    }

    pub(super) fn skipping_fixture(&mut self, name: &str) {
        self.skipping.insert(name.to_owned());
    }

    pub(super) fn uses(&mut self, test: usize, fixtures: impl Iterator<Item = String>) {
        self.used.push((test, fixtures.collect()));
    }

    pub(super) fn constructor(&mut self, scope: ScopeId) {
        self.constructors.push(scope);
    }

    /// Marks the tests that do not run.
    pub(super) fn apply(mut self, found: &mut TestCollector) {
        for (test, fixtures) in &self.used {
            if fixtures.iter().any(|name| self.skipping.contains(name)) {
                found.condition_test(*test);
            }
        }
        let classes: HashMap<(usize, &str), ScopeId> = self
            .bound
            .iter()
            .filter_map(|binding| match binding.bound {
                Bound::Class(inner, _) => {
                    Some(((binding.scope.index(), binding.name.as_str()), inner))
                }
                _ => None,
            })
            .collect();
        let bound: HashSet<(usize, &str)> = self
            .bound
            .iter()
            .filter(|binding| binding.bound != Bound::Other)
            .map(|binding| (binding.scope.index(), binding.name.as_str()))
            .collect();
        let mut others = Vec::new();
        for change in &self.changes {
            let (mut scope, mut owners) = (change.scope, change.owners.as_slice());
            let mut name = change.name.as_deref();
            if name.is_none()
                && let Some((last, rest)) = owners.split_last()
            {
                (name, owners) = (Some(last.as_str()), rest);
            }
            let known = owners.iter().all(|owner| {
                classes.get(&(scope.index(), owner.as_str())).is_some_and(|inner| {
                    scope = *inner;
                    true
                })
            });
            let is_found = known && name.is_some_and(|name| bound.contains(&(scope.index(), name)));
            found.switches(change.switch.clone().filter(|_| !is_found));
            if let Some(name) = name.filter(|_| known) {
                others.push(Binding {
                    scope,
                    name: name.to_owned(),
                    at: change.at,
                    bound: Bound::Other,
                    conditions: change.conditions,
                });
            }
        }
        let plain: HashSet<ScopeId> = self
            .bound
            .iter()
            .filter_map(|binding| match binding.bound {
                Bound::Class(scope, false) => Some(scope),
                _ => None,
            })
            .collect();
        for scope in self.constructors.iter().filter(|scope| plain.contains(scope)) {
            found.skip(*scope, Skip::Always);
        }
        drop((classes, bound));
        self.bound.append(&mut others);
        self.mark_replaced(found);
    }

    fn mark_replaced(mut self, found: &mut TestCollector) {
        // From the end: what follows decides.
        self.bound.sort_by_key(|binding| std::cmp::Reverse(binding.at));
        let mut later: HashMap<(usize, String), (bool, bool)> = HashMap::new();
        for binding in self.bound {
            let key = (binding.scope.index(), binding.name);
            let (always, sometimes) = later.get(&key).copied().unwrap_or_default();
            match binding.bound {
                Bound::Test(index) if always => found.skip_test(index),
                Bound::Test(index) if sometimes => found.condition_test(index),
                Bound::Class(scope, _) if always => found.skip(scope, Skip::Always),
                Bound::Class(scope, _) if sometimes => found.condition(scope),
                _ => {}
            }
            let entry = later.entry(key).or_default();
            // A definition under a condition is one of several.
            entry.0 |= binding.conditions == 0;
            entry.1 |= binding.conditions > 0 && binding.bound == Bound::Other;
        }
    }
}
