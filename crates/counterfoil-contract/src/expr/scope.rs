//! What an expression may use: variables with their types, and what is known of their values at
//! that point.

use super::path::Path;
use super::types::Type;
use std::collections::{BTreeMap, BTreeSet};

/// The variables an expression may use, with their types.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    pub(super) variables: BTreeMap<String, Type>,
    pub(super) known: Facts,
    /// Variables that the expression itself introduces.
    pub(super) local: BTreeSet<String>,
    /// Those among them that may hold objects which the expression builds: null is no absence in
    /// these.
    pub(super) built: BTreeSet<String>,
}

/// What is known of places: that they are there, that they are not null.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts(pub(super) BTreeSet<(Path, Fact)>);

/// One thing known of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fact {
    Present,
    NotNull,
}

/// Something whose truth says more about the variables: a [`Checked`](super::Checked) or an
/// [`Expression`](super::Expression).
pub trait Proof {
    /// What is known where it is true.
    fn when_true(&self) -> &Facts;
    /// What is known where it is false.
    fn when_false(&self) -> &Facts;
}

impl Facts {
    pub(super) fn one(path: Path, fact: Fact) -> Self {
        Self(BTreeSet::from([(path, fact)]))
    }

    pub(super) fn and(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).cloned().collect())
    }

    pub(super) fn common(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).cloned().collect())
    }

    pub(super) fn is_present(&self, path: &Path) -> bool {
        [Fact::Present, Fact::NotNull].iter().any(|fact| self.0.contains(&(path.clone(), *fact)))
    }

    pub(super) fn is_not_null(&self, path: &Path) -> bool {
        self.0.contains(&(path.clone(), Fact::NotNull))
    }
}

impl Scope {
    /// A scope with one variable.
    pub fn of(name: &str, ty: Type) -> Self {
        Self::default().with(name, ty)
    }

    /// Adds a variable; what was known of another one by that name is forgotten.
    #[must_use]
    pub fn with(mut self, name: &str, ty: Type) -> Self {
        self.known.0.retain(|(path, _)| path.root != name);
        self.local.remove(name);
        self.built.remove(name);
        self.variables.insert(name.to_owned(), ty);
        self
    }

    /// Adds what another expression proved by being true.
    #[must_use]
    pub fn knowing(mut self, proof: &impl Proof) -> Self {
        self.known = self.known.and(proof.when_true());
        self
    }

    /// Adds what another expression proved by being false.
    #[must_use]
    pub fn knowing_not(mut self, proof: &impl Proof) -> Self {
        self.known = self.known.and(proof.when_false());
        self
    }

    /// The scope inside a comprehension over items of a type, at a place if they are not computed.
    pub(super) fn with_local(&self, name: &str, ty: Type, range: Option<&Path>) -> Self {
        let is_built = range.is_none_or(|range| self.built.contains(&range.root));
        let mut scope = self.clone().with(name, ty);
        scope.local.insert(name.to_owned());
        if is_built {
            scope.built.insert(name.to_owned());
        }
        scope
    }

    pub(super) fn and(&self, facts: &Facts) -> Self {
        let mut scope = self.clone();
        scope.known = scope.known.and(facts);
        scope
    }
}
