//! The scope of an expression: variables with their types, and facts about their values.

use super::path::Path;
use super::types::Type;
use std::collections::{BTreeMap, BTreeSet};

/// The variables an expression may use, with their types.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    pub(super) variables: BTreeMap<String, Type>,
    pub(super) known: Facts,
    /// Variables that the expression introduces itself, in comprehensions.
    pub(super) local: BTreeSet<String>,
    /// Local variables that may hold objects constructed by the expression. In these objects, null
    /// does not stand for an absent field.
    pub(super) constructed: BTreeSet<String>,
}

/// Facts about paths: that a value is present, or that it is not null.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts(pub(super) BTreeSet<(Path, Fact)>);

/// A fact about one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fact {
    Present,
    NotNull,
}

/// A condition whose outcome narrows the types of variables: a [`Checked`](super::Checked) or an
/// [`Expression`](super::Expression).
pub trait Proof {
    /// Facts that hold where the condition is true.
    fn when_true(&self) -> &Facts;
    /// Facts that hold where the condition is false.
    fn when_false(&self) -> &Facts;
}

impl Facts {
    pub(super) fn single(path: Path, fact: Fact) -> Self {
        Self(BTreeSet::from([(path, fact)]))
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).cloned().collect())
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
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
    pub fn for_variable(name: &str, ty: Type) -> Self {
        Self::default().with(name, ty)
    }

    /// Adds a variable. Facts about an earlier variable of the same name are dropped.
    #[must_use]
    pub fn with(mut self, name: &str, ty: Type) -> Self {
        self.known.0.retain(|(path, _)| path.root != name);
        self.local.remove(name);
        self.constructed.remove(name);
        self.variables.insert(name.to_owned(), ty);
        self
    }

    /// Adds the facts that hold when another expression is true.
    #[must_use]
    pub fn assuming(mut self, proof: &impl Proof) -> Self {
        self.known = self.known.union(proof.when_true());
        self
    }

    /// Adds the facts that hold when another expression is false.
    #[must_use]
    pub fn assuming_not(mut self, proof: &impl Proof) -> Self {
        self.known = self.known.union(proof.when_false());
        self
    }

    /// The scope inside a comprehension. `range` is the path of the list, or `None` if the list is
    /// computed.
    pub(super) fn with_local(&self, name: &str, ty: Type, range: Option<&Path>) -> Self {
        let is_constructed = range.is_none_or(|range| self.constructed.contains(&range.root));
        let mut scope = self.clone().with(name, ty);
        scope.local.insert(name.to_owned());
        if is_constructed {
            scope.constructed.insert(name.to_owned());
        }
        scope
    }

    pub(super) fn with_facts(&self, facts: &Facts) -> Self {
        let mut scope = self.clone();
        scope.known = scope.known.union(facts);
        scope
    }
}
