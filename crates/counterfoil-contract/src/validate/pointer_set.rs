//! A set of JSON pointers, by their hashes: a million long pointers must not be kept as texts.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// A set of JSON pointers. Two pointers have the same hash by chance only, once in 2^64.
#[derive(Clone, Debug, Default)]
pub(crate) struct PointerSet {
    state: RandomState,
    hashes: HashSet<u64>,
}

impl PointerSet {
    /// Adds a pointer.
    pub(crate) fn insert(&mut self, pointer: &str) {
        self.hashes.insert(self.state.hash_one(pointer));
    }

    /// The hash of a pointer in this set.
    pub(crate) fn hash(&self, pointer: &str) -> u64 {
        self.state.hash_one(pointer)
    }

    /// Whether the pointer is in the set.
    pub(crate) fn contains(&self, pointer: &str) -> bool {
        !self.hashes.is_empty() && self.hashes.contains(&self.state.hash_one(pointer))
    }

    /// Whether a pointer to a value around this one is in the set. The root does not count.
    pub(crate) fn contains_around(&self, pointer: &str) -> bool {
        !self.hashes.is_empty()
            && pointer
                .match_indices('/')
                .skip(1)
                .any(|(end, _)| self.hashes.contains(&self.state.hash_one(&pointer[..end])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_found_itself_and_above() {
        let mut set = PointerSet::default();
        set.insert("/a/b");
        assert!(set.contains("/a/b") && !set.contains("/a") && !set.contains("/a/b/c"));
        assert!(set.contains_around("/a/b/c") && set.contains_around("/a/b/c/d"));
        assert!(!set.contains_around("/a/b") && !set.contains_around("/a/bc"));
        set.insert("");
        assert!(!set.contains_around("/x"), "the root");
    }
}
